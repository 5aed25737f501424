package trunks

import (
	"slices"
	"strconv"
	"strings"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/media"
)

func fields(texts *ui.Texts, t trunks.Trunk, currency string) []ui.Field {
	return slices.Concat(carrierFields(texts, t), numberFields(texts, t), mediaFields(texts, t.Settings), limitFields(texts, t, currency))
}

// newFields are the fields of a new trunk. A carrier profile fills those that stay empty.
func newFields(texts *ui.Texts, currency string) ([]ui.Field, error) {
	all, err := apply.AllCarriers()
	if err != nil {
		return nil, err
	}
	profile := ui.Field{
		Name: "carrier", Label: texts.T("trunks.new.carrier.label"), Kind: ui.Select, Options: []ui.Option{{
			Value: "",
			Label: texts.T("trunks.new.option.none"),
		}},
		Help: texts.T("trunks.new.carrier.help"),
	}
	for _, c := range all {
		profile.Options = append(profile.Options, ui.Option{Value: c.Name, Label: c.Title})
	}
	f := fields(texts, trunks.Trunk{}, currency)
	f[0].Optional, f[0].Help = true, texts.T("trunks.new.proxy.help")
	return slices.Concat([]ui.Field{{
		Name: "name", Label: texts.T("trunks.new.name.label"), Placeholder: "main",
		Help: texts.T("trunks.new.name.help"),
	}, profile}, f), nil
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
		return ui.Invalid("carrier", r.Texts.T("trunks.new.invalid.carrier"))
	}
	c.FillEmpty(t)
	return nil
}

func lines(name, label string, rows int, value, example, help string) ui.Field {
	return ui.Field{
		Name: name, Label: label, Kind: ui.TextArea, Rows: rows, Code: true, Value: value, Optional: true, Placeholder: example, Help: help,
	}
}

func carrierFields(texts *ui.Texts, t trunks.Trunk) []ui.Field {
	s := t.Settings
	empty := texts.T("trunks.form.password.help.none")
	if t.Password != "" {
		empty = texts.T("trunks.form.password.help.keep")
	}
	return []ui.Field{
		{
			Group: texts.T("trunks.form.group.carrier"), Name: "proxy", Label: texts.T("trunks.form.proxy.label"), Value: t.Proxy, Code: true,
			Placeholder: "sip:sip.carrier.example;transport=tls",
		},
		lines("backups", texts.T("trunks.form.backups.label"), 2, strings.Join(s.Backups, "\n"), "", texts.T("trunks.form.backups.help")),
		{Name: "provider", Label: texts.T("trunks.form.provider.label"), Value: s.Provider, Optional: true},
		{Name: "username", Label: texts.T("trunks.form.username.label"), Value: t.Username, Optional: true, Complete: "off"},
		{
			Name: "password", Label: texts.T("trunks.form.password.label"), Kind: ui.Password, Optional: true, Complete: "new-password",
			Help: empty,
		},
		{Name: "realm", Label: texts.T("trunks.form.realm.label"), Value: s.Realm, Optional: true},
		lines("signaling_sources", texts.T("trunks.form.signaling_sources.label"), 2, strings.Join(s.SignalingSources, "\n"), "203.0.113.0/24",
			texts.T("trunks.form.signaling_sources.help")),
		ui.CheckboxField("register", texts.T("trunks.form.register.label"), s.Register),
	}
}

func numberFields(texts *ui.Texts, t trunks.Trunk) []ui.Field {
	s := t.Settings
	numbers := lines("caller_numbers", texts.T("trunks.form.caller_numbers.label"), 3, strings.Join(t.CallerNumbers, "\n"), "+12025550100",
		texts.T("trunks.form.caller_numbers.help"))
	numbers.Group = texts.T("trunks.form.group.numbers")
	return []ui.Field{
		numbers,
		lines("attest", texts.T("trunks.form.attest.label"), 2, ui.FormatPairs(s.Attest), "+12025550100 = A", texts.T("trunks.form.attest.help")),
		{
			Name: "number_format", Label: texts.T("trunks.form.number_format.label"), Kind: ui.Select, Value: s.NumberFormat,
			Options: []ui.Option{
				{Value: "", Label: texts.T("trunks.form.number_format.digits")},
				{Value: "e164", Label: texts.T("trunks.form.number_format.e164")},
			},
		},
		{Name: "diversion", Label: texts.T("trunks.form.diversion.label"), Value: s.Diversion, Optional: true},
		ui.CheckboxField("asserted_identity", texts.T("trunks.form.asserted_identity.label"), s.AssertedIdentity),
		ui.CheckboxField("privacy", texts.T("trunks.form.privacy.label"), s.Privacy),
	}
}

func mediaFields(texts *ui.Texts, s trunks.Settings) []ui.Field {
	return []ui.Field{
		{
			Group: texts.T("trunks.form.group.media"), Name: "codecs", Label: texts.T("trunks.form.codecs.label"),
			Value: strings.Join(s.Codecs, ", "), Optional: true,
			Help: texts.T("trunks.form.codecs.help"),
		},
		{
			Name: "encryption", Label: texts.T("trunks.form.encryption.label"), Kind: ui.Select, Value: s.Encryption,
			Options: []ui.Option{
				{Value: "", Label: texts.T("trunks.form.encryption.none")},
				{Value: "srtp", Label: texts.T("trunks.form.encryption.srtp")},
			},
		},
		{
			Name: "dtmf", Label: texts.T("trunks.form.dtmf.label"), Kind: ui.Select, Value: s.DTMF,
			Options: []ui.Option{
				{Value: "", Label: texts.T("trunks.form.dtmf.events")},
				{Value: "inband", Label: texts.T("trunks.form.dtmf.inband")},
			},
		},
		lines("media_sources", texts.T("trunks.form.media_sources.label"), 2, strings.Join(s.MediaSources, "\n"), "203.0.113.0/24",
			texts.T("trunks.form.media_sources.help")),
		{
			Name: "first_media_timeout_s", Label: texts.T("trunks.form.first_media_timeout_s.label"), Kind: ui.Number,
			Unit:  texts.T("trunks.form.unit.seconds"),
			Value: ui.FormatInt(s.FirstMediaTimeout), Optional: true, Min: "0",
			Help: texts.T("trunks.form.first_media_timeout_s.help"),
		},
		{
			Name: "media_timeout_s", Label: texts.T("trunks.form.media_timeout_s.label"), Kind: ui.Number,
			Unit: texts.T("trunks.form.unit.seconds"), Value: ui.FormatInt(s.MediaTimeout),
			Optional: true, Min: "0", Help: texts.T("trunks.form.media_timeout_s.help"),
		},
		lines("headers", texts.T("trunks.form.headers.label"), 2, ui.FormatPairs(s.Headers), "", texts.T("trunks.form.headers.help")),
	}
}

func limitFields(texts *ui.Texts, t trunks.Trunk, currency string) []ui.Field {
	rates := map[string]string{}
	for prefix, rate := range t.Settings.Rates {
		rates[prefix] = strconv.FormatFloat(rate, 'f', -1, 64)
	}
	return []ui.Field{
		{
			Group: texts.T("trunks.form.group.limits_cost"), Name: "calls_per_second", Label: texts.T("trunks.form.calls_per_second.label"),
			Kind:  ui.Number,
			Value: ui.FormatFloat(t.CallsPerSecond), Optional: true, Min: "0", Help: texts.T("trunks.form.calls_per_second.help"),
		},
		{
			Name: "concurrent_calls", Label: texts.T("trunks.form.concurrent_calls.label"), Kind: ui.Number,
			Value: ui.FormatInt(t.ConcurrentCalls), Optional: true, Min: "0",
		},
		lines("rates", texts.T("trunks.form.rates.label"), 3, ui.FormatPairs(rates), "1 = 0.012",
			texts.T("trunks.form.rates.help", "currency", currency)),
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
		return 0, ui.Invalid(name, r.Texts.T("trunks.form.invalid.number"))
	}
	return f, nil
}

// integer reads an optional whole number; empty is 0.
func integer(r *ui.Request, name string) (int, error) {
	f, err := number(r, name)
	if err == nil && f != float64(int(f)) {
		err = ui.Invalid(name, r.Texts.T("trunks.form.invalid.integer"))
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
			return t, ui.Invalid("rates", r.Texts.T("trunks.form.invalid.rates", "prefix", prefix, "text", text))
		}
		(*t.Rates)[prefix] = rate
	}
	return t, nil
}
