package campaigns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/api/dashboard/words"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/desk"
	"github.com/parley-voice/parley/campaigns/rows"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/idempotency"
)

// do changes a campaign, logs it, and leads back to it. What is refused is told there.
func (c *Campaigns) do(r *frame.Request, action, say string, change func(ctx context.Context, orgID, id string, who desk.Who) (desk.Standing, error)) (frame.Done, error) {
	back := frame.Done{To: "campaigns/" + r.ID(), Say: say}
	before, err := c.API.Store.Get(r.Context(), r.DB(), r.Org(), r.ID(), false)
	if err != nil {
		return back, err
	}
	st, err := change(r.Context(), r.Org(), r.ID(), who(r))
	if blocked, ok := errors.AsType[*desk.BlockedError](err); ok {
		back.Say, back.Wrong = blockedBy(blocked), true
		return back, nil
	}
	switch control.CodeOf(err) {
	case control.CodeCampaignTransition, control.CodeAttestationImport, control.CodeDNCDecision, control.CodeDNCWithoutUpload, control.CodeDNCScreenRequired:
		back.Say, back.Wrong = "Nothing was done: "+words.Refusal(err)+".", true
		return back, nil
	default:
	}
	if err != nil {
		return back, err
	}
	if st.Campaign.Status == campaigns.Scheduled && before.Status == campaigns.Draft {
		back.Say = "It is launched, and begins at its start."
	}
	if st.Campaign.Status == before.Status {
		return back, nil // it was so already
	}
	return back, c.log(r, action, r.ID(), map[string]any{"status": before.Status}, map[string]any{"status": st.Campaign.Status, "name": before.Name})
}

// blockedBy says what keeps a campaign from its launch.
func blockedBy(b *desk.BlockedError) string {
	var all []string
	for _, x := range b.Blockers {
		if x.Code == "attestation_stale" {
			all = append(all, "the list or its screening changed since you saw it: look again, and confirm again")
			continue
		}
		text := x.Message
		for _, f := range fixes() {
			if f.Code == x.Code {
				text = lower(f.Bad)
			}
		}
		all = append(all, text)
	}
	return "It was not begun: " + strings.Join(all, "; ") + "."
}

func (c *Campaigns) launch(r *frame.Request) (frame.Done, error) {
	if !r.Ticked("attest") {
		return frame.Done{To: "campaigns/" + r.ID() + "#launch", Say: "It was not launched: confirm the consent of those who are called.", Wrong: true}, nil
	}
	return c.do(r, "launch", "It is launched.", func(ctx context.Context, orgID, id string, who desk.Who) (desk.Standing, error) {
		return c.desk().Launch(ctx, orgID, id, who, desk.LaunchOrder{Confirmed: true, ImportID: r.Text("import"), DNC: r.Text("dnc")})
	})
}

func (c *Campaigns) pause(r *frame.Request) (frame.Done, error) {
	return c.do(r, "pause", "It is paused. Calls that are on go on.", c.desk().Pause)
}

func (c *Campaigns) resume(r *frame.Request) (frame.Done, error) {
	return c.do(r, "resume", "It goes on.", c.desk().Resume)
}

func (c *Campaigns) askCancel(r *frame.Request) (frame.Page, error) {
	k, err := c.API.Store.Get(r.Context(), r.DB(), r.Org(), r.ID(), false)
	if err != nil {
		return frame.Page{}, err
	}
	return frame.Page{
		Template: "form.html", Title: "Cancel " + k.Name, Crumbs: above(of(k)),
		Lead: "Nobody of it is called any more, for good. Calls that are on go on.",
		Data: r.Form(frame.Form{Submit: "Cancel the campaign", Danger: true, Cancel: r.URL("campaigns/" + k.ID)}),
	}, nil
}

func (c *Campaigns) cancel(r *frame.Request) (frame.Done, error) {
	return c.do(r, "cancel", "It is cancelled.", c.desk().Cancel)
}

func (c *Campaigns) askCalls(r *frame.Request) (frame.Page, error) {
	k, err := c.API.Store.Get(r.Context(), r.DB(), r.Org(), r.ID(), false)
	if err != nil {
		return frame.Page{}, err
	}
	f := numbers("Add them", r.URL("campaigns/"+k.ID))
	f.Fields[0].Help = "CSV or XLSX. The first line has the names of the columns: phone, name, timezone; others become variables."
	f.Fields = append(f.Fields, frame.Once(), frame.Field{Name: "attest", Label: "Each of them gave " + consent(k.ConsentTier()), Kind: frame.Box})
	return frame.Page{
		Template: "form.html", Title: "Add numbers to " + k.Name, Crumbs: above(of(k)),
		Lead: "All of them are taken, or none: where a row cannot be read, or a number is on a do-not-call list, the report says which.", Data: r.Form(f),
	}, nil
}

// add takes more numbers into a campaign, once: numbers that it has are called again
// where they come again.
func (c *Campaigns) add(r *frame.Request) (frame.Done, error) {
	list, done, err := given(r)
	if err != nil {
		return frame.Done{}, err
	}
	defer done()
	if list == nil {
		return frame.Done{}, frame.Invalid("lines", "Choose a file, or write numbers.")
	}
	if !r.Ticked("attest") {
		return frame.Done{}, frame.Invalid("attest", "Only who gave this consent may be called.")
	}
	batch, err := c.batch(list)
	if err != nil {
		return frame.Done{}, err
	}
	slot, added, end, err := r.Begin(batch)
	back := frame.Done{To: "campaigns/" + r.ID(), Say: "These were added already: a form adds them once."}
	if err != nil || added != nil {
		return back, err
	}
	st, err := c.desk().Add(r.Context(), r.Org(), r.ID(), who(r), batch, desk.Ending{
		Settle: func(ctx context.Context, q db.Querier, _ desk.Standing) error {
			return slot.Settle(ctx, q, idempotency.Answer{Status: http.StatusSeeOther})
		},
		Free: slot.Free,
	})
	if no, ok := errors.AsType[*desk.RefusedError](err); ok {
		return frame.Done{To: "imports/" + no.Import.ID, Say: "Nobody was added: " + words.Refusal(no.Err) + ".", Wrong: true},
			errors.Join(end(nil), c.log(r, "calls_refused", r.ID(), nil, map[string]any{"import": no.Import.ID, "rows": len(batch)}))
	}
	if err = end(err); err != nil {
		return frame.Done{}, err
	}
	back.Say = people(st.Import.AcceptedRows) + " added."
	return back, c.log(r, "add_calls", r.ID(), nil, map[string]any{"import": st.Import.ID, "accepted": st.Import.AcceptedRows})
}

// batch is a list as rows of the API, as many as it takes.
func (c *Campaigns) batch(list *desk.File) ([]json.RawMessage, error) {
	source, err := rows.FromFile(list, list.Size)
	if err != nil {
		return nil, unreadable(err)
	}
	most := c.desk().MostCalls
	if most == 0 {
		most = 1000
	}
	all, err := rows.JSON(source, most)
	switch {
	case errors.Is(err, rows.ErrLong):
		return nil, frame.Invalid("rows", fmt.Sprintf("At most %d rows can be added at a time.", most))
	case err != nil:
		return nil, frame.Invalid("rows", "This cannot be read: "+err.Error()+".")
	}
	return all, c.desk().CheckCalls(len(all))
}

func (c *Campaigns) askWithdraw(r *frame.Request) (frame.Page, error) {
	return frame.Page{
		Template: "form.html", Title: "Withdraw numbers", Crumbs: above(),
		Lead: "They are not called any more, in any campaign that is launched and not over. Calls that are on go on.",
		Data: r.Form(frame.Form{Submit: "Withdraw them", Danger: true, Cancel: r.URL("campaigns"), Fields: []frame.Field{
			{Name: "numbers", Label: "Numbers or ids of contacts, one a line", Kind: frame.Area, Rows: 8, Code: true, Placeholder: "+1 202 555 0123"},
		}}),
	}, nil
}

// withdraw takes numbers out of all campaigns. What became of each is shown at once,
// and is kept in the audit log.
func (c *Campaigns) withdraw(r *frame.Request) (frame.Done, error) {
	var a desk.Addresses
	for line := range strings.Lines(r.Text("numbers")) {
		text := strings.TrimSpace(line)
		sent, err := json.Marshal(text)
		switch {
		case err != nil:
			return frame.Done{}, err
		case text == "":
		case strings.HasPrefix(text, "con_"):
			a.ContactIDs = append(a.ContactIDs, sent)
		default:
			a.Phones = append(a.Phones, sent)
		}
	}
	w, err := c.desk().Withdraw(r.Context(), r.Org(), who(r), a)
	switch control.CodeOf(err) {
	case control.CodeAddressesRequired:
		return frame.Done{}, frame.Invalid("numbers", "Write at least one.")
	case control.CodeAddressesTooMany:
		return frame.Done{}, frame.Invalid("numbers", "Those are too many at a time.")
	default:
	}
	if err != nil {
		return frame.Done{}, err
	}
	if err = c.log(r, "withdraw", "", nil, map[string]any{"withdrawn": w.Withdrawn}); err != nil {
		return frame.Done{}, err
	}
	return frame.Done{Page: &frame.Page{
		Template: "withdrawn.html", Title: "What was withdrawn", Crumbs: above(),
		Data: map[string]any{"Did": w, "Invalid": texts(w.Invalid), "NotFound": texts(w.NotFound)},
	}}, nil
}

// texts are values as they were typed.
func texts(all []json.RawMessage) []string {
	out := make([]string, len(all))
	for i, raw := range all {
		if json.Unmarshal(raw, &out[i]) != nil {
			out[i] = string(raw)
		}
	}
	return out
}
