// Package outcome records the results of campaign calls. After the end and after the analysis of a call, it sets the
// next state of the contact. It also records opt-outs.
package outcome

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/circuitbreaker"
)

// An Outcome is the result of a call to a contact.
type Outcome struct {
	CallID string
	Result retry.Outcome
	Ended  time.Time
	// Unreached reports that the route failed before a phone rang.
	Unreached bool
	// AwaitsAnalysis reports that the call will be analyzed. A contact that was reached waits for
	// the analysis.
	AwaitsAnalysis bool
	// Fault is the end reason of a call that was answered but broke because of Parley or a provider before a conversation;
	// empty for other calls.
	Fault string
	// Spread, -1 to 1, shifts a redial by up to 10 % of its delay.
	Spread float64
}

// A Recorder stores outcomes and moves contacts to their next state.
type Recorder struct {
	Pool  *pgxpool.Pool
	Store *store.Store
	Now   func() time.Time // nil means the database's clock
	Log   *slog.Logger     // nil logs nothing
}

// clock returns the database's time, so that all nodes use one clock.
func (r *Recorder) clock(ctx context.Context, tx pgx.Tx) (now time.Time, err error) {
	if r.Now != nil {
		return r.Now().UTC(), nil
	}
	err = tx.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now)
	return now.UTC(), err
}

// ErrNoContact is returned for a call without a campaign.
var ErrNoContact = errors.New("the call belongs to no campaign")

// Record stores the outcome of a call, in the transaction that ends it, and returns the
// new state of its contact. Recording it again has no effect.
func (r *Recorder) Record(ctx context.Context, tx pgx.Tx, o Outcome) (campaigns.State, error) {
	t, err := r.attemptOf(ctx, tx, o.CallID)
	if err != nil || !t.Ended.IsZero() {
		return t.State, err
	}
	if t.IsProbe && o.Unreached { // a probe of the route does not count as an attempt
		_, err = r.Undo(ctx, tx, o.CallID)
		return campaigns.Pending, err
	}
	next := campaigns.Next{State: campaigns.Awaiting, Rule: -1}
	if t.Tried.Outcome, t.Tried.Spread = o.Result, o.Spread; !o.AwaitsAnalysis || !o.Result.IsConversation() {
		next = t.Campaign.NextAfter(t.Tried, o.Ended)
	}
	next = next.WithFault(o.Fault).UnlessOptedOut(t.OptedOut)
	now, err := r.clock(ctx, tx)
	if err != nil {
		return next.State, err
	}
	if err = r.Store.Attempts.SaveOutcome(ctx, tx, o.CallID, o.Result, o.Ended, next, now); err != nil || o.Fault == "" {
		return next.State, err
	}
	return next.State, r.recordFault(ctx, tx, t.Campaign.ID, o, now)
}

// recordFault stores that a call broke, and opens the breaker of its campaign if too many calls broke.
func (r *Recorder) recordFault(ctx context.Context, tx pgx.Tx, campaignID string, o Outcome, now time.Time) error {
	if err := r.Store.Attempts.SaveFault(ctx, tx, o.CallID, o.Fault); err != nil {
		return err
	}
	opened, err := r.Store.Breakers.Check(ctx, tx, campaignID, circuitbreaker.CampaignRules(), now)
	if opened && r.Log != nil {
		r.Log.WarnContext(ctx, "campaign stopped calling: too many of its calls broke because of Parley or a provider",
			"campaign", campaignID, "last", o.Fault)
	}
	return err
}

// RecordAnalysis applies the analysis of a call, nil without one, to the contact that waits for it, and returns the
// contact's new state. A contact that no longer waits keeps its state.
func (r *Recorder) RecordAnalysis(
	ctx context.Context, tx pgx.Tx, callID string, analysis map[string]json.RawMessage, spread float64,
) (campaigns.State, error) {
	t, err := r.attemptOf(ctx, tx, callID)
	if err != nil || t.State != campaigns.Awaiting {
		return t.State, err
	}
	t.Tried.Analysis, t.Tried.Spread = analysis, spread
	now, err := r.clock(ctx, tx)
	if err != nil {
		return t.State, err
	}
	next := t.Campaign.NextAfter(t.Tried, now).UnlessOptedOut(t.OptedOut)
	return next.State, r.Store.Attempts.SaveOutcome(ctx, tx, callID, t.Tried.Outcome, t.Ended, next, now)
}

// attemptOf returns the attempt of a call, with the contact locked.
func (r *Recorder) attemptOf(ctx context.Context, tx pgx.Tx, callID string) (store.Attempt, error) {
	t, err := r.Store.Attempts.OfCall(ctx, tx, callID)
	if err == nil && t == nil {
		err = ErrNoContact
	}
	if err != nil {
		return store.Attempt{}, err
	}
	return *t, nil
}

// Undo removes an attempt whose INVITE was never sent. It reports whether the call had an attempt.
func (r *Recorder) Undo(ctx context.Context, tx pgx.Tx, callID string) (bool, error) {
	return r.revert(ctx, tx, callID, 0)
}

// postponeFor is the pause before another attempt for a contact whose call this node
// could not make, so that other nodes may take it first.
const postponeFor = time.Minute

// Postpone undoes an attempt that this node could not make, and delays the next attempt by postponeFor.
func (r *Recorder) Postpone(ctx context.Context, tx pgx.Tx, callID string) error {
	_, err := r.revert(ctx, tx, callID, postponeFor)
	return err
}

func (r *Recorder) revert(ctx context.Context, tx pgx.Tx, callID string, wait time.Duration) (bool, error) {
	now, err := r.clock(ctx, tx)
	if err != nil {
		return false, err
	}
	return r.Store.Attempts.Revert(ctx, tx, callID, wait, now)
}
