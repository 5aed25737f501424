package trunks

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/parley-voice/parley/api/dashboard/field"
	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/media"
)

// fields ask for a trunk.
func fields(t trunks.Trunk) []frame.Field {
	s := t.Settings
	empty := "Left empty, there is none."
	if t.Password != "" {
		empty = "Left empty, it stays what it is."
	}
	rates := map[string]string{}
	for prefix, rate := range s.Rates {
		rates[prefix] = strconv.FormatFloat(rate, 'f', -1, 64)
	}
	return []frame.Field{
		{Group: "The carrier", Name: "proxy", Label: "Proxy", Value: t.Proxy, Code: true, Placeholder: "sip:sip.carrier.example;transport=tls"},
		{Name: "backups", Label: "Other proxies", Kind: frame.Area, Rows: 2, Code: true, Value: strings.Join(s.Backups, "\n"), Optional: true, Help: "One a line, tried in this order."},
		{Name: "provider", Label: "Carrier’s name", Value: s.Provider, Optional: true},
		{Name: "username", Label: "User name", Value: t.Username, Optional: true, Complete: "off"},
		{Name: "password", Label: "Password", Kind: frame.Password, Optional: true, Complete: "new-password", Help: empty},
		{Name: "realm", Label: "Realm", Value: s.Realm, Optional: true},
		field.Box("register", "Register with the carrier", s.Register),
		{Group: "Numbers", Name: "caller_numbers", Label: "Caller numbers", Kind: frame.Area, Rows: 3, Code: true, Value: strings.Join(t.CallerNumbers, "\n"), Optional: true, Placeholder: "+12025550100", Help: "Numbers that calls may show, one a line."},
		{Name: "attest", Label: "Attestation", Kind: frame.Area, Rows: 2, Code: true, Value: field.Lines(s.Attest), Optional: true, Placeholder: "+12025550100 = A", Help: "STIR/SHAKEN: number = A, B or C, one a line."},
		{Name: "diversion", Label: "Diversion", Value: s.Diversion, Optional: true},
		field.Box("asserted_identity", "Assert the identity (P-Asserted-Identity)", s.AssertedIdentity), field.Box("privacy", "Hide the caller number (Privacy)", s.Privacy),
		{Group: "How calls go", Name: "codecs", Label: "Codecs", Value: strings.Join(s.Codecs, ", "), Optional: true, Help: "The preferred first, with commas between; left empty it is all."},
		{Name: "encryption", Label: "Encryption of the sound", Kind: frame.Select, Value: s.Encryption, Options: []frame.Option{{Value: "", Label: "none"}, {Value: "srtp", Label: "SRTP"}}},
		{Name: "dtmf", Label: "Keys", Kind: frame.Select, Value: s.DTMF, Options: []frame.Option{{Value: "", Label: "events (RFC 4733)"}, {Value: "inband", Label: "tones in the sound"}}},
		{Name: "headers", Label: "Headers", Kind: frame.Area, Rows: 2, Code: true, Value: field.Lines(s.Headers), Optional: true, Help: "Name = value, one a line."},
		{Group: "Limits and cost", Name: "calls_per_second", Label: "Calls a second", Kind: frame.Number, Value: field.Decimal(t.CallsPerSecond), Optional: true, Min: "0", Help: "Left empty there is no limit."},
		{Name: "concurrent_calls", Label: "Calls at a time", Kind: frame.Number, Value: field.Whole(t.ConcurrentCalls), Optional: true, Min: "0"},
		{Name: "rates", Label: "What a minute costs", Kind: frame.Area, Rows: 3, Code: true, Value: field.Lines(rates), Optional: true, Placeholder: "1 = 0.012", Help: "First digits of numbers = cost, one a line; the longest that fits counts."},
	}
}

// listed are what stands in a field, one a line, or with commas between.
func listed(r *frame.Request, name string) *[]string {
	all := []string{}
	for part := range strings.FieldsFuncSeq(r.Raw(name), func(c rune) bool { return c == '\n' || c == ',' }) {
		if part = strings.TrimSpace(part); part != "" {
			all = append(all, part)
		}
	}
	return &all
}

// number reads a number that may be left out.
func number(r *frame.Request, name string) (float64, error) {
	text := r.Text(name)
	if text == "" {
		return 0, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= 0 && f <= 1e6) {
		return 0, frame.Invalid(name, "Use a number from 0 to 1,000,000, or leave it empty.")
	}
	return f, nil
}

// integer reads a whole number that may be left out.
func integer(r *frame.Request, name string) (int, error) {
	f, err := number(r, name)
	if err == nil && f != float64(int(f)) {
		err = frame.Invalid(name, "Use a whole number, or leave it empty.")
	}
	return int(f), err
}

// given reads the form of a trunk.
func given(r *frame.Request, name string) (apply.Trunk, error) {
	text := func(field string) *string {
		v := r.Text(field)
		return &v
	}
	yes := func(field string) *bool {
		v := r.Ticked(field)
		return &v
	}
	t := apply.Trunk{
		Name: name, Proxy: text("proxy"), Username: text("username"), CallerNumbers: listed(r, "caller_numbers"), Backups: listed(r, "backups"), Realm: text("realm"),
		Register: yes("register"), Codecs: listed(r, "codecs"), Encryption: text("encryption"), DTMF: text("dtmf"), AssertedIdentity: yes("asserted_identity"),
		Privacy: yes("privacy"), Diversion: text("diversion"), Provider: text("provider"), Limits: &apply.Limits{},
	}
	if p := media.Secret(r.Raw("password")); p != "" {
		t.Password = &p
	}
	var err error
	if t.Limits.CallsPerSecond, err = number(r, "calls_per_second"); err != nil {
		return t, err
	}
	if t.Limits.ConcurrentCalls, err = integer(r, "concurrent_calls"); err != nil {
		return t, err
	}
	if t.Headers, err = field.Pairs(r, "headers"); err != nil {
		return t, err
	}
	if t.Attest, err = field.Pairs(r, "attest"); err != nil {
		return t, err
	}
	rates, err := field.Pairs(r, "rates")
	if err != nil {
		return t, err
	}
	t.Rates = &map[string]float64{}
	for prefix, text := range *rates {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return t, frame.Invalid("rates", fmt.Sprintf("%s = %s: a cost is a number.", prefix, text))
		}
		(*t.Rates)[prefix] = rate
	}
	return t, nil
}
