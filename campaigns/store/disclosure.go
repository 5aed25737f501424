package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

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
func (s *Store) DisclosureSettings(ctx context.Context, q db.Querier, orgID, campaignID, agentID string) (DisclosureSettings, error) {
	var x DisclosureSettings
	var own *bool
	var text []byte
	err := q.QueryRow(ctx, `
		SELECT k.disclosures, o.settings -> 'disclosures', o.name, coalesce(a.name, k.agent_name),
			coalesce(v.definition ->> 'language', ''), coalesce((v.definition ->> 'recording')::boolean, true)
		FROM campaigns k JOIN organizations o ON o.id = k.org_id
		LEFT JOIN agents a ON a.org_id = k.org_id AND a.id = $3
		LEFT JOIN agent_versions v ON v.agent_id = a.id AND v.version = coalesce(nullif(k.agent_version, 0), a.published_version)
		WHERE k.org_id = $1 AND k.id = $2`, orgID, campaignID, agentID).Scan(&own, &text, &x.Organization, &x.Agent, &x.Language, &x.Recorded)
	if errors.Is(err, pgx.ErrNoRows) {
		return DisclosureSettings{}, NotFound()
	}
	if err != nil {
		return DisclosureSettings{}, fmt.Errorf("disclosures: %w", err)
	}
	var settings struct {
		Enabled             *bool
		Agent, Organization string
	}
	if text != nil {
		if err := json.Unmarshal(text, &settings); err != nil {
			return DisclosureSettings{}, fmt.Errorf("disclosures: %w", err)
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
