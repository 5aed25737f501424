package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/pricing"
	"github.com/parley-voice/parley/pipeline"
)

// endCostSQL reads the columns that, besides the result, determine the cost of a call.
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

// Costs changes the usage and the cost of calls that have ended.
type Costs struct {
	Pool   *pgxpool.Pool
	Prices *pricing.List
	// Observe, if not nil, receives the cost that was added to a call.
	Observe func(pricing.Cost)
}

// AddUsage adds usage to a call that has ended. The usage is charged at the current prices.
func (k *Costs) AddUsage(ctx context.Context, callID string, usage []pipeline.EngineUsage) error {
	if len(usage) == 0 {
		return nil
	}
	err := db.Tx(ctx, k.Pool, func(tx pgx.Tx) error {
		var before []pipeline.EngineUsage
		var cost *pricing.Cost
		err := tx.QueryRow(ctx, "SELECT coalesce(usage, '[]'), costs FROM calls WHERE id = $1 FOR UPDATE", callID).Scan(&before, &cost)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // the call was deleted
		}
		if err != nil {
			return err
		}
		var sum pipeline.UsageMeter
		for _, u := range append(before, usage...) {
			sum.Add(u)
		}
		if cost == nil { // an earlier release stored the call without a cost
			_, err = tx.Exec(ctx, "UPDATE calls SET usage = $2 WHERE id = $1", callID, sum.Total())
			return err
		}
		k.Prices.Add(cost, usage)
		_, err = tx.Exec(ctx, "UPDATE calls SET usage = $2, costs = $3, cost_nano = $4 WHERE id = $1", callID, sum.Total(), cost, cost.Amount)
		return err
	})
	if err == nil && k.Observe != nil {
		k.Observe(k.Prices.Cost(usage, nil))
	}
	return db.Wrap(err, "usage of call "+callID)
}

// SetLate sets the usage and the cost of a call that had ended before its result was known.
func (k *Costs) SetLate(ctx context.Context, tx pgx.Tx, callID string, f control.CallResult) error {
	cost, err := endCost(ctx, tx, k.Prices, callID, &f)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "UPDATE calls SET usage = $2, costs = $3, cost_nano = $4 WHERE id = $1", callID, f.Usage, cost, cost.Amount)
	return db.Wrap(err, "cost of call "+callID)
}

// Cost returns the cost of a call, or the zero Cost if the call has none.
func (k *Costs) Cost(ctx context.Context, callID string) (pricing.Cost, error) {
	var cost *pricing.Cost
	err := k.Pool.QueryRow(ctx, "SELECT costs FROM calls WHERE id = $1", callID).Scan(&cost)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && cost == nil {
		return pricing.Cost{}, nil
	}
	if err != nil {
		return pricing.Cost{}, fmt.Errorf("cost of call %s: %w", callID, err)
	}
	return *cost, nil
}
