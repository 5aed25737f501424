package access_test

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/control/identity"
	"github.com/parley-voice/parley/control/operator"
)

// TestReassignedAddress checks that the new owner of an email address does not get the account of its former owner, until
// another owner releases it.
func TestReassignedAddress(t *testing.T) {
	h, p := newIdentity(t, nil)
	h.AddOperator(t, "olga@example.com", h.Acme, operator.Owner)
	ada, eve, olga := h.NewBrowser(t), h.NewBrowser(t), h.SignIn(t, "olga")
	if a := ada.Get(callback(t, h, ada, "")); a.Status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.Status, a.Text())
	}
	p.next(map[string]any{"sub": "2"}, nil, nil)
	a := eve.Get(callback(t, h, eve, ""))
	if a.Status != http.StatusForbidden || signedIn(eve) || !strings.Contains(a.Text(), "An owner can release it under Operators") {
		t.Errorf("another person with the address: %d %s", a.Status, a.Text())
	}
	p.next(nil, nil, nil)
	if ada.Get(callback(t, h, ada, "")); !signedIn(ada) {
		t.Error("the first person is refused")
	}
	me := h.Text(t, "SELECT id FROM operators WHERE email = 'ada@example.com'")
	if a = ada.Post("operators/" + me + "/identity"); a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Text(), "ask another owner") {
		t.Errorf("the own account: %d %s", a.Status, a.Text())
	}
	if a = olga.Get("operators"); !strings.Contains(a.Text(), "connected") || !strings.Contains(a.Body, me+"/identity") {
		t.Errorf("%s", a.Text())
	}
	if a = olga.Get("operators/" + me + "/identity"); !strings.Contains(a.Text(), "the person 1 at "+p.URL) || !strings.Contains(a.Text(), "Release account") {
		t.Errorf("%s", a.Text())
	}
	olga.Follow("operators/" + me + "/identity")
	if signedIn(ada) {
		t.Error("the session of the released account remains")
	}
	p.next(map[string]any{"sub": "2"}, nil, nil)
	if eve.Get(callback(t, h, eve, "")); !signedIn(eve) {
		t.Error("the account was not released")
	}
	if log := h.Text(t, "SELECT string_agg(action || ' ' || who, ', ' ORDER BY id) FROM audit_log WHERE action IN ('operator.bind', 'operator.release')"); log != "operator.bind identity provider, operator.release olga@example.com, operator.bind identity provider" {
		t.Errorf("%s", log)
	}
	h.Exec(t, "INSERT INTO operator_roles (operator_id, org_id, role) VALUES ($1, $2, 'viewer')", me, h.Globex)
	if a = olga.Post("operators/" + me + "/identity"); a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Text(), "do not own") {
		t.Errorf("an account of another organization: %d %s", a.Status, a.Text())
	}
}

// TestNewAddress checks that a person keeps the account when the address changes, and that role claims still apply.
func TestNewAddress(t *testing.T) {
	rules, err := operator.ParseRules("groups:admins=acme/owner, groups:support=acme/viewer")
	if err != nil {
		t.Fatal(err)
	}
	h, p := newIdentity(t, func(s *identity.Settings) { s.Rules = rules })
	account := func() string {
		return h.Text(t, `SELECT p.id || ' ' || p.email || ' ' || r.role FROM operator_identities i
			JOIN operators p ON p.id = i.operator_id JOIN operator_roles r ON r.operator_id = p.id WHERE i.subject = '1'`)
	}
	b := h.NewBrowser(t)
	sign := func(email string, group string) string {
		t.Helper()
		p.next(map[string]any{"email": email, "groups": []string{group}}, nil, nil)
		if a := b.Get(callback(t, h, b, "")); a.Status != http.StatusSeeOther || !signedIn(b) {
			t.Fatalf("%s: %d %s", email, a.Status, a.Text())
		}
		return account()
	}
	id, _, _ := strings.Cut(sign("ada@example.com", "admins"), " ")
	if got := sign("Ada.Lovelace@example.com", "support"); got != id+" ada.lovelace@example.com viewer" {
		t.Errorf("a new address: %s", got)
	}
	if got := sign("vera@example.com", "admins"); got != id+" ada.lovelace@example.com owner" {
		t.Errorf("the address of another account: %s", got)
	}
	if n := h.Count(t, "SELECT count(*) FROM audit_log WHERE action = 'operator.email' AND before->>'email' = 'ada@example.com'"); n != 1 {
		t.Errorf("%d entries", n)
	}
	p.next(map[string]any{"sub": "2", "groups": "support"}, nil, nil)
	c := h.NewBrowser(t)
	if c.Get(callback(t, h, c, "")); !signedIn(c) || h.Count(t, "SELECT count(*) FROM operator_identities") != 2 {
		t.Error("the former address has no account of its own")
	}
	p.next(map[string]any{"sub": "3", "email": "ADA.lovelace@example.com", "groups": "none"}, nil, nil)
	if c.Get(callback(t, h, c, "")); account() != id+" ada.lovelace@example.com owner" {
		t.Errorf("a refused person changed the account: %s", account())
	}
}

// TestPasswordBeforeBinding checks that an account with a password is connected only after password and code.
func TestPasswordBeforeBinding(t *testing.T) {
	rules, err := operator.ParseRules("groups:admins=acme/owner")
	if err != nil {
		t.Fatal(err)
	}
	h, p := newIdentity(t, func(s *identity.Settings) { s.Rules = rules })
	bound := func() int { return h.Count(t, "SELECT count(*) FROM operator_identities") }
	b := h.NewBrowser(t)
	start := func() string {
		t.Helper()
		p.next(map[string]any{"email": "oscar@example.com"}, nil, nil)
		a := b.Get(callback(t, h, b, "?next=/dashboard/"+h.Acme+"/agents"))
		link := regexp.MustCompile(`name="link" value="([^"]+)"`).FindStringSubmatch(a.Body)
		if a.Status != http.StatusOK || link == nil || signedIn(b) || bound() != 0 {
			t.Fatalf("%d %s", a.Status, a.Text())
		}
		return html.UnescapeString(link[1])
	}
	link := start()
	if got := h.Text(t, "SELECT role FROM operator_roles r JOIN operators p ON p.id = r.operator_id WHERE email = 'oscar@example.com'"); got != "operator" {
		t.Errorf("the claims of an unconfirmed person apply: %s", got)
	}
	post := func(email, password, link string) dashtest.Answer {
		return b.Post("/dashboard/sign-in", "email", email, "password", password, "link", link, "next", "/dashboard/"+h.Acme+"/agents")
	}
	if a := post("oscar@example.com", "wrong password", link); a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Body, `name="link"`) || bound() != 0 {
		t.Errorf("wrong password: %d %s", a.Status, a.Text())
	}
	if a := post("vera@example.com", string(dashtest.Password), link); a.Status != http.StatusForbidden || signedIn(b) || bound() != 0 {
		t.Errorf("another account: %d %s", a.Status, a.Text())
	}
	if a := post("oscar@example.com", string(dashtest.Password), "x"+link); a.Status != http.StatusForbidden || signedIn(b) || bound() != 0 {
		t.Errorf("a changed link: %d %s", a.Status, a.Text())
	}
	flow, _, _ := strings.Cut(strings.TrimPrefix(b.Get("/dashboard/sign-in/provider").Header.Get("Set-Cookie"), "parley-flow="), ";")
	if a := post("oscar@example.com", string(dashtest.Password), flow); a.Status != http.StatusForbidden || signedIn(b) || bound() != 0 {
		t.Errorf("a flow as link: %d %s", a.Status, a.Text())
	}
	if a := post("oscar@example.com", string(dashtest.Password), link); a.Status != http.StatusSeeOther || a.Location() != "/dashboard/"+h.Acme+"/agents" || !signedIn(b) || bound() != 1 {
		t.Errorf("%d %s", a.Status, a.Text())
	}
	if a := post("oscar@example.com", string(dashtest.Password), link); a.Status != http.StatusSeeOther || bound() != 1 {
		t.Errorf("a link twice: %d %s", a.Status, a.Text())
	}
	p.next(map[string]any{"email": "oscar@example.com", "groups": "admins"}, nil, nil)
	if b.Get(callback(t, h, b, "")); !signedIn(b) {
		t.Error("the connected account asks for the password again")
	}
	h.Exec(t, "DELETE FROM operator_identities")
	ada := h.NewBrowser(t)
	p.next(map[string]any{"sub": "a", "groups": "admins"}, nil, nil)
	ada.Get(callback(t, h, ada, ""))
	vera := h.Text(t, "SELECT id FROM operators WHERE email = 'vera@example.com'")
	if a := ada.Get("operators/" + vera + "/identity"); !strings.Contains(a.Text(), "Remove password") {
		t.Errorf("%s", a.Text())
	}
	ada.Follow("operators/" + vera + "/identity")
	if a := b.Post("/dashboard/sign-in", "email", "vera@example.com", "password", string(dashtest.Password)); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("the removed password: %d %s", a.Status, a.Text())
	}
	if a := ada.Follow("operators/new", "email", "new@example.com", "role", "viewer", "sign_in", "provider"); !strings.Contains(a.Text(), "sign in with the identity provider") {
		t.Errorf("%s", a.Text())
	}
	if n := h.Count(t, "SELECT count(*) FROM operators WHERE password_hash = '' AND email IN ('vera@example.com', 'new@example.com')"); n != 2 {
		t.Errorf("%d accounts without a password", n)
	}
}
