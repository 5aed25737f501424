package campaigns

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/campaigns/dnc/screening"
	"github.com/parley-voice/parley/campaigns/launchcheck"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/idempotency"
)

type added struct {
	Campaign  shortView             `json:"campaign"`
	Import    importView            `json:"import"`
	DNCScreen screening.Screen      `json:"dnc_screen"`
	Blockers  []launchcheck.Blocker `json:"blockers"`
}

// Add answers POST /v1/campaigns/{id}/calls.
func (c *Campaigns) Add(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	name, body, rows, err := c.batch(w, r)
	if err != nil {
		return err
	}
	campaign, err := id(r)
	if err == nil {
		err = c.Service.CheckAddable(r.Context(), key.OrgID, campaign)
	}
	if err != nil {
		return err
	}
	slot, answer, err := c.Keys.Begin(r.Context(), key.OrgID+" POST /v1/campaigns/"+campaign+"/calls", name, body.Fingerprint())
	if err != nil {
		return err
	}
	if answer != nil {
		w.Header().Set("Idempotent-Replayed", "true")
		response.Bytes(w, answer.Status, answer.Body)
		return nil
	}
	var shown []byte
	_, err = c.Service.Add(r.Context(), key.OrgID, campaign, who(r, key), rows, service.BatchHooks{
		OnAccepted: func(ctx context.Context, q db.Querier, st service.Status) (fault error) {
			shown, fault = json.Marshal(added{summarize(st.Campaign), viewImport(*st.Import), st.Screen, st.Blockers})
			if fault != nil {
				return fault
			}
			return slot.Settle(ctx, q, idempotency.Answer{Status: http.StatusCreated, Body: shown})
		},
		OnRefused: slot.ReleaseTx,
	})
	if refused, ok := errors.AsType[*service.RefusedError](err); ok {
		refusal, _ := errors.AsType[*control.Error](refused.Err)
		return &response.DetailedError{Refusal: refusal, Import: viewImport(refused.Import)}
	}
	if err != nil {
		return errors.Join(err, c.releaseKey(r.Context(), slot))
	}
	response.Bytes(w, http.StatusCreated, shown)
	return nil
}

func (c *Campaigns) batch(w http.ResponseWriter, r *http.Request) (name string, body *schema.Body, rows []json.RawMessage, err error) {
	if name, err = schema.IdempotencyKey(r); err != nil {
		return "", nil, nil, err
	}
	if name == "" {
		return "", nil, nil, keyRequired()
	}
	if body, err = schema.Read(w, r); err != nil {
		return "", nil, nil, err
	}
	rows, attested, err := c.Schemas.Batch(body)
	if err == nil {
		err = c.Service.CheckCalls(len(rows))
	}
	if err == nil && !attested {
		err = control.Refuse(control.CodeAttestation, "attestation must be an object with one key: {\"confirmed\": true}")
	}
	return name, body, rows, err
}

func keyRequired() error {
	return control.Refuse(control.CodeIdempotencyRequired, "the header Idempotency-Key is required: a unique string per request")
}

// Progress answers GET /v1/campaigns/{id}/progress.
func (c *Campaigns) Progress(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	s, err := id(r)
	if err != nil {
		return err
	}
	p, err := c.Service.Progress(r.Context(), key.OrgID, s)
	if err != nil {
		return err
	}
	response.JSON(w, http.StatusOK, p)
	return nil
}

// Withdraw answers POST /v1/contacts/withdraw.
func (c *Campaigns) Withdraw(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	body, err := schema.Read(w, r)
	if err != nil {
		return err
	}
	addresses, err := c.Schemas.Addresses(body)
	if err != nil {
		return err
	}
	done, err := c.Service.Withdraw(r.Context(), key.OrgID, who(r, key), addresses)
	if err != nil {
		return err
	}
	response.JSON(w, http.StatusOK, done)
	return nil
}
