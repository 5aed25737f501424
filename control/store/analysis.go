package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
)

// AgentDefinition returns the version of the agent's definition that was current when the call was accepted. It
// returns the zero Definition if the agent was deleted.
func (s *Store) AgentDefinition(ctx context.Context, callID string) (agents.Definition, error) {
	var d agents.Definition
	var text []byte
	err := s.Pool.QueryRow(ctx, `
		SELECT v.definition FROM calls c JOIN agent_versions v ON v.agent_id = c.agent_id AND v.version = c.agent_version
		WHERE c.id = $1`, callID).Scan(&text)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return d, nil
	case err == nil:
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		return agents.Definition{}, fmt.Errorf("agent of call %s: %w", callID, err)
	}
	return d, nil
}

// SetAnalysis stores the analysis of a call, or the reason why the analysis failed. Only the first result of a call
// is kept.
func (s *Store) SetAnalysis(ctx context.Context, callID, status string, result json.RawMessage, reason string) error {
	_, err := db.Exec(ctx, s.Pool, "failed to store the analysis", `
		UPDATE calls SET analysis_status = $2, call_analysis = $3, analysis_error = $4
		WHERE id = $1 AND analysis_status IN ('none', 'pending')`, callID, status, result, reason)
	return err
}
