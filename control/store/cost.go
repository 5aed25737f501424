package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/pricing"
	"github.com/parley-voice/parley/pipeline"
)

// endCostSQL reads what the cost of a call depends on, besides its result.
const endCostSQL = "SELECT cost_per_minute, answered_at, call_type FROM calls WHERE id = $1"

// endCost returns the cost of a call that ends with the result f.
func endCost(ctx context.Context, tx pgx.Tx, prices *pricing.List, callID string, f *control.CallResult) (pricing.Cost, error) {
	var perMinute *float64
	var answered *time.Time
	var callType string
	err := tx.QueryRow(ctx, endCostSQL, callID).Scan(&perMinute, &answered, &callType)
	if errors.Is(err, pgx.ErrNoRows) {
		return pricing.Cost{}, control.ErrFenced
	}
	if err != nil {
		return pricing.Cost{}, fmt.Errorf("cost: %w", err)
	}
	if !f.AnsweredAt.IsZero() {
		answered = &f.AnsweredAt
	}
	var legs []pricing.TrunkLeg
	if answered != nil && callType == control.Phone {
		legs = append(legs, pricing.NewTrunkLeg("callee", between(*answered, f.EndedAt), perMinute))
	}
	for _, leg := range f.TransferLegs {
		legs = append(legs, pricing.NewTrunkLeg("transfer", between(leg.AnsweredAt, f.EndedAt), leg.CostPerMinute))
	}
	return costOf(prices, f.Usage, legs)
}

// between returns the time between two times, truncated to the microseconds that the database stores.
func between(from, to time.Time) time.Duration {
	return to.Truncate(time.Microsecond).Sub(from.Truncate(time.Microsecond))
}

// costOf returns the cost of stored usage and of trunk legs.
func costOf(prices *pricing.List, usage json.RawMessage, legs []pricing.TrunkLeg) (pricing.Cost, error) {
	var all []pipeline.EngineUsage
	if len(usage) > 0 {
		if err := json.Unmarshal(usage, &all); err != nil {
			return pricing.Cost{}, fmt.Errorf("usage: %w", err)
		}
	}
	return prices.Cost(all, legs), nil
}

// setCost sets the columns that hold the cost.
func (r *CallRow) setCost(c pricing.Cost) (err error) {
	r.CostNano = (*int64)(&c.Amount)
	r.Cost, err = json.Marshal(c)
	return err
}
