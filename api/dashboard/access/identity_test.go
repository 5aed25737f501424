package access_test

import (
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/identity"
	"github.com/parley-voice/parley/control/operator"
)

// idp is an OpenID Connect provider. Everybody who comes to it is signed in.
type idp struct {
	*httptest.Server

	key *rsa.PrivateKey

	mu     sync.Mutex
	claims map[string]any                                  // of the next token, besides the usual ones
	edit   func(header, claims map[string]any)             // changes the next token
	sign   func(header map[string]any, text string) []byte // signs the next token; nil: RS256
	codes  map[string]url.Values                           // authorization requests by code
	used   int
}

func newIDP(t *testing.T) *idp {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &idp{key: key, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		p.json(w, map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"end_session_endpoint": p.URL + "/end", "authorization_response_iss_parameter_supported": true, "id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"},
		})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		b := base64.RawURLEncoding
		p.json(w, map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "kid": "one", "use": "sig", "alg": "RS256", "e": "AQAB", "n": b.EncodeToString(key.N.Bytes()),
		}}})
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		code := rand.Text()
		p.mu.Lock()
		p.codes[code] = r.URL.Query()
		p.mu.Unlock()
		back := url.Values{"code": {code}, "state": {r.URL.Query().Get("state")}, "iss": {p.URL}}
		http.Redirect(w, r, r.URL.Query().Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
	})
	mux.HandleFunc("/token", p.token)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *idp) json(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (p *idp) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked, ok := p.codes[r.FormValue("code")]
	delete(p.codes, r.FormValue("code"))
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	id, secret, _ := r.BasicAuth()
	if !ok || id != "parley" || secret != "s3cret" || asked.Get("code_challenge_method") != "S256" ||
		asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || r.FormValue("redirect_uri") != asked.Get("redirect_uri") {
		w.WriteHeader(http.StatusBadRequest)
		p.json(w, map[string]any{"error": "invalid_grant"})
		return
	}
	p.used++
	now := time.Now().Unix()
	header := map[string]any{"alg": "RS256", "kid": "one"}
	claims := map[string]any{
		"iss": p.URL, "sub": "1", "aud": "parley", "exp": now + 300, "iat": now, "nonce": asked.Get("nonce"),
		"email": "ada@example.com", "email_verified": true,
	}
	maps.Copy(claims, p.claims)
	if p.edit != nil {
		p.edit(header, claims)
	}
	b := base64.RawURLEncoding
	head, _ := json.Marshal(header)
	body, _ := json.Marshal(claims)
	text := b.EncodeToString(head) + "." + b.EncodeToString(body)
	sign := p.sign
	if sign == nil {
		sign = p.rs256(p.key)
	}
	p.json(w, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": text + "." + b.EncodeToString(sign(header, text))})
}

func (p *idp) rs256(key *rsa.PrivateKey) func(map[string]any, string) []byte {
	return func(_ map[string]any, text string) []byte {
		sum := sha256.Sum256([]byte(text))
		sig, _ := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
		return sig
	}
}

// next sets the next token.
func (p *idp) next(claims map[string]any, edit func(header, claims map[string]any), sign func(map[string]any, string) []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims, p.edit, p.sign = claims, edit, sign
}

// newIdentity starts a dashboard with the provider.
func newIdentity(t *testing.T, change func(*identity.Settings)) (*dashtest.Env, *idp) {
	t.Helper()
	p := newIDP(t)
	h := dashtest.New(t, func(h *dashtest.Env) {
		s := identity.Settings{Issuer: p.URL, ClientID: "parley", Secret: "s3cret"}
		if change != nil {
			change(&s)
		}
		h.Dashboard.Identity = &identity.Provider{Settings: s, Redirect: h.URL + ui.CallbackPath, Key: h.Dashboard.Key}
	})
	h.Exec(t, "UPDATE operators SET password_hash = '' WHERE email = 'ada@example.com'")
	return h, p
}

// callback starts a sign-in, visits the provider, and returns the path to which the provider redirects.
func callback(t *testing.T, h *dashtest.Env, b *dashtest.Browser, query string) string {
	t.Helper()
	a := b.Get("/dashboard/sign-in/provider" + query)
	if a.Status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.Status, a.Text())
	}
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := stay.Get(a.Location())
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return strings.TrimPrefix(resp.Header.Get("Location"), h.URL)
}

func signedIn(b *dashtest.Browser) bool { return b.Get("account").Status == http.StatusOK }

func TestIdentitySignIn(t *testing.T) {
	h, p := newIdentity(t, nil)
	b := h.NewBrowser(t)
	if a := b.Get("/dashboard/sign-in?next=/dashboard/x/y"); !strings.Contains(a.Body, `href="/dashboard/sign-in/provider?next=%2fdashboard%2fx%2fy"`) {
		t.Errorf("%s", a.Body)
	}
	a := b.Get(callback(t, h, b, "?next=/dashboard/"+h.Acme+"/keys"))
	if a.Status != http.StatusSeeOther || a.Location() != "/dashboard/"+h.Acme+"/keys" || !signedIn(b) || p.used != 1 {
		t.Fatalf("%d %s", a.Status, a.Text())
	}
	if set := strings.Join(a.Header.Values("Set-Cookie"), "\n"); !strings.Contains(set, "HttpOnly") || !strings.Contains(set, "SameSite=Lax") || !strings.Contains(set, "parley-flow=;") {
		t.Errorf("the cookies are %s", set)
	}
	if a = b.Get(callback(t, h, b, "?next=https://evil.example/")); a.Location() != "/dashboard" {
		t.Errorf("next: %s", a.Location())
	}
	if h.Count(t, "SELECT count(*) FROM operator_sessions") != 1 {
		t.Error("the previous session remains")
	}
	if a = b.Post("/dashboard/sign-out"); a.Location() != "/dashboard/sign-in?left" || signedIn(b) {
		t.Errorf("signed out: %d %s", a.Status, a.Location())
	}
	if a = b.Get(a.Location()); !strings.Contains(a.Body, `href="`+p.URL+`/end?client_id=parley&amp;post_logout_redirect_uri=`) {
		t.Errorf("%s", a.Body)
	}
	b.Get(callback(t, h, b, ""))
	h.Exec(t, "UPDATE operator_sessions SET created_at = now() - interval '12 hours'")
	if signedIn(b) {
		t.Error("the session lives longer than 12 hours")
	}
	if !signedIn(h.SignIn(t, "vera")) {
		t.Error("a password does not sign in any more")
	}
}

// TestIdentityIsRefused attacks the sign-in: each fault of a token, of the redirect and of the provider.
func TestIdentityIsRefused(t *testing.T) {
	h, p := newIdentity(t, func(s *identity.Settings) { s.Domains = []string{"example.com"} })
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	set := func(pairs ...any) func(_, claims map[string]any) {
		return func(_, claims map[string]any) {
			for i := 0; i < len(pairs); i += 2 {
				claims[pairs[i].(string)] = pairs[i+1]
			}
		}
	}
	header := func(alg, kid string) func(header, _ map[string]any) {
		return func(header, _ map[string]any) { header["alg"], header["kid"] = alg, kid }
	}
	now := time.Now().Unix()
	for _, tt := range []struct {
		name string
		edit func(header, claims map[string]any)
		sign func(map[string]any, string) []byte
		want string // in the page; empty: signed in
	}{
		{"exp 30 s ago, with clock skew", set("exp", now-30), nil, ""},
		{"email_verified as text", set("email_verified", "true"), nil, ""},
		{"two audiences and azp", set("aud", []string{"parley", "other"}, "azp", "parley"), nil, ""},
		{"upper case", set("email", "ADA@Example.com"), nil, ""},
		{"wrong nonce", set("nonce", "x"), nil, "another nonce"},
		{"no nonce", set("nonce", ""), nil, "another nonce"},
		{"wrong audience", set("aud", "other"), nil, "expected audience"},
		{"two audiences without azp", set("aud", []string{"parley", "other"}), nil, "another client"},
		{"another azp", set("azp", "other"), nil, "another client"},
		{"wrong issuer", set("iss", "https://evil.example"), nil, "different provider"},
		{"expired", set("exp", now-120), nil, "expired"},
		{"no exp", set("exp", 0), nil, "expired"},
		{"not valid yet", set("nbf", now+600), nil, "nbf"},
		{"unverified email", set("email_verified", false), nil, "not verified"},
		{"no email_verified", set("email_verified", nil), nil, "not verified"},
		{"no email", set("email", ""), nil, "no claim email"},
		{"no address", set("email", "ada"), nil, "not an email address"},
		{"two addresses", set("email", "ada@example.com, x@example.com"), nil, "not an email address"},
		{"foreign domain", set("email", "ada@example.com.evil.example"), nil, "not accepted"},
		{"unknown account", set("email", "eve@example.com", "sub", "9"), nil, "no access"},
		{"no sub", set("sub", nil), nil, "claim sub"},
		{"empty sub", set("sub", ""), nil, "claim sub"},
		{"sub as number", set("sub", 1), nil, "not valid"},
		{"sub too long", set("sub", strings.Repeat("x", 256)), nil, "claim sub"},
		{"sub not ASCII", set("sub", "1\u00e9"), nil, "claim sub"},
		{"sub with NUL", set("sub", "1\x00"), nil, "claim sub"},
		{"unknown kid", header("RS256", "two"), nil, "verify signature"},
		{"another key", nil, p.rs256(other), "verify signature"},
		{"alg none", header("none", "one"), func(map[string]any, string) []byte { return nil }, "not valid"},
		{"HMAC with the public key", header("HS256", "one"), func(_ map[string]any, text string) []byte {
			mac := hmac.New(sha256.New, p.key.N.Bytes())
			mac.Write([]byte(text))
			return mac.Sum(nil)
		}, "not valid"},
	} {
		p.next(nil, tt.edit, tt.sign)
		b := h.NewBrowser(t)
		a := b.Get(callback(t, h, b, ""))
		if got := signedIn(b); got != (tt.want == "") || !got && (a.Status != http.StatusForbidden || !strings.Contains(a.Text(), tt.want)) {
			t.Errorf("%s: signed in: %v, %d %s", tt.name, got, a.Status, a.Text())
		}
	}
	p.next(nil, nil, nil)
	h.Exec(t, "DELETE FROM operator_tries")
	start := func() (*dashtest.Browser, string) {
		b := h.NewBrowser(t)
		return b, callback(t, h, b, "")
	}
	for name, try := range map[string]func(b *dashtest.Browser, path string) dashtest.Answer{
		"another browser": func(_ *dashtest.Browser, path string) dashtest.Answer { return h.NewBrowser(t).Get(path) },
		"another state": func(b *dashtest.Browser, path string) dashtest.Answer {
			return b.Get(strings.Replace(path, "state=", "state=x", 1))
		},
		"no state": func(b *dashtest.Browser, path string) dashtest.Answer {
			return b.Get(strings.Replace(path, "state=", "x=", 1))
		},
		"another issuer": func(b *dashtest.Browser, path string) dashtest.Answer {
			return b.Get(strings.Replace(path, "iss=", "iss=x", 1))
		},
		"no issuer": func(b *dashtest.Browser, path string) dashtest.Answer {
			return b.Get(strings.Replace(path, "iss=", "x=", 1))
		},
		"another code": func(b *dashtest.Browser, path string) dashtest.Answer {
			return b.Get(strings.Replace(path, "code=", "code=x", 1))
		},
		"refused by the person": func(b *dashtest.Browser, path string) dashtest.Answer { return b.Get(path + "&error=access_denied") },
		"the victim's browser with the attacker's code": func(b *dashtest.Browser, _ string) dashtest.Answer {
			_, theirs := start()
			return b.Get(theirs)
		},
		"a changed flow": func(_ *dashtest.Browser, path string) dashtest.Answer {
			b := h.NewBrowser(t)
			a := b.Get("/dashboard/sign-in/provider")
			flow, _, _ := strings.Cut(strings.TrimPrefix(a.Header.Get("Set-Cookie"), "parley-flow="), ";")
			return h.NewBrowser(t).Do(http.MethodGet, path, nil, "Cookie", "parley-flow=x"+flow)
		},
	} {
		b, path := start()
		if a := try(b, path); a.Status != http.StatusForbidden || strings.Contains(strings.Join(a.Header.Values("Set-Cookie"), ""), "parley=") || signedIn(b) {
			t.Errorf("%s: %d %s", name, a.Status, a.Text())
		}
	}
	replay(t, h, p)
	p.Close()
	h.Dashboard.Identity = &identity.Provider{Settings: h.Dashboard.Identity.Settings, Key: h.Dashboard.Key}
	f, err := h.Dashboard.Handler()
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/dashboard/sign-in/provider", nil))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "does not answer") || !strings.Contains(w.Body.String(), `name="password"`) {
		t.Errorf("provider down: %d %s", w.Code, w.Body)
	}
}

// replay repeats a redirect with the same flow, at once and later, also with a new code.
func replay(t *testing.T, h *dashtest.Env, p *idp) {
	t.Helper()
	b := h.NewBrowser(t)
	to := b.Get("/dashboard/sign-in/provider")
	flow, _, _ := strings.Cut(to.Header.Get("Set-Cookie"), ";")
	at, err := url.Parse(to.Location())
	if err != nil {
		t.Fatal(err)
	}
	code := func() string {
		p.mu.Lock()
		defer p.mu.Unlock()
		code := rand.Text()
		p.codes[code] = at.Query()
		return code
	}
	sent := func() string {
		return fmt.Sprintf("/dashboard/sign-in/callback?state=%s&code=%s&iss=%s", url.QueryEscape(at.Query().Get("state")), code(), url.QueryEscape(p.URL))
	}
	passed := 0
	for range 3 {
		if a := h.NewBrowser(t).Do(http.MethodGet, sent(), nil, "Cookie", flow); a.Status == http.StatusSeeOther {
			passed++
		} else if !strings.Contains(a.Text(), "completed before") {
			t.Errorf("%d %s", a.Status, a.Text())
		}
	}
	if passed != 1 {
		t.Errorf("a state was used %d times", passed)
	}
}

// TestIdentityFailuresAreCounted checks that failures count for the network like wrong passwords.
func TestIdentityFailuresAreCounted(t *testing.T) {
	h, p := newIdentity(t, nil)
	p.next(nil, func(_, claims map[string]any) { claims["nonce"] = "x" }, nil)
	for range 50 {
		b := h.NewBrowser(t)
		if a := b.Get(callback(t, h, b, "")); a.Status != http.StatusForbidden {
			t.Fatalf("%d %s", a.Status, a.Text())
		}
	}
	b := h.NewBrowser(t)
	if a := b.Get(callback(t, h, b, "")); a.Status != http.StatusTooManyRequests {
		t.Errorf("the 51st: %d %s", a.Status, a.Text())
	}
}

// TestIdentityRoles checks that claims give, change and take roles in the organizations of the rules, and only there.
func TestIdentityRoles(t *testing.T) {
	rules, err := operator.ParseRules("groups:Parley Admins=acme/owner, groups:support=acme/viewer,groups:support=globex/operator,groups:x=unknown/owner")
	if err != nil {
		t.Fatal(err)
	}
	h, p := newIdentity(t, func(s *identity.Settings) { s.Rules, s.Only = rules, true })
	roles := func() string {
		return h.Text(t, `SELECT coalesce(string_agg(o.name || '/' || r.role, ' ' ORDER BY o.name), '') FROM operators p
			JOIN operator_roles r ON r.operator_id = p.id JOIN organizations o ON o.id = r.org_id WHERE p.email = 'eve@example.com'`)
	}
	b := h.NewBrowser(t)
	for _, tt := range []struct {
		groups any
		want   string
	}{
		{nil, ""},
		{[]string{"other"}, ""},
		{"support", "acme/viewer globex/operator"},
		{[]string{"support", "Parley Admins", "x"}, "acme/owner globex/operator"},
		{[]string{"Parley Admins"}, "acme/owner"},
		{[]string{"parley admins"}, ""},
	} {
		p.next(map[string]any{"email": "eve@example.com", "groups": tt.groups}, nil, nil)
		a := b.Get(callback(t, h, b, ""))
		if got := roles(); got != tt.want || (a.Status == http.StatusSeeOther) != (tt.want != "") {
			t.Errorf("%v: %s, %d %s", tt.groups, got, a.Status, a.Text())
		}
	}
	if signedIn(b) || h.Count(t, "SELECT count(*) FROM operators WHERE email = 'eve@example.com'") != 0 {
		t.Error("the account remains")
	}
	if n := h.Count(t, "SELECT count(*) FROM audit_log WHERE action = 'operator.identity' AND who = 'identity provider'"); n != 5 {
		t.Errorf("%d entries of the audit log", n)
	}
	if got := h.Text(t, "SELECT role FROM operator_roles r JOIN operators p ON p.id = r.operator_id WHERE p.email = 'gus@example.com'"); got != "owner" {
		t.Errorf("another operator is %s", got)
	}
	// Passwords are off.
	if a := b.Post("/dashboard/sign-in", "email", "ada@example.com", "password", string(dashtest.Password)); a.Status != http.StatusForbidden || strings.Contains(a.Body, `name="password"`) {
		t.Errorf("a password: %d %s", a.Status, a.Text())
	}
	if a := b.Post("keys/new", "name", "x", "sign-in.email", "ada@example.com", "sign-in.password", string(dashtest.Password)); a.Status != http.StatusSeeOther || !strings.HasPrefix(a.Location(), "/dashboard/sign-in?lost=yes") || !strings.Contains(b.Get(a.Location()).Text(), "fill in the form again") {
		t.Errorf("a form: %d %s", a.Status, a.Text())
	}
	p.next(nil, nil, nil)
	if b.Get(callback(t, h, b, "")); signedIn(b) { // ada has no group, and acme is an organization of the rules
		t.Error("a person without a group signed in")
	}
}

func TestIdentityRules(t *testing.T) {
	for _, bad := range []string{"", "x", "groups:a", "groups:a=acme", "groups:a=/owner", "groups:=acme/owner", ":a=acme/owner", "groups:a=acme/root", "groups:a=acme/owner,"} {
		if all, err := operator.ParseRules(bad); err == nil {
			t.Errorf("%q: %v", bad, all)
		}
	}
	all, err := operator.ParseRules("roles:a=b:c=the/org/operator")
	if err != nil || len(all) != 1 || all[0] != (operator.Rule{Claim: "roles", Value: "a=b:c", Org: "the/org", Role: operator.Operator}) {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestImpatientClient checks that a client that disconnects while the metadata is read does not fail the sign-ins of others.
func TestImpatientClient(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var p *httptest.Server
	p = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		})
	}))
	defer p.Close()
	provider := &identity.Provider{Settings: identity.Settings{Issuer: p.URL, ClientID: "parley"}, Key: []byte("key")}
	_, _, _ = provider.Start(ctx, "")
	if _, _, err := provider.Start(t.Context(), ""); err != nil {
		t.Error(err)
	}
}

// TestPasswordsOff checks that sessions that a password started end when passwords are turned off.
func TestPasswordsOff(t *testing.T) {
	h, _ := newIdentity(t, func(s *identity.Settings) { s.Only = true })
	token, err := operator.SignIn(t.Context(), h.DB.Pool, operator.SignInAttempt{Email: "vera@example.com", Password: dashtest.Password})
	if err != nil {
		t.Fatal(err)
	}
	if a := h.NewBrowser(t).Do(http.MethodGet, "account", nil, "Cookie", "parley="+string(token)); a.Status != http.StatusSeeOther {
		t.Errorf("%d %s", a.Status, a.Text())
	}
}
