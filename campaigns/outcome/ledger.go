// Package outcome keeps what came of the calls of contacts, and where it leads
// them.
package outcome

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/campaigns/store"
)

// An Outcome is what came of a call to a contact.
type Outcome struct {
	CallID string
	What   retry.Outcome
	Ended  time.Time
	// Unreached tells that the route failed, and no phone rang.
	Unreached bool
	// Awaits tells that the call is analysed: a contact that was talked to waits
	// for the verdict.
	Awaits bool
	// Spread, -1 to 1, moves a redial by up to a tenth of its delay.
	Spread float64
}

// A Ledger is where outcomes are kept.
type Ledger struct {
	Pool  *pgxpool.Pool
	Store *store.Store
	Now   func() time.Time // nil: the database's clock
}

// clock is the database's: servers date what came of calls at the same instant.
func (l *Ledger) clock(ctx context.Context, tx pgx.Tx) (now time.Time, err error) {
	if l.Now != nil {
		return l.Now().UTC(), nil
	}
	err = tx.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now)
	return now.UTC(), err
}

// ErrNoContact tells that a call is no campaign's.
var ErrNoContact = errors.New("the call is no campaign's")

// Record keeps what came of a call, in the transaction that ends it, and returns
// where its contact is now. To record it again changes nothing.
func (l *Ledger) Record(ctx context.Context, tx pgx.Tx, o Outcome) (campaigns.State, error) {
	t, err := l.trial(ctx, tx, o.CallID)
	if err != nil || !t.Ended.IsZero() {
		return t.State, err
	}
	if t.Probe && o.Unreached { // it was tried on the contact whether the route is well
		_, err = l.Undo(ctx, tx, o.CallID)
		return campaigns.Pending, err
	}
	next := campaigns.Next{State: campaigns.Awaiting, Rule: -1}
	if t.Tried.Outcome, t.Tried.Spread = o.What, o.Spread; !o.Awaits || !o.What.Conversation() {
		next = t.Campaign.After(t.Tried, o.Ended)
	}
	next = next.Unless(t.OptedOut)
	now, err := l.clock(ctx, tx)
	if err != nil {
		return next.State, err
	}
	return next.State, l.Store.Outcome(ctx, tx, o.CallID, o.What, o.Ended, next, now)
}

// Verdict tells what the analysis of a call says, nil where there is none, to
// the contact that waits for it, and returns where that is now. One that does
// not wait any more stays where it is.
func (l *Ledger) Verdict(ctx context.Context, tx pgx.Tx, callID string, analysis map[string]json.RawMessage, spread float64) (campaigns.State, error) {
	t, err := l.trial(ctx, tx, callID)
	if err != nil || t.State != campaigns.Awaiting {
		return t.State, err
	}
	t.Tried.Analysis, t.Tried.Spread = analysis, spread
	now, err := l.clock(ctx, tx)
	if err != nil {
		return t.State, err
	}
	next := t.Campaign.After(t.Tried, now).Unless(t.OptedOut)
	return next.State, l.Store.Outcome(ctx, tx, callID, t.Tried.Outcome, t.Ended, next, now)
}

// trial is the contact of a call, locked.
func (l *Ledger) trial(ctx context.Context, tx pgx.Tx, callID string) (store.Trial, error) {
	t, err := l.Store.Trial(ctx, tx, callID)
	switch {
	case err != nil:
		return store.Trial{}, err
	case t == nil:
		return store.Trial{}, ErrNoContact
	}
	return *t, nil
}

// Undo takes back that a contact's call was made, of which nothing has left. It
// tells whether the call was a contact's.
func (l *Ledger) Undo(ctx context.Context, tx pgx.Tx, callID string) (bool, error) {
	return l.giveBack(ctx, tx, callID, 0)
}

// elsewhere is for how long a contact is left alone whose call a server could not
// make: others have the others meanwhile.
const elsewhere = time.Minute

// PutOff takes back, as Undo does, that a contact's call was made, which this
// server could not make.
func (l *Ledger) PutOff(ctx context.Context, tx pgx.Tx, callID string) error {
	_, err := l.giveBack(ctx, tx, callID, elsewhere)
	return err
}

func (l *Ledger) giveBack(ctx context.Context, tx pgx.Tx, callID string, wait time.Duration) (bool, error) {
	now, err := l.clock(ctx, tx)
	if err != nil {
		return false, err
	}
	return l.Store.GiveBack(ctx, tx, callID, wait, now)
}
