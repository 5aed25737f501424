package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/pricing"
	"github.com/parley-voice/parley/pipeline"
)

// PastCall is a call that ended before it is stored. Its cost is computed.
type PastCall struct {
	control.Call

	Lines         []pipeline.Line
	Turns         []pipeline.Turn
	CostPerMinute *float64 // rate of the trunk; nil if it has none
}

// pastColumns are the columns of a PastCall.
//
//nolint:gochecknoglobals // read-only table
var (
	pastColumns   = slices.Concat(RegisteredColumns, resultColumns, laterColumns.Only("recording_key", "call_analysis"))
	insertPastSQL = pastColumns.Insert("calls", 1)
)

// AddPast stores past calls with their transcripts and costs in s. Their statistics are counted as those of other calls. No
// webhook is sent for them, and they are not analyzed.
func AddPast(ctx context.Context, s *Store, calls []PastCall) error {
	return s.tx(ctx, "add past calls", func(tx pgx.Tx) error {
		for i := range calls {
			if err := insertPast(ctx, tx, s, &calls[i]); err != nil {
				return fmt.Errorf("call %s: %w", calls[i].ID, err)
			}
		}
		return nil
	})
}

func insertPast(ctx context.Context, tx pgx.Tx, s *Store, c *PastCall) error {
	row := CallRow{Call: c.Call, CostPerMinute: c.CostPerMinute}
	var legs []pricing.TrunkLeg
	if !c.AnsweredAt.IsZero() {
		legs = append(legs, pricing.NewTrunkLeg("callee", between(c.AnsweredAt, c.EndedAt), c.CostPerMinute))
	}
	cost, err := costOf(s.Prices, c.Usage, legs)
	if err == nil {
		err = row.setCost(cost)
	}
	if err == nil {
		_, err = tx.Exec(ctx, insertPastSQL, pastColumns.Args(&row)...)
	}
	if err != nil {
		return err
	}
	return replaceTranscript(ctx, tx, c.ID, c.Lines, c.Turns, s.Pack != nil && s.Pack())
}
