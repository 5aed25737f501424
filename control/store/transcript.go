package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/pipeline"
)

// line is the stored form of a pipeline.Line. Times are in nanoseconds.
type line struct {
	Role        pipeline.Role   `json:"role"`
	Text        string          `json:"text"`
	Start       time.Duration   `json:"start"`
	End         time.Duration   `json:"end"`
	Turn        int             `json:"turn"`
	Interrupted bool            `json:"interrupted,omitempty"`
	Words       []pipeline.Word `json:"words,omitempty"`
}

// writeTranscript writes the lines and turns from the given indexes on. It replaces those that are stored already.
func writeTranscript(
	ctx context.Context, q db.Querier, callID string, lines []pipeline.Line, firstLine int, turns []pipeline.Turn,
	firstTurn int,
) error {
	items := make([][]byte, len(lines))
	for i, l := range lines {
		text, err := json.Marshal(line(l))
		if err != nil {
			return fmt.Errorf("line: %w", err)
		}
		items[i] = text
	}
	if err := writeItems(ctx, q, "call_lines", callID, items, firstLine); err != nil {
		return fmt.Errorf("lines: %w", err)
	}
	items = make([][]byte, len(turns))
	for i, t := range turns {
		text, err := json.Marshal(t)
		if err != nil {
			return fmt.Errorf("turn: %w", err)
		}
		items[i] = text
	}
	if err := writeItems(ctx, q, "call_turns", callID, items, firstTurn); err != nil {
		return fmt.Errorf("turns: %w", err)
	}
	return nil
}

func writeItems(ctx context.Context, q db.Querier, table, callID string, items [][]byte, first int) error {
	if len(items) == 0 {
		return nil
	}
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = string(item)
	}
	_, err := q.Exec(ctx, `
		INSERT INTO `+table+` (call_id, n, item)
		SELECT $1, $2::int + u.n - 1, u.item::json FROM unnest($3::text[]) WITH ORDINALITY u (item, n)
		ON CONFLICT (call_id, n) DO UPDATE SET item = excluded.item`, callID, first, texts)
	return err
}
