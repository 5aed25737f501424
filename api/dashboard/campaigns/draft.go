package campaigns

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
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
	lines := []ui.Option{{Label: r.Texts.T("campaigns.draft.subgroup.automatic")}}
	for _, x := range routes {
		lines = append(lines, ui.Option{Value: x.TrunkID + " " + x.ID, Label: x.Trunk + " / " + x.Name})
	}
	var tiers []ui.Option
	for _, n := range campaigns.Paces() {
		tiers = append(tiers, ui.Option{
			Value: strconv.Itoa(int(n)),
			Label: r.Texts.T("campaigns.draft.pace.option", "count", strconv.Itoa(int(n))),
		})
	}
	return slices.Concat([]ui.Field{
		{Name: "name", Label: r.Texts.T("campaigns.draft.name.label"), Placeholder: r.Texts.T("campaigns.draft.name.placeholder")},
		{Name: "agent", Label: r.Texts.T("campaigns.draft.agent.label"), Kind: ui.Select, Options: ui.Options(names...)},
		{
			Name: "classification", Label: r.Texts.T("campaigns.draft.classification.label"), Kind: ui.Select, Value: "marketing",
			Options: []ui.Option{
				{Value: "marketing", Label: r.Texts.T("campaigns.draft.option.marketing")}, {
					Value: "servicing",
					Label: r.Texts.T("campaigns.draft.option.servicing"),
				}, {Value: "debt_collection", Label: r.Texts.T("campaigns.draft.option.debt_collection")},
			}, Help: r.Texts.T("campaigns.draft.classification.help"),
		},
		{
			Name: "pace", Label: r.Texts.T("campaigns.draft.pace.label"), Kind: ui.Select, Value: "20", Options: tiers,
			Help: r.Texts.T("campaigns.draft.pace.help"),
		},
		budgetField(r.Texts, 0, c.Currency),
		{
			Name: "subgroup", Label: r.Texts.T("campaigns.draft.subgroup.label"), Kind: ui.Select, Options: lines,
			Group: r.Texts.T("campaigns.draft.group.trunk"),
		},
		{
			Name: "from", Label: r.Texts.T("campaigns.draft.from.label"), Optional: true, Placeholder: "+1 202 555 0100",
			Help: r.Texts.T("campaigns.draft.from.help"),
		},
	}, listFields(r.Texts), timeFields(r), retryFields(r.Texts)), nil
}

func timeFields(r *ui.Request) []ui.Field {
	return []ui.Field{
		{
			Name: "starts", Label: r.Texts.T("campaigns.draft.starts.label"), Kind: "datetime-local", Optional: true,
			Group: r.Texts.T("campaigns.draft.group.times"), Help: r.Texts.T("campaigns.draft.starts.help"),
		},
		{
			Name: "ends", Label: r.Texts.T("campaigns.draft.ends.label"), Kind: "datetime-local", Optional: true,
			Help: r.Texts.T("campaigns.draft.ends.help"),
		},
		{
			Name: "timezone", Label: r.Texts.T("campaigns.draft.timezone.label"), Optional: true, Placeholder: r.Zone().String(),
			Help: r.Texts.T("campaigns.draft.timezone.help"),
		},
		{
			Name: "days", Label: r.Texts.T("campaigns.draft.days.label"), Kind: ui.Checkboxes, Options: ui.WeekdayOptions(r.Texts),
			Values:   []string{"0", "1", "2", "3", "4"},
			Optional: true,
		},
		{Name: "from_hour", Label: r.Texts.T("campaigns.draft.from_hour.label"), Kind: ui.TimeOfDay, Value: "09:00", Optional: true},
		{
			Name: "to_hour", Label: r.Texts.T("campaigns.draft.to_hour.label"), Kind: ui.TimeOfDay, Value: "18:00", Optional: true,
			Help: hoursHelp(r),
		},
		{Name: "contact_zone", Label: r.Texts.T("campaigns.draft.contact_zone.label"), Kind: ui.Checkbox},
	}
}

func hoursHelp(r *ui.Request) string {
	if r.Member.Market == "kz" {
		return r.Texts.T("campaigns.draft.to_hour.help.window")
	}
	return r.Texts.T("campaigns.draft.to_hour.help")
}

func retryFields(texts *ui.Texts) []ui.Field {
	return []ui.Field{
		{
			Name: "attempts", Label: texts.T("campaigns.draft.attempts.label"), Kind: ui.Number, Value: "1", Min: "1",
			Max:   strconv.Itoa(retry.MaxAttempts),
			Group: texts.T("campaigns.draft.group.retries"), Help: texts.T("campaigns.draft.attempts.help"),
		},
		{
			Name: "interval", Label: texts.T("campaigns.draft.interval.label"), Kind: ui.Number, Value: "15", Min: "1",
			Unit: texts.T("campaigns.draft.unit.minutes"),
		},
		{
			Name: "rules", Label: texts.T("campaigns.draft.rules.label"), Kind: ui.TextArea, Rows: 3, Optional: true, Code: true,
			Placeholder: `[{"on": ["busy"], "action": "redial", "interval_s": 300}]`,
			Help:        texts.T("campaigns.draft.rules.help"),
		},
	}
}

func listFields(texts *ui.Texts) []ui.Field {
	return []ui.Field{
		{
			Name: "duplicates", Label: texts.T("campaigns.draft.duplicates.label"), Kind: ui.Select, Value: "keep_first",
			Group: texts.T("campaigns.draft.group.list"), Options: []ui.Option{
				{Value: "keep_first", Label: texts.T("campaigns.draft.option.keep_first")},
				{Value: "keep_last", Label: texts.T("campaigns.draft.option.keep_last")},
				{Value: "reject", Label: texts.T("campaigns.draft.option.reject")},
			},
		},
		{Name: "open", Label: texts.T("campaigns.draft.open.label"), Kind: ui.Checkbox, Help: texts.T("campaigns.draft.open.help")},
	}
}

func (c *Campaigns) askDraft(r *ui.Request) (ui.Page, error) {
	all, err := c.fields(r)
	if err != nil {
		return ui.Page{}, err
	}
	agents := len(all[1].Options)
	all = append(all, ui.OnceField())
	lead := r.Texts.T("campaigns.draft.lead")
	if r.Query("upload") == "" {
		lead = r.Texts.T("campaigns.draft.lead.without_list")
	}
	if like := r.Query("like"); like != "" {
		k, err := c.API.Store.Get(r.Context(), r.DB(), r.Org(), like, false)
		if err != nil {
			return ui.Page{}, err
		}
		all, lead = refill(all, copyOf(k, time.Now())), r.Texts.T("campaigns.draft.lead.copy", "name", k.Name)
	}
	return ui.Page{
		Template: "draft.html", Title: r.Texts.T("campaigns.link.new_campaign"), Crumbs: crumbs(r.Texts,
			ui.Link{Label: r.Texts.T("campaigns.link.new_campaign"), Path: "campaigns/new"}), Lead: lead,
		Data: map[string]any{
			"Form":   r.Form(ui.Form{Submit: r.Texts.T("campaigns.draft.submit"), Cancel: r.URL("campaigns"), Fields: all}),
			"Agents": agents,
		},
	}, nil
}

func spec(r *ui.Request) (campaigns.Spec, error) {
	s := campaigns.Spec{
		Name: r.Text("name"), Agent: r.Text("agent"), Classification: r.Text("classification"),
		Timezone: r.Text("timezone"), From: r.Text("from"),
		Duplicates: r.Text("duplicates"), ContactTimezone: r.Ticked("contact_zone"), Open: r.Ticked("open"),
	}
	if s.Agent == "" {
		return s, ui.Invalid("agent", r.Texts.T("campaigns.draft.invalid.agent"))
	}
	s.CallsPerMinute, _ = strconv.ParseFloat(r.Text("pace"), 64) // 0 is rejected together with other invalid paces
	if text := r.Text("budget"); text != "" {
		budget, err := readBudget(r.Texts, text)
		if err != nil {
			return s, err
		}
		s.Budget = budget
	}
	line := cmp.Or(r.Text("subgroup"), r.Text("line")) // forms of the previous release have the field "line"
	s.TrunkID, s.RouteID, _ = strings.Cut(line, " ")
	zone := r.Zone()
	if s.Timezone != "" {
		var err error
		if zone, err = control.Zone(s.Timezone); err != nil {
			return s, ui.Invalid("timezone", r.Texts.T("campaigns.draft.invalid.timezone"))
		}
	}
	for name, at := range map[string]*time.Time{"starts": &s.StartsAt, "ends": &s.EndsAt} {
		if text := r.Text(name); text != "" {
			t, err := time.ParseInLocation(ui.DateTimeLayout, text, zone)
			if err != nil {
				return s, ui.Invalid(name, r.Texts.T("campaigns.draft.invalid.time"))
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
			return ui.Invalid("days", r.Texts.T("campaigns.draft.invalid.days"))
		}
		shift.Days = append(shift.Days, d)
	}
	s.WorkingHours = []campaigns.Shift{shift}
	return nil
}

func retries(r *ui.Request, s *campaigns.Spec) error {
	attempts, err := strconv.Atoi(r.Text("attempts"))
	if err != nil {
		return ui.Invalid("attempts", r.Texts.T("campaigns.draft.invalid.attempts", "limit", retry.MaxAttempts))
	}
	minutes, err := strconv.ParseFloat(r.Text("interval"), 64)
	if err != nil || minutes < 1 || minutes > retry.MaxInterval/60 {
		return ui.Invalid("interval", r.Texts.T("campaigns.draft.invalid.interval", "limit", retry.MaxInterval/60))
	}
	again := map[string]any{"attempts": attempts, "interval_s": int(minutes * 60)}
	if rules := r.Text("rules"); rules != "" {
		s.Strategy = string(retry.Expert)
		if again["rules"] = json.RawMessage(rules); !json.Valid([]byte(rules)) {
			return ui.Invalid("rules", r.Texts.T("campaigns.draft.invalid.rules"))
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
		return ui.Invalid(field, strings.TrimPrefix(err.Error(), retry.ErrConfig.Error()+": "))
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
			done.Notice = r.Texts.T("campaigns.draft.repeated")
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
			return ui.Result{}, ui.Invalid("", r.Texts.Complete(gone.Title)+" "+gone.Text)
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
			done = ui.Result{To: "campaigns/" + st.Campaign.ID, Notice: r.Texts.T("campaigns.draft.notice")}
			return settled(ctx, q)
		},
		func(ctx context.Context, q db.Querier, cause error) error {
			done = ui.Result{
				To:     "campaigns",
				Notice: r.Texts.T("campaigns.draft.not_imported", "reason", ui.ErrorText(cause)),
				Failed: true,
			}
			return settled(ctx, q)
		})
	if _, ok := errors.AsType[*service.DraftKeptError](err); ok {
		return done, c.log(r, "create", "", nil, map[string]any{"name": order.Spec.Name, "list": "not taken"})
	}
	if err != nil {
		return ui.Result{}, refused(r.Texts, err)
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

func refused(texts *ui.Texts, err error) error {
	at, ok := map[control.Code]string{
		control.CodeCampaignWindow: "ends", control.CodeOpenEndRequired: "ends",
		control.CodeOpenEndTooFar: "ends", control.CodeCampaignAgentUnknown: "agent",
		control.CodeCampaignTimezone: "timezone", control.CodeRouteUnresolved: "subgroup",
		control.CodeRouteAmbiguous: "subgroup", control.CodeBindingIncomplete: "subgroup",
		control.CodeHoursWider: "days", control.CodeCampaignClassification: "classification",
	}[control.CodeOf(err)]
	if !ok {
		return err
	}
	text := map[control.Code]string{
		control.CodeCampaignWindow:    texts.T("campaigns.draft.refused.window"),
		control.CodeOpenEndRequired:   texts.T("campaigns.draft.refused.open_end"),
		control.CodeRouteUnresolved:   texts.T("campaigns.draft.refused.route"),
		control.CodeRouteAmbiguous:    texts.T("campaigns.draft.refused.ambiguous"),
		control.CodeBindingIncomplete: texts.T("campaigns.draft.refused.binding"),
	}[control.CodeOf(err)]
	if text == "" {
		text = ui.ErrorText(err)
	}
	return ui.Invalid(at, text)
}
