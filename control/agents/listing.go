package agents

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
)

// Summary is an agent in a list.
type Summary struct {
	ID, Name          string
	Published, Newest int  // version numbers; 0 if there is no such version
	Changed           bool // the draft differs from the newest version
	UpdatedAt         time.Time
}

// List returns the agents of an organization, ordered by name.
func List(ctx context.Context, q db.Querier, orgID string) ([]Summary, error) {
	return db.Collect(ctx, q, "agents", pgx.RowToStructByPos[Summary], `
		SELECT a.id, a.name, coalesce(a.published_version, 0), coalesce(v.version, 0),
			v.version IS NULL OR v.definition <> a.draft OR v.secrets <> a.secrets, a.updated_at
		FROM agents a LEFT JOIN LATERAL (SELECT version, definition, secrets FROM agent_versions WHERE agent_id = a.id ORDER BY version DESC LIMIT 1) v ON true
		WHERE a.org_id = $1 ORDER BY a.name`, orgID)
}

// Names returns the names of an organization's agents, sorted.
func Names(ctx context.Context, q db.Querier, orgID string) ([]string, error) {
	return db.Collect(ctx, q, "agents", pgx.RowTo[string], "SELECT name FROM agents WHERE org_id = $1 ORDER BY name", orgID)
}

// ByID returns the agent with this id, or ErrUnknown.
func ByID(ctx context.Context, q db.Querier, orgID, id string) (Agent, error) {
	var name string
	err := q.QueryRow(ctx, "SELECT name FROM agents WHERE org_id = $1 AND id = $2", orgID, id).Scan(&name)
	if err = db.RowError(err, fmt.Sprintf("agent %s", id), ErrUnknown); err != nil {
		return Agent{}, err
	}
	return Find(ctx, q, orgID, name)
}

// Version is a published version of an agent.
type Version struct {
	Number    int
	CreatedAt time.Time
}

// Versions returns at most limit versions of an agent, newest first.
func Versions(ctx context.Context, q db.Querier, agentID string, limit int) ([]Version, error) {
	return db.Collect(ctx, q, "versions", pgx.RowToStructByPos[Version],
		"SELECT version, created_at FROM agent_versions WHERE agent_id = $1 ORDER BY version DESC LIMIT $2", agentID, limit)
}

// ReadVersion returns the definition of one version, or ErrUnknown.
func ReadVersion(ctx context.Context, q db.Querier, agentID string, version int) (Definition, error) {
	var definition []byte
	var secrets media.Secret
	var orgID string
	err := q.QueryRow(ctx, `
		SELECT v.definition, v.secrets, a.org_id FROM agent_versions v JOIN agents a ON a.id = v.agent_id
		WHERE v.agent_id = $1 AND v.version = $2`, agentID, version).Scan(&definition, &secrets, &orgID)
	if err = db.RowError(err, fmt.Sprintf("version %d", version), ErrUnknown); err != nil {
		return Definition{}, err
	}
	d, err := Decode(definition, secrets)
	d.Speech = d.Speech.For(orgID)
	return d, err
}

// Remove deletes an agent and its versions. Calls of the agent that are queued fail.
func Remove(ctx context.Context, q db.Querier, orgID, id string) error {
	tag, err := q.Exec(ctx, "DELETE FROM agents WHERE org_id = $1 AND id = $2", orgID, id)
	if err != nil {
		return fmt.Errorf("agent %s: %w", id, err)
	}
	if tag.RowsAffected() == 0 {
		return ErrUnknown
	}
	return nil
}

// VariableNames returns the names of the variables in the agent's texts, in the order in which they appear.
func (d Definition) VariableNames() []string { return d.Missing(nil) }

// HasDraftChanges reports whether an agent's draft differs from its newest version.
func HasDraftChanges(ctx context.Context, q db.Querier, agentID string) (bool, error) {
	var changed bool
	err := q.QueryRow(ctx, `
		SELECT NOT coalesce((SELECT v.definition = a.draft AND v.secrets = a.secrets FROM agent_versions v WHERE v.agent_id = a.id ORDER BY v.version DESC LIMIT 1), false)
		FROM agents a WHERE a.id = $1`, agentID).Scan(&changed)
	return changed, db.Wrap(err, fmt.Sprintf("agent %s", agentID))
}

// PublishedAgent is an agent with the version that new calls use.
type PublishedAgent struct {
	OrgID, Organization, Name string
	Definition                Definition
}

// Published returns the published agents of all organizations, ordered by organization and name.
func Published(ctx context.Context, q db.Querier) ([]PublishedAgent, error) {
	type row struct {
		ID      string
		Version int
		Agent   PublishedAgent
	}
	var all []row
	rows, err := q.Query(ctx, `
		SELECT a.id, a.published_version, a.org_id, o.name, a.name FROM agents a JOIN organizations o ON o.id = a.org_id
		WHERE a.published_version IS NOT NULL ORDER BY o.name, a.name`)
	if err != nil {
		return nil, fmt.Errorf("agents: %w", err)
	}
	var r row
	_, err = pgx.ForEachRow(rows, []any{&r.ID, &r.Version, &r.Agent.OrgID, &r.Agent.Organization, &r.Agent.Name}, func() error {
		all = append(all, r)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("agents: %w", err)
	}
	published := make([]PublishedAgent, len(all))
	for i, r := range all {
		published[i] = r.Agent
		if published[i].Definition, err = ReadVersion(ctx, q, r.ID, r.Version); err != nil {
			return nil, err
		}
	}
	return published, nil
}
