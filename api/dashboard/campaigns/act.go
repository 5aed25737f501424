package campaigns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/contactfile"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/idempotency"
)

// do changes a campaign, logs the change and returns to the campaign's page, with the reason if
// the change is refused.
func (c *Campaigns) do(
	r *ui.Request,
	action, say string,
	change func(ctx context.Context, orgID, id string, who service.Actor) (service.Status, error),
) (ui.Result, error) {
	back := ui.Result{To: "campaigns/" + r.ID(), Notice: say}
	before, err := c.API.Store.Get(r.Context(), r.DB(), r.Org(), r.ID(), false)
	if err != nil {
		return back, err
	}
	st, err := change(r.Context(), r.Org(), r.ID(), who(r))
	if blocked, ok := errors.AsType[*service.BlockedError](err); ok {
		back.Notice, back.Failed = blockedBy(blocked), true
		return back, nil
	}
	switch control.CodeOf(err) {
	case control.CodeCampaignTransition,
		control.CodeAttestationImport,
		control.CodeDNCDecision,
		control.CodeDNCWithoutUpload,
		control.CodeDNCScreenRequired:
		back.Notice, back.Failed = "Nothing was changed: "+ui.ErrorText(err)+".", true
		return back, nil
	default:
	}
	if err != nil {
		return back, err
	}
	if st.Campaign.Status == campaigns.Scheduled && before.Status == campaigns.Draft {
		back.Notice = "Campaign launched. Dialing starts at the scheduled time."
	}
	if st.Campaign.Status == before.Status {
		return back, nil // the form changed nothing
	}
	return back, c.log(
		r, action, r.ID(), map[string]any{"status": before.Status},
		map[string]any{"status": st.Campaign.Status, "name": before.Name},
	)
}

func blockedBy(b *service.BlockedError) string {
	var all []string
	for _, x := range b.Blockers {
		if x.Code == "attestation_stale" {
			all = append(all, "the list or its screening has changed; review it and confirm again")
			continue
		}
		text := x.Message
		for _, f := range fixes {
			if f.Code == x.Code {
				text = lower(f.Bad)
			}
		}
		all = append(all, text)
	}
	return "Not started: " + strings.Join(all, "; ") + "."
}

func (c *Campaigns) launch(r *ui.Request) (ui.Result, error) {
	if !r.Ticked("attest") {
		return ui.Result{
			To:     "campaigns/" + r.ID() + "#launch",
			Notice: "Not launched. Confirm that the contacts consented to calls.",
			Failed: true,
		}, nil
	}
	same := func(k campaigns.Campaign) error {
		if r.Same(settings{Campaign: k}) != nil {
			return control.Refuse(control.CodeCampaignTransition,
				"someone changed the settings after you opened this page; review them, then launch")
		}
		return nil
	}
	return c.do(r, "launch", "Campaign launched.", func(ctx context.Context, orgID, id string, who service.Actor) (service.Status, error) {
		return c.service().Launch(ctx, orgID, id, who, service.LaunchRequest{
			Confirmed: true, ImportID: r.Text("import"), DNC: r.Text("dnc"), Same: same,
		})
	})
}

func (c *Campaigns) pause(r *ui.Request) (ui.Result, error) {
	return c.do(r, "pause", "Campaign paused. Active calls continue.", c.service().Pause)
}

func (c *Campaigns) resume(r *ui.Request) (ui.Result, error) {
	return c.do(r, "resume", "Campaign resumed.", c.service().Resume)
}

// rescreen screens contacts again if they were skipped because of their location.
func (c *Campaigns) rescreen(r *ui.Request) (ui.Result, error) {
	to := "campaigns/" + r.ID()
	n, err := c.service().Rescreen(r.Context(), r.Org(), r.ID(), who(r))
	switch control.CodeOf(err) {
	case control.CodeCampaignTransition, control.CodeMarketNotInstalled:
		return ui.Result{To: to, Notice: "Nothing was changed: " + ui.ErrorText(err) + ".", Failed: true}, nil
	default:
	}
	if err != nil {
		return ui.Result{}, err
	}
	if n == 0 {
		return ui.Result{To: to, Notice: "Screened again: the market or the subgroup still rejects these numbers."}, nil
	}
	return ui.Result{
		To:     to,
		Notice: people(n) + " will be called. Resume the campaign if it is paused.",
	}, c.log(r, "rescreen", r.ID(), nil, map[string]any{"contacts": n})
}

// reopen sets contacts to pending again if their last call failed because of Parley or a provider.
func (c *Campaigns) reopen(r *ui.Request) (ui.Result, error) {
	back := ui.Result{To: "campaigns/" + r.ID()}
	n, err := c.service().Reopen(r.Context(), r.Org(), r.ID(), who(r))
	if control.CodeOf(err) == control.CodeCampaignTransition {
		back.Notice, back.Failed = "Nothing was changed: "+ui.ErrorText(err)+".", true
		return back, nil
	}
	if back.Notice = "No contact needs another call."; err != nil || n == 0 {
		return back, err
	}
	back.Notice = people(n) + " will be called again."
	return back, c.log(r, "reopen", r.ID(), nil, map[string]any{"contacts": n})
}

func (c *Campaigns) askCancel(r *ui.Request) (ui.Page, error) {
	k, err := c.API.Store.Get(r.Context(), r.DB(), r.Org(), r.ID(), false)
	if err != nil {
		return ui.Page{}, err
	}
	return ui.Page{
		Template: "form.html", Title: "Cancel " + k.Name, Crumbs: crumbs(campaignLink(k)),
		Lead: "No one else will be called. This cannot be undone. Active calls continue.",
		Data: r.Form(ui.Form{Submit: "Cancel campaign", Danger: true, Cancel: r.URL("campaigns/" + k.ID)}),
	}, nil
}

func (c *Campaigns) cancel(r *ui.Request) (ui.Result, error) {
	return c.do(r, "cancel", "Campaign canceled.", c.service().Cancel)
}

func (c *Campaigns) askCalls(r *ui.Request) (ui.Page, error) {
	k, err := c.API.Store.Get(r.Context(), r.DB(), r.Org(), r.ID(), false)
	if err != nil {
		return ui.Page{}, err
	}
	f := numbers("Add numbers", r.URL("campaigns/"+k.ID))
	f.Fields[0].Help = "CSV or XLSX. Column names in the first line: phone, name, timezone; other columns become variables."
	f.Fields = append(
		f.Fields,
		ui.OnceField(),
		ui.Field{Name: "attest", Label: "Each contact gave " + consent(k.ConsentTier()), Kind: ui.Checkbox},
	)
	return ui.Page{
		Template: "form.html", Title: "Add numbers to " + k.Name, Crumbs: crumbs(campaignLink(k)),
		Lead: "If a row is rejected, no number is added. The report lists unreadable rows and numbers on a do-not-call list.", Data: r.Form(f),
	}, nil
}

// add adds numbers to a campaign, once per form. Numbers that the campaign already has are
// called again.
func (c *Campaigns) add(r *ui.Request) (ui.Result, error) {
	list, done, err := c.formList(r)
	if err != nil {
		return ui.Result{}, err
	}
	defer done()
	if list == nil {
		return ui.Result{}, ui.Invalid("lines", "Choose a file or enter numbers.")
	}
	if !r.Ticked("attest") {
		return ui.Result{}, ui.Invalid("attest", "Confirm the consent: it is required for these calls.")
	}
	batch, err := c.batch(list)
	if err != nil {
		return ui.Result{}, err
	}
	slot, added, end, err := r.Begin(batch)
	back := ui.Result{To: "campaigns/" + r.ID(), Notice: "These numbers were already added with this form."}
	if err != nil || added != nil {
		return back, err
	}
	st, err := c.service().Add(r.Context(), r.Org(), r.ID(), who(r), batch, service.BatchHooks{
		OnAccepted: func(ctx context.Context, q db.Querier, _ service.Status) error {
			return slot.Settle(ctx, q, idempotency.Answer{Status: http.StatusSeeOther})
		},
		OnRefused: slot.ReleaseTx,
	})
	if no, ok := errors.AsType[*service.RefusedError](err); ok {
		return ui.Result{To: "imports/" + no.Import.ID, Notice: "No numbers were added: " + ui.ErrorText(no.Err) + ".", Failed: true},
			errors.Join(end(nil), c.log(r, "calls_refused", r.ID(), nil, map[string]any{"import": no.Import.ID, "rows": len(batch)}))
	}
	if err = end(err); err != nil {
		return ui.Result{}, err
	}
	back.Notice = people(st.Import.AcceptedRows) + " added."
	return back, c.log(r, "add_calls", r.ID(), nil, map[string]any{"import": st.Import.ID, "accepted": st.Import.AcceptedRows})
}

func (c *Campaigns) batch(list *service.File) ([]json.RawMessage, error) {
	source, err := contactfile.FromFile(list, list.Size)
	if err != nil {
		return nil, unreadable(err)
	}
	most := c.service().MaxCalls
	if most == 0 {
		most = 1000
	}
	all, err := contactfile.JSON(source, most)
	switch {
	case errors.Is(err, contactfile.ErrRowLimit):
		return nil, ui.Invalid("rows", fmt.Sprintf("The limit is %d rows at a time.", most))
	case err != nil:
		return nil, ui.Invalid("rows", "The file could not be read: "+err.Error()+".")
	}
	return all, c.service().CheckCalls(len(all))
}

func (c *Campaigns) askWithdraw(r *ui.Request) (ui.Page, error) {
	return ui.Page{
		Template: "form.html", Title: "Withdraw numbers", Crumbs: crumbs(),
		Lead: "Withdrawn numbers are not called again in any active campaign. Active calls continue.",
		Data: r.Form(ui.Form{Submit: "Withdraw numbers", Danger: true, Cancel: r.URL("campaigns"), Fields: []ui.Field{
			{
				Name: "numbers", Label: "Numbers or contact ids, one per line", Kind: ui.TextArea, Rows: 8,
				Code: true, Placeholder: "+1 202 555 0123",
			},
		}}),
	}, nil
}

// withdraw removes numbers from all campaigns. The result is shown once and kept in the
// audit log.
func (c *Campaigns) withdraw(r *ui.Request) (ui.Result, error) {
	var a service.WithdrawRequest
	for line := range strings.Lines(r.Text("numbers")) {
		text := strings.TrimSpace(line)
		sent, err := json.Marshal(text)
		switch {
		case err != nil:
			return ui.Result{}, err
		case text == "":
		case strings.HasPrefix(text, "con_"):
			a.ContactIDs = append(a.ContactIDs, sent)
		default:
			a.Phones = append(a.Phones, sent)
		}
	}
	w, err := c.service().Withdraw(r.Context(), r.Org(), who(r), a)
	switch control.CodeOf(err) {
	case control.CodeAddressesRequired:
		return ui.Result{}, ui.Invalid("numbers", "Enter at least one number or contact id.")
	case control.CodeAddressesTooMany:
		return ui.Result{}, ui.Invalid("numbers", "Too many numbers at once. Split the list.")
	default:
	}
	if err != nil {
		return ui.Result{}, err
	}
	if err = c.log(r, "withdraw", "", nil, map[string]any{"withdrawn": w.Withdrawn}); err != nil {
		return ui.Result{}, err
	}
	return ui.Result{Page: &ui.Page{
		Template: "withdrawn.html", Title: "Withdrawn numbers", Crumbs: crumbs(),
		Data: map[string]any{"Did": w, "Invalid": texts(w.Invalid), "NotFound": texts(w.NotFound)},
	}}, nil
}

// texts returns JSON strings as they were typed.
func texts(all []json.RawMessage) []string {
	out := make([]string, len(all))
	for i, raw := range all {
		if json.Unmarshal(raw, &out[i]) != nil {
			out[i] = string(raw)
		}
	}
	return out
}
