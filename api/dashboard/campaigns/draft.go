package campaigns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/idempotency"
	"github.com/parley-voice/parley/control/overview"
)

func (c *Campaigns) fields(r *ui.Request) ([]ui.Field, error) {
	names, err := agents.Names(r.Context(), r.DB(), r.Org())
	if err != nil {
		return nil, err
	}
	routes, err := overview.Routes(r.Context(), r.DB(), r.Org())
	if err != nil {
		return nil, err
	}
	lines := []ui.Option{{Label: "Automatic"}}
	for _, x := range routes {
		lines = append(lines, ui.Option{Value: x.TrunkID + " " + x.ID, Label: x.Trunk + " / " + x.Name})
	}
	var tiers []ui.Option
	for _, n := range campaigns.Paces() {
		tiers = append(tiers, ui.Option{Value: strconv.Itoa(int(n)), Label: strconv.Itoa(int(n)) + " per minute"})
	}
	return slices.Concat([]ui.Field{
		{Name: "name", Label: "Name", Placeholder: "Spring renewals"},
		{Name: "agent", Label: "Agent", Kind: ui.Select, Options: ui.Options(names...)},
		{Name: "classification", Label: "Call purpose", Kind: ui.Select, Value: "marketing", Options: []ui.Option{
			{Value: "marketing", Label: "Marketing"}, {Value: "servicing", Label: "Servicing"}, {Value: "debt_collection", Label: "Debt collection"},
		}, Help: "Determines legal hours, caps and the consent to attest. Marketing needs prior express written consent, " +
			"other purposes prior express consent."},
		{
			Name: "pace", Label: "Pace", Kind: ui.Select, Value: "20", Options: tiers,
			Help: "New calls start at this pace while channels are free.",
		},
		budgetField(0),
		{Name: "line", Label: "Trunk and subgroup", Kind: ui.Select, Options: lines, Group: "Trunk"},
		{
			Name: "from", Label: "Caller number", Optional: true, Placeholder: "+1 202 555 0100",
			Help: "A number of the trunk; defaults to its first.",
		},
	}, timeFields(r), retryFields()), nil
}

func timeFields(r *ui.Request) []ui.Field {
	return []ui.Field{
		{Name: "starts", Label: "Start", Kind: "datetime-local", Optional: true, Group: "Times", Help: "Leave empty to start at launch."},
		{Name: "ends", Label: "End", Kind: "datetime-local", Optional: true, Help: "Calling stops at this time even if contacts remain."},
		{
			Name: "timezone", Label: "Time zone", Optional: true, Placeholder: r.Zone().String(),
			Help: "For start, end and working hours. Defaults to the organization’s time zone.",
		},
		{
			Name: "days", Label: "Working days", Kind: ui.Checkboxes, Options: ui.WeekdayOptions(r.Words), Values: []string{"0", "1", "2", "3", "4"},
			Optional: true,
		},
		{Name: "from_hour", Label: "From", Kind: ui.TimeOfDay, Value: "09:00", Optional: true},
		{
			Name: "to_hour", Label: "To", Kind: ui.TimeOfDay, Value: "18:00", Optional: true,
			Help: "Legal and organization hours always apply. Leave empty to use only those.",
		},
		{Name: "contact_zone", Label: "Use each contact’s time zone", Kind: ui.Checkbox},
	}
}

func retryFields() []ui.Field {
	return []ui.Field{
		{
			Name: "attempts", Label: "Max attempts per number", Kind: ui.Number, Value: "1", Min: "1", Max: strconv.Itoa(retry.MaxAttempts),
			Group: "Retries", Help: "Contacts that were not reached are called again.",
		},
		{Name: "interval", Label: "First retry after", Kind: ui.Number, Value: "15", Min: "1", Unit: "minutes"},
		{
			Name: "rules", Label: "Custom retry rules", Kind: ui.TextArea, Rows: 3, Optional: true, Code: true,
			Placeholder: `[{"on": ["busy"], "action": "redial", "interval_s": 300}]`,
			Help:        "JSON, as retry_config.rules in the API. Rules replace the default retries.",
		},
		{Name: "duplicates", Label: "Duplicates", Kind: ui.Select, Value: "keep_first", Group: "List", Options: []ui.Option{
			{Value: "keep_first", Label: "Keep the first row"},
			{Value: "keep_last", Label: "Keep the last row"},
			{Value: "reject", Label: "Skip all of them"},
		}},
		{Name: "open", Label: "Accept more numbers while running", Kind: ui.Checkbox, Help: "Requires an end date; stays open until then."},
	}
}

func (c *Campaigns) askDraft(r *ui.Request) (ui.Page, error) {
	all, err := c.fields(r)
	if err != nil {
		return ui.Page{}, err
	}
	agents := len(all[1].Options)
	all = append(all, ui.OnceField())
	lead := "Step 3 of 3: settings. No calls are placed until you launch the campaign."
	if r.Query("upload") == "" {
		lead = "Without a list. You can add numbers before and after the launch."
	}
	if like := r.Query("like"); like != "" {
		k, err := c.API.Store.Get(r.Context(), r.DB(), r.Org(), like, false)
		if err != nil {
			return ui.Page{}, err
		}
		all, lead = refill(all, copyOf(k, time.Now())), "Copy of "+k.Name+". No calls are placed until you launch the new campaign."
	}
	return ui.Page{
		Template: "draft.html", Title: "New campaign", Crumbs: crumbs(ui.Link{Label: "New campaign", Path: "campaigns/new"}), Lead: lead,
		Data: map[string]any{"Form": r.Form(ui.Form{Submit: "Create draft", Cancel: r.URL("campaigns"), Fields: all}), "Agents": agents},
	}, nil
}

func spec(r *ui.Request) (campaigns.Spec, error) {
	s := campaigns.Spec{
		Name: r.Text("name"), Agent: r.Text("agent"), Classification: r.Text("classification"),
		Timezone: r.Text("timezone"), From: r.Text("from"),
		Duplicates: r.Text("duplicates"), ContactTimezone: r.Ticked("contact_zone"), Open: r.Ticked("open"),
	}
	if s.Agent == "" {
		return s, ui.Invalid("agent", "Create an agent first, under Agents.")
	}
	s.CallsPerMinute, _ = strconv.ParseFloat(r.Text("pace"), 64) // 0 is rejected together with other invalid paces
	if text := r.Text("budget"); text != "" {
		budget, err := readBudget(text)
		if err != nil {
			return s, err
		}
		s.Budget = budget
	}
	s.TrunkID, s.RouteID, _ = strings.Cut(r.Text("line"), " ")
	zone := r.Zone()
	if s.Timezone != "" {
		var err error
		if zone, err = control.Zone(s.Timezone); err != nil {
			return s, ui.Invalid("timezone", "Use an IANA time zone, such as America/New_York.")
		}
	}
	for name, at := range map[string]*time.Time{"starts": &s.StartsAt, "ends": &s.EndsAt} {
		if text := r.Text(name); text != "" {
			t, err := time.ParseInLocation(ui.DateTimeLayout, text, zone)
			if err != nil {
				return s, ui.Invalid(name, "Enter a date and time.")
			}
			*at = t
		}
	}
	if err := hours(r, &s); err != nil {
		return s, err
	}
	return s, retries(r, &s)
}

func hours(r *ui.Request, s *campaigns.Spec) error {
	from, to := r.Text("from_hour"), r.Text("to_hour")
	if to == "00:00" { // time inputs cannot show 24:00
		to = "24:00"
	}
	if len(r.All("days")) == 0 || from == "" && to == "" {
		return nil
	}
	shift := campaigns.Shift{Start: from, End: to}
	for _, text := range r.All("days") {
		d, err := strconv.Atoi(text)
		if err != nil {
			return ui.Invalid("days", "Choose days of the week.")
		}
		shift.Days = append(shift.Days, d)
	}
	s.WorkingHours = []campaigns.Shift{shift}
	return nil
}

func retries(r *ui.Request, s *campaigns.Spec) error {
	attempts, err := strconv.Atoi(r.Text("attempts"))
	if err != nil {
		return ui.Invalid("attempts", fmt.Sprintf("Use a whole number, 1 to %d.", retry.MaxAttempts))
	}
	minutes, err := strconv.ParseFloat(r.Text("interval"), 64)
	if err != nil || minutes < 1 || minutes > retry.MaxInterval/60 {
		return ui.Invalid("interval", fmt.Sprintf("Use minutes, 1 to %d.", retry.MaxInterval/60))
	}
	again := map[string]any{"attempts": attempts, "interval_s": int(minutes * 60)}
	if rules := r.Text("rules"); rules != "" {
		s.Strategy = string(retry.Expert)
		if again["rules"] = json.RawMessage(rules); !json.Valid([]byte(rules)) {
			return ui.Invalid("rules", "This is not valid JSON.")
		}
	}
	if s.Retry, err = json.Marshal(again); err != nil {
		return err
	}
	if _, err = retry.Parse(retry.Strategy(orStandard(s.Strategy)), s.Retry); err != nil {
		field := "attempts"
		if s.Strategy != "" {
			field = "rules"
		}
		return ui.Invalid(field, strings.TrimPrefix(err.Error(), retry.ErrConfig.Error()+": ")+".")
	}
	return nil
}

func orStandard(s string) string {
	if s == "" {
		return string(retry.Standard)
	}
	return s
}

// create creates a draft from the form and the uploaded list. A repeated form redirects
// to the first campaign.
func (c *Campaigns) create(r *ui.Request) (ui.Result, error) {
	order := service.CreateRequest{}
	var err error
	if order.Spec, err = spec(r); err != nil {
		return ui.Result{}, err
	}
	if like := r.Query("like"); like != "" && r.Ticked(keptHours) {
		k, fault := c.API.Store.Get(r.Context(), r.DB(), r.Org(), like, false)
		if fault != nil {
			return ui.Result{}, fault
		}
		order.Spec.WorkingHours = k.WorkingHours
	}
	slot, made, end, err := r.Begin(r.HTTP.URL.RawQuery, order.Spec)
	if err != nil {
		return ui.Result{}, err
	}
	if made != nil {
		done, fault := ui.RepeatedResult(*made)
		if !done.Failed {
			done.Notice = "This campaign was already created."
		}
		return done, fault
	}
	done, err := c.make(r, order, slot)
	return done, end(err)
}

// make creates a campaign and records the result under the form's idempotency key.
func (c *Campaigns) make(r *ui.Request, order service.CreateRequest, slot *idempotency.Slot) (ui.Result, error) {
	upload := r.Query("upload")
	if upload != "" {
		f, shut, fault := c.openUpload(r)
		if gone, ok := errors.AsType[*ui.ProblemError](fault); ok { // keeps the form
			return ui.Result{}, ui.Invalid("", gone.Title+". "+gone.Text)
		}
		if fault != nil {
			return ui.Result{}, fault
		}
		defer shut()
		if err := columnsOf(r, f); err != nil {
			return ui.Result{}, err
		}
		if order.File = f; c.background(f) {
			return c.queue(r, order, slot)
		}
	}
	var done ui.Result
	settled := func(ctx context.Context, q db.Querier) error { return slot.Settle(ctx, q, done.Kept()) }
	st, err := c.service().Create(r.Context(), r.Org(), who(r), order,
		func(ctx context.Context, q db.Querier, st service.Status) error {
			done = ui.Result{To: "campaigns/" + st.Campaign.ID, Notice: "Draft created. Review the checks, then launch."}
			return settled(ctx, q)
		},
		func(ctx context.Context, q db.Querier, cause error) error {
			done = ui.Result{
				To: "campaigns",
				Notice: "The campaign was created, but its list was not imported: " + ui.ErrorText(cause) +
					". Correct the error, then add the numbers to the campaign.",
				Failed: true,
			}
			return settled(ctx, q)
		})
	if _, ok := errors.AsType[*service.DraftKeptError](err); ok {
		return done, c.log(r, "create", "", nil, map[string]any{"name": order.Spec.Name, "list": "not taken"})
	}
	if err != nil {
		return ui.Result{}, refused(err)
	}
	k := st.Campaign
	after := map[string]any{
		"name": k.Name, "agent": k.AgentName, "calls_per_minute": k.CallsPerMinute,
		"classification": k.Classification, "status": k.Status,
	}
	if st.Import != nil {
		after["rows"], after["accepted"] = st.Import.RowsSeen, st.Import.AcceptedRows
	}
	err = c.log(r, "create", k.ID, nil, after)
	if upload != "" { // a failed deletion is retried within the hour
		err = errors.Join(err, c.Uploads.Drop(r.Context(), r.Org(), upload))
	}
	return done, err
}

func refused(err error) error {
	at, ok := map[control.Code]string{
		control.CodeCampaignWindow: "ends", control.CodeOpenEndRequired: "ends",
		control.CodeOpenEndTooFar: "ends", control.CodeCampaignAgentUnknown: "agent",
		control.CodeCampaignTimezone: "timezone", control.CodeRouteUnresolved: "line",
		control.CodeRouteAmbiguous: "line", control.CodeBindingIncomplete: "line",
		control.CodeHoursWider: "days", control.CodeCampaignClassification: "classification",
	}[control.CodeOf(err)]
	if !ok {
		return err
	}
	says := map[control.Code]string{
		control.CodeCampaignWindow:    "The end must be later than the start.",
		control.CodeOpenEndRequired:   "A campaign that accepts more numbers needs an end.",
		control.CodeRouteUnresolved:   "The agent cannot use this trunk, or the trunk does not have this number.",
		control.CodeRouteAmbiguous:    "The agent can use several trunks. Choose one.",
		control.CodeBindingIncomplete: "Choose the trunk of the caller number.",
	}[control.CodeOf(err)]
	if says == "" {
		says = ui.ErrorText(err) + "."
	}
	return ui.Invalid(at, says)
}
