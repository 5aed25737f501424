package access_test

import (
	"bytes"
	"encoding/base64"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/media"
)

var (
	keyField  = regexp.MustCompile(`name="key" value="([A-Z2-7]{32})"`)
	challenge = regexp.MustCompile(`name="(?:sign-in\.)?challenge" value="([^"]+)"`)
	recovery  = regexp.MustCompile(`[a-z2-7]{4}(?:-[a-z2-7]{4}){3}`)
)

func codeAt(t *testing.T, key string, steps int) string {
	t.Helper()
	c, err := operator.CurrentCode(media.Secret(key), time.Now().Add(time.Duration(steps)*30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// enable turns on codes with the code of the previous step, so that later ones remain.
func enable(t *testing.T, b *dashtest.Browser) (key string, recoveryCodes []string) {
	t.Helper()
	key = keyField.FindStringSubmatch(b.Get("account/codes").Body)[1]
	a := b.Post("account/codes", "key", key, "code", codeAt(t, key, -1), "current_password", string(dashtest.Password))
	recoveryCodes = recovery.FindAllString(a.Body, -1)
	if a.Status != http.StatusOK || len(recoveryCodes) != 10 {
		t.Fatalf("%d %s", a.Status, a.Text())
	}
	return key, recoveryCodes
}

func TestOneTimeCodes(t *testing.T) {
	h := dashtest.New(t)
	ids := h.Furnish(t, "sales")
	b, elsewhere := h.SignIn(t, "ada"), h.SignIn(t, "ada")
	page := b.Get("account/codes")
	key := keyField.FindStringSubmatch(page.Body)[1]
	picture := regexp.MustCompile(`src="data:image/png;base64,([^"]+)"`).FindStringSubmatch(page.Body)
	raw, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(picture[1], "&#43;", "+"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = png.Decode(bytes.NewReader(raw)); err != nil {
		t.Errorf("the QR code: %v", err)
	}
	for name, form := range map[string][]string{
		"wrong password": {"key", key, "code", codeAt(t, key, 0), "current_password", "x"},
		"wrong code":     {"key", key, "code", "000000", "current_password", string(dashtest.Password)},
		"another key":    {"key", "", "code", codeAt(t, key, 0), "current_password", string(dashtest.Password)},
	} {
		if a := b.Post("account/codes", form...); a.Status != http.StatusUnprocessableEntity || form[1] != "" && !strings.Contains(a.Body, key) {
			t.Errorf("%s: %d %s", name, a.Status, a.Text())
		}
	}
	key, codes := enable(t, b)
	if !signedIn(b) || signedIn(elsewhere) || !strings.Contains(b.Get("account").Text(), "10 recovery codes are left") {
		t.Error("sessions after the codes are on")
	}
	n := h.NewBrowser(t)
	in := func(form ...string) dashtest.Answer { return n.Post("/dashboard/sign-in", form...) }
	a := in("email", "ada@example.com", "password", string(dashtest.Password), "next", "/dashboard/"+h.Acme+"/keys")
	asked := challenge.FindStringSubmatch(a.Body)
	if a.Status != http.StatusOK || asked == nil || n.Cookie() != nil || !strings.Contains(a.Body, `autocomplete="one-time-code"`) {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for _, bad := range []string{"", "000000", codeAt(t, key, -1)} {
		if a = in("challenge", asked[1], "code", bad); a.Status != http.StatusUnprocessableEntity || n.Cookie() != nil || !challenge.MatchString(a.Body) {
			t.Errorf("%q: %d %s", bad, a.Status, a.Text())
		}
	}
	if a = in("challenge", "x"+asked[1], "code", codeAt(t, key, 0)); a.Status != http.StatusUnprocessableEntity || challenge.MatchString(a.Body) {
		t.Errorf("another challenge: %d %s", a.Status, a.Text())
	}
	used := codeAt(t, key, 0)
	if a = in("challenge", asked[1], "code", used, "next", "/dashboard/"+h.Acme+"/keys"); a.Status != http.StatusSeeOther || a.Location() != "/dashboard/"+h.Acme+"/keys" || !signedIn(n) {
		t.Fatalf("%d %s", a.Status, a.Text())
	}
	// A form that was sent without a session asks for both, and keeps its fields.
	h.Exec(t, "DELETE FROM operator_sessions")
	at := "agents/" + ids["agents"] + "/edit"
	a = n.Post(at, "greeting", "kept words", "sign-in.email", "ada@example.com", "sign-in.password", string(dashtest.Password))
	if asked = challenge.FindStringSubmatch(a.Body); asked == nil || !strings.Contains(a.Body, "kept words") {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if a = n.Post(at, "greeting", "kept words", "sign-in.email", "ada@example.com", "sign-in.challenge", asked[1], "sign-in.code", used); a.Status != http.StatusUnprocessableEntity || signedIn(n) {
		t.Errorf("a used code: %d %s", a.Status, a.Text())
	}
	if a = n.Post(at, "greeting", "kept words", "sign-in.email", "ada@example.com", "sign-in.challenge", asked[1], "sign-in.code", codes[0]); a.Status != http.StatusOK || !strings.Contains(a.Text(), "nothing was done yet") || !signedIn(n) {
		t.Errorf("%d %s", a.Status, a.Text())
	}
	for _, form := range [][]string{
		{"current_password", "x", "code", codeAt(t, key, 1)},
		{"current_password", string(dashtest.Password), "code", used},
		{"current_password", string(dashtest.Password), "code", codes[0]},
		{"current_password", string(dashtest.Password)},
	} {
		if a = n.Post("account/codes", form...); a.Status != http.StatusUnprocessableEntity {
			t.Errorf("%v turns codes off: %d %s", form, a.Status, a.Text())
		}
	}
	if a = n.Follow("account/codes", "current_password", string(dashtest.Password), "code", codes[1]); !strings.Contains(a.Text(), "One-time codes are off") || h.Count(t, "SELECT count(*) FROM operator_recovery_codes") != 0 {
		t.Errorf("%s", a.Text())
	}
	if got := h.Text(t, "SELECT string_agg(action, ' ' ORDER BY id) || string_agg(a::text, ' ') FROM audit_log a WHERE who = 'ada@example.com' AND action LIKE 'operator.%'"); !strings.HasPrefix(got, "operator.codes operator.recovery operator.codes") || strings.Contains(got, key) {
		t.Errorf("the audit log has %s", got)
	}
	h.SignIn(t, "ada")
}

// TestResetCodes checks who resets the codes of whom: owners of all organizations of an operator, and not of themselves.
func TestResetCodes(t *testing.T) {
	h := dashtest.New(t)
	ada, vera, gus := h.SignIn(t, "ada"), h.SignIn(t, "vera"), h.SignIn(t, "gus")
	id := func(email string) string {
		return h.Text(t, "SELECT id FROM operators WHERE email = $1", email+"@example.com")
	}
	on := func(email string) bool {
		return h.Count(t, "SELECT count(*) FROM operators WHERE id = $1 AND totp_secret <> ''", id(email)) == 1
	}
	for _, b := range []*dashtest.Browser{ada, vera, gus} {
		enable(t, b)
	}
	// The owner of acme adds the owner of globex, and then tries to weaken the account.
	h.AddOperator(t, "gus@example.com", h.Acme, operator.Viewer)
	for _, email := range []string{"gus", "ada"} {
		if a := ada.Post("operators/" + id(email) + "/codes"); a.Status != http.StatusUnprocessableEntity || !on(email) {
			t.Errorf("%s: %d %s", email, a.Status, a.Text())
		}
	}
	if a := vera.Post("operators/" + id("ada") + "/codes"); a.Status != http.StatusForbidden || !on("ada") {
		t.Errorf("a viewer: %d", a.Status)
	}
	if a := ada.Follow("operators/" + id("vera") + "/codes"); !strings.Contains(a.Text(), "Codes reset") || on("vera") || signedIn(vera) {
		t.Errorf("%s", a.Text())
	}
	h.SignIn(t, "vera")
	if n := h.Count(t, "SELECT count(*) FROM audit_log WHERE action = 'operator.codes' AND object = $1", id("vera")); n != 2 {
		t.Errorf("%d entries", n)
	}
}

// TestCodesAreRequired checks that without codes no other page is served.
func TestCodesAreRequired(t *testing.T) {
	h := dashtest.New(t, func(h *dashtest.Env) { h.Dashboard.RequireCodes = true })
	b := h.SignIn(t, "ada")
	for _, path := range []string{"agents", "keys", "account", "live", "operators"} {
		if a := b.Get(path); a.Status != http.StatusSeeOther || !strings.HasSuffix(a.Location(), "/account/codes") {
			t.Errorf("%s: %d %s", path, a.Status, a.Location())
		}
	}
	if a := b.Post("keys/new", "name", "x"); a.Status != http.StatusSeeOther || h.Count(t, "SELECT count(*) FROM api_keys WHERE name = 'x'") != 0 {
		t.Errorf("%d", a.Status)
	}
	enable(t, b)
	if a := b.Get("keys"); a.Status != http.StatusOK {
		t.Errorf("%d", a.Status)
	}
}

// TestCodesInBrowser turns on codes and signs in with one by keyboard alone, without a fault of the page.
func TestCodesInBrowser(t *testing.T) {
	h := dashtest.New(t)
	b := h.Chrome(t)
	shot := func(name string) {
		dir := os.Getenv("PARLEYTEST_PICTURES")
		for _, theme := range []string{"light", "dark"} {
			if dir == "" {
				break
			}
			b.SetViewport(theme, 1280)
			if err := os.WriteFile(filepath.Join(dir, "codes-"+name+"-"+theme+".png"), b.Picture(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if faults := b.Faults(); len(faults) > 0 {
			t.Errorf("%s: %v", name, faults)
		}
	}
	b.SignIn("ada")
	b.Go("account/codes")
	if !dashtest.Read[bool](b, `document.querySelector(".qr").complete && document.querySelector(".qr").naturalWidth > 100`) {
		t.Error("the QR code is not shown")
	}
	shot("enroll")
	key := dashtest.Read[string](b, `document.querySelector("[name=key]").value`)
	b.Fill("#f-code", codeAt(t, key, -1))
	b.Fill("#f-current_password", string(dashtest.Password)+"\r")
	b.Until(`document.querySelector(".codes")`)
	shot("recovery")
	b.Go("account")
	shot("account")
	b.Go("operators")
	shot("operators")
	b.Press("Sign out")
	b.Fill("#email", "ada@example.com")
	b.Fill("#password", string(dashtest.Password)+"\r")
	b.Until(`document.activeElement.id === "code"`)
	shot("sign-in")
	b.Fill("#code", "000000\r")
	b.Until(`document.querySelector("[role=alert]")`)
	shot("refused")
	b.Fill("#code", codeAt(t, key, 0)+"\r")
	b.Until(`location.pathname.startsWith("/dashboard/org_")`)
	b.Go("account/codes")
	shot("off")
}
