package access_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/operator"
)

// TestSignInsAreLogged checks the entries of the audit log for sign-ins, refusals and sign-outs.
func TestSignInsAreLogged(t *testing.T) {
	h, p := newIdentity(t, nil)
	root, err := apikeys.EnsureOrganization(t.Context(), h.DB.Pool, "root")
	if err != nil {
		t.Fatal(err)
	}
	last := "0"
	check := func(what, org, want string) {
		t.Helper()
		got := h.Text(t, `SELECT coalesce(string_agg(concat_ws(' ', action, who, after->>'way', after->>'reason'), ', ' ORDER BY id), '')
			FROM audit_log WHERE action LIKE 'sign-%' AND org_id = $1 AND address = '127.0.0.1' AND id > $2::text::bigint`, org, last)
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
		last = h.Text(t, "SELECT coalesce(max(id), 0)::text FROM audit_log")
		h.Exec(t, "DELETE FROM operator_tries")
	}
	b := h.NewBrowser(t)
	sign := func(email, password string, more ...string) dashtest.Answer {
		return b.Post("/dashboard/sign-in", append([]string{"email", email, "password", password}, more...)...)
	}
	sign("oscar@example.com", "wrong password")
	check("wrong password", h.Acme, "sign-in.refused oscar@example.com password wrong password")
	sign("my secret password", "x")
	check("unknown operator", root, "sign-in.refused unknown operator password unknown operator")
	sign("oscar@example.com", string(dashtest.Password))
	check("password", h.Acme, "sign-in oscar@example.com password")
	b.Post("/dashboard/sign-out")
	check("sign-out", h.Acme, "sign-out oscar@example.com")
	key := operator.NewCodeKey()
	h.Exec(t, "UPDATE operators SET totp_secret = $1 WHERE email = 'oscar@example.com'", string(key))
	_, challenge, _ := strings.Cut(sign("oscar@example.com", string(dashtest.Password)).Body, `challenge" value="`)
	challenge, _, _ = strings.Cut(challenge, `"`)
	sign("", "", "challenge", challenge, "code", "x00000")
	check("wrong code", h.Acme, "sign-in.refused oscar@example.com password wrong code")
	code, err := operator.CurrentCode(key, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	sign("vera@example.com", "", "challenge", challenge, "code", code)
	check("code", h.Acme, "sign-in oscar@example.com password and one-time code")
	b.Get(callback(t, h, b, ""))
	check("provider, after another operator", h.Acme, "sign-in ada@example.com identity provider, sign-out oscar@example.com")
	p.next(map[string]any{"sub": "2"}, nil, nil)
	b.Get(callback(t, h, b, ""))
	check("another person", h.Acme, "sign-in.refused ada@example.com identity provider sign in: "+operator.ErrOtherPerson.Error())
	p.next(map[string]any{"sub": "3", "email": "eve@example.com"}, nil, nil)
	b.Get(callback(t, h, b, ""))
	check("no account", root, "sign-in.refused eve@example.com identity provider unknown operator")
	b.Get("/dashboard/sign-in/callback")
	check("no flow", root, "") // anybody can send such requests
	if a := h.SignIn(t, "vera"); a.Get("audit").Status != http.StatusForbidden {
		t.Error("a viewer reads the audit log")
	}
	if a := b.Get("audit?action=sign-"); !strings.Contains(a.Text(), "oscar@example.com 127.0.0.1 sign-in.refused") || !strings.Contains(a.Text(), "wrong password") {
		t.Errorf("the page: %s", a.Text())
	}
	if all := h.Text(t, "SELECT string_agg(a::text, ' ') FROM audit_log a"); strings.Contains(all, string(dashtest.Password)) || strings.Contains(all, "secret") || strings.Contains(all, b.Cookie().Value) {
		t.Errorf("a secret: %s", all)
	}
}

// TestAddressOfSignIn checks that an entry has the address that the request has behind trusted proxies.
func TestAddressOfSignIn(t *testing.T) {
	h := dashtest.New(t)
	f, err := h.Dashboard.Handler()
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/dashboard/sign-in", strings.NewReader("email=ada@example.com&password=x"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Forwarded-For", "192.0.2.66") // api/realip has evaluated it
	r.RemoteAddr = "[::ffff:203.0.113.9]:4711"
	f.ServeHTTP(httptest.NewRecorder(), r)
	if got := h.Text(t, "SELECT string_agg(address, ' ') FROM audit_log"); got != "203.0.113.9" {
		t.Errorf("the address is %s", got)
	}
}
