package providers

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

// Names lists the names of configured providers by service: "asr", "llm" or "tts".
type Names map[string][]string

// Report stores the names of one server's providers. They are valid for a day.
func Report(ctx context.Context, q db.Querier, n Names) error {
	for seam, names := range n {
		_, err := q.Exec(ctx, `
			INSERT INTO server_providers (seam, name, at) SELECT $1, x, clock_timestamp() FROM unnest($2::text[]) AS y (x) ORDER BY x
			ON CONFLICT (seam, name) DO UPDATE SET at = excluded.at`, seam, names)
		if err != nil {
			return fmt.Errorf("providers: %w", err)
		}
	}
	return nil
}

// KnownProviders returns the providers that servers reported during the last day.
func KnownProviders(ctx context.Context, q db.Querier) (Names, error) {
	rows, err := q.Query(ctx, "SELECT seam, name FROM server_providers WHERE at > clock_timestamp() - interval '1 day'")
	if err != nil {
		return nil, fmt.Errorf("providers: %w", err)
	}
	n := Names{}
	var seam, name string
	if _, err = pgx.ForEachRow(rows, []any{&seam, &name}, func() error { n[seam] = append(n[seam], name); return nil }); err != nil {
		return nil, fmt.Errorf("providers: %w", err)
	}
	return n, nil
}
