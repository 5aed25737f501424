// Package disclosure says what the law wants said at the beginning of campaigns'
// calls.
package disclosure

import (
	"context"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// Markets finds market packages.
type Markets interface {
	Package(ctx context.Context, q db.Querier, code, version string) (*market.Package, error)
}

// Texts makes the texts.
type Texts struct {
	Store   *store.Store
	Markets Markets
}

// Of is what a campaign's call begins with (place.Outgoing.Disclosure), in the
// language of the contact or, where it names none, of the agent: who calls, that
// it is automated, that it is recorded where it is, and how not to be called
// again. It is empty where it was switched off, or there is no market package; a
// key that is not named is none.
func (t Texts) Of(ctx context.Context, q db.Querier, c campaigns.Campaign, language string) (text string, ways control.OptOutWays, err error) {
	org, err := t.Store.Organization(ctx, q, c.OrgID)
	if err != nil {
		return "", ways, err
	}
	pkg, err := t.Markets.Package(ctx, q, org.Market, org.Rules)
	if err != nil || pkg == nil {
		return "", ways, err
	}
	ways.Phrases = pkg.Phrases()
	x, err := t.Store.Speech(ctx, q, c.OrgID, c.ID, c.AgentID)
	if err != nil || !x.Disclosed {
		return "", ways, err
	}
	if language == "" {
		language = x.Language
	}
	said := pkg.Disclosure(language)
	ways.Key = said.Key()
	return said.Text(x.Agent, x.Organization, x.Recorded), ways, nil
}
