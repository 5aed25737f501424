// Package follow tells contacts what came of their calls: it follows the ends of
// calls, and their analyses.
package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/outcome"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/breaker"
	"github.com/parley-voice/parley/control/db"
)

// Calls are where calls are read; *control/store.Store is it.
type Calls interface {
	Call(ctx context.Context, orgID, id string) (control.Call, error)
	Definition(ctx context.Context, callID string) (agents.Definition, error)
}

// A Follower tells contacts what came of their calls.
type Follower struct {
	Ledger *outcome.Ledger
	Calls  Calls
	// Judged follows the analysis of a call; else its end.
	Judged bool
	// Observe, where set, is told what came of each call of a campaign that is over.
	Observe func(retry.Outcome)
}

// Follow implements control.Follower.
func (f *Follower) Follow(ctx context.Context, e control.Event) error {
	if e.Kind != control.CallEnded {
		return nil
	}
	c, err := f.Calls.Call(ctx, "", e.CallID)
	if err != nil || c.ContactID == "" {
		return err
	}
	if f.Judged {
		return f.verdict(ctx, c)
	}
	awaits := false
	if c.Status == control.Ended {
		d, fault := f.Calls.Definition(ctx, c.ID)
		if fault != nil {
			return fault
		}
		awaits = !d.Analysis.None()
	}
	err = db.Tx(ctx, f.Ledger.Pool, func(tx pgx.Tx) error {
		if forbidden(c.Reason) { // nothing left; the next look at the contact suppresses or holds it
			_, fault := f.Ledger.Undo(ctx, tx, c.ID)
			return fault
		}
		if unsent(c) {
			return f.Ledger.PutOff(ctx, tx, c.ID)
		}
		_, fault := f.Ledger.Record(ctx, tx, outcome.Outcome{
			CallID: c.ID, What: Came(c), Ended: ended(c, e), Awaits: awaits, Spread: spread(c.ID),
			Unreached: c.Status == control.Failed && breaker.Fault(string(c.Reason), c.SIPStatus, !c.RingingAt.IsZero() || !c.AnsweredAt.IsZero()),
		})
		return known(fault)
	})
	if err == nil && f.Observe != nil && !forbidden(c.Reason) && !unsent(c) {
		f.Observe(Came(c))
	}
	return err
}

// forbidden tells the end of a call that was not to be dialled any more.
func forbidden(why control.Reason) bool {
	return why == control.ReasonDNCBlocked || why == control.ReasonCallerNumber
}

// ended is when a call did, as the database saw it: the clocks of servers differ,
// and retries are due by its.
func ended(c control.Call, e control.Event) time.Time {
	if e.At.IsZero() {
		return c.EndedAt
	}
	return e.At
}

// unsent tells the end of a call whose request never left, for a fault of ours.
func unsent(c control.Call) bool {
	return c.Status == control.Failed && c.Reason == control.ReasonInternalError && c.SIPStatus == 0 &&
		c.DialedAt.IsZero() && c.RingingAt.IsZero() && c.AnsweredAt.IsZero()
}

// verdict tells the contact what the analysis says.
func (f *Follower) verdict(ctx context.Context, c control.Call) error {
	var fields map[string]json.RawMessage
	if len(c.Analysis) > 0 {
		if err := json.Unmarshal(c.Analysis, &fields); err != nil {
			return fmt.Errorf("analysis of call %s: %w", c.ID, err)
		}
	}
	return db.Tx(ctx, f.Ledger.Pool, func(tx pgx.Tx) error {
		_, err := f.Ledger.Verdict(ctx, tx, c.ID, fields, spread(c.ID))
		return known(err)
	})
}

// known passes over a contact that is gone with its campaign.
func known(err error) error {
	if errors.Is(err, outcome.ErrNoContact) {
		return nil
	}
	return err
}

// spread, -1 to 1, follows from a call's id, so that it is the same whenever it
// is asked for.
func spread(callID string) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(callID)) // never fails
	return float64(h.Sum32())/(1<<31) - 1
}

// short is how long a conversation lasts in which nothing was said.
const short = 10 * time.Second

// Came is what came of a call. One that may have rung, and whose node was lost,
// is an unanswered one, unless the node came back and told of an answer; one whose
// node was lost later was a conversation.
func Came(c control.Call) retry.Outcome {
	if c.Status == control.Ended || c.Reason == control.ReasonUnknown && !c.AnsweredAt.IsZero() {
		switch c.AnsweredBy {
		case "voicemail":
			return retry.Voicemail
		case "ivr":
			return retry.IVR
		case "fax":
			return retry.InvalidNumber
		}
		if c.Reason != control.ReasonNodeLost && c.EndedAt.Sub(c.AnsweredAt) < short {
			return retry.ShortCall
		}
		return retry.Answered
	}
	switch c.Reason {
	case "no_answer", control.ReasonUnknown:
		return retry.NoAnswer
	case "busy":
		return retry.Busy
	case "declined", control.ReasonCancelled:
		return retry.Declined
	case "invalid_number":
		return retry.InvalidNumber
	case "congestion":
		return retry.Congestion
	default:
		return retry.Failed
	}
}
