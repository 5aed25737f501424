package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

// A Speech is what is known of how a campaign's calls begin.
type Speech struct {
	// Disclosed tells that what the law wants said is said: as the campaign has it,
	// else as its organization does, else it is.
	Disclosed bool
	// Agent and Organization are the names that are said.
	Agent, Organization string
	Language            string // of the agent, BCP 47
	Recorded            bool
}

// Speech returns how the calls of a campaign begin, by the version of the agent
// that makes them: that of the launch, before it the published one.
func (s *Store) Speech(ctx context.Context, q db.Querier, orgID, campaignID, agentID string) (Speech, error) {
	var x Speech
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
		return Speech{}, NotFound()
	}
	if err != nil {
		return Speech{}, fmt.Errorf("disclosures: %w", err)
	}
	var settings struct {
		Enabled             *bool
		Agent, Organization string
	}
	if text != nil {
		if err := json.Unmarshal(text, &settings); err != nil {
			return Speech{}, fmt.Errorf("disclosures: %w", err)
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
