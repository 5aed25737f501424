package providers

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/provider"
)

// checkTTL is the maximum age of a report that ReadChecks returns.
const checkTTL = time.Hour

// enginesKey returns a key for engines with all their options.
func enginesKey(e pipeline.Engines) ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("providers: %w", err)
	}
	sum := sha256.Sum256(text)
	return sum[:], nil
}

// SaveChecks stores a test report about the engines of an organization's agent. All nodes use it for launches in the
// next hour. SaveChecks also deletes reports that are older than a day.
func SaveChecks(ctx context.Context, q db.Querier, orgID string, e pipeline.Engines, report []provider.EngineCheck) error {
	key, err := enginesKey(e)
	if err != nil {
		return err
	}
	_, err = q.Exec(ctx, `
		INSERT INTO provider_checks (org_id, engines, report, at) VALUES ($1, $2, $3, clock_timestamp())
		ON CONFLICT (org_id, engines) DO UPDATE SET report = excluded.report, at = excluded.at`, orgID, key, report)
	if err == nil {
		_, err = q.Exec(ctx, "DELETE FROM provider_checks WHERE at < clock_timestamp() - interval '1 day'")
	}
	if err != nil {
		return fmt.Errorf("providers: %w", err)
	}
	return nil
}

// ReadChecks returns the report that SaveChecks stored during the last hour, or nil if there is none.
func ReadChecks(ctx context.Context, q db.Querier, orgID string, e pipeline.Engines) (report []provider.EngineCheck, err error) {
	key, err := enginesKey(e)
	if err != nil {
		return nil, err
	}
	err = q.QueryRow(ctx, "SELECT report FROM provider_checks WHERE org_id = $1 AND engines = $2 AND at > clock_timestamp() - $3::interval",
		orgID, key, checkTTL).Scan(&report)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("providers: %w", err)
	}
	return report, nil
}
