package trunks_test

import (
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/media"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

var fullForm = []string{
	"name", "main", "proxy", "sip:127.0.0.1:5080;transport=udp", "backups", "sip:127.0.0.2:5080\nsip:127.0.0.3:5080", "provider", "Carrier", "username", "u", "password", "canary", "register", "on",
	"caller_numbers", "+12025550100\n+12025550101", "attest", "+12025550100 = A", "codecs", "g722, pcmu", "encryption", "srtp", "dtmf", "inband", "media_sources", "203.0.113.0/24\n198.51.100.7", "first_media_timeout_s", "60", "media_timeout_s", "90", "privacy", "on",
	"headers", "X-Customer = 7", "calls_per_second", "2.5", "concurrent_calls", "20", "rates", "1 = 0.012\n44 = 0.03",
}

func with(pairs ...string) []string { return append(append([]string{}, pairs...), fullForm...) }

// TestTrunkLifecycle checks that a trunk is created with all fields, changed without entering its password again,
// and deleted.
func TestTrunkLifecycle(t *testing.T) {
	h := dashtest.New(t, func(h *dashtest.Env) { h.Dashboard.TrunkStatus = func(media.Trunk) string { return "down" } })
	b := h.SignIn(t, "oscar")
	b.Follow("trunks/new", fullForm...)
	read := func() trunks.Trunk {
		t.Helper()
		got, err := trunks.Find(t.Context(), h.DB.Pool, h.Acme, "main")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	got := read()
	want := trunks.Trunk{
		ID: got.ID, OrgID: h.Acme, Name: "main", Proxy: "sip:127.0.0.1:5080;transport=udp", Username: "u", Password: "canary", CallerNumbers: []string{"+12025550100", "+12025550101"},
		CallsPerSecond: 2.5, ConcurrentCalls: 20, Settings: trunks.Settings{
			Backups: []string{"sip:127.0.0.2:5080", "sip:127.0.0.3:5080"}, Register: true, Codecs: []string{"g722", "pcmu"}, Encryption: "srtp", DTMF: "inband", Privacy: true,
			Headers: map[string]string{"X-Customer": "7"}, Attest: map[string]string{"+12025550100": "A"}, MediaSources: []string{"203.0.113.0/24", "198.51.100.7"}, FirstMediaTimeout: 60, MediaTimeout: 90, Provider: "Carrier", Rates: map[string]float64{"1": 0.012, "44": 0.03},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	at := "trunks/" + got.ID
	if page := b.Get(at + "/edit"); strings.Contains(page.Body, "canary") || !strings.Contains(page.Body, "1 = 0.012") || !strings.Contains(page.Text(), "cost in USD") {
		t.Errorf("%s", page.Body)
	}
	if page := b.Get(at); !strings.Contains(page.Text(), "Health down") || !strings.Contains(page.Text(), "+1…: 0.012 USD") || strings.Contains(page.Body, "canary") {
		t.Errorf("%s", page.Text())
	}
	if a := b.Post(at+"/edit", "proxy", "sip:127.0.0.9", "username", "u"); a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Body, `id="f-password-error"`) {
		t.Errorf("the password is sent to another server: %d %s", a.Status, a.Text())
	}
	b.Follow(at+"/edit", "proxy", "sip:127.0.0.9", "username", "u", "password", "canary-9")
	b.Follow(at+"/edit", "proxy", "sip:127.0.0.9", "username", "u", "caller_numbers", "+12025550100")
	if got = read(); got.Password != "canary-9" || got.Proxy != "sip:127.0.0.9" || len(got.CallerNumbers) != 1 || got.Settings.Register || len(got.Settings.Rates) != 0 {
		t.Errorf("%+v", got)
	}
	for field, bad := range map[string]string{"proxy": "nowhere", "caller_numbers": "none", "codecs": "mp3", "media_sources": "nowhere", "media_timeout_s": "3", "first_media_timeout_s": "soon", "rates": "1 = much", "headers": "X", "calls_per_second": "-1", "concurrent_calls": "1.5", "name": ""} {
		pairs := with()
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == field {
				pairs[i+1] = bad
			}
			if pairs[i] == "name" && field != "name" {
				pairs[i+1] = "second"
			}
		}
		if a := b.Post("trunks/new", pairs...); a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Body, `id="f-`+field+`-error"`) {
			t.Errorf("%s %q: %d %s", field, bad, a.Status, a.Text())
		}
	}
	b.Follow(at + "/delete")
	if all, err := trunks.List(t.Context(), h.DB.Pool, h.Acme); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if log := h.Text(t, "SELECT string_agg(a::text, ' ') FROM audit_log a"); strings.Contains(log, "canary") || !strings.Contains(log, "trunk.delete") {
		t.Errorf("the audit log has %s", log)
	}
}

// TestSubgroups creates, changes and deletes subgroups, also on a lent trunk until the loan ends.
func TestSubgroups(t *testing.T) {
	h := dashtest.New(t)
	ids := h.Furnish(t, "sales")
	h.AddOperator(t, "gus@example.com", h.Acme, operator.Owner)
	b := h.SignIn(t, "oscar")
	b.Follow("trunks/"+ids["trunks"]+"/subgroup", "name", "second", "agents", "sales", "allowed_destinations", "1\n44", "caller_numbers", "", "concurrent_calls", "3", "calls_per_minute", "9")
	route := func(org, name string) (got trunks.Route) {
		t.Helper()
		all, err := trunks.Routes(t.Context(), h.DB.Pool, org, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			if r.Name == name {
				got = r
			}
		}
		return got
	}
	s := route(h.Acme, "second")
	if s.ConcurrentCalls != 3 || len(s.Agents) != 1 || len(s.AllowedDestinations) != 2 {
		t.Errorf("%+v", s)
	}
	if a := b.Post("trunks/"+ids["trunks"]+"/subgroup", "name", "second", "concurrent_calls", "3", "calls_per_minute", "9"); !strings.Contains(a.Text(), "A subgroup with this name already exists.") {
		t.Errorf("duplicate name: %d", a.Status)
	}
	b.Follow("subgroups/"+s.ID+"/edit", "allowed_destinations", "7", "concurrent_calls", "4", "calls_per_minute", "9")
	if s = route(h.Acme, "second"); s.ConcurrentCalls != 4 || len(s.Agents) != 0 || s.AllowedDestinations[0] != "7" {
		t.Errorf("%+v", s)
	}
	b.Follow("subgroups/" + s.ID + "/delete")
	if s = route(h.Acme, "second"); s.ID != "" {
		t.Errorf("%+v", s)
	}
	gus := h.SignIn(t, "gus") // globex borrows the trunk
	if a := gus.Get("trunks"); !strings.Contains(a.Text(), "lent by acme") {
		t.Errorf("%s", a.Text())
	}
	if a := gus.Get("trunks/" + ids["trunks"]); a.Status != http.StatusNotFound {
		t.Errorf("a borrower sees the trunk: %d", a.Status)
	}
	gus.Follow("trunks/"+ids["trunks"]+"/subgroup", "name", "lent", "allowed_destinations", "1", "concurrent_calls", "3", "calls_per_minute", "9")
	if s = route(h.Globex, "lent"); s.Lender != "acme" || s.GrantID == "" {
		t.Errorf("%+v", s)
	}
	ada := h.SignIn(t, "ada")
	if a := b.Post("grants/" + ids["grants"] + "/end"); a.Status != http.StatusForbidden {
		t.Errorf("an operator ends a loan: %d", a.Status)
	}
	ada.Follow("grants/" + ids["grants"] + "/end")
	if s = route(h.Globex, "lent"); s.ID != "" {
		t.Errorf("after the end of the loan: %+v", s)
	}
	if a := ada.Post("trunks/"+ids["trunks"]+"/lend", "to", "globex"); a.Status == http.StatusSeeOther {
		t.Error("the trunk is lent to an organization that the lender does not belong to")
	}
	lend := "/dashboard/" + h.Acme + "/trunks/" + ids["trunks"]
	gus.Follow(lend+"/lend", "to", "globex", "concurrent_calls", "2") // is an owner of both organizations
	if all, err := trunks.ListGrants(t.Context(), h.DB.Pool, h.Acme); err != nil || len(all) != 1 || all[0].ConcurrentCalls != 2 {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestTestCall leads to the test call page of an agent that may use the trunk.
func TestTestCall(t *testing.T) {
	h := dashtest.New(t)
	ids := h.Furnish(t, "sales")
	b := h.SignIn(t, "oscar")
	at := "trunks/" + ids["trunks"] + "/call"
	if a := b.Get(at); !strings.Contains(a.Text(), "sales through sales") {
		t.Errorf("%d %s", a.Status, a.Text())
	}
	if a := b.Post(at, "by", "sub_1 agt_1"); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("an unknown subgroup: %d", a.Status)
	}
	if a := b.Follow(at, "by", ids["subgroups"]+" "+ids["agents"]); !strings.Contains(a.Text(), "Number to call") {
		t.Errorf("%d %s", a.Status, a.Text())
	}
	b.Follow("agents/" + ids["agents"] + "/unpublish")
	if a := b.Get(at); a.Status != http.StatusConflict || !strings.Contains(a.Text(), "with a published agent") {
		t.Errorf("without an agent: %d %s", a.Status, a.Text())
	}
}

// TestConcurrentSecretEdits checks that a concurrent change of a trunk's secret is detected and logged; neither page shows the secret.
func TestConcurrentSecretEdits(t *testing.T) {
	h := dashtest.New(t)
	ada, oscar := h.SignIn(t, "ada"), h.SignIn(t, "oscar")
	at := oscar.Follow("trunks/new", fullForm...)
	path := regexp.MustCompile(`trunks/trk_[^/"]+/edit`).FindString(at.Body)
	seen := func(page dashtest.Answer) string {
		m := regexp.MustCompile(`name="seen" value="([0-9a-f]{32})"`).FindStringSubmatch(page.Body)
		if m == nil {
			t.Fatalf("%d %s", page.Status, page.Text())
		}
		return m[1]
	}
	for key, value := range map[string]string{"password": "another canary", "headers": "X-Customer = another canary"} {
		form := append([]string{}, fullForm...)
		form[slices.Index(form, key)+1] = value
		first := seen(oscar.Get(path))
		ada.Follow(path, append(form, "seen", seen(ada.Get(path)))...)
		page := oscar.Post(path, with("seen", first, "password", "")...)
		if page.Status != http.StatusConflict || !strings.Contains(page.Text(), "someone else changed this") || key == "password" && strings.Contains(page.Body, "canary") {
			t.Errorf("%s: %d %s", key, page.Status, page.Text())
		}
		if key == "password" && !strings.Contains(page.Text(), "Their change is a secret") {
			t.Errorf("%s", page.Text())
		}
		if after := h.Text(t, "SELECT after::text FROM audit_log WHERE action = 'trunk.change' ORDER BY id DESC LIMIT 1"); !strings.Contains(after, key) || strings.Contains(after, "canary") {
			t.Errorf("%s: the audit log has %s", key, after)
		}
	}
}

// TestCarrierProfile checks that a profile fills what a new trunk leaves empty.
func TestCarrierProfile(t *testing.T) {
	h := dashtest.New(t)
	b := h.SignIn(t, "oscar")
	find := func(name string) trunks.Trunk {
		t.Helper()
		got, err := trunks.Find(t.Context(), h.DB.Pool, h.Acme, name)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	b.Follow("trunks/new", "name", "telnyx", "carrier", "telnyx", "username", "u", "password", "canary", "concurrent_calls", "30")
	if got := find("telnyx"); got.Proxy != "sip:sip.telnyx.com" || got.Settings.Realm != "sip.telnyx.com" || !got.Settings.AssertedIdentity || got.ConcurrentCalls != 30 || got.CallsPerSecond != 20 {
		t.Errorf("%+v", got)
	}
	b.Follow("trunks/new", "name", "twilio", "carrier", "twilio-secure", "proxy", "sip:acme.pstn.twilio.com;transport=tls", "codecs", "pcma")
	if got := find("twilio"); got.Settings.Encryption != "srtp" || got.Settings.NumberFormat != "e164" || !slices.Equal(got.Settings.Codecs, []string{"pcma"}) || got.CallsPerSecond != 1 {
		t.Errorf("%+v", got)
	}
	b.Follow("trunks/"+find("twilio").ID+"/edit", "proxy", "sip:acme.pstn.twilio.com;transport=tls")
	if got := find("twilio"); got.Settings.Encryption != "" || got.Settings.Realm != "" {
		t.Errorf("a profile fills an existing trunk: %+v", got)
	}
	for field, pairs := range map[string][]string{
		"proxy":   {"name", "third", "carrier", "twilio"},
		"carrier": {"name", "third", "carrier", "twillio", "proxy", "sip:192.0.2.7"},
	} {
		if a := b.Post("trunks/new", pairs...); a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Body, `id="f-`+field+`-error"`) {
			t.Errorf("%s: %d %s", field, a.Status, a.Text())
		}
	}
}
