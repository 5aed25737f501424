package trunks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/media"
)

func fields(t trunks.Trunk) []ui.Field {
	return slices.Concat(carrierFields(t), numberFields(t), mediaFields(t.Settings), limitFields(t))
}

// newFields are the fields of a new trunk. A carrier profile fills those that stay empty.
func newFields() ([]ui.Field, error) {
	all, err := apply.AllCarriers()
	if err != nil {
		return nil, err
	}
	profile := ui.Field{
		Name: "carrier", Label: "Carrier profile", Kind: ui.Select, Options: []ui.Option{{Value: "", Label: "None"}},
		Help: "Fills the fields that you leave empty.",
	}
	for _, c := range all {
		profile.Options = append(profile.Options, ui.Option{Value: c.Name, Label: c.Title})
	}
	f := fields(trunks.Trunk{})
	f[0].Optional, f[0].Help = true, "Telnyx and Zadarma: leave empty. Twilio: your Termination SIP URI."
	return slices.Concat([]ui.Field{{Name: "name", Label: "Name", Placeholder: "main", Help: "Cannot be changed later."}, profile}, f), nil
}

// readTrunk reads the form. A new trunk has a carrier profile.
func readTrunk(r *ui.Request, name string, isNew bool) (apply.Trunk, error) {
	t, err := readForm(r, name)
	if err == nil && isNew {
		err = fillCarrier(r, &t)
	}
	return t, err
}

// fillCarrier applies the chosen carrier profile.
func fillCarrier(r *ui.Request, t *apply.Trunk) error {
	name := r.Text("carrier")
	if name == "" {
		return nil
	}
	all, err := apply.AllCarriers()
	if err != nil {
		return err
	}
	c, err := all.Find(name)
	if err != nil {
		return ui.Invalid("carrier", "Choose a profile of the list.")
	}
	c.FillEmpty(t)
	return nil
}

func lines(name, label string, rows int, value, example, help string) ui.Field {
	return ui.Field{
		Name: name, Label: label, Kind: ui.TextArea, Rows: rows, Code: true, Value: value, Optional: true, Placeholder: example, Help: help,
	}
}

func carrierFields(t trunks.Trunk) []ui.Field {
	s := t.Settings
	empty := "Leave empty for none."
	if t.Password != "" {
		empty = "Leave empty to keep the stored password."
	}
	return []ui.Field{
		{Group: "Carrier", Name: "proxy", Label: "Proxy", Value: t.Proxy, Code: true, Placeholder: "sip:sip.carrier.example;transport=tls"},
		lines("backups", "Backup proxies", 2, strings.Join(s.Backups, "\n"), "", "One per line, tried in this order."),
		{Name: "provider", Label: "Carrier name", Value: s.Provider, Optional: true},
		{Name: "username", Label: "User name", Value: t.Username, Optional: true, Complete: "off"},
		{Name: "password", Label: "Password", Kind: ui.Password, Optional: true, Complete: "new-password", Help: empty},
		{Name: "realm", Label: "Realm", Value: s.Realm, Optional: true},
		lines("signaling_sources", "Other signaling addresses", 2, strings.Join(s.SignalingSources, "\n"), "203.0.113.0/24",
			"Additional networks that the carrier sends SIP from, one per line."),
		ui.CheckboxField("register", "Register with the carrier", s.Register),
	}
}

func numberFields(t trunks.Trunk) []ui.Field {
	s := t.Settings
	numbers := lines("caller_numbers", "Caller numbers", 3, strings.Join(t.CallerNumbers, "\n"), "+12025550100",
		"Numbers that calls may show, one per line.")
	numbers.Group = "Numbers"
	return []ui.Field{
		numbers,
		lines("attest", "Attestation", 2, ui.FormatPairs(s.Attest), "+12025550100 = A", "STIR/SHAKEN: number = A, B or C, one per line."),
		{
			Name: "number_format", Label: "Number format", Kind: ui.Select, Value: s.NumberFormat,
			Options: []ui.Option{{Value: "", Label: "Digits"}, {Value: "e164", Label: "E.164 with +"}},
		},
		{Name: "diversion", Label: "Diversion", Value: s.Diversion, Optional: true},
		ui.CheckboxField("asserted_identity", "Send P-Asserted-Identity", s.AssertedIdentity),
		ui.CheckboxField("privacy", "Hide the caller number (Privacy)", s.Privacy),
	}
}

func mediaFields(s trunks.Settings) []ui.Field {
	return []ui.Field{
		{
			Group: "Media", Name: "codecs", Label: "Codecs", Value: strings.Join(s.Codecs, ", "), Optional: true,
			Help: "Comma-separated, preferred first. Leave empty for all.",
		},
		{
			Name: "encryption", Label: "Media encryption", Kind: ui.Select, Value: s.Encryption,
			Options: []ui.Option{{Value: "", Label: "None"}, {Value: "srtp", Label: "SRTP"}},
		},
		{
			Name: "dtmf", Label: "DTMF", Kind: ui.Select, Value: s.DTMF,
			Options: []ui.Option{{Value: "", Label: "Events (RFC 4733)"}, {Value: "inband", Label: "In-band tones"}},
		},
		lines("media_sources", "Media sources", 2, strings.Join(s.MediaSources, "\n"), "203.0.113.0/24",
			"Networks that the carrier sends media from, one per line. If set, media from elsewhere is ignored."),
		{
			Name: "first_media_timeout_s", Label: "First media timeout", Kind: ui.Number, Unit: "seconds",
			Value: ui.FormatInt(s.FirstMediaTimeout), Optional: true, Min: "0",
			Help: "Ends a call that receives no audio after the callee answers. 5 to 600; defaults to 30.",
		},
		{
			Name: "media_timeout_s", Label: "Media timeout", Kind: ui.Number, Unit: "seconds", Value: ui.FormatInt(s.MediaTimeout),
			Optional: true, Min: "0", Help: "Ends a call whose audio stops arriving. 5 to 600; defaults to 15.",
		},
		lines("headers", "Headers", 2, ui.FormatPairs(s.Headers), "", "One per line: name = value."),
	}
}

func limitFields(t trunks.Trunk) []ui.Field {
	rates := map[string]string{}
	for prefix, rate := range t.Settings.Rates {
		rates[prefix] = strconv.FormatFloat(rate, 'f', -1, 64)
	}
	return []ui.Field{
		{
			Group: "Limits and cost", Name: "calls_per_second", Label: "Calls per second", Kind: ui.Number,
			Value: ui.FormatFloat(t.CallsPerSecond), Optional: true, Min: "0", Help: "Leave empty for no limit.",
		},
		{
			Name: "concurrent_calls", Label: "Concurrent calls", Kind: ui.Number, Value: ui.FormatInt(t.ConcurrentCalls), Optional: true, Min: "0",
		},
		lines("rates", "Cost per minute", 3, ui.FormatPairs(rates), "1 = 0.012", "Number prefix = cost, one per line; longest prefix wins."),
	}
}

// splitList splits a field at line ends and commas.
func splitList(r *ui.Request, name string) *[]string {
	all := []string{}
	for part := range strings.FieldsFuncSeq(r.Raw(name), func(c rune) bool { return c == '\n' || c == ',' }) {
		if part = strings.TrimSpace(part); part != "" {
			all = append(all, part)
		}
	}
	return &all
}

// number reads an optional number; empty is 0.
func number(r *ui.Request, name string) (float64, error) {
	text := r.Text(name)
	if text == "" {
		return 0, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= 0 && f <= 1e6) {
		return 0, ui.Invalid(name, "Enter a number from 0 to 1,000,000, or leave empty.")
	}
	return f, nil
}

// integer reads an optional whole number; empty is 0.
func integer(r *ui.Request, name string) (int, error) {
	f, err := number(r, name)
	if err == nil && f != float64(int(f)) {
		err = ui.Invalid(name, "Enter a whole number, or leave empty.")
	}
	return int(f), err
}

func readForm(r *ui.Request, name string) (apply.Trunk, error) {
	text := func(field string) *string {
		v := r.Text(field)
		return &v
	}
	yes := func(field string) *bool {
		v := r.Ticked(field)
		return &v
	}
	t := apply.Trunk{
		Name: name, Proxy: text("proxy"), Username: text("username"), CallerNumbers: splitList(r, "caller_numbers"),
		Backups: splitList(r, "backups"),
		Realm:   text("realm"), SignalingSources: splitList(r, "signaling_sources"),
		Register: yes("register"), Codecs: splitList(r, "codecs"), Encryption: text("encryption"),
		DTMF: text("dtmf"), NumberFormat: text("number_format"), AssertedIdentity: yes("asserted_identity"),
		Privacy: yes("privacy"), Diversion: text("diversion"), Provider: text("provider"),
		MediaSources: splitList(r, "media_sources"),
	}
	if p := media.Secret(r.Raw("password")); p != "" {
		t.Password = &p
	}
	perSecond, err := number(r, "calls_per_second")
	if err != nil {
		return t, err
	}
	concurrent, err := integer(r, "concurrent_calls")
	if err != nil {
		return t, err
	}
	t.Limits = &apply.Limits{CallsPerSecond: &perSecond, ConcurrentCalls: &concurrent}
	for name, to := range map[string]**int{"first_media_timeout_s": &t.FirstMediaTimeout, "media_timeout_s": &t.MediaTimeout} {
		seconds, bad := integer(r, name)
		if bad != nil {
			return t, bad
		}
		*to = &seconds
	}
	if t.Headers, err = ui.ReadPairs(r, "headers"); err != nil {
		return t, err
	}
	if t.Attest, err = ui.ReadPairs(r, "attest"); err != nil {
		return t, err
	}
	rates, err := ui.ReadPairs(r, "rates")
	if err != nil {
		return t, err
	}
	t.Rates = &map[string]float64{}
	for prefix, text := range *rates {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return t, ui.Invalid("rates", fmt.Sprintf("%s = %s: the cost must be a number.", prefix, text))
		}
		(*t.Rates)[prefix] = rate
	}
	return t, nil
}
