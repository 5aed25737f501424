package outcome

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/circuitbreaker"
	"github.com/parley-voice/parley/control/db"
)

// Calls reads calls; *control/store.Store implements it.
type Calls interface {
	Call(ctx context.Context, orgID, id string) (control.Call, error)
	AgentDefinition(ctx context.Context, callID string) (agents.Definition, error)
	Transcript(ctx context.Context, callID string) (control.Transcript, error)
}

// A Follower updates contacts after their calls. If Analysis is set, it does so after the analysis of a call,
// otherwise after the end.
type Follower struct {
	Recorder *Recorder
	Calls    Calls
	Analysis bool
	// Observe, if set, receives the outcome of each campaign call that ended.
	Observe func(retry.Outcome)
}

// HandleEvent implements control.EventHandler.
func (f *Follower) HandleEvent(ctx context.Context, e control.Event) error {
	if e.Kind != control.CallEnded {
		return nil
	}
	c, err := f.Calls.Call(ctx, "", e.CallID)
	if err != nil || c.ContactID == "" {
		return err
	}
	if f.Analysis {
		return f.applyAnalysis(ctx, c)
	}
	o, err := f.outcomeOf(ctx, c, e)
	if err != nil {
		return err
	}
	err = db.Tx(ctx, f.Recorder.Pool, func(tx pgx.Tx) error {
		if isForbidden(c.Reason) { // no INVITE was sent; the queue then suppresses or holds the contact
			_, fault := f.Recorder.Undo(ctx, tx, c.ID)
			return fault
		}
		if isUnsent(c) {
			return f.Recorder.Postpone(ctx, tx, c.ID)
		}
		_, fault := f.Recorder.Record(ctx, tx, o)
		return ignoreNoContact(fault)
	})
	if err == nil && f.Observe != nil && !isForbidden(c.Reason) && !isUnsent(c) {
		f.Observe(o.Result)
	}
	return err
}

func (f *Follower) outcomeOf(ctx context.Context, c control.Call, e control.Event) (Outcome, error) {
	broken, err := f.isBroken(ctx, c)
	if err != nil {
		return Outcome{}, err
	}
	o := Outcome{
		CallID: c.ID, Result: Classify(c, broken), Ended: endTime(c, e), Spread: spreadOf(c.ID),
		Unreached: c.Status == control.Failed &&
			circuitbreaker.IsRouteFault(string(c.Reason), c.SIPStatus, !c.RingingAt.IsZero() || !c.AnsweredAt.IsZero()),
	}
	if broken {
		o.Fault = string(c.Reason)
		return o, nil
	}
	if c.Status == control.Ended {
		d, err := f.Calls.AgentDefinition(ctx, c.ID)
		if err != nil {
			return o, err
		}
		o.AwaitsAnalysis = !d.Analysis.IsEmpty()
	}
	return o, nil
}

// isBroken reports whether the call broke because of Parley or a provider before the callee
// heard a whole sentence, or shortly after the callee answered.
func (f *Follower) isBroken(ctx context.Context, c control.Call) (bool, error) {
	if !c.EndedByFault() {
		return false, nil
	}
	if c.EndedAt.Sub(c.AnsweredAt) < shortCall {
		return true, nil
	}
	words, err := f.Calls.Transcript(ctx, c.ID)
	return err == nil && !words.HasCompleteSentence(), err
}

// isForbidden reports whether the call was no longer allowed when it was due.
func isForbidden(r control.Reason) bool {
	return r == control.ReasonDNCBlocked || r == control.ReasonCallerNumber
}

// endTime returns the end of a call by the database's clock. Retries are due by that clock, and the clocks of nodes
// differ.
func endTime(c control.Call, e control.Event) time.Time {
	if e.At.IsZero() {
		return c.EndedAt
	}
	return e.At
}

// isUnsent reports whether no INVITE left because of a fault of Parley or its settings.
func isUnsent(c control.Call) bool {
	return c.Status == control.Failed && (c.Reason == control.ReasonInternalError || c.Reason == control.ReasonNotConfigured) &&
		c.SIPStatus == 0 && c.DialedAt.IsZero() && c.RingingAt.IsZero() && c.AnsweredAt.IsZero()
}

func (f *Follower) applyAnalysis(ctx context.Context, c control.Call) error {
	var fields map[string]json.RawMessage
	if len(c.Analysis) > 0 {
		if err := json.Unmarshal(c.Analysis, &fields); err != nil {
			return fmt.Errorf("analysis of call %s: %w", c.ID, err)
		}
	}
	return db.Tx(ctx, f.Recorder.Pool, func(tx pgx.Tx) error {
		_, err := f.Recorder.RecordAnalysis(ctx, tx, c.ID, fields, spreadOf(c.ID))
		return ignoreNoContact(err)
	})
}

// ignoreNoContact returns nil for ErrNoContact, because the contact may have been deleted with its campaign.
func ignoreNoContact(err error) error {
	if errors.Is(err, ErrNoContact) {
		return nil
	}
	return err
}

// spreadOf derives a value from -1 to 1 from a call's id. The same call always gets the same value.
func spreadOf(callID string) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(callID)) // writing to a hash never fails
	return float64(h.Sum32())/(1<<31) - 1
}

// shortCall is the duration below which a conversation is a short call.
const shortCall = 10 * time.Second

// Classify returns the outcome of a call. A broken call is a failed attempt. If the node of a call was lost while the
// call may have rung, the call counts as not answered, unless the node returned and reported an answer. If the node
// was lost after the answer, the call was a conversation.
func Classify(c control.Call, broken bool) retry.Outcome {
	if broken && c.AnsweredBy != "fax" {
		return retry.Failed
	}
	if c.Status == control.Ended || c.Reason == control.ReasonUnknown && !c.AnsweredAt.IsZero() {
		return answeredOutcome(c)
	}
	switch c.Reason {
	case "no_answer", control.ReasonUnknown:
		return retry.NoAnswer
	case "busy":
		return retry.Busy
	case "declined", control.ReasonCanceled:
		return retry.Declined
	case "invalid_number":
		return retry.InvalidNumber
	case "congestion":
		return retry.Congestion
	default:
		return retry.Failed
	}
}

func answeredOutcome(c control.Call) retry.Outcome {
	switch {
	case c.AnsweredBy == "voicemail":
		return retry.Voicemail
	case c.AnsweredBy == "ivr":
		return retry.IVR
	case c.AnsweredBy == "fax":
		return retry.InvalidNumber
	case c.Reason != control.ReasonNodeLost && c.EndedAt.Sub(c.AnsweredAt) < shortCall:
		return retry.ShortCall
	default:
		return retry.Answered
	}
}
