// Package settings has the pages of an organization's settings and market rules.
package settings

import (
	"embed"
	"io/fs"
	"reflect"
	"slices"
	"strconv"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/retention"
)

//go:embed pages/*.html
var files embed.FS

// Settings serves the pages of settings and market packages.
type Settings struct {
	// Currency is that of cost limits.
	Currency string
}

// Module returns the pages.
func (s Settings) Module() (ui.Module, error) {
	pages, err := fs.Sub(files, "pages")
	return ui.Module{
		Name: "settings", Files: pages,
		Links: []ui.Link{
			{Section: "ui.menu.organization", Label: "ui.menu.settings", Path: "settings"},
			{Section: "ui.menu.organization", Label: "ui.menu.market_rules", Path: "market"},
		},
		Routes: []ui.Route{
			{Path: "settings", Show: s.show},
			{Path: "settings/edit", Role: operator.Owner, Show: s.ask, Submit: s.change},
			{Path: "settings/components", Show: s.components},
			{Path: "market", Show: s.packages},
			{Path: "market/use", Role: operator.Owner, Show: s.askUse, Submit: s.use},
			{Path: "market/install", Role: operator.Owner, Root: true, Show: s.askInstall, Submit: s.install, MaxBytes: mostPackage},
		},
	}, err
}

// withDefaults fills in the defaults.
func withDefaults(o apply.Organization) apply.Organization {
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

func (s Settings) show(r *ui.Request) (ui.Page, error) {
	o, err := apply.Current(r.Context(), r.DB(), r.Org())
	return ui.Page{
		Template: "show.html", Title: r.Texts.T("settings.show.title"), Lead: r.Texts.T("settings.show.lead"),
		Actions: []ui.Link{
			{Label: r.Texts.T("settings.link.edit"), Path: "settings/edit", Role: operator.Owner},
			{Label: r.Texts.T("settings.link.set_up_calling"), Path: "start"},
		},
		Data: map[string]any{"O": withDefaults(o), "Days": ui.WeekdayOptions(r.Texts), "Currency": s.Currency},
	}, err
}

func optional(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

// state is the value of a select: market default (""), on or off.
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

func (s Settings) ask(r *ui.Request) (ui.Page, error) {
	o, err := apply.Current(r.Context(), r.DB(), r.Org())
	if err != nil {
		return ui.Page{}, err
	}
	return ui.Page{
		Template: "form.html", Title: r.Texts.T("settings.edit.title"), Crumbs: []ui.Link{{
			Label: r.Texts.T("settings.link.settings"),
			Path:  "settings",
		}},
		Data: r.Form(ui.Form{
			Submit: r.Texts.T("ui.form.save"), Cancel: r.URL("settings"), Fields: s.fields(r, withDefaults(o)),
			Of: auditView(o),
		}),
	}, nil
}

// windowHelp says how the market uses the calling window.
func windowHelp(r *ui.Request) string {
	help := r.Texts.T("settings.form.calling_window_end.help")
	switch r.Member.Market {
	case "kz":
		help += " " + r.Texts.T("settings.form.calling_window_end.help.window")
	case "us":
		help += " " + r.Texts.T("settings.form.calling_window_end.help.legal")
	}
	return help
}

func (s Settings) fields(r *ui.Request, o apply.Organization) []ui.Field {
	texts, costs := r.Texts, r.Texts.T("settings.form.unit.providers_trunks", "currency", s.Currency)
	onDays := make([]string, len(o.CallingWindow.Days))
	for i, d := range o.CallingWindow.Days {
		onDays[i] = strconv.Itoa(d)
	}
	most := func(name, label, unit, value string) ui.Field {
		return ui.Field{Name: name, Label: label, Kind: ui.Number, Value: value, Optional: true, Unit: unit, Min: "0"}
	}
	return slices.Concat([]ui.Field{
		{
			Group: texts.T("settings.form.group.calling_window"), Name: "timezone", Label: texts.T("settings.form.timezone.label"),
			Value: *o.Timezone,
			Help:  texts.T("settings.form.timezone.help"),
		},
		{
			Name: "calling_window.days", Label: texts.T("settings.form.calling_window_days.label"), Kind: ui.Checkboxes,
			Options: ui.WeekdayOptions(texts), Values: onDays,
		},
		{
			Name: "calling_window.start", Label: texts.T("settings.form.calling_window_start.label"), Kind: ui.TimeOfDay,
			Value: o.CallingWindow.Start,
		},
		{
			Name: "calling_window.end", Label: texts.T("settings.form.calling_window_end.label"), Kind: ui.TimeOfDay,
			Value: dayEnd(o.CallingWindow.End, "24:00", "00:00"),
			Help:  windowHelp(r),
		},
		{
			Group: texts.T("settings.form.group.frequency_caps"), Name: "frequency_caps.enabled",
			Label: texts.T("settings.form.frequency_caps_enabled.label"), Kind: ui.Select,
			Value: state(o.FrequencyCaps.Enabled), Options: usually(texts.T("settings.form.option.default"), texts.T("settings.form.option.on"),
				texts.T("settings.form.option.off")),
		},
		most("frequency_caps.daily", texts.T("settings.form.frequency_caps_daily.label"), "", optional(o.FrequencyCaps.Daily)),
		most("frequency_caps.rolling_7d", texts.T("settings.form.frequency_caps_rolling_7d.label"), "", optional(o.FrequencyCaps.Rolling7D)),
		{
			Group: texts.T("settings.form.group.do_not_call"), Name: "individual_dnc", Label: texts.T("settings.form.individual_dnc.label"),
			Kind:  ui.Select,
			Value: *o.IndividualDNC, Options: []ui.Option{
				{Value: "enforce", Label: texts.T("settings.form.individual_dnc.enforce")},
				{Value: "off", Label: texts.T("settings.form.individual_dnc.off")},
			},
		},
		{
			Name: "require_registry", Label: texts.T("settings.form.require_registry.label"), Kind: ui.Checkbox,
			Value: ui.CheckboxValue(*o.RequireRegistry),
		},
	}, disclosureFields(texts, o), []ui.Field{
		{
			Group: texts.T("settings.form.group.daily_limits"), Name: "limits.daily_calls",
			Label: texts.T("settings.form.limits_daily_calls.label"), Kind: ui.Number, Value: ui.FormatInt(o.Limits.DailyCalls),
			Optional: true, Min: "0", Help: texts.T("settings.form.limits_daily_calls.help"),
		},
		most("limits.daily_minutes", texts.T("settings.form.limits_daily_minutes.label"), "minutes", ui.FormatInt(o.Limits.DailyMinutes)),
		most("limits.daily_cost", texts.T("settings.form.limits_monthly_cost.label"), costs, ui.FormatFloat(o.Limits.DailyCost)),
		{
			Group: texts.T("settings.form.group.monthly_limit"), Name: "limits.monthly_cost",
			Label: texts.T("settings.form.limits_monthly_cost.label"), Kind: ui.Number, Value: ui.FormatFloat(o.Limits.MonthlyCost),
			Optional: true, Min: "0", Unit: costs,
			Help: texts.T("settings.form.limits_monthly_cost.help"),
		},
	}, retentionFields(texts, *o.Retention))
}

func disclosureFields(texts *ui.Texts, o apply.Organization) []ui.Field {
	return []ui.Field{
		{
			Group: texts.T("settings.form.disclosures_enabled.label"), Name: "disclosures.enabled",
			Label: texts.T("settings.form.disclosures_enabled.label"), Kind: ui.Select, Value: state(o.Disclosures.Enabled),
			Options: usually(texts.T("settings.form.option.default"), texts.T("settings.form.option.on"),
				texts.T("settings.form.option.off")), Help: texts.T("settings.form.disclosures_enabled.help"),
		},
		{
			Name: "disclosures.agent", Label: texts.T("settings.form.disclosures_agent.label"), Value: o.Disclosures.Agent, Optional: true,
			Help: texts.T("settings.form.disclosures_agent.help"),
		},
		{
			Name: "disclosures.organization", Label: texts.T("settings.form.disclosures_organization.label"), Value: o.Disclosures.Organization,
			Optional: true,
		},
	}
}

func retentionFields(texts *ui.Texts, rules retention.Rules) []ui.Field {
	kept := func(name, label string, n int) ui.Field {
		return ui.Field{
			Name: name, Label: label, Kind: ui.Number, Value: ui.FormatInt(n), Optional: true, Unit: texts.T("settings.form.unit.days"),
			Min: strconv.Itoa(retention.MinDays), Max: "3650",
		}
	}
	recordings := kept("retention.recordings_days", texts.T("settings.form.retention_recordings_days.label"), rules.Recordings)
	recordings.Group = texts.T("settings.form.group.retention")
	recordings.Help = texts.T("settings.form.retention_recordings_days.help")
	return []ui.Field{
		recordings,
		kept("retention.transcripts_days", texts.T("settings.form.retention_transcripts_days.label"), rules.Transcripts),
		kept("retention.calls_days", texts.T("settings.form.retention_calls_days.label"), rules.Calls),
	}
}

func usually(usual, on, off string) []ui.Option {
	return []ui.Option{{Value: "", Label: usual}, {Value: "on", Label: on}, {Value: "off", Label: off}}
}

func readForm(r *ui.Request) (apply.Organization, error) {
	var wrong error
	whole := func(name string) *int {
		text := r.Text(name)
		if text == "" {
			return nil
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			wrong = ui.Invalid(name, r.Texts.T("settings.form.invalid.integer"))
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
		Name: r.Member.Name, Timezone: &zone, IndividualDNC: &dnc, RequireRegistry: &registry,
		CallingWindow: &apply.Window{Start: r.Text("calling_window.start"), End: dayEnd(r.Text("calling_window.end"), "00:00", "24:00")},
		FrequencyCaps: &apply.Caps{
			Enabled: onOff("frequency_caps.enabled"),
			Daily:   whole("frequency_caps.daily"), Rolling7D: whole("frequency_caps.rolling_7d"),
		},
		Disclosures: &apply.Disclosures{
			Enabled: onOff("disclosures.enabled"),
			Agent:   r.Text("disclosures.agent"), Organization: r.Text("disclosures.organization"),
		},
		Limits: &apply.OrgLimits{DailyCalls: count("limits.daily_calls"), DailyMinutes: count("limits.daily_minutes")},
		Retention: &retention.Rules{
			Recordings:  count("retention.recordings_days"),
			Transcripts: count("retention.transcripts_days"), Calls: count("retention.calls_days"),
		},
	}
	for _, d := range r.All("calling_window.days") {
		n, err := strconv.Atoi(d)
		if err != nil {
			n = -1 // a later check rejects it
		}
		o.CallingWindow.Days = append(o.CallingWindow.Days, n)
	}
	for name, to := range map[string]*float64{"limits.daily_cost": &o.Limits.DailyCost, "limits.monthly_cost": &o.Limits.MonthlyCost} {
		text := r.Text(name)
		if text == "" {
			continue
		}
		cost, err := strconv.ParseFloat(text, 64)
		if err != nil {
			wrong = ui.Invalid(name, r.Texts.T("settings.form.invalid.number"))
		}
		*to = cost
	}
	return o, wrong
}

func (Settings) change(r *ui.Request) (ui.Result, error) {
	o, err := readForm(r)
	if err != nil {
		return ui.Result{}, err
	}
	err = r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		was, fault := apply.Current(r.Context(), q, r.Org())
		if fault != nil {
			return operator.Entry{}, fault
		}
		if fault = r.Same(auditView(was)); fault != nil {
			return operator.Entry{}, fault
		}
		if fault = r.Apply(q, o); fault != nil {
			return operator.Entry{}, fault
		}
		before, after := operator.Diff(auditView(was), auditView(o))
		if reflect.DeepEqual(before, after) {
			return operator.Entry{}, nil
		}
		return operator.Entry{Action: "organization.settings", Object: r.Org(), Before: before, After: after}, nil
	})
	return ui.Result{To: "settings", Notice: r.Texts.T("settings.edit.notice")}, err
}

// auditView is an organization's settings in the audit log.
func auditView(o apply.Organization) map[string]any {
	return map[string]any{
		"timezone": o.Timezone, "calling_window": o.CallingWindow, "frequency_caps": o.FrequencyCaps, "require_registry": o.RequireRegistry,
		"individual_dnc": o.IndividualDNC, "disclosures": o.Disclosures, "limits": o.Limits, "retention": o.Retention,
	}
}

// dayEnd converts the end of a day between 24:00 and 00:00; time inputs have no 24:00.
func dayEnd(text, from, to string) string {
	if text == from {
		return to
	}
	return text
}
