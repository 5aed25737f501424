package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/parley-voice/parley/control/db"
)

// DisclosureSettings are the values of a campaign's disclosure.
type DisclosureSettings struct {
	// Disclosed reports whether the disclosure is spoken: by the campaign's setting,
	// else the organization's, else yes.
	Disclosed bool
	// Agent and Organization are the spoken names.
	Agent, Organization string
	Language            string // of the agent, BCP 47
	Recorded            bool
}

// DisclosureSettings returns the settings of a campaign for the launched version of the agent. Before the launch, it
// uses the published version.
func (s *Store) DisclosureSettings(ctx context.Context, q db.Querier, campaignID string) (DisclosureSettings, error) {
	all, err := s.DisclosuresByID(ctx, q, []string{campaignID})
	if x, ok := all[campaignID]; ok || err != nil {
		return x, err
	}
	return DisclosureSettings{}, NotFound()
}

// DisclosuresByID returns the settings of campaigns, as DisclosureSettings does. If it returns settings and an error,
// the settings are valid, and the error is about other campaigns.
func (s *Store) DisclosuresByID(ctx context.Context, q db.Querier, ids []string) (map[string]DisclosureSettings, error) {
	all := map[string]DisclosureSettings{}
	var faults []error
	var id string
	var x DisclosureSettings
	var own *bool
	var text []byte
	err := db.Each(ctx, q, "disclosures", []any{&id, &own, &text, &x.Organization, &x.Agent, &x.Language, &x.Recorded}, func() error {
		if one, fault := withDisclosures(x, own, text); fault != nil {
			faults = append(faults, fmt.Errorf("disclosures of %s: %w", id, fault))
		} else {
			all[id] = one
		}
		return nil
	}, `
		SELECT k.id, k.disclosures, o.settings -> 'disclosures', o.name, coalesce(a.name, k.agent_name),
			coalesce(v.definition ->> 'language', ''), coalesce((v.definition ->> 'recording')::boolean, true)
		FROM campaigns k JOIN organizations o ON o.id = k.org_id
		LEFT JOIN agents a ON a.org_id = k.org_id AND a.id = k.agent_id
		LEFT JOIN agent_versions v ON v.agent_id = a.id AND v.version = coalesce(nullif(k.agent_version, 0), a.published_version)
		WHERE k.id = ANY ($1)`, ids)
	if err != nil {
		return nil, err
	}
	return all, errors.Join(faults...)
}

// withDisclosures applies the campaign's own setting, and the settings of its organization in text.
func withDisclosures(x DisclosureSettings, own *bool, text []byte) (DisclosureSettings, error) {
	var settings struct {
		Enabled             *bool
		Agent, Organization string
	}
	if text != nil {
		if err := json.Unmarshal(text, &settings); err != nil {
			return DisclosureSettings{}, err
		}
	}
	x.Disclosed = own == nil && (settings.Enabled == nil || *settings.Enabled) || own != nil && *own
	if settings.Agent != "" {
		x.Agent = settings.Agent
	}
	if settings.Organization != "" {
		x.Organization = settings.Organization
	}
	return x, nil
}
