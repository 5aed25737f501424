// Package calls serves /v1/calls, and the trunks and subgroups that an agent may use.
package calls

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"time"

	"github.com/parley-voice/parley/api/listing"
	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/callview"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/idempotency"
	"github.com/parley-voice/parley/control/store"
)

// Admission accepts call requests; *admission.Controller implements it.
type Admission interface {
	Reserve(ctx context.Context, orgID string) (leave func(), err error)
	Place(ctx context.Context, orgID string, o admission.Order, also admission.InTx) (control.Call, error)
	PlaceWeb(
		ctx context.Context,
		orgID string,
		o admission.WebOrder,
		also func(context.Context, db.Querier, control.Call, admission.Ticket) error,
	) (control.Call, admission.Ticket, error)
}

// A Store reads and ends calls; *store.Store implements it.
type Store interface {
	Call(ctx context.Context, orgID, id string) (control.Call, error)
	CallWithTranscript(ctx context.Context, orgID, id string) (control.Call, control.Transcript, error)
	Turns(ctx context.Context, orgID, callID string) ([]json.RawMessage, error)
	List(ctx context.Context, f store.Filter) (store.Page, error)
	End(ctx context.Context, orgID, id string) (control.Call, error)
}

// Calls serves the call endpoints.
type Calls struct {
	Admission Admission
	Store     Store
	Keys      *idempotency.Keys
	Schemas   *schema.Set
	View      callview.View
	// Tickets creates join tokens of web calls; nil disables web calls.
	Tickets Tickets
	// Live holds the calls of this node; may be nil.
	Live *control.Live
	// CursorKey signs the cursors of lists.
	CursorKey listing.Key
	// EndWait limits how long an end request waits for the call to end; 0 means 5 s.
	EndWait time.Duration
}

// callID matches ids of calls.
var callID = regexp.MustCompile(`^call_[0-9A-Z]{26}$`)

// Create answers POST /v1/calls/phone.
func (c *Calls) Create(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	body, err := schema.Read(w, r)
	if err != nil {
		return err
	}
	name, err := schema.IdempotencyKey(r)
	if err != nil {
		return err
	}
	shown, again, err := c.Place(r.Context(), key.OrgID, scope(r, key), name, body)
	if err != nil {
		return err
	}
	if again {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	response.Bytes(w, http.StatusAccepted, shown)
	return nil
}

// Place places a call and returns its JSON. If the key of the scope was used before with the
// same body, it returns the earlier call, and again is true.
func (c *Calls) Place(ctx context.Context, orgID, scope, key string, body *schema.Body) (shown []byte, again bool, err error) {
	slot, answer, err := c.reserveKey(ctx, scope, key, body)
	if err != nil {
		return nil, false, err
	}
	if answer != nil {
		return answer.Body, true, nil
	}
	if shown, err = c.place(ctx, orgID, body, slot); err != nil && slot != nil {
		err = errors.Join(err, c.releaseKey(ctx, slot))
	}
	return shown, false, err
}

// releaseKey frees the key of a rejected request, so that the request may be repeated. If the
// database does not respond, the key expires by itself.
func (c *Calls) releaseKey(ctx context.Context, slot *idempotency.Slot) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	return c.Keys.Release(ctx, slot)
}

// place checks capacity, schema and do-not-call lists in the contract's order, then queues the call.
func (c *Calls) place(ctx context.Context, orgID string, body *schema.Body, slot *idempotency.Slot) ([]byte, error) {
	leave, err := c.Admission.Reserve(ctx, orgID)
	if err != nil {
		return nil, err
	}
	defer leave()
	order, err := c.Schemas.PhoneOrder(body)
	if err != nil {
		return nil, err
	}
	var shown []byte
	_, err = c.Admission.Place(ctx, orgID, order, func(batch *db.Batch, call control.Call) error {
		text, fault := json.Marshal(c.View.Call(call, control.Transcript{}))
		if shown = text; fault != nil || slot == nil {
			return fault
		}
		slot.QueueSettle(batch, idempotency.Answer{Status: http.StatusAccepted, Body: shown, CallID: call.ID})
		return nil
	})
	if missing, ok := errors.AsType[*admission.MissingVariablesError](err); ok {
		return nil, schema.Missing(missing.Variables)
	}
	return shown, err
}

// Get answers GET /v1/calls/{id}.
func (c *Calls) Get(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	return c.show(w, r, key)
}

// Turns answers GET /v1/calls/{id}/turns.
func (c *Calls) Turns(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	if !callID.MatchString(r.PathValue("id")) {
		return store.NotFound()
	}
	turns, err := c.Store.Turns(r.Context(), key.OrgID, r.PathValue("id"))
	if err != nil {
		return err
	}
	if turns == nil {
		turns = []json.RawMessage{}
	}
	response.JSON(w, http.StatusOK, turns)
	return nil
}

// End answers POST /v1/calls/{id}/end with the call once it has ended, or after EndWait. A key that may not read calls
// gets the call without its content.
func (c *Calls) End(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	if !callID.MatchString(r.PathValue("id")) {
		return store.NotFound()
	}
	call, err := c.Store.End(r.Context(), key.OrgID, r.PathValue("id"))
	if err != nil {
		return err
	}
	if !call.Status.Over() {
		if err = c.awaitEnd(r.Context(), call); err != nil {
			return err
		}
	}
	if key.Allows(apikeys.ScopeRead) {
		return c.show(w, r, key)
	}
	if call, err = c.Store.Call(r.Context(), key.OrgID, call.ID); err != nil {
		return err
	}
	response.JSON(w, http.StatusOK, c.View.Call(withoutContent(call), control.Transcript{}))
	return nil
}

// withoutContent returns the state of a call without what was said, and without data of the callee.
func withoutContent(c control.Call) control.Call {
	return control.Call{
		ID: c.ID, Type: c.Type, Status: c.Status, AgentName: c.AgentName, AgentVersion: c.AgentVersion, Attempt: c.Attempt,
		CreatedAt: c.CreatedAt, DialedAt: c.DialedAt, RingingAt: c.RingingAt, AnsweredAt: c.AnsweredAt, EndedAt: c.EndedAt,
		Reason: c.Reason, HangupBy: c.HangupBy, RecordingStatus: control.RecordingNone, AnalysisStatus: c.AnalysisStatus,
	}
}

// EndTimeout returns how long an end request waits.
func (c *Calls) EndTimeout() time.Duration {
	if c.EndWait == 0 {
		return 5 * time.Second
	}
	return c.EndWait
}

func (c *Calls) awaitEnd(ctx context.Context, call control.Call) error {
	var over <-chan struct{}
	if c.Live != nil {
		over = c.Live.End(call.ID)
	}
	late := time.NewTimer(c.EndTimeout())
	defer late.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for waiting := true; waiting; {
		select {
		case <-over:
			over, waiting = nil, false
		case <-tick.C:
		case <-late.C:
			waiting = false
		case <-ctx.Done():
			return ctx.Err()
		}
		now, err := c.Store.Call(ctx, call.OrgID, call.ID)
		if err != nil || now.Status.Over() {
			return err
		}
	}
	return nil
}

func (c *Calls) show(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	if !callID.MatchString(r.PathValue("id")) {
		return store.NotFound()
	}
	call, words, err := c.Store.CallWithTranscript(r.Context(), key.OrgID, r.PathValue("id"))
	if err != nil {
		return err
	}
	response.JSON(w, http.StatusOK, c.View.Call(call, words))
	return nil
}
