package apply_test

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/trunks"
)

// TestCarrierProfiles checks each profile: its settings are valid, and each key and each code has a source.
func TestCarrierProfiles(t *testing.T) {
	all, err := apply.AllCarriers()
	if err != nil {
		t.Fatal(err)
	}
	if names := all.Names(); !slices.Equal(names, []string{"asterisk", "freeswitch", "telnyx", "twilio", "twilio-secure", "zadarma"}) {
		t.Errorf("the profiles are %q", names)
	}
	isSource := func(text string) bool {
		u, err := url.Parse(text)
		return err == nil && u.Scheme == "https" && u.Host != ""
	}
	for _, c := range all {
		keys, err := c.Settings()
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if _, own := keys["proxy"]; own == (c.Proxy != "") {
			t.Errorf("%s: a profile has a proxy, or says what to enter", c.Name)
		}
		for key := range keys {
			if !slices.ContainsFunc(c.Facts, func(f apply.Fact) bool { return f.Key == key }) {
				t.Errorf("%s: no source for %s", c.Name, key)
			}
		}
		for _, f := range c.Facts {
			if !isSource(f.Source) || f.Text == "" {
				t.Errorf("%s: %s has the source %q", c.Name, f.Key, f.Source)
			}
		}
		for _, code := range c.Codes {
			if slices.Contains(code.Reasons, "") || !isSource(code.Source) || code.Means == "" || code.Status < 300 {
				t.Errorf("%s: code %+v", c.Name, code)
			}
		}
		if !regexp.MustCompile(`^20\d\d-\d\d-\d\d$`).MatchString(c.Checked) || len(c.Setup) == 0 {
			t.Errorf("%s: checked on %q, %d steps", c.Name, c.Checked, len(c.Setup))
		}
	}
}

func TestExplain(t *testing.T) {
	all, err := apply.AllCarriers()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		proxy  string
		status int
		reason string
		want   string
	}{
		{"sip:acme.pstn.twilio.com", 403, "No International Authorization", "Voice Geo Permissions"},
		{"sip:acme.pstn.FRANKFURT.twilio.com:5061;transport=tls", 403, "Forbidden", "access control list"},
		{"sip:acme.pstn.twilio.com", 503, "Trunk CPS limit exceeded", "calls per second"},
		{"sip:acme.pstn.twilio.com", 486, "Busy Here", ""},
		{"sip:sip.telnyx.com", 403, "User channel limit exceeded D1", "concurrent calls"},
		{"sip:sip.telnyx.com", 403, "Connection is disabled D12", "disabled"},
		{"sip:acme.pstn.twilio.com", 488, "secure media required", "twilio-secure"},
		{"sip:sip.telnyx.eu;transport=tcp", 403, "Caller Origination Number is Invalid D35", "use E.164"},
		{"sip:sip.telnyx.com", 403, "Forbidden", ""},
		{"sip:[2001:db8::1]:5060", 403, "No International Authorization", ""},
		{"sip:evilpstn.twilio.com.example", 403, "No International Authorization", ""},
	} {
		got := all.Explain(row.proxy, row.status, row.reason)
		if !strings.Contains(got, row.want) || (got == "") != (row.want == "") {
			t.Errorf("%s %d %s: %q, want %q", row.proxy, row.status, row.reason, got, row.want)
		}
	}
}

const twilioFile = `
organizations:
- name: acme
  agents: [{name: sales, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}]
  trunks:
  - name: main
    carrier: twilio
    proxy: "sip:acme.pstn.twilio.com"
    username: acme
    password: canary-trunk
    media_sources: [198.51.100.0/24]
    asserted_identity: true
    caller_numbers: ["+12025550100"]
    subgroups: [{name: default, allowed_destinations: [US], agents: [sales]}]
`

// TestCarrierIsApplied checks that a profile fills what the file lacks, that only the resulting settings are stored, and
// that an export leads to the same database.
func TestCarrierIsApplied(t *testing.T) {
	d := dbtest.New(t)
	lines, err := plan(t, d, twilioFile, apply.Options{})
	if err != nil || len(lines) == 0 {
		t.Fatalf("planned: %v, %v", lines, err)
	}
	put(t, d, twilioFile, apply.Options{})
	all, err := trunks.All(t.Context(), d.Pool)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d trunks, %v", len(all), err)
	}
	m, s := all[0].MediaTrunk(), all[0].Settings
	if s.Provider != "Twilio" || m.Realm != "sip.twilio.com" || !m.Plus || len(m.Sources) != 8 || all[0].CallsPerSecond != 1 {
		t.Errorf("the profile is not applied: %+v", all[0])
	}
	if !slices.Equal(s.MediaSources, []string{"198.51.100.0/24"}) || !s.AssertedIdentity {
		t.Errorf("the file does not win: %+v", s)
	}
	before := dump(t, d)
	exported, err := apply.Read(t.Context(), d.Pool)
	if err != nil {
		t.Fatal(err)
	}
	var file strings.Builder
	if err = exported.Write(&file); err != nil || strings.Contains(file.String(), "carrier:") {
		t.Errorf("%v\n%s", err, &file)
	}
	put(t, d, file.String(), apply.Options{})
	if after := dump(t, d); after != before {
		t.Errorf("the export changed\n%s\nto\n%s", before, after)
	}
	// Another proxy must not get the stored password, also if it comes from a profile.
	moved := strings.NewReplacer("carrier: twilio", "carrier: telnyx", `    proxy: "sip:acme.pstn.twilio.com"`+"\n", "", "canary-trunk", `"[secret]"`).Replace(twilioFile)
	if _, err = plan(t, d, moved, apply.Options{}); err == nil || !strings.Contains(err.Error(), "no secret is stored") {
		t.Errorf("the password for the proxy of a profile: %v", err)
	}
	lines, err = plan(t, d, strings.Replace(twilioFile, "carrier: twilio\n", "carrier: telnyx\n", 1), apply.Options{})
	if err != nil || !slices.Contains(lines, `~ organizations[acme].trunks[main].realm: "sip.twilio.com" → "sip.telnyx.com"`) {
		t.Errorf("another profile: %q, %v", lines, err)
	}
}

// TestCarrierLimits checks that a limit of the file replaces that of the profile, and leaves the other one.
func TestCarrierLimits(t *testing.T) {
	for _, row := range []struct {
		keys       string
		perSecond  float64
		concurrent int
	}{
		{"carrier: telnyx", 20, 2},
		{"carrier: telnyx, limits: {}", 20, 2},
		{"carrier: telnyx, limits: {concurrent_calls: 10}", 20, 10},
		{"carrier: telnyx, limits: {calls_per_second: 5}", 5, 2},
		{"carrier: telnyx, limits: {concurrent_calls: 0}", 20, 0},
		{"carrier: telnyx, limits: {calls_per_second: 5, concurrent_calls: 10}", 5, 10},
		{"carrier: twilio, proxy: 'sip:acme.pstn.twilio.com', limits: {concurrent_calls: 10}", 1, 10},
		{"proxy: 'sip:sip.example.com', limits: {concurrent_calls: 10}", 0, 10},
	} {
		s, err := apply.Parse(strings.NewReader("organizations: [{name: acme, trunks: [{name: main, " + row.keys + "}]}]"))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Organizations[0].Trunks[0].Stored(); got.CallsPerSecond != row.perSecond || got.ConcurrentCalls != row.concurrent {
			t.Errorf("%s: %v calls per second, %d concurrent calls; want %v, %d", row.keys, got.CallsPerSecond, got.ConcurrentCalls, row.perSecond, row.concurrent)
		}
	}
}

func TestCarrierErrors(t *testing.T) {
	for carrier, want := range map[string]string{
		"twillio": `organizations[0].trunks[0].carrier: "twillio" (did you mean twilio?): use asterisk, freeswitch, telnyx`,
		"Telnyx":  "(did you mean telnyx?)",
		"acme":    `carrier: "acme": use asterisk`,
	} {
		_, err := apply.Parse(strings.NewReader(strings.Replace(twilioFile, "carrier: twilio", "carrier: "+carrier, 1)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", carrier, err, want)
		}
	}
	d := dbtest.New(t)
	_, err := plan(t, d, strings.Replace(twilioFile, `    proxy: "sip:acme.pstn.twilio.com"`+"\n", "", 1), apply.Options{})
	if err == nil || !strings.Contains(err.Error(), "carrier twilio needs sip:NAME.pstn.twilio.com") {
		t.Errorf("without a proxy: %v", err)
	}
	var warned []string
	_, err = plan(t, d, strings.Replace(twilioFile, "acme.pstn.twilio.com", "acme.pstn.london.twilio.com", 1), apply.Options{Warn: func(text string) { warned = append(warned, text) }})
	if err != nil || len(warned) != 1 || !strings.Contains(warned[0], "acme.pstn.london.twilio.com is no host of Twilio") {
		t.Errorf("a host of no region: %q, %v", warned, err)
	}
}
