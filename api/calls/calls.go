// Package calls is the resource group of calls: placing, reading, listing and
// ending them.
package calls

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"time"

	"github.com/parley-voice/parley/api/cursor"
	"github.com/parley-voice/parley/api/respond"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/idempotency"
	"github.com/parley-voice/parley/control/place"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/control/view"
)

// A Desk accepts orders; *place.Desk is one.
type Desk interface {
	Room(ctx context.Context) (leave func(), err error)
	Place(ctx context.Context, orgID string, o place.Order, also place.Also) (control.Call, error)
	PlaceWeb(ctx context.Context, orgID string, o place.WebOrder, also func(context.Context, db.Querier, control.Call, place.Ticket) error) (control.Call, place.Ticket, error)
}

// A Store reads and ends calls; *store.Store is one.
type Store interface {
	Call(ctx context.Context, orgID, id string) (control.Call, error)
	Whole(ctx context.Context, orgID, id string) (control.Call, control.Words, error)
	Turns(ctx context.Context, orgID, callID string) ([]json.RawMessage, error)
	List(ctx context.Context, f store.Filter) (store.Page, error)
	End(ctx context.Context, orgID, id string) (control.Call, error)
}

// Calls answers for calls.
type Calls struct {
	Desk    Desk
	Store   Store
	Keys    *idempotency.Keys
	Schemas *schema.Set
	View    view.View
	// Tickets lets browsers into web calls; nil where there are none.
	Tickets Tickets
	// Live are the calls of this node; nil where there are none.
	Live *control.Live
	// CursorKey signs the cursors of lists.
	CursorKey cursor.Key
	// EndWait is how long an end request waits for the call's end; 0 means 5 s.
	EndWait time.Duration
}

// callID is what the ids of calls look like. Anything else is nobody's.
var callID = regexp.MustCompile(`^call_[0-9A-Z]{26}$`)

// Create answers POST /v1/calls/phone.
func (c *Calls) Create(w http.ResponseWriter, r *http.Request, key access.Key) error {
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
	respond.Bytes(w, http.StatusAccepted, shown)
	return nil
}

// Place does what POST /v1/calls/phone asks for, and returns the call as it is
// answered. Where the scope's key, if there is one, was used before for the same it
// is the call that was placed then, and again holds.
func (c *Calls) Place(ctx context.Context, orgID, scope, key string, body *schema.Body) (shown []byte, again bool, err error) {
	slot, answer, err := c.begin(ctx, scope, key, body)
	if err != nil {
		return nil, false, err
	}
	if answer != nil {
		return answer.Body, true, nil
	}
	if shown, err = c.place(ctx, orgID, body, slot); err != nil && slot != nil {
		err = errors.Join(err, c.forget(ctx, slot))
	}
	return shown, false, err
}

// forget frees the key of a request that was refused: refusals are not
// remembered. Where the database hangs the key frees itself later.
func (c *Calls) forget(ctx context.Context, slot *idempotency.Slot) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	return c.Keys.Release(ctx, slot)
}

// place goes on where the idempotency key is settled: ceiling, schema, list.
func (c *Calls) place(ctx context.Context, orgID string, body *schema.Body, slot *idempotency.Slot) ([]byte, error) {
	leave, err := c.Desk.Room(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	order, err := c.Schemas.PhoneOrder(body)
	if err != nil {
		return nil, err
	}
	var shown []byte
	_, err = c.Desk.Place(ctx, orgID, order, func(batch *db.Batch, call control.Call) error {
		text, fault := json.Marshal(c.View.Call(call, control.Words{}))
		if shown = text; fault != nil || slot == nil {
			return fault
		}
		slot.QueueSettle(batch, idempotency.Answer{Status: http.StatusAccepted, Body: shown})
		return nil
	})
	if missing, ok := errors.AsType[*place.MissingError](err); ok {
		return nil, schema.Missing(missing.Variables)
	}
	return shown, err
}

// Get answers GET /v1/calls/{id}.
func (c *Calls) Get(w http.ResponseWriter, r *http.Request, key access.Key) error {
	return c.show(w, r, key)
}

// Turns answers GET /v1/calls/{id}/turns.
func (c *Calls) Turns(w http.ResponseWriter, r *http.Request, key access.Key) error {
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
	respond.JSON(w, http.StatusOK, turns)
	return nil
}

// End answers POST /v1/calls/{id}/end: with the call as it is when it is over,
// or after EndWait.
func (c *Calls) End(w http.ResponseWriter, r *http.Request, key access.Key) error {
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
	return c.show(w, r, key)
}

// Patience is how long an end request waits for the call's end.
func (c *Calls) Patience() time.Duration {
	if c.EndWait == 0 {
		return 5 * time.Second
	}
	return c.EndWait
}

// awaitEnd waits for a call that was asked to end, here or on another node.
func (c *Calls) awaitEnd(ctx context.Context, call control.Call) error {
	var over <-chan struct{}
	if c.Live != nil {
		over = c.Live.End(call.ID)
	}
	late := time.NewTimer(c.Patience())
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

// show answers with the whole call of the path.
func (c *Calls) show(w http.ResponseWriter, r *http.Request, key access.Key) error {
	if !callID.MatchString(r.PathValue("id")) {
		return store.NotFound()
	}
	call, words, err := c.Store.Whole(r.Context(), key.OrgID, r.PathValue("id"))
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, c.View.Call(call, words))
	return nil
}
