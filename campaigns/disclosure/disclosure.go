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

// Said are the texts of a campaign's calls, in every language of its market package.
type Said struct {
	pkg    *market.Package
	speech store.Speech
}

// Of returns what calls of a campaign begin with, by the rules of its market.
func Of(ctx context.Context, q db.Querier, from *store.Store, c campaigns.Campaign, rules *market.Package) (Said, error) {
	speech, err := from.Speech(ctx, q, c.OrgID, c.ID, c.AgentID)
	return Said{pkg: rules, speech: speech}, err
}

// In is what a call begins with (place.Outgoing.Disclosure), in the language of
// the contact or, where it names none, of the agent: who calls, that it is
// automated, that it is recorded where it is, and how not to be called again. It
// is empty where it was switched off; a key that is not named is none.
func (s Said) In(language string) (text string, ways control.OptOutWays) {
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
