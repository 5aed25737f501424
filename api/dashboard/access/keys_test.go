package access_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apikeys"
)

// TestKeyLifecycle checks that a key is created, shown once, limited and revoked; changes apply from the next request.
func TestKeyLifecycle(t *testing.T) {
	h := dashtest.New(t)
	b := h.SignIn(t, "ada")
	if a := b.Get("keys"); a.Status != http.StatusOK || !strings.Contains(a.Text(), "No API keys yet") {
		t.Fatalf("%d %s", a.Status, a.Text())
	}
	a := b.Post("keys/new", "name", "CRM", "limit", "75")
	secret := regexp.MustCompile(`parley_[0-9a-f]{64}`).FindString(a.Body)
	if a.Status != http.StatusOK || secret == "" || a.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %s", a.Status, a.Text())
	}
	keys := &apikeys.Keys{Pool: h.DB.Pool}
	key, err := keys.Authenticate(t.Context(), "Bearer "+secret)
	if err != nil || key.OrgID != h.Acme || key.RateLimit != 75 || key.Name != "CRM" || key.Privileged {
		t.Fatalf("%+v, %v", key, err)
	}
	if list := b.Get("keys"); strings.Contains(list.Body, secret) || !strings.Contains(list.Text(), "75 / min") {
		t.Errorf("the list says %s", list.Text())
	}
	a = b.Post("keys/new", "name", "Report", "scopes", "read", "scopes", "campaigns", "days", "90")
	narrow, err := keys.Authenticate(t.Context(), "Bearer "+regexp.MustCompile(`parley_[0-9a-f]{64}`).FindString(a.Body))
	if err != nil || apikeys.JoinScopes(narrow.Scopes) != "read, campaigns" || narrow.ExpiresAt == nil ||
		time.Until(*narrow.ExpiresAt).Round(time.Hour) != 90*24*time.Hour {
		t.Errorf("%+v, %v", narrow, err)
	}
	if list := b.Get("keys").Text(); !strings.Contains(list, "read, campaigns") {
		t.Errorf("the list says %s", list)
	}
	for field, bad := range map[string]string{"scopes": "admin", "days": "0"} {
		if a = b.Post("keys/new", "name", "Report", field, bad); a.Status != http.StatusUnprocessableEntity {
			t.Errorf("%s %s: %d", field, bad, a.Status)
		}
	}
	b.Post("keys/new", "name", "Склад")
	if found := b.Get("keys?q=скл").Text(); !strings.Contains(found, "Склад") || strings.Contains(found, "CRM") {
		t.Errorf("search result: %s", found)
	}
	if found := b.Get("keys?q=zzz").Text(); !strings.Contains(found, "No name contains “zzz”") {
		t.Errorf("search without result: %s", found)
	}
	if page := b.Follow("keys/"+key.ID+"/limit", "limit", "off"); !strings.Contains(page.Text(), "Limit saved.") {
		t.Errorf("%s", page.Text())
	}
	if again := b.Get("keys"); strings.Contains(again.Text(), "Limit saved.") {
		t.Error("the flash message is shown twice")
	}
	if key, err = keys.Authenticate(t.Context(), "Bearer "+secret); err != nil || key.RateLimit != apikeys.RateOff {
		t.Errorf("%+v, %v", key, err)
	}
	b.Follow("keys/" + key.ID + "/revoke")
	if _, err = keys.Authenticate(t.Context(), "Bearer "+secret); control.CodeOf(err) != control.CodeKeyRevoked {
		t.Errorf("after the revocation: %v", err)
	}
	var log, all string
	if err = h.DB.Pool.QueryRow(t.Context(), "SELECT string_agg(action, ' ' ORDER BY id), string_agg(a::text, ' ') FROM audit_log a WHERE org_id = $1 AND who = 'ada@example.com' AND action NOT LIKE 'sign-%'", h.Acme).Scan(&log, &all); err != nil {
		t.Fatal(err)
	}
	if log != "key.create key.create key.create key.limit key.revoke" || strings.Contains(all, secret) {
		t.Errorf("the audit log has %s", all)
	}
}

func TestRejectedFormKeepsValues(t *testing.T) {
	h := dashtest.New(t)
	b := h.SignIn(t, "ada")
	a := b.Post("keys/new", "name", `"><script>x</script>`, "limit", "many")
	if a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Body, `value="many"`) || !strings.Contains(a.Body, `aria-invalid="true"`) ||
		!strings.Contains(a.Text(), "Enter 1 to 1,000,000") || strings.Contains(a.Body, "<script>x") {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// TestKeyAccess checks that keys of other organizations are not found, and forms need the owner role.
func TestKeyAccess(t *testing.T) {
	h := dashtest.New(t)
	id, _, err := apikeys.CreateKey(t.Context(), h.DB.Pool, apikeys.Key{OrgID: h.Globex, Name: "theirs"})
	if err != nil {
		t.Fatal(err)
	}
	ada := h.SignIn(t, "ada")
	for _, path := range []string{"keys/" + id + "/limit", "keys/" + id + "/revoke"} {
		if a := ada.Get(path); a.Status != http.StatusNotFound {
			t.Errorf("GET %s: %d", path, a.Status)
		}
		if a := ada.Post(path, "limit", "1"); a.Status != http.StatusNotFound {
			t.Errorf("POST %s: %d", path, a.Status)
		}
	}
	oscar := h.SignIn(t, "oscar")
	if a := oscar.Get("keys"); a.Status != http.StatusOK || strings.Contains(a.Body, "keys/new") {
		t.Errorf("%d: an operator sees the link to create keys", a.Status)
	}
	if a := oscar.Get("keys/new"); a.Status != http.StatusForbidden || !strings.Contains(a.Text(), "Your role does not allow this") {
		t.Errorf("%d %s", a.Status, a.Text())
	}
}
