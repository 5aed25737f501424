// Package campaigns serves /v1/campaigns, /v1/contacts and /v1/imports.
package campaigns

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/parley-voice/parley/api/listing"
	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/dnc/screening"
	"github.com/parley-voice/parley/campaigns/launchcheck"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/budget"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/idempotency"
)

// Campaigns serves the campaign endpoints.
type Campaigns struct {
	Service *service.Service
	Store   *store.Store
	Keys    *idempotency.Keys
	Schemas *schema.Set
	// Budget limits how many lists are read at once; nil means no limit.
	Budget *budget.Budget
	// CursorKey signs the cursors of lists.
	CursorKey listing.Key
}

// Forms of ids.
var (
	campaignID = regexp.MustCompile(`^cmp_[0-9A-Z]{26}$`)
	importID   = regexp.MustCompile(`^imp_[0-9A-Z]{26}$`)
)

// Create answers POST /v1/campaigns.
func (c *Campaigns) Create(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	order, fingerprint, done, err := c.order(w, r, key.OrgID)
	if err != nil {
		return err
	}
	defer done()
	name, err := schema.IdempotencyKey(r)
	if err != nil {
		return err
	}
	if name == "" {
		return keyRequired()
	}
	if err = campaigns.CheckDNC(order.Spec.DNC); err != nil {
		return err
	}
	slot, answer, err := c.Keys.Begin(r.Context(), key.OrgID+" POST /v1/campaigns", name, fingerprint)
	if err != nil {
		return err
	}
	if answer != nil {
		w.Header().Set("Idempotent-Replayed", "true")
		response.Bytes(w, answer.Status, answer.Body)
		return nil
	}
	var shown []byte
	_, err = c.Service.Create(
		r.Context(),
		key.OrgID,
		who(r, key),
		order,
		func(ctx context.Context, q db.Querier, st service.Status) (fault error) {
			if shown, fault = json.Marshal(viewCampaign(st, true)); fault != nil {
				return fault
			}
			return slot.Settle(ctx, q, idempotency.Answer{Status: http.StatusCreated, Body: shown})
		},
		func(ctx context.Context, q db.Querier, _ error) error { return slot.Hold(ctx, q) },
	)
	if err != nil {
		if _, kept := errors.AsType[*service.DraftKeptError](err); kept {
			return err
		}
		err = unreadable(err)
		return errors.Join(err, c.releaseKey(r.Context(), slot))
	}
	response.Bytes(w, http.StatusCreated, shown)
	return nil
}

// releaseKey frees the key of a rejected request.
func (c *Campaigns) releaseKey(ctx context.Context, slot *idempotency.Slot) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	return c.Keys.Release(ctx, slot)
}

func who(r *http.Request, key apikeys.Key) service.Actor {
	ip, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		ip = r.RemoteAddr
	}
	agent := strings.ToValidUTF8(strings.ReplaceAll(r.UserAgent(), "\x00", ""), "\ufffd")
	return service.Actor{Via: campaigns.ByAPI, KeyID: key.ID, Actor: key.Name, IP: ip, Agent: agent[:min(len(agent), 500)]}
}

func id(r *http.Request) (string, error) {
	s := r.PathValue("id")
	if !campaignID.MatchString(s) {
		return "", store.NotFound()
	}
	return s, nil
}

// Get answers GET /v1/campaigns/{id}.
func (c *Campaigns) Get(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	return c.answer(w, r, true, func(id string) (service.Status, error) {
		return c.Service.Get(r.Context(), key.OrgID, id, screening.Fresh)
	})
}

// LaunchCheck answers GET /v1/campaigns/{id}/launch-check.
func (c *Campaigns) LaunchCheck(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	s, err := id(r)
	if err != nil {
		return err
	}
	st, err := c.Service.Get(r.Context(), key.OrgID, s, screening.Fresh)
	if err != nil {
		return err
	}
	response.JSON(w, http.StatusOK, launchCheck{st.Blockers, st.Warnings, st.Screen})
	return nil
}

// Launch answers POST /v1/campaigns/{id}/launch.
func (c *Campaigns) Launch(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	body, err := schema.Read(w, r)
	if err != nil {
		return err
	}
	order, err := c.Schemas.LaunchOrder(body)
	if err != nil {
		return err
	}
	return c.answer(w, r, true, func(id string) (service.Status, error) {
		return c.Service.Launch(r.Context(), key.OrgID, id, who(r, key), order)
	})
}

// Pause answers POST /v1/campaigns/{id}/pause.
func (c *Campaigns) Pause(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	return c.answer(w, r, false, func(id string) (service.Status, error) {
		return c.Service.Pause(r.Context(), key.OrgID, id, who(r, key))
	})
}

// Resume answers POST /v1/campaigns/{id}/resume.
func (c *Campaigns) Resume(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	return c.answer(w, r, false, func(id string) (service.Status, error) {
		return c.Service.Resume(r.Context(), key.OrgID, id, who(r, key))
	})
}

// Cancel answers POST /v1/campaigns/{id}/cancel.
func (c *Campaigns) Cancel(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	return c.answer(w, r, false, func(id string) (service.Status, error) {
		return c.Service.Cancel(r.Context(), key.OrgID, id, who(r, key))
	})
}

// SetBudget answers POST /v1/campaigns/{id}/budget.
func (c *Campaigns) SetBudget(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	s, err := id(r)
	if err == nil {
		_, err = c.Store.Get(r.Context(), c.Store.Pool, key.OrgID, s, false) // 404 precedes errors of the body
	}
	if err != nil {
		return err
	}
	body, err := schema.Read(w, r)
	if err != nil {
		return err
	}
	budget, err := c.Schemas.Budget(body)
	if err != nil {
		return err
	}
	return c.answer(w, r, false, func(id string) (service.Status, error) {
		return c.Service.SetBudget(r.Context(), key.OrgID, id, who(r, key), budget)
	})
}

// answer applies a transition to the campaign in the path and returns the campaign.
func (c *Campaigns) answer(w http.ResponseWriter, r *http.Request, checked bool, do func(id string) (service.Status, error)) error {
	s, err := id(r)
	if err != nil {
		return err
	}
	st, err := do(s)
	if blocked, ok := errors.AsType[*service.BlockedError](err); ok {
		return launchBlocked(blocked.Blockers)
	}
	if err != nil {
		return err
	}
	response.JSON(w, http.StatusOK, viewCampaign(st, checked))
	return nil
}

func launchBlocked(blockers []launchcheck.Blocker) error {
	return &response.DetailedError{
		Refusal: control.Refuse(control.CodeLaunchBlocked, "launch checks failed; see blockers"), Blockers: blockers,
	}
}

// Import answers GET /v1/imports/{id}.
func (c *Campaigns) Import(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	s := r.PathValue("id")
	if !importID.MatchString(s) {
		return store.ImportNotFound()
	}
	x, err := c.Service.Import(r.Context(), key.OrgID, s, screening.Fresh)
	if err != nil {
		return err
	}
	response.JSON(w, http.StatusOK, viewImport(x))
	return nil
}
