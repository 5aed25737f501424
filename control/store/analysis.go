package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/agents"
)

// Definition is what the agent of a call was when the call was accepted.
// Where the agent was deleted since, it is the zero Definition, which wants nothing.
func (s *Store) Definition(ctx context.Context, callID string) (agents.Definition, error) {
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

// Analysed writes the analysis of a call, or why there is none. The first one
// stays.
func (s *Store) Analysed(ctx context.Context, callID, status string, result json.RawMessage, reason string) error {
	_, err := s.Pool.Exec(ctx, `
		UPDATE calls SET analysis_status = $2, call_analysis = $3, analysis_error = $4
		WHERE id = $1 AND analysis_status IN ('none', 'pending')`, callID, status, result, reason)
	if err != nil {
		return fmt.Errorf("note analysis: %w", err)
	}
	return nil
}
