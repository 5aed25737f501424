package campaigns

import (
	"context"
	"encoding/json"
	"errors"
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
	action, notice string,
	change func(ctx context.Context, orgID, id string, who service.Actor) (service.Status, error),
) (ui.Result, error) {
	back := ui.Result{To: "campaigns/" + r.ID(), Notice: notice}
	before, err := c.API.Store.Get(r.Context(), r.DB(), r.Org(), r.ID(), false)
	if err != nil {
		return back, err
	}
	st, err := change(r.Context(), r.Org(), r.ID(), who(r))
	if blocked, ok := errors.AsType[*service.BlockedError](err); ok {
		back.Notice, back.Failed = blockedBy(r.Texts, blocked), true
		return back, nil
	}
	switch control.CodeOf(err) {
	case control.CodeCampaignTransition,
		control.CodeAttestationImport,
		control.CodeDNCDecision,
		control.CodeDNCWithoutUpload,
		control.CodeDNCScreenRequired:
		back.Notice, back.Failed = r.Texts.T("campaigns.change.refused", "reason", ui.ErrorText(err)), true
		return back, nil
	default:
	}
	if err != nil {
		return back, err
	}
	if st.Campaign.Status == campaigns.Scheduled && before.Status == campaigns.Draft {
		back.Notice = r.Texts.T("campaigns.launch.scheduled")
	}
	if st.Campaign.Status == before.Status {
		return back, nil // the form changed nothing
	}
	return back, c.log(
		r, action, r.ID(), map[string]any{"status": before.Status},
		map[string]any{"status": st.Campaign.Status, "name": before.Name},
	)
}

func blockedBy(texts *ui.Texts, b *service.BlockedError) string {
	var all []string
	for _, x := range b.Blockers {
		if x.Code == "attestation_stale" {
			all = append(all, texts.T("campaigns.blocked.attestation_stale"))
			continue
		}
		text := x.Message
		if key := "campaigns.check." + x.Code; texts.Has(key + ".failed") {
			text = lower(texts.Label(key, "failed"))
		}
		all = append(all, text)
	}
	return texts.T("campaigns.blocked.notice", "reasons", strings.Join(all, "; "))
}

func (c *Campaigns) launch(r *ui.Request) (ui.Result, error) {
	if !r.Ticked("attest") {
		return ui.Result{
			To:     "campaigns/" + r.ID() + "#launch",
			Notice: r.Texts.T("campaigns.launch.unconfirmed"),
			Failed: true,
		}, nil
	}
	same := func(k campaigns.Campaign) error {
		if r.Same(draftSettings{Campaign: k}) != nil {
			return control.Refuse(control.CodeCampaignTransition,
				r.Texts.T("campaigns.launch.changed"))
		}
		return nil
	}
	return c.do(r, "launch", r.Texts.T("campaigns.launch.notice"),
		func(ctx context.Context, orgID, id string, who service.Actor) (service.Status, error) {
			return c.service().Launch(ctx, orgID, id, who, service.LaunchRequest{
				Confirmed: true, ImportID: r.Text("import"), DNC: r.Text("dnc"), Same: same,
			})
		})
}

func (c *Campaigns) pause(r *ui.Request) (ui.Result, error) {
	return c.do(r, "pause", r.Texts.T("campaigns.pause.notice"), c.service().Pause)
}

func (c *Campaigns) resume(r *ui.Request) (ui.Result, error) {
	return c.do(r, "resume", r.Texts.T("campaigns.resume.notice"), c.service().Resume)
}

// rescreen screens contacts again if they were skipped because of their location.
func (c *Campaigns) rescreen(r *ui.Request) (ui.Result, error) {
	to := "campaigns/" + r.ID()
	n, err := c.service().Rescreen(r.Context(), r.Org(), r.ID(), who(r))
	switch control.CodeOf(err) {
	case control.CodeCampaignTransition, control.CodeMarketNotInstalled:
		return ui.Result{To: to, Notice: r.Texts.T("campaigns.change.refused", "reason", ui.ErrorText(err)), Failed: true}, nil
	default:
	}
	if err != nil {
		return ui.Result{}, err
	}
	if n == 0 {
		return ui.Result{To: to, Notice: r.Texts.T("campaigns.rescreen.none")}, nil
	}
	return ui.Result{
		To:     to,
		Notice: r.Texts.T("campaigns.rescreen.notice", "contacts", r.Texts.T("ui.count.contacts", "count", n)),
	}, c.log(r, "rescreen", r.ID(), nil, map[string]any{"contacts": n})
}

// reopen sets contacts to pending again if their last call failed because of Parley or a provider.
func (c *Campaigns) reopen(r *ui.Request) (ui.Result, error) {
	back := ui.Result{To: "campaigns/" + r.ID()}
	n, err := c.service().Reopen(r.Context(), r.Org(), r.ID(), who(r))
	if control.CodeOf(err) == control.CodeCampaignTransition {
		back.Notice, back.Failed = r.Texts.T("campaigns.change.refused", "reason", ui.ErrorText(err)), true
		return back, nil
	}
	if back.Notice = r.Texts.T("campaigns.reopen.none"); err != nil || n == 0 {
		return back, err
	}
	back.Notice = r.Texts.T("campaigns.reopen.notice", "contacts", r.Texts.T("ui.count.contacts", "count", n))
	return back, c.log(r, "reopen", r.ID(), nil, map[string]any{"contacts": n})
}

func (c *Campaigns) askCancel(r *ui.Request) (ui.Page, error) {
	k, err := c.API.Store.Get(r.Context(), r.DB(), r.Org(), r.ID(), false)
	if err != nil {
		return ui.Page{}, err
	}
	return ui.Confirm(r, ui.Page{
		Title: r.Texts.T("campaigns.cancel.title", "name", k.Name), Crumbs: crumbs(r.Texts, campaignLink(k)),
		Lead: r.Texts.T("campaigns.cancel.lead"),
	}, r.Texts.T("campaigns.cancel.submit"), "campaigns/"+k.ID), nil
}

func (c *Campaigns) cancel(r *ui.Request) (ui.Result, error) {
	return c.do(r, "cancel", r.Texts.T("campaigns.cancel.notice"), c.service().Cancel)
}

func (c *Campaigns) askCalls(r *ui.Request) (ui.Page, error) {
	k, err := c.API.Store.Get(r.Context(), r.DB(), r.Org(), r.ID(), false)
	if err != nil {
		return ui.Page{}, err
	}
	f := numbers(r.Texts, r.Texts.T("campaigns.add.submit"), r.URL("campaigns/"+k.ID))
	f.Fields[0].Help = r.Texts.T("campaigns.add.file.help")
	f.Fields = append(
		f.Fields,
		ui.OnceField(),
		ui.Field{Name: "attest", Label: r.Texts.T("campaigns.add.attest.label", "consent", consent(r.Texts, k.ConsentTier())), Kind: ui.Checkbox},
	)
	return ui.Page{
		Template: "form.html", Title: r.Texts.T("campaigns.add.title", "name", k.Name), Crumbs: crumbs(r.Texts, campaignLink(k)),
		Lead: r.Texts.T("campaigns.add.lead"), Data: r.Form(f),
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
		return ui.Result{}, ui.Invalid("lines", r.Texts.T("campaigns.upload.invalid.empty"))
	}
	if !r.Ticked("attest") {
		return ui.Result{}, ui.Invalid("attest", r.Texts.T("campaigns.add.invalid.attest"))
	}
	batch, err := c.batch(r.Texts, list)
	if err != nil {
		return ui.Result{}, err
	}
	slot, added, end, err := r.Begin(batch)
	back := ui.Result{To: "campaigns/" + r.ID(), Notice: r.Texts.T("campaigns.add.repeated")}
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
		return ui.Result{To: "imports/" + no.Import.ID, Notice: r.Texts.T("campaigns.add.refused", "reason", ui.ErrorText(no.Err)), Failed: true},
			errors.Join(end(nil), c.log(r, "calls_refused", r.ID(), nil, map[string]any{"import": no.Import.ID, "rows": len(batch)}))
	}
	if err = end(err); err != nil {
		return ui.Result{}, err
	}
	back.Notice = r.Texts.T("campaigns.add.notice", "contacts", r.Texts.T("ui.count.contacts", "count", st.Import.AcceptedRows))
	return back, c.log(r, "add_calls", r.ID(), nil, map[string]any{"import": st.Import.ID, "accepted": st.Import.AcceptedRows})
}

func (c *Campaigns) batch(texts *ui.Texts, list *service.File) ([]json.RawMessage, error) {
	source, err := contactfile.FromFile(list, list.Size)
	if err != nil {
		return nil, unreadable(texts, err)
	}
	most := c.service().MaxCalls
	if most == 0 {
		most = 1000
	}
	all, err := contactfile.JSON(source, most)
	switch {
	case errors.Is(err, contactfile.ErrRowLimit):
		return nil, ui.Invalid("rows", texts.T("campaigns.add.invalid.too_many", "limit", most))
	case err != nil:
		return nil, ui.Invalid("rows", texts.T("campaigns.upload.invalid.file", "reason", err.Error()))
	}
	return all, c.service().CheckCalls(len(all))
}

func (c *Campaigns) askWithdraw(r *ui.Request) (ui.Page, error) {
	return ui.Page{
		Template: "form.html", Title: r.Texts.T("campaigns.withdraw.submit"), Crumbs: crumbs(r.Texts),
		Lead: r.Texts.T("campaigns.withdraw.lead"),
		Data: r.Form(ui.Form{Submit: r.Texts.T("campaigns.withdraw.submit"), Danger: true, Cancel: r.URL("campaigns"), Fields: []ui.Field{
			{
				Name: "numbers", Label: r.Texts.T("campaigns.withdraw.numbers.label"), Kind: ui.TextArea, Rows: 8,
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
		return ui.Result{}, ui.Invalid("numbers", r.Texts.T("campaigns.withdraw.invalid.empty"))
	case control.CodeAddressesTooMany:
		return ui.Result{}, ui.Invalid("numbers", r.Texts.T("campaigns.withdraw.invalid.too_many"))
	default:
	}
	if err != nil {
		return ui.Result{}, err
	}
	if err = c.log(r, "withdraw", "", nil, map[string]any{"withdrawn": w.Withdrawn}); err != nil {
		return ui.Result{}, err
	}
	return ui.Result{Page: &ui.Page{
		Template: "withdrawn.html", Title: r.Texts.T("campaigns.withdraw.done.title"), Crumbs: crumbs(r.Texts),
		Data: map[string]any{"Did": w, "Invalid": unquoteAll(w.Invalid), "NotFound": unquoteAll(w.NotFound)},
	}}, nil
}

// unquoteAll returns JSON strings as they were typed.
func unquoteAll(all []json.RawMessage) []string {
	out := make([]string, len(all))
	for i, raw := range all {
		if json.Unmarshal(raw, &out[i]) != nil {
			out[i] = string(raw)
		}
	}
	return out
}
