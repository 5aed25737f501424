package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// ErrUnknown is returned if the organization has no such agent.
var ErrUnknown = errors.New("no such agent")

// Agent is a named voice agent of an organization.
type Agent struct {
	ID, OrgID, Name string
	Draft           Definition
	Published       int // published version; 0 if none is published
}

// unknownAgent returns ErrUnknown with the name that was probably meant.
func unknownAgent(ctx context.Context, q db.Querier, orgID, name string) error {
	names, err := db.Collect(ctx, q, "agents", pgx.RowTo[string], "SELECT name FROM agents WHERE org_id = $1 ORDER BY name LIMIT 1000", orgID)
	if err != nil {
		return err
	}
	if hint := control.DidYouMean(name, names); hint != "" {
		return fmt.Errorf("agent %q: %w; %s", name, ErrUnknown, hint)
	}
	return fmt.Errorf("agent %q: %w", name, ErrUnknown)
}

// Find returns the agent with this name, or ErrUnknown.
func Find(ctx context.Context, q db.Querier, orgID, name string) (Agent, error) {
	a := Agent{OrgID: orgID, Name: name}
	var draft []byte
	var secrets media.Secret
	var version *int
	err := q.QueryRow(ctx, "SELECT id, draft, secrets, published_version FROM agents WHERE org_id = $1 AND name = $2", orgID, name).
		Scan(&a.ID, &draft, &secrets, &version)
	if errors.Is(err, pgx.ErrNoRows) {
		return Agent{}, unknownAgent(ctx, q, orgID, name)
	}
	if err != nil {
		return Agent{}, fmt.Errorf("agent %q: %w", name, err)
	}
	if version != nil {
		a.Published = *version
	}
	if a.Draft, err = Decode(draft, secrets); err != nil {
		return Agent{}, fmt.Errorf("agent %q: %w", name, err)
	}
	return a, nil
}

// Save creates an agent or replaces its draft, and returns the agent's id. The published version stays as it is.
func Save(ctx context.Context, q db.Querier, orgID, name string, d Definition) (string, error) {
	if err := d.Check(); err != nil {
		return "", fmt.Errorf("agent %q: %w", name, err)
	}
	draft, err := json.Marshal(d)
	if err != nil {
		return "", fmt.Errorf("agent %q: %w", name, err)
	}
	secrets, err := d.secrets()
	if err != nil {
		return "", fmt.Errorf("agent %q: %w", name, err)
	}
	var id string
	err = q.QueryRow(ctx, `
		INSERT INTO agents (id, org_id, name, draft, secrets) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (org_id, name) DO UPDATE SET draft = excluded.draft, secrets = excluded.secrets, updated_at = now()
		RETURNING id`, control.NewID("agt_", time.Now()), orgID, name, draft, secrets).Scan(&id)
	return id, db.Wrap(err, fmt.Sprintf("agent %q", name))
}

// Publish makes the draft the version that new calls use, and returns the version's number. If the draft equals the
// newest version, no new version is created.
func Publish(ctx context.Context, q db.Querier, orgID, name string) (int, error) {
	var version int
	// The lock on the agent's row lets only one caller publish at a time.
	err := q.QueryRow(ctx, `
		WITH a AS (
			SELECT id, draft, secrets, published_version FROM agents WHERE org_id = $1 AND name = $2 FOR UPDATE
		), last AS (
			SELECT v.version, v.definition = a.draft AND v.secrets = a.secrets AS same
			FROM agent_versions v JOIN a ON v.agent_id = a.id ORDER BY v.version DESC LIMIT 1
		), inserted AS (
			INSERT INTO agent_versions (agent_id, version, definition, secrets)
			SELECT a.id, coalesce((SELECT version FROM last), 0) + 1, a.draft, a.secrets FROM a
			WHERE NOT coalesce((SELECT same FROM last), false)
			RETURNING version
		)
		UPDATE agents SET updated_at = now(),
			published_version = coalesce((SELECT version FROM inserted), (SELECT version FROM last))
		WHERE id = (SELECT id FROM a)
		RETURNING published_version`, orgID, name).Scan(&version)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("agent %q: %w", name, ErrUnknown)
	}
	if err != nil {
		return 0, fmt.Errorf("publish agent %q: %w", name, err)
	}
	return version, nil
}

// Unpublish keeps new calls from using the agent. Calls that are queued keep their version.
func Unpublish(ctx context.Context, q db.Querier, orgID, name string) error {
	tag, err := q.Exec(ctx, "UPDATE agents SET published_version = NULL, updated_at = now() WHERE org_id = $1 AND name = $2", orgID, name)
	if err != nil {
		return fmt.Errorf("unpublish agent %q: %w", name, err)
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("agent %q: %w", name, ErrUnknown)
	}
	return nil
}

// ProviderChecker checks the providers that an agent names.
type ProviderChecker interface {
	// Probe sends a short request to each of an agent's providers that has no recent test result. It takes at most 5 s.
	Probe(ctx context.Context, orgID string, e pipeline.Engines)
	// Save stores the results of Probe for launch checks. Call it after the tested endpoints are stored.
	Save(ctx context.Context, q db.Querier, orgID string, e pipeline.Engines)
	// Check returns an error if calls with the agent would fail, because no server has a provider of the agent, because
	// the provider refused the agent's settings in the last test, or because this server does not accept a tool. It sends
	// no requests.
	Check(ctx context.Context, q db.Querier, orgID string, d Definition) error
	// Warnings returns the options of the agent that its providers ignore, failures of the last test that may be
	// temporary, and tools whose requests would fail.
	Warnings(orgID string, d Definition) []string
}
