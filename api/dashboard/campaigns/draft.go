package campaigns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parley-voice/parley/api/dashboard/field"
	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/api/dashboard/words"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/desk"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/idempotency"
	"github.com/parley-voice/parley/control/overview"
)

// fields are what a campaign is made of, beside its list.
func (c *Campaigns) fields(r *frame.Request) ([]frame.Field, error) {
	names, err := agents.Names(r.Context(), r.DB(), r.Org())
	if err != nil {
		return nil, err
	}
	routes, err := overview.Routes(r.Context(), r.DB(), r.Org())
	if err != nil {
		return nil, err
	}
	lines := []frame.Option{{Label: "the only one that the agent may use"}}
	for _, x := range routes {
		lines = append(lines, frame.Option{Value: x.TrunkID + " " + x.ID, Label: x.Trunk + " / " + x.Name})
	}
	var tiers []frame.Option
	for _, n := range campaigns.Paces() {
		tiers = append(tiers, frame.Option{Value: strconv.Itoa(int(n)), Label: strconv.Itoa(int(n)) + " a minute"})
	}
	workdays := []string{"0", "1", "2", "3", "4"}
	return []frame.Field{
		{Name: "name", Label: "Name", Placeholder: "Spring renewals"},
		{Name: "agent", Label: "Agent", Kind: frame.Select, Options: frame.Options(names...)},
		{Name: "classification", Label: "What the calls are", Kind: frame.Select, Value: "marketing", Options: []frame.Option{
			{Value: "marketing", Label: "Marketing"}, {Value: "servicing", Label: "Servicing"}, {Value: "debt_collection", Label: "Debt collection"},
		}, Help: "The law goes by it: hours, caps, and the consent that must be attested. Marketing needs prior express written consent, the others prior express consent."},
		{Name: "pace", Label: "Pace", Kind: frame.Select, Value: "20", Options: tiers, Help: "New calls are begun at this pace while lines are free."},
		{Name: "line", Label: "Line", Kind: frame.Select, Options: lines, Group: "Line"},
		{Name: "from", Label: "Caller number", Optional: true, Placeholder: "+1 202 555 0100", Help: "One of the line’s; its first where this is empty."},
		{Name: "starts", Label: "Start", Kind: "datetime-local", Optional: true, Group: "When", Help: "Empty: as soon as it is launched."},
		{Name: "ends", Label: "End", Kind: "datetime-local", Optional: true, Help: "Then it is over, whoever is left."},
		{Name: "timezone", Label: "Time zone", Optional: true, Placeholder: r.Zone().String(), Help: "Of the start, the end and the working hours. Empty: the organization’s."},
		{Name: "days", Label: "Working days", Kind: frame.Boxes, Options: field.Days(), Values: workdays, Optional: true},
		{Name: "from_hour", Label: "From", Kind: frame.Clock, Value: "09:00", Optional: true},
		{Name: "to_hour", Label: "To", Kind: frame.Clock, Value: "18:00", Optional: true, Help: "Only within what the law and the organization allow. Without days and hours that alone counts."},
		{Name: "contact_zone", Label: "Go by the time zone that a contact’s row names", Kind: frame.Box},
		{Name: "attempts", Label: "Calls to a number at most", Kind: frame.Number, Value: "1", Min: "1", Max: strconv.Itoa(retry.MostAttempts), Group: "Retries", Help: "Further calls are made to those who were not reached."},
		{Name: "interval", Label: "First retry after", Kind: frame.Number, Value: "15", Min: "1", Unit: "minutes"},
		{Name: "rules", Label: "Rules of your own", Kind: frame.Area, Rows: 3, Optional: true, Code: true, Placeholder: `[{"on": ["busy"], "action": "redial", "interval_s": 300}]`, Help: "JSON, as retry_config.rules of the API. With rules, they decide."},
		{Name: "duplicates", Label: "Numbers that come twice", Kind: frame.Select, Value: "keep_first", Group: "The list", Options: []frame.Option{
			{Value: "keep_first", Label: "The first row counts"}, {Value: "keep_last", Label: "The last row counts"}, {Value: "reject", Label: "None of the rows is called"},
		}},
		{Name: "open", Label: "More numbers will be added while it runs", Kind: frame.Box, Help: "It needs an end then, and does not finish before."},
	}, nil
}

func (c *Campaigns) askDraft(r *frame.Request) (frame.Page, error) {
	all, err := c.fields(r)
	if err != nil {
		return frame.Page{}, err
	}
	agents := len(all[1].Options)
	all = append(all, frame.Once())
	lead := "Step 3 of 3: how to call. Nothing is dialled before you launch it."
	if r.Query("upload") == "" {
		lead = "Without a list. Numbers can be added before and after the launch."
	}
	return frame.Page{
		Template: "draft.html", Title: "New campaign", Crumbs: above(frame.Link{Label: "New campaign", Path: "campaigns/new"}), Lead: lead,
		Data: map[string]any{"Form": r.Form(frame.Form{Submit: "Make the campaign", Cancel: r.URL("campaigns"), Fields: all}), "Agents": agents},
	}, nil
}

// spec reads the form of a campaign.
func spec(r *frame.Request) (campaigns.Spec, error) {
	s := campaigns.Spec{
		Name: r.Text("name"), Agent: r.Text("agent"), Classification: r.Text("classification"), Timezone: r.Text("timezone"), From: r.Text("from"),
		Duplicates: r.Text("duplicates"), ContactTimezone: r.Ticked("contact_zone"), Open: r.Ticked("open"),
	}
	if s.Agent == "" {
		return s, frame.Invalid("agent", "Make an agent first, under Agents.")
	}
	s.CallsPerMinute, _ = strconv.ParseFloat(r.Text("pace"), 64) // none is refused with the others
	s.TrunkID, s.RouteID, _ = strings.Cut(r.Text("line"), " ")
	zone := r.Zone()
	if s.Timezone != "" {
		var err error
		if zone, err = control.Zone(s.Timezone); err != nil {
			return s, frame.Invalid("timezone", "Use the name of a zone, such as America/New_York.")
		}
	}
	for name, at := range map[string]*time.Time{"starts": &s.StartsAt, "ends": &s.EndsAt} {
		if text := r.Text(name); text != "" {
			t, err := time.ParseInLocation(field.Moment, text, zone)
			if err != nil {
				return s, frame.Invalid(name, "Use a date and a time of the day.")
			}
			*at = t
		}
	}
	if err := hours(r, &s); err != nil {
		return s, err
	}
	return s, retries(r, &s)
}

// hours reads the working hours.
func hours(r *frame.Request, s *campaigns.Spec) error {
	from, to := r.Text("from_hour"), r.Text("to_hour")
	if len(r.All("days")) == 0 || from == "" && to == "" {
		return nil
	}
	shift := campaigns.Shift{Start: from, End: to}
	for _, text := range r.All("days") {
		d, err := strconv.Atoi(text)
		if err != nil {
			return frame.Invalid("days", "Tick days of the week.")
		}
		shift.Days = append(shift.Days, d)
	}
	s.WorkingHours = []campaigns.Shift{shift}
	return nil
}

// retries reads how often and when a number is called again.
func retries(r *frame.Request, s *campaigns.Spec) error {
	attempts, err := strconv.Atoi(r.Text("attempts"))
	if err != nil {
		return frame.Invalid("attempts", fmt.Sprintf("Use a whole number, 1 to %d.", retry.MostAttempts))
	}
	minutes, err := strconv.ParseFloat(r.Text("interval"), 64)
	if err != nil || minutes < 1 || minutes > retry.LongestSeconds/60 {
		return frame.Invalid("interval", fmt.Sprintf("Use minutes, 1 to %d.", retry.LongestSeconds/60))
	}
	again := map[string]any{"attempts": attempts, "interval_s": int(minutes * 60)}
	if rules := r.Text("rules"); rules != "" {
		s.Strategy = string(retry.Expert)
		if again["rules"] = json.RawMessage(rules); !json.Valid([]byte(rules)) {
			return frame.Invalid("rules", "This is no JSON.")
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
		return frame.Invalid(field, strings.TrimPrefix(err.Error(), retry.ErrConfig.Error()+": ")+".")
	}
	return nil
}

func orStandard(s string) string {
	if s == "" {
		return string(retry.Standard)
	}
	return s
}

// create makes a draft of what was typed and the list that was uploaded before, once: a
// form that comes again leads to the campaign of the first.
func (c *Campaigns) create(r *frame.Request) (frame.Done, error) {
	order := desk.Order{}
	var err error
	if order.Spec, err = spec(r); err != nil {
		return frame.Done{}, err
	}
	slot, made, end, err := r.Begin(r.HTTP.URL.RawQuery, order.Spec)
	if err != nil {
		return frame.Done{}, err
	}
	if made != nil {
		done, fault := frame.Repeated(*made)
		if !done.Wrong {
			done.Say = "The campaign was made already: a form makes one."
		}
		return done, fault
	}
	done, err := c.make(r, order, slot)
	return done, end(err)
}

// make makes a campaign of an order, and settles the form that asked for it.
func (c *Campaigns) make(r *frame.Request, order desk.Order, slot *idempotency.Slot) (frame.Done, error) {
	upload := r.Query("upload")
	if upload != "" {
		f, shut, fault := c.opened(r)
		if gone, ok := errors.AsType[*frame.ProblemError](fault); ok { // what was typed is not lost with it
			return frame.Done{}, frame.Invalid("", gone.Title+". "+gone.Text)
		}
		if fault != nil {
			return frame.Done{}, fault
		}
		defer shut()
		if err := columnsOf(r, f); err != nil {
			return frame.Done{}, err
		}
		order.File = f
	}
	var done frame.Done
	settled := func(ctx context.Context, q db.Querier) error { return slot.Settle(ctx, q, done.Kept()) }
	st, err := c.desk().Create(r.Context(), r.Org(), who(r), order,
		func(ctx context.Context, q db.Querier, st desk.Standing) error {
			done = frame.Done{To: "campaigns/" + st.Campaign.ID, Say: "The campaign is a draft. Look through the checks, then launch it."}
			return settled(ctx, q)
		},
		func(ctx context.Context, q db.Querier, cause error) error {
			done = frame.Done{To: "campaigns", Say: "The campaign was made, but its list could not be taken: " + words.Refusal(cause) + ". Add the numbers to it when that is mended.", Wrong: true}
			return settled(ctx, q)
		})
	if _, ok := errors.AsType[*desk.KeptError](err); ok {
		return done, c.log(r, "create", "", nil, map[string]any{"name": order.Spec.Name, "list": "not taken"})
	}
	if err != nil {
		return frame.Done{}, refused(err)
	}
	k := st.Campaign
	after := map[string]any{"name": k.Name, "agent": k.AgentName, "calls_per_minute": k.CallsPerMinute, "classification": k.Classification, "status": k.Status}
	if st.Import != nil {
		after["rows"], after["accepted"] = st.Import.RowsSeen, st.Import.AcceptedRows
	}
	err = c.log(r, "create", k.ID, nil, after)
	if upload != "" { // where that fails it goes within the hour
		err = errors.Join(err, c.Uploads.Drop(r.Context(), r.Org(), upload))
	}
	return done, err
}

// refused puts a refusal to the field that it is about.
func refused(err error) error {
	at, ok := map[control.Code]string{
		control.CodeCampaignWindow: "ends", control.CodeOpenEndRequired: "ends", control.CodeOpenEndTooFar: "ends", control.CodeCampaignAgentUnknown: "agent",
		control.CodeCampaignTimezone: "timezone", control.CodeRouteUnresolved: "line", control.CodeRouteAmbiguous: "line", control.CodeBindingIncomplete: "line",
		control.CodeHoursWider: "days", control.CodeCampaignClassification: "classification",
	}[control.CodeOf(err)]
	if !ok {
		return err
	}
	says := map[control.Code]string{
		control.CodeCampaignWindow: "The end must be later than the start.", control.CodeOpenEndRequired: "A campaign that takes more numbers needs an end.",
		control.CodeRouteUnresolved: "The agent may use no such line, or the line may not show this number.", control.CodeRouteAmbiguous: "The agent may use several lines: choose one.",
		control.CodeBindingIncomplete: "Choose the line that the caller number is of.",
	}[control.CodeOf(err)]
	if says == "" {
		says = words.Refusal(err) + "."
	}
	return frame.Invalid(at, says)
}
