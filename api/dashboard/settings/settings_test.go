package settings_test

import (
	"archive/zip"
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// form is the settings form, with some fields replaced.
func form(pairs ...string) []string {
	fields := map[string]string{
		"timezone": "America/Chicago", "calling_window.start": "10:00", "calling_window.end": "18:30", "frequency_caps.enabled": "on", "frequency_caps.daily": "2",
		"frequency_caps.rolling_7d": "", "individual_dnc": "off", "disclosures.enabled": "off", "disclosures.agent": "", "disclosures.organization": "Acme",
		"limits.daily_calls": "500", "limits.daily_minutes": "", "limits.daily_cost": "12.5", "limits.monthly_cost": "300", "retention.recordings_days": "30", "retention.transcripts_days": "", "retention.calls_days": "",
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		fields[pairs[i]] = pairs[i+1]
	}
	all := []string{"calling_window.days", "0", "calling_window.days", "4"}
	for k, v := range fields {
		all = append(all, k, v)
	}
	return all
}

// TestSettings checks that saved settings apply to campaigns and are shown again.
func TestSettings(t *testing.T) {
	h := dashtest.New(t)
	b := h.SignIn(t, "ada")
	b.Follow("settings/edit", form()...)
	o, err := (&store.Store{}).Organization(t.Context(), h.DB.Pool, h.Acme)
	if err != nil || o.Zone != "America/Chicago" || *o.Caps.Daily != 2 || o.Caps.Rolling7d != nil || !*o.Caps.Enabled || o.Window[0].From != 10*60 || o.Window[4].To != 18*60+30 || o.Window[1].To != 0 {
		t.Errorf("%+v, %v", o, err)
	}
	c, err := apply.Current(t.Context(), h.DB.Pool, h.Acme)
	if err != nil || c.Limits.DailyCost != 12.5 || c.Limits.MonthlyCost != 300 || c.Retention.Recordings != 30 || *c.IndividualDNC != "off" || *c.Disclosures.Enabled || c.Disclosures.Organization != "Acme" {
		t.Errorf("%+v, %v", c, err)
	}
	b.Follow("settings/edit", form("calling_window.start", "00:00", "calling_window.end", "00:00")...) // all day
	if o, err = (&store.Store{}).Organization(t.Context(), h.DB.Pool, h.Acme); err != nil || o.Window[0] != market.Always()[0] {
		t.Errorf("all day is %v, %v", o.Window[0], err)
	}
	if page := b.Get("settings/edit").Body; !strings.Contains(page, `name="calling_window.end" value="00:00"`) && !strings.Contains(page, `value="00:00"`) {
		t.Error("the end of the day is not shown")
	}
	b.Follow("settings/edit", form()...)
	text := b.Get("settings").Text()
	for _, want := range []string{"America/Chicago", "Mon Fri", "10:00 to 18:30", "30 days", "not screened", "12.50 USD", "300.00 USD"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	b.Follow("settings/edit", form()...) // saving again changes nothing
	if n := h.Count(t, "SELECT count(*) FROM audit_log WHERE action = 'organization.settings'"); n != 3 {
		t.Errorf("%d entries", n)
	}
	for field, bad := range map[string]string{
		"timezone": "EST", "calling_window.start": "19:00", "frequency_caps.daily": "0", "limits.daily_cost": "much", "limits.daily_calls": "-1", "retention.recordings_days": "3", "individual_dnc": "maybe",
	} {
		if a := b.Post("settings/edit", form(field, bad)...); a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Body, `class="error"`) && !strings.Contains(a.Body, `class="refused"`) {
			t.Errorf("%s %q: %d %s", field, bad, a.Status, a.Text())
		}
	}
	if a := h.SignIn(t, "oscar").Post("settings/edit", form()...); a.Status != http.StatusForbidden {
		t.Errorf("an operator changes the settings: %d", a.Status)
	}
}

// TestMarketRules checks that an owner chooses available rules; other organizations' names are hidden, and only the root organization
// installs rules.
func TestMarketRules(t *testing.T) {
	h := dashtest.New(t)
	b := h.SignIn(t, "ada")
	b.Follow("market/use", "rules", "us")
	if o, err := apikeys.ReadOrganization(t.Context(), h.DB.Pool, h.Acme); err != nil || o.Market != "us" || o.MarketVersion != "" {
		t.Errorf("%+v, %v", o, err)
	}
	if a := b.Post("market/use", "rules", "us 9999"); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("unknown rules: %d", a.Status)
	}
	if a := h.SignIn(t, "gus").Get("market"); strings.Contains(a.Body, "acme") || !strings.Contains(a.Text(), "1 organization") || strings.Contains(a.Text(), "0 organizations") {
		t.Errorf("%s", a.Text())
	}
	for market, help := range map[string]string{"us": "This market ignores the window", "kz": "Campaigns call within this window"} {
		b.Follow("market/use", "rules", market)
		if text := b.Get("settings/edit").Text(); !strings.Contains(text, help) {
			t.Errorf("no help for %s: %s", market, text)
		}
	}
	if a := b.Get("market/install"); a.Status != http.StatusNotFound {
		t.Errorf("an organization other than root installs rules: %d", a.Status)
	}
}

// TestInstallRules checks that an owner of the root organization uploads rules, and another organization may select them; an invalid
// zip file is rejected.
func TestInstallRules(t *testing.T) {
	h := dashtest.New(t, func(h *dashtest.Env) { h.Dashboard.Root = "acme" })
	ada, gus := h.SignIn(t, "ada"), h.SignIn(t, "gus")
	var zipped bytes.Buffer
	w := zip.NewWriter(&zipped)
	for _, name := range []string{"package.yaml", "areacodes.csv", "windows.csv", "holidays.csv", "caps.csv"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "campaigns", "market", "us", name))
		if err != nil {
			t.Fatal(err)
		}
		f, err := w.Create(name)
		if err == nil {
			_, err = f.Write([]byte(strings.Replace(string(text), "version: us-", "version: us-custom-", 1)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"": "", "rules.zip": "PK invalid", "rules.txt": "version: 1"} {
		if a := ada.Upload("market/install", name, text); a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Body, `id="f-file-error"`) {
			t.Errorf("%q: %d %s", name, a.Status, a.Text())
		}
	}
	if a := gus.Upload("market/install", "rules.zip", zipped.String()); a.Status != http.StatusNotFound {
		t.Errorf("from another organization: %d %s", a.Status, a.Text())
	}
	a := ada.Upload("market/install", "rules.zip", zipped.String())
	if a.Status != http.StatusSeeOther || !strings.Contains(ada.Get(a.Location()).Text(), "installed. Organizations can choose it now.") {
		t.Fatalf("%d %s", a.Status, a.Text())
	}
	version := regexp.MustCompile(`value="(us us-custom-[^"]+)"`).FindStringSubmatch(gus.Get("market/use").Body)
	if version == nil {
		t.Fatal("the installed rules cannot be chosen")
	}
	gus.Follow("market/use", "rules", version[1])
	if o, err := apikeys.ReadOrganization(t.Context(), h.DB.Pool, h.Globex); err != nil || "us "+o.MarketVersion != version[1] {
		t.Errorf("%+v, %v", o, err)
	}
	if n := h.Count(t, "SELECT count(*) FROM audit_log WHERE action = 'market.install'"); n != 1 {
		t.Errorf("%d entries", n)
	}
}
