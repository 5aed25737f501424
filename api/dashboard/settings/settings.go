// Package settings shows what an organization goes by: when it calls and how often,
// what is said first, what is kept, and by which market's rules.
package settings

import (
	"embed"
	"io/fs"
	"reflect"
	"strconv"

	"github.com/parley-voice/parley/api/dashboard/field"
	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/retention"
)

//go:embed pages/*.html
var files embed.FS

// Settings is the room of an organization's settings, and of market packages.
type Settings struct{}

// Room returns its pages.
func (s Settings) Room() (frame.Room, error) {
	pages, err := fs.Sub(files, "pages")
	return frame.Room{
		Name: "settings", Files: pages,
		Links: []frame.Link{
			{Section: "Organization", Label: "Settings", Path: "settings"},
			{Section: "Organization", Label: "Market rules", Path: "market"},
		},
		Routes: []frame.Route{
			{Path: "settings", Look: s.show},
			{Path: "settings/edit", Needs: operator.Owner, Look: s.ask, Change: s.change},
			{Path: "market", Look: s.packages},
			{Path: "market/use", Needs: operator.Owner, Look: s.askUse, Change: s.use},
			{Path: "market/install", Needs: operator.Owner, Root: true, Look: s.askInstall, Change: s.install, Most: mostPackage},
		},
	}, err
}

// full is an organization with the usual values where it says nothing.
func full(o apply.Organization) apply.Organization {
	if o.CallingWindow == nil {
		o.CallingWindow = &apply.Window{Days: []int{0, 1, 2, 3, 4, 5, 6}, Start: "09:00", End: "21:00"}
	}
	orNew(&o.FrequencyCaps)
	orNew(&o.Disclosures)
	orNew(&o.Limits)
	orNew(&o.Retention)
	orNew(&o.RequireRegistry)
	if o.IndividualDNC == nil {
		usual := "enforce"
		o.IndividualDNC = &usual
	}
	return o
}

func orNew[T any](p **T) {
	if *p == nil {
		*p = new(T)
	}
}

func (Settings) show(r *frame.Request) (frame.Page, error) {
	o, err := apply.Current(r.Context(), r.DB(), r.Org())
	return frame.Page{
		Template: "show.html", Title: "Settings", Lead: "They count from the next call on.",
		Actions: []frame.Link{{Label: "Edit", Path: "settings/edit", Needs: operator.Owner}},
		Data:    map[string]any{"O": full(o), "Days": field.Days()},
	}, err
}

func optional(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

// state is a switch of three: as the market has it, on, or off.
func state(b *bool) string {
	switch {
	case b == nil:
		return ""
	case *b:
		return "on"
	default:
		return "off"
	}
}

func (Settings) ask(r *frame.Request) (frame.Page, error) {
	o, err := apply.Current(r.Context(), r.DB(), r.Org())
	if err != nil {
		return frame.Page{}, err
	}
	return frame.Page{
		Template: "form.html", Title: "Edit the settings", Crumbs: []frame.Link{{Label: "Settings", Path: "settings"}},
		Data: r.Form(frame.Form{Submit: "Save", Cancel: r.URL("settings"), Fields: fields(full(o)), Of: plain(o)}),
	}, nil
}

func fields(o apply.Organization) []frame.Field {
	onDays := make([]string, len(o.CallingWindow.Days))
	for i, d := range o.CallingWindow.Days {
		onDays[i] = strconv.Itoa(d)
	}
	kept := func(name, label string, n int) frame.Field {
		return frame.Field{Name: name, Label: label, Kind: frame.Number, Value: field.Whole(n), Optional: true, Unit: "days", Min: strconv.Itoa(retention.Least), Max: "3650"}
	}
	most := func(name, label, unit, value string) frame.Field {
		return frame.Field{Name: name, Label: label, Kind: frame.Number, Value: value, Optional: true, Unit: unit, Min: "0"}
	}
	return []frame.Field{
		{Group: "When it calls", Name: "timezone", Label: "Time zone", Value: *o.Timezone, Help: "A name of the tz database, such as America/New_York. Days, windows and limits go by it, and so do times here."},
		{Name: "calling_window.days", Label: "Days", Kind: frame.Boxes, Options: field.Days(), Values: onDays},
		{Name: "calling_window.start", Label: "From", Kind: frame.Clock, Value: o.CallingWindow.Start},
		{Name: "calling_window.end", Label: "To", Kind: frame.Clock, Value: o.CallingWindow.End, Help: "Campaigns call within this window and the law’s, whichever is narrower."},
		{Group: "How often one number is called", Name: "frequency_caps.enabled", Label: "Caps", Kind: frame.Select, Value: state(o.FrequencyCaps.Enabled), Options: usually("As the market has it", "On", "Off")},
		most("frequency_caps.daily", "Attempts a day", "", optional(o.FrequencyCaps.Daily)),
		most("frequency_caps.rolling_7d", "Attempts in seven days", "", optional(o.FrequencyCaps.Rolling7D)),
		{Group: "Do-not-call", Name: "individual_dnc", Label: "Single calls are held against the market’s registry", Kind: frame.Select, Value: *o.IndividualDNC, Options: []frame.Option{{Value: "enforce", Label: "Yes"}, {Value: "off", Label: "No"}}},
		{Name: "require_registry", Label: "Campaigns call nobody whom no registry covers", Kind: frame.Box, Value: field.Ticked(*o.RequireRegistry)},
		{Group: "What is said first", Name: "disclosures.enabled", Label: "Disclosures", Kind: frame.Select, Value: state(o.Disclosures.Enabled), Options: usually("As the market has it", "On", "Off"), Help: "What the law wants said at the beginning of campaigns’ calls."},
		{Name: "disclosures.agent", Label: "Name of the agent", Value: o.Disclosures.Agent, Optional: true, Help: "As it is said; left empty it is the name it has."},
		{Name: "disclosures.organization", Label: "Name of the organization", Value: o.Disclosures.Organization, Optional: true},
		{Group: "What a day may come to", Name: "limits.daily_calls", Label: "Calls", Kind: frame.Number, Value: field.Whole(o.Limits.DailyCalls), Optional: true, Min: "0", Help: "Left empty there is no bound."},
		most("limits.daily_minutes", "Conversation", "minutes", field.Whole(o.Limits.DailyMinutes)),
		most("limits.daily_cost", "Cost", "by the rates of the trunks", field.Decimal(o.Limits.DailyCost)),
		{Group: "What is kept", Name: "retention.recordings_days", Label: "Recordings", Kind: frame.Number, Value: field.Whole(o.Retention.Recordings), Optional: true, Unit: "days", Min: strconv.Itoa(retention.Least), Max: "3650", Help: "Left empty they are kept for ever. What is past its days is erased within the hour, for good."},
		kept("retention.transcripts_days", "Transcripts and analyses", o.Retention.Transcripts),
		kept("retention.calls_days", "Calls as a whole", o.Retention.Calls),
	}
}

func usually(usual, on, off string) []frame.Option {
	return []frame.Option{{Value: "", Label: usual}, {Value: "on", Label: on}, {Value: "off", Label: off}}
}

// given reads the form.
func given(r *frame.Request) (apply.Organization, error) {
	var wrong error
	whole := func(name string) *int {
		text := r.Text(name)
		if text == "" {
			return nil
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			wrong = frame.Invalid(name, "Use a whole number, or leave it empty.")
		}
		return &n
	}
	count := func(name string) int {
		if n := whole(name); n != nil {
			return *n
		}
		return 0
	}
	onOff := func(name string) *bool {
		on := r.Text(name) == "on"
		if r.Text(name) == "" {
			return nil
		}
		return &on
	}
	zone, dnc, registry := r.Text("timezone"), r.Text("individual_dnc"), r.Ticked("require_registry")
	o := apply.Organization{
		Name: r.Seat.Name, Timezone: &zone, IndividualDNC: &dnc, RequireRegistry: &registry,
		CallingWindow: &apply.Window{Start: r.Text("calling_window.start"), End: r.Text("calling_window.end")},
		FrequencyCaps: &apply.Caps{Enabled: onOff("frequency_caps.enabled"), Daily: whole("frequency_caps.daily"), Rolling7D: whole("frequency_caps.rolling_7d")},
		Disclosures:   &apply.Disclosures{Enabled: onOff("disclosures.enabled"), Agent: r.Text("disclosures.agent"), Organization: r.Text("disclosures.organization")},
		Limits:        &apply.OrgLimits{DailyCalls: count("limits.daily_calls"), DailyMinutes: count("limits.daily_minutes")},
		Retention:     &retention.Rules{Recordings: count("retention.recordings_days"), Transcripts: count("retention.transcripts_days"), Calls: count("retention.calls_days")},
	}
	for _, d := range r.All("calling_window.days") {
		n, err := strconv.Atoi(d)
		if err != nil {
			n = -1 // refused with the others
		}
		o.CallingWindow.Days = append(o.CallingWindow.Days, n)
	}
	if text := r.Text("limits.daily_cost"); text != "" {
		cost, err := strconv.ParseFloat(text, 64)
		if err != nil {
			wrong = frame.Invalid("limits.daily_cost", "Use a number, or leave it empty.")
		}
		o.Limits.DailyCost = cost
	}
	return o, wrong
}

func (Settings) change(r *frame.Request) (frame.Done, error) {
	o, err := given(r)
	if err != nil {
		return frame.Done{}, err
	}
	err = r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		was, fault := apply.Current(r.Context(), q, r.Org())
		if fault != nil {
			return operator.Entry{}, fault
		}
		if fault = r.Same(plain(was)); fault != nil {
			return operator.Entry{}, fault
		}
		if fault = r.Apply(q, o); fault != nil {
			return operator.Entry{}, fault
		}
		before, after := operator.Changed(plain(was), plain(o))
		if reflect.DeepEqual(before, after) {
			return operator.Entry{}, nil
		}
		return operator.Entry{Action: "organization.settings", Object: r.Org(), Before: before, After: after}, nil
	})
	return frame.Done{To: "settings", Say: "The settings are saved."}, err
}

// plain is an organization's settings as the log keeps them.
func plain(o apply.Organization) map[string]any {
	return map[string]any{
		"timezone": o.Timezone, "calling_window": o.CallingWindow, "frequency_caps": o.FrequencyCaps, "require_registry": o.RequireRegistry,
		"individual_dnc": o.IndividualDNC, "disclosures": o.Disclosures, "limits": o.Limits, "retention": o.Retention,
	}
}
