package access_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/operator"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// TestSignIn checks that only the right password signs in, the next page is the requested one, and signing out ends the session;
// the cookie is not readable by scripts.
func TestSignIn(t *testing.T) {
	h := dashtest.New(t)
	b := h.NewBrowser(t)
	if a := b.Post("/dashboard/sign-in", "email", "ada@example.com", "password", "something else"); a.Status != http.StatusUnprocessableEntity || b.Cookie() != nil || !strings.Contains(a.Body, `value="ada@example.com"`) {
		t.Errorf("%d %s", a.Status, a.Text())
	}
	a := b.Get("audit?who=x")
	next := a.Location()[strings.Index(a.Location(), "next=")+5:]
	if next != "%2Fdashboard%2F"+h.Acme+"%2Faudit%3Fwho%3Dx" {
		t.Errorf("next is %s", next)
	}
	for to, want := range map[string]string{
		"/dashboard/" + h.Acme + "/audit?who=x": "/dashboard/" + h.Acme + "/audit?who=x", "": "/dashboard",
		"https://evil.example/dashboard/": "/dashboard", "//evil.example/dashboard/x": "/dashboard", `/dashboard/\\evil.example`: "/dashboard", "/v1/calls": "/dashboard",
		"/dashboard/sign-out": "/dashboard", "/dashboard/..//evil.example": "/dashboard", "/dashboard/%2e%2e/v1": "/dashboard", "/dashboard//evil.example": "/dashboard",
	} {
		a = b.Post("/dashboard/sign-in", "email", "ada@example.com", "password", string(dashtest.Password), "next", to)
		if a.Status != http.StatusSeeOther || a.Location() != want {
			t.Errorf("next %q: %d %s", to, a.Status, a.Location())
		}
		if set := a.Header.Get("Set-Cookie"); !strings.Contains(set, "HttpOnly") || !strings.Contains(set, "SameSite=Lax") || strings.Contains(set, "Secure") {
			t.Errorf("the cookie is %s", set)
		}
		if out := b.Post("/dashboard/sign-out"); out.Location() != "/dashboard/sign-in" || b.Get("audit").Status != http.StatusSeeOther {
			t.Errorf("signed out: %d", out.Status)
		}
	}
}

// TestSecureCookie checks that over https the cookie is Secure and bound to the host.
func TestSecureCookie(t *testing.T) {
	h := dashtest.New(t, func(h *dashtest.Env) { h.Dashboard.PublicURL = "https://parley.example" })
	a := h.NewBrowser(t).Post("/dashboard/sign-in", "email", "ada@example.com", "password", string(dashtest.Password))
	if set := a.Header.Get("Set-Cookie"); !strings.HasPrefix(set, "__Host-parley=") || !strings.Contains(set, "Secure") || !strings.Contains(set, "Path=/") {
		t.Errorf("the cookie is %s", set)
	}
}

// TestKnownBrowser checks that a known browser can sign in although its network has too many failed attempts.
func TestKnownBrowser(t *testing.T) {
	h := dashtest.New(t)
	ada, other := h.SignIn(t, "ada"), h.NewBrowser(t)
	ada.Post("/dashboard/sign-out")
	sign := func(b *dashtest.Browser, password string) dashtest.Answer {
		return b.Post("/dashboard/sign-in", "email", "ada@example.com", "password", password)
	}
	for range 10 {
		if a := sign(other, "wrong password"); a.Status != http.StatusUnprocessableEntity {
			t.Fatalf("%d %s", a.Status, a.Text())
		}
	}
	if a := sign(other, string(dashtest.Password)); a.Status != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
		t.Errorf("the eleventh guess: %d %s", a.Status, a.Text())
	}
	if a := sign(ada, string(dashtest.Password)); a.Status != http.StatusSeeOther {
		t.Errorf("the owner: %d %s", a.Status, a.Text())
	}
}

// TestPasswordGuesses checks that a stolen session cannot guess the password.
func TestPasswordGuesses(t *testing.T) {
	h := dashtest.New(t)
	b := h.SignIn(t, "vera")
	guess := func(before string) int {
		return b.Post("account", "current_password", before, "password", "another good one", "repeat_password", "another good one").Status
	}
	for range 10 {
		if got := guess("x"); got != http.StatusUnprocessableEntity {
			t.Fatal(got)
		}
	}
	if got := guess(string(dashtest.Password)); got != http.StatusTooManyRequests {
		t.Errorf("the eleventh guess: %d", got)
	}
}

// TestOperators checks that an owner adds an operator, who signs in with the displayed password, gets another role, and is removed;
// the last owner stays.
func TestOperators(t *testing.T) {
	h := dashtest.New(t)
	ada := h.SignIn(t, "ada")
	a := ada.Post("operators/new", "email", "Bob@Example.com", "role", "viewer")
	password := regexp.MustCompile(`value="([A-Z2-7]{26})"`).FindStringSubmatch(a.Body)
	if password == nil {
		t.Fatalf("%d %s", a.Status, a.Text())
	}
	bob := h.NewBrowser(t)
	if a = bob.Post("/dashboard/sign-in", "email", "bob@example.com", "password", password[1]); a.Status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.Status, a.Text())
	}
	if a = bob.Get("operators"); a.Status != http.StatusForbidden {
		t.Errorf("a viewer sees the operators: %d", a.Status)
	}
	if a = ada.Post("operators/new", "email", "bob@example.com", "role", "owner"); !strings.Contains(a.Text(), "already an operator of this organization") {
		t.Errorf("duplicate: %d %s", a.Status, a.Text())
	}
	if a = ada.Post("operators/new", "email", "gus@example.com", "role", "viewer"); !strings.Contains(a.Text(), "that you do not own") {
		t.Errorf("an account of another organization: %d %s", a.Status, a.Text())
	}
	h.AddOperator(t, "ada@example.com", h.Globex, operator.Owner) // now ada owns all organizations of the account
	if a = ada.Follow("operators/new", "email", "gus@example.com", "role", "viewer"); !strings.Contains(a.Text(), "their existing password") {
		t.Errorf("an existing account: %s", a.Text())
	}
	m, err := operator.Find(t.Context(), h.DB.Pool, h.Acme, "bob@example.com")
	if err != nil {
		t.Fatal(err)
	}
	ada.Follow("operators/"+m.ID+"/role", "role", "owner")
	if a = bob.Get("operators"); a.Status != http.StatusOK {
		t.Errorf("an owner sees no operators: %d", a.Status)
	}
	me, err := operator.Find(t.Context(), h.DB.Pool, h.Acme, "ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	bob.Follow("operators/" + me.ID + "/remove")
	if a = ada.Get("keys"); a.Status == http.StatusOK {
		t.Errorf("a removed operator: %d", a.Status)
	}
	if a = bob.Post("operators/"+m.ID+"/remove", ""); a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Text(), "last owner") {
		t.Errorf("the last owner: %d %s", a.Status, a.Text())
	}
	if a = bob.Get("audit?action=operator."); strings.Count(a.Body, "<code>operator.") != 4 || strings.Contains(a.Body, password[1]) {
		t.Errorf("the audit log has %s", a.Text())
	}
}

// TestSignedOutForm checks that a form sent without a session leads to the sign-in and then back with its values; nothing is
// saved before it is sent again.
func TestSignedOutForm(t *testing.T) {
	h := dashtest.New(t)
	ids := h.Furnish(t, "sales")
	b := h.SignIn(t, "ada")
	out := func() {
		h.Exec(t, "DELETE FROM operator_sessions")
	}
	out()
	at := "agents/" + ids["agents"] + "/edit"
	typed := []string{"greeting", "Hi \"<there>\"", "prompt", "Long text.", "speech.asr.provider", "fake", "speech.llm.provider", "fake", "speech.tts.provider", "fake", "voicemail", "hangup"}
	a := b.Post(at, typed...)
	if a.Status != http.StatusUnauthorized || !strings.Contains(a.Body, `value="Hi &#34;&lt;there&gt;&#34;"`) {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if a = b.Post(at, append(typed, "sign-in.email", "ada@example.com", "sign-in.password", "something else")...); a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Body, "Long text.") || strings.Contains(a.Body, "something else") {
		t.Errorf("wrong password: %d %s", a.Status, a.Text())
	}
	if a = b.Post(at, append(typed, "sign-in.email", "gus@example.com", "sign-in.password", string(dashtest.Password))...); a.Status != http.StatusNotFound {
		t.Errorf("another operator: %d %s", a.Status, a.Text())
	}
	out()
	a = b.Post(at, append(typed, "sign-in.email", "ada@example.com", "sign-in.password", string(dashtest.Password))...)
	if a.Status != http.StatusOK || !strings.Contains(a.Text(), "You were signed out; nothing was done yet.") || !strings.Contains(a.Body, "Long text.") || strings.Contains(a.Body, string(dashtest.Password)) {
		t.Errorf("%d %s", a.Status, a.Text())
	}
	count := func() int { return h.Count(t, "SELECT count(*) FROM audit_log WHERE action NOT LIKE 'sign-%'") }
	if count() != 0 {
		t.Error("the form changed something")
	}
	a = b.Post(at, append(typed, "sign-in.email", "ada@example.com", "sign-in.password", string(dashtest.Password))...)
	if a.Status != http.StatusOK || !strings.Contains(a.Text(), "nothing was done yet.") || count() != 0 {
		t.Errorf("the sign-in form again: %d %s", a.Status, a.Text())
	}
	if a = b.Upload(at, "", "", append(typed, "sign-in.email", "ada@example.com")...); a.Status != http.StatusOK || count() != 0 {
		t.Errorf("multipart: %d %s", a.Status, a.Text())
	}
	if a = b.Post(at, append(typed, "sign-in.email", "", "sign-in.password", "")...); a.Status != http.StatusUnauthorized || count() != 0 {
		t.Errorf("no credentials: %d %s", a.Status, a.Text())
	}
	b.Follow(at, typed...)
	if count() != 1 {
		t.Errorf("%d changes", count())
	}
	out()
	a = b.Post("webhooks/"+ids["webhooks"]+"/test", "sign-in.email", "ada@example.com", "sign-in.password", string(dashtest.Password))
	if a.Status != http.StatusSeeOther || !strings.HasSuffix(a.Location(), "/"+ids["webhooks"]) || !strings.Contains(b.Get(a.Location()).Text(), "You were signed out; nothing was done.") || count() != 1 {
		t.Errorf("form without fields: %d %s", a.Status, a.Location())
	}
	out()
	long := strings.Repeat("x", 2<<20)
	if a = b.Post(at, "prompt", long); a.Status != http.StatusSeeOther || !strings.HasPrefix(a.Location(), "/dashboard/sign-in?lost=yes&next=") || !strings.HasSuffix(a.Location(), "edit") {
		t.Errorf("too long: %d %s", a.Status, a.Location())
	}
	if page := b.Get(a.Location()); !strings.Contains(page.Text(), "the form was too large to keep") || !strings.Contains(page.Body, `name="next" value="`+b.URL(at)+`"`) {
		t.Errorf("too long: %s", page.Body)
	}
	a = b.Do(http.MethodPost, at, strings.NewReader("prompt="+long), "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin", "Parley-Upload", "1")
	if a.Status != http.StatusNoContent || !strings.HasPrefix(a.Header.Get("Parley-To"), "/dashboard/sign-in?lost=yes&next=") {
		t.Errorf("too long, sent by a script: %d %v", a.Status, a.Header)
	}
	if a = h.SignIn(t, "ada").Post(at, "prompt", long); a.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("too long with a session: %d", a.Status)
	}
}

// TestSignInEndsOldSession checks that signing in again ends the earlier session, with or without a pending form.
func TestSignInEndsOldSession(t *testing.T) {
	h := dashtest.New(t)
	ids := h.Furnish(t, "sales")
	b := h.SignIn(t, "ada")
	for path, form := range map[string][]string{
		"agents/" + ids["agents"] + "/edit": {"greeting", "Hi", "sign-in.email", "oscar@example.com", "sign-in.password", string(dashtest.Password)},
		"/dashboard/sign-in":                {"email", "ada@example.com", "password", string(dashtest.Password)},
	} {
		before := b.Cookie().String()
		if a := h.NewBrowser(t).Do(http.MethodGet, "agents", nil, "Cookie", before); a.Status != http.StatusOK {
			t.Fatalf("%s: no session: %d", path, a.Status)
		}
		if a := b.Post(path, form...); a.Status >= http.StatusBadRequest || b.Get("agents").Status != http.StatusOK {
			t.Errorf("%s: %d %s", path, a.Status, a.Text())
		}
		if a := h.NewBrowser(t).Do(http.MethodGet, "agents", nil, "Cookie", before); a.Status != http.StatusSeeOther {
			t.Errorf("%s: the old session remains: %d", path, a.Status)
		}
	}
}

// TestSignInLimitPerNetwork checks that an IPv6 /64 counts as one address.
func TestSignInLimitPerNetwork(t *testing.T) {
	n := 0
	h := dashtest.New(t)
	f, err := h.Dashboard.Handler()
	if err != nil {
		t.Fatal(err)
	}
	try := func(network string) int {
		n++
		form := fmt.Sprintf("email=who%d@example.com&password=x", n)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/dashboard/sign-in", strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.RemoteAddr = fmt.Sprintf("[%s::%x]:4711", network, n)
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		return w.Code
	}
	of := map[int]int{}
	for range 52 {
		of[try("2001:db8:1:2")]++
	}
	if of[http.StatusUnprocessableEntity] != 50 || of[http.StatusTooManyRequests] != 2 {
		t.Errorf("one network: %v", of)
	}
	if status := try("2001:db8:1:3"); status != http.StatusUnprocessableEntity {
		t.Errorf("another network: %d", status)
	}
}

// TestAuditLog checks that viewers do not see the audit log.
func TestAuditLog(t *testing.T) {
	h := dashtest.New(t)
	for name, want := range map[string]int{"vera": http.StatusForbidden, "oscar": http.StatusOK, "ada": http.StatusOK} {
		b := h.SignIn(t, name)
		if a := b.Get("audit"); a.Status != want || strings.Contains(b.Get("account").Text(), "Audit log") != (want == http.StatusOK) {
			t.Errorf("%s: %d", name, a.Status)
		}
	}
}

func TestChangePassword(t *testing.T) {
	h := dashtest.New(t)
	b, elsewhere := h.SignIn(t, "vera"), h.SignIn(t, "vera")
	for _, form := range [][]string{
		{"current_password", "x", "password", "another good one", "repeat_password", "another good one"},
		{"current_password", string(dashtest.Password), "password", "another good one", "repeat_password", "another bad one"},
		{"current_password", string(dashtest.Password), "password", "short", "repeat_password", "short"},
	} {
		if a := b.Post("account", form...); a.Status != http.StatusUnprocessableEntity || strings.Contains(a.Body, "another good one") {
			t.Errorf("%v: %d", form, a.Status)
		}
	}
	if a := b.Follow("account", "current_password", string(dashtest.Password), "password", "another good one", "repeat_password", "another good one"); !strings.Contains(a.Text(), "Password changed.") {
		t.Errorf("%s", a.Text())
	}
	if a := elsewhere.Get("account"); a.Status != http.StatusSeeOther {
		t.Errorf("the other session remains: %d", a.Status)
	}
}
