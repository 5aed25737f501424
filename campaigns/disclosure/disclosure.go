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

// Said are the texts of a campaign's calls, in every language of its market package.
type Said struct {
	pkg    *market.Package
	speech store.Speech
}

// Of returns what calls of a campaign begin with; nothing where there is no market
// package.
func (t Texts) Of(ctx context.Context, q db.Querier, c campaigns.Campaign) (s Said, err error) {
	org, err := t.Store.Organization(ctx, q, c.OrgID)
	if err != nil {
		return s, err
	}
	if s.pkg, err = t.Markets.Package(ctx, q, org.Market, org.Rules); err != nil || s.pkg == nil {
		return s, err
	}
	s.speech, err = t.Store.Speech(ctx, q, c.OrgID, c.ID, c.AgentID)
	return s, err
}

// In is what a call begins with (place.Outgoing.Disclosure), in the language of
// the contact or, where it names none, of the agent: who calls, that it is
// automated, that it is recorded where it is, and how not to be called again. It
// is empty where it was switched off; a key that is not named is none.
func (s Said) In(language string) (text string, ways control.OptOutWays) {
	if s.pkg == nil {
		return "", ways
	}
	ways.Phrases = s.pkg.Phrases()
	if !s.speech.Disclosed {
		return "", ways
	}
	if language == "" {
		language = s.speech.Language
	}
	said := s.pkg.Disclosure(language)
	ways.Key = said.Key()
	return said.Text(s.speech.Agent, s.speech.Organization, s.speech.Recorded), ways
}
