package pgqueue

import (
	"context"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// A Disclosure is the opening statement of a campaign's calls, in every language of its
// market.
type Disclosure struct {
	pkg      *market.Package
	settings store.DisclosureSettings
}

// LoadDisclosure loads the disclosure of a campaign by the rules of its market.
func LoadDisclosure(ctx context.Context, q db.Querier, from *store.Store, c campaigns.Campaign, rules *market.Package) (Disclosure, error) {
	settings, err := from.DisclosureSettings(ctx, q, c.ID)
	return Disclosure{pkg: rules, settings: settings}, err
}

// Text returns the disclosure in a language, or in the agent's language if language is empty. The disclosure states
// the caller, the automated voice, the recording and how to opt out. It is empty if disclosures are disabled. The
// opt-out key is empty if the text names none.
func (d Disclosure) Text(language string) (text string, options control.OptOutOptions) {
	options.Phrases = d.pkg.Phrases()
	if !d.settings.Disclosed {
		return "", options
	}
	if language == "" {
		language = d.settings.Language
	}
	spoken := d.pkg.Disclosure(language)
	options.Key = spoken.Key()
	return spoken.Text(d.settings.Agent, d.settings.Organization, d.settings.Recorded), options
}
