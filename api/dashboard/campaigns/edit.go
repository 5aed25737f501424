package campaigns

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/control"
)

// drafts serves the pages that edit drafts and duplicate campaigns.
type drafts struct{ *Campaigns }

// draftSettings are what the form of a draft edits.
type draftSettings struct {
	campaigns.Campaign

	UpdatedAt, SeenFingerprint struct{} // they change by themselves
}

// keptHours is the field of a form that cannot show the working hours of the campaign, so that they stay.
const keptHours = "keep_hours"

// refill shows the settings of a campaign in the fields of a new one.
func refill(all []ui.Field, k campaigns.Campaign) []ui.Field {
	zone, err := control.Zone(k.Timezone)
	if err != nil {
		zone = time.UTC
	}
	local := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.In(zone).Format(ui.DateTimeLayout)
	}
	values := map[string]string{
		"name": k.Name, "agent": k.AgentName, "classification": string(k.Classification), "pace": strconv.Itoa(k.CallsPerMinute),
		"subgroup": k.Binding.TrunkID + " " + k.Binding.RouteID, "from": k.Binding.FromNumber,
		"starts": local(k.StartsAt), "ends": local(k.EndsAt),
		"contact_zone": ui.CheckboxValue(k.ContactTimezone), "attempts": strconv.Itoa(k.Retry.Attempts),
		"interval": ui.FormatFloat(float64(k.Retry.Interval) / 60), "duplicates": string(k.Duplicates), "open": ui.CheckboxValue(k.Open),
		"from_hour": "", "to_hour": "", "budget": "", "timezone": "", "rules": "",
	}
	if k.Budget > 0 {
		values["budget"] = k.Budget.String()
	}
	if k.TimezoneSource == campaigns.ZoneOfRequest {
		values["timezone"] = k.Timezone
	}
	if k.Retry.Strategy == retry.Expert {
		if text, err := json.Marshal(k.Retry.Rules); err == nil {
			values["rules"] = string(text)
		}
	}
	var days []string
	if len(k.WorkingHours) == 1 {
		for _, d := range k.WorkingHours[0].Days {
			days = append(days, strconv.Itoa(d))
		}
		values["from_hour"], values["to_hour"] = k.WorkingHours[0].Start, k.WorkingHours[0].End
		if values["to_hour"] == "24:00" { // time inputs cannot show it
			values["to_hour"] = "00:00"
		}
	}
	for i := range all {
		if v, ok := values[all[i].Name]; ok {
			all[i].Value = v
		}
		if all[i].Name == "days" {
			all[i].Values = days
		}
	}
	if len(k.WorkingHours) > 1 {
		all = slices.DeleteFunc(all, func(f ui.Field) bool { return slices.Contains([]string{"days", "from_hour", "to_hour"}, f.Name) })
		all = append(all, ui.Field{Name: keptHours, Kind: ui.Hidden, Value: "on"})
	}
	return all
}

// fixedAtCreation are the fields that only a new campaign has.
func fixedAtCreation() []string { return []string{"duplicates", "open"} }

func (c drafts) askEdit(r *ui.Request) (ui.Page, error) {
	k, err := c.API.Store.Get(r.Context(), r.DB(), r.Org(), r.ID(), false)
	if err != nil {
		return ui.Page{}, err
	}
	all, err := c.fields(r)
	if err != nil {
		return ui.Page{}, err
	}
	all = slices.DeleteFunc(refill(all, k), func(f ui.Field) bool { return slices.Contains(fixedAtCreation(), f.Name) })
	lead := r.Texts.T("campaigns.edit.lead")
	if len(k.WorkingHours) > 1 {
		lead += " " + r.Texts.T("campaigns.edit.lead.hours")
	}
	return ui.Page{
		Template: "form.html", Title: r.Texts.T("campaigns.edit.title", "name", k.Name), Crumbs: crumbs(r.Texts, campaignLink(k)), Lead: lead,
		Data: r.Form(ui.Form{Submit: r.Texts.T("ui.form.save"), Cancel: r.URL("campaigns/" + k.ID), Fields: all, Of: draftSettings{Campaign: k}}),
	}, nil
}

// edit saves the settings of a draft.
func (c drafts) edit(r *ui.Request) (ui.Result, error) {
	back := ui.Result{To: "campaigns/" + r.ID(), Notice: r.Texts.T("campaigns.edit.notice")}
	s, err := spec(r)
	if err != nil {
		return back, err
	}
	before, after, err := service.Edit(r.Context(), c.service(), r.Org(), r.ID(), who(r), service.EditRequest{
		Spec: s, KeepHours: r.Ticked(keptHours), Same: func(k campaigns.Campaign) error { return r.Same(draftSettings{Campaign: k}) },
	})
	if control.CodeOf(err) == control.CodeCampaignTransition {
		back.Notice, back.Failed = r.Texts.T("campaigns.change.refused", "reason", ui.ErrorText(err)), true
		return back, nil
	}
	if err != nil {
		return back, refused(r.Texts, err)
	}
	return back, c.log(r, "edit", r.ID(), loggedSettings(before), loggedSettings(after))
}

func loggedSettings(k campaigns.Campaign) map[string]any {
	return map[string]any{
		"name": k.Name, "agent": k.AgentName, "calls_per_minute": k.CallsPerMinute, "classification": k.Classification, "budget": k.Budget,
		"starts_at": k.StartsAt, "ends_at": k.EndsAt, "working_hours": k.WorkingHours, "retry": k.Retry, "binding": k.Binding,
		"timezone": k.Timezone, "use_contact_timezone": k.ContactTimezone,
	}
}

// copyName names a copy, within the longest name.
func copyName(name string) string {
	const suffix, most = " (copy)", 80
	for utf8.RuneCountInString(name) > most-len(suffix) {
		_, n := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-n]
	}
	return name + suffix
}

// copyOf returns the settings of a campaign for a new one: times that have passed are left out.
func copyOf(k campaigns.Campaign, now time.Time) campaigns.Campaign {
	k.Name = copyName(k.Name)
	for _, at := range []*time.Time{&k.StartsAt, &k.EndsAt} {
		if !at.After(now) {
			*at = time.Time{}
		}
	}
	return k
}
