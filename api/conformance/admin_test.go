package conformance_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apikeys"
)

// TestAdmin covers /v1/admin.
func TestAdmin(t *testing.T) {
	checkAll(t, "K", []statement{
		{1, "a root operation with a regular key returns 403 privileged_key_required", regularKey},
		{2, "a root operation with a privileged key of another organization returns 403 root_org_key_required", otherOrgKey},
		{3, "a privileged key reads calls of its own organization only", privilegedElsewhere},
		{4, "organizations are created by name, listed in pages and read", organizations},
		{5, "only the response to its creation contains a key's secret", createKey},
		{6, "a changed limit and a revocation apply from the next request", changeKey},
		{7, "a webhook is created, changed by its url and removed; lists have no secret", webhooks},
		{8, "unknown ids return 404, invalid bodies 422", adminErrors},
		{9, "market packages are listed and assigned to an organization, or removed", marketPackages},
	})
}

func adminPaths() []string {
	return []string{
		"GET /v1/admin/organizations", "POST /v1/admin/organizations", "GET /v1/admin/organizations/x",
		"PATCH /v1/admin/organizations/x", "GET /v1/admin/market-packages", "GET /v1/admin/keys", "POST /v1/admin/keys",
		"GET /v1/admin/keys/x", "PATCH /v1/admin/keys/x", "POST /v1/admin/keys/x/revoke", "GET /v1/admin/webhooks", "POST /v1/admin/webhooks",
		"DELETE /v1/admin/webhooks/x",
	}
}

func regularKey(t *testing.T, s *service) {
	o, root := s.empty(t), s.root(t)
	root.key, _ = root.newKey(t, apikeys.Key{RateLimit: apikeys.RateOff})
	for _, p := range adminPaths() {
		method, path, _ := strings.Cut(p, " ")
		wantError(t, o.do(t, method, path, "{"), 403, "privileged_key_required")
		wantError(t, root.do(t, method, path, "{"), 403, "privileged_key_required")
	}
}

func otherOrgKey(t *testing.T, s *service) {
	o := s.empty(t)
	o.key, _ = o.newKey(t, apikeys.Key{RateLimit: apikeys.RateOff, Privileged: true})
	for _, p := range adminPaths() {
		method, path, _ := strings.Cut(p, " ")
		wantError(t, o.do(t, method, path, "{"), 403, "root_org_key_required")
	}
}

// root returns the root organization with a privileged key.
func (s *service) root(t *testing.T) *organization {
	t.Helper()
	o := &organization{s: s, name: "root", url: s.url}
	var err error
	if o.id, err = apikeys.EnsureOrganization(t.Context(), s.db.Pool, o.name); err != nil {
		t.Fatal(err)
	}
	o.key, _ = o.newKey(t, apikeys.Key{RateLimit: apikeys.RateOff, Privileged: true})
	return o
}

func privilegedElsewhere(t *testing.T, s *service) {
	o, root := s.organization(t), s.root(t)
	id := o.place(t, s.busyNumber())
	wantError(t, root.do(t, "GET", "/v1/calls/"+id, ""), 404, "call_not_found")
	for _, c := range root.do(t, "GET", "/v1/calls", "").want(t, 200).object(t)["calls"].([]any) {
		if c.(map[string]any)["call_id"] == id {
			t.Error("the root organization lists a call of another organization")
		}
	}
}

func organizations(t *testing.T, s *service) {
	root := s.root(t)
	var ids []string
	for range 3 {
		name := control.NewID("made-", time.Now())
		o := root.do(t, "POST", "/v1/admin/organizations", fmt.Sprintf(`{"name":%q,"timezone":"Europe/Berlin"}`, name)).want(t, http.StatusCreated).object(t)
		again := root.do(t, "POST", "/v1/admin/organizations", fmt.Sprintf(`{"name":%q}`, name)).want(t, 200).object(t)
		read := root.do(t, "GET", "/v1/admin/organizations/"+o["organization_id"].(string), "").want(t, 200).object(t)
		if fmt.Sprint(o) != fmt.Sprint(again) || fmt.Sprint(o) != fmt.Sprint(read) || o["name"] != name || o["timezone"] != "Europe/Berlin" {
			t.Errorf("created %v, again %v, read %v", o, again, read)
		}
		ids = append(ids, o["organization_id"].(string))
	}
	seen := map[string]int{}
	for cursor := ""; ; {
		page := root.do(t, "GET", "/v1/admin/organizations?limit=2&cursor="+cursor, "").want(t, 200).object(t)
		for _, o := range page["organizations"].([]any) {
			seen[o.(map[string]any)["organization_id"].(string)]++
		}
		if page["has_more"] != (page["next_cursor"] != nil) {
			t.Fatalf("%v", page)
		}
		if page["has_more"] == false {
			break
		}
		cursor = page["next_cursor"].(string)
	}
	for _, id := range ids {
		if seen[id] != 1 {
			t.Errorf("%s is listed %d times", id, seen[id])
		}
	}
	wantError(t, root.do(t, "GET", "/v1/admin/organizations?cursor=x", ""), 400, "invalid_cursor")
	wantError(t, root.do(t, "GET", "/v1/admin/keys?limit=0", ""), 400, "invalid_filter_value")
}

func createKey(t *testing.T, s *service) {
	root, o := s.root(t), s.empty(t)
	k := root.do(t, "POST", "/v1/admin/keys", fmt.Sprintf(`{"organization_id":%q,"name":"crm","rate_limit":2,"scopes":["read","read"],"expires_at":%d}`, o.id, time.Now().Unix()+60)).want(t, http.StatusCreated).object(t)
	secret, _ := k["secret"].(string)
	if !strings.HasPrefix(secret, "parley_") || len(secret) != 71 || k["rate_limit"] != 2.0 || k["privileged"] != false || fmt.Sprint(k["scopes"]) != "[read]" || k["expires_at"] == nil || k["organization_id"] != o.id {
		t.Fatalf("%v", k)
	}
	id := k["key_id"].(string)
	o.key = secret
	if n := o.admitted(t, 3); n != 2 {
		t.Errorf("%d of 2 requests were admitted", n)
	}
	for _, path := range []string{"/v1/admin/keys/" + id, "/v1/admin/keys?organization_id=" + o.id} {
		if a := root.do(t, "GET", path, "").want(t, 200); strings.Contains(string(a.body), secret) || !strings.Contains(string(a.body), id) || strings.Contains(string(a.body), `"secret"`) {
			t.Errorf("%s contains the secret: %v", path, a)
		}
	}
}

func changeKey(t *testing.T, s *service) {
	root, o := s.root(t), s.empty(t)
	id := o.useLimitedKey(t, 1)
	if n := o.admitted(t, 2); n != 1 {
		t.Errorf("%d of 1 requests were admitted", n)
	}
	for _, limit := range []string{`"off"`, "7", "0"} {
		k := root.do(t, "PATCH", "/v1/admin/keys/"+id, fmt.Sprintf(`{"rate_limit":%s}`, limit)).want(t, 200)
		if !strings.Contains(string(k.body), `"rate_limit":`+limit) {
			t.Errorf("%s: %v", limit, k)
		}
		o.do(t, "GET", "/v1/calls", "").want(t, 200)
	}
	for range 2 {
		if k := root.do(t, "POST", "/v1/admin/keys/"+id+"/revoke", "").want(t, 200).object(t); k["revoked_at"] == nil {
			t.Errorf("%v", k)
		}
		wantError(t, o.do(t, "GET", "/v1/calls", ""), 401, "api_key_revoked")
	}
}

func webhooks(t *testing.T, s *service) {
	root, o := s.root(t), s.empty(t)
	made := root.do(t, "POST", "/v1/admin/webhooks", fmt.Sprintf(`{"organization_id":%q,"url":"https://crm.example/hook"}`, o.id)).want(t, http.StatusCreated).object(t)
	if secret, _ := made["secret"].(string); !strings.HasPrefix(secret, "whsec_") || len(made["events"].([]any)) != 2 {
		t.Errorf("%v", made)
	}
	const own = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	changed := root.do(t, "POST", "/v1/admin/webhooks", fmt.Sprintf(`{"organization_id":%q,"url":"https://crm.example/hook","secret":%q,"events":["call_ended"]}`, o.id, own)).want(t, http.StatusCreated).object(t)
	if changed["webhook_id"] != made["webhook_id"] || changed["secret"] != own || len(changed["events"].([]any)) != 1 {
		t.Errorf("%v", changed)
	}
	list := root.do(t, "GET", "/v1/admin/webhooks?organization_id="+o.id, "").want(t, 200)
	if all := list.object(t)["webhooks"].([]any); len(all) != 1 || strings.Contains(string(list.body), "whsec_") {
		t.Errorf("%v", list)
	}
	id := made["webhook_id"].(string)
	root.do(t, "DELETE", "/v1/admin/webhooks/"+id, "").want(t, 200)
	wantError(t, root.do(t, "DELETE", "/v1/admin/webhooks/"+id, ""), 404, "not_found_error")
}

func marketPackages(t *testing.T, s *service) {
	root, o := s.root(t), s.empty(t)
	users := func(market string) (names []any) {
		for _, p := range root.do(t, "GET", "/v1/admin/market-packages", "").want(t, 200).object(t)["market_packages"].([]any) {
			if p := p.(map[string]any); p["market"] == market && p["of_program"] == true && p["version"] != "" {
				names = p["organizations"].([]any)
			}
		}
		return names
	}
	path := "/v1/admin/organizations/" + o.id
	for _, market := range []string{"us", "kz", ""} {
		changed := root.do(t, "PATCH", path, fmt.Sprintf(`{"market":%q}`, market)).want(t, 200).object(t)
		read := root.do(t, "GET", path, "").want(t, 200).object(t)
		if fmt.Sprint(changed) != fmt.Sprint(read) || read["market"] != market || read["market_version"] != "" || read["name"] != o.name {
			t.Errorf("changed %v, read %v", changed, read)
		}
		if market != "" && !slices.Contains(users(market), any(o.name)) {
			t.Errorf("%s is not a user of market %s", o.name, market)
		}
	}
	for _, body := range []string{``, `{}`, `{"market":5}`, `{"market":"xx"}`, `{"market":"us","market_version":"none"}`, `{"market":"","market_version":"x"}`} {
		if issuesOf(t, root.do(t, "PATCH", path, body)) == nil {
			t.Errorf("%s", body)
		}
	}
}

func adminErrors(t *testing.T, s *service) {
	root := s.root(t)
	for _, id := range []string{"x", "%00", "%ff"} {
		for _, p := range []string{"GET organizations/%s", "GET keys/%s", "POST keys/%s/revoke", "DELETE webhooks/%s"} {
			method, path, _ := strings.Cut(fmt.Sprintf(p, id), " ")
			wantError(t, root.do(t, method, "/v1/admin/"+path, ""), 404, "not_found_error")
		}
		wantError(t, root.do(t, "PATCH", "/v1/admin/keys/"+id, `{"rate_limit":1}`), 404, "not_found_error")
		wantError(t, root.do(t, "PATCH", "/v1/admin/organizations/"+id, `{"market":"us"}`), 404, "not_found_error")
	}
	wantError(t, root.do(t, "POST", "/v1/admin/keys", `{"organization_id":"x"}`), 404, "not_found_error")
	wantError(t, root.do(t, "POST", "/v1/admin/webhooks", `{"organization_id":"x","url":"https://a.example"}`), 404, "not_found_error")
	for path, bodies := range map[string][]string{
		"organizations": {``, `{}`, `{"name":""}`, `{"name":" "}`, `{"name":5}`, `{"name":"x","timezone":"Nowhere"}`, `{"name":"x","timezone":"EST"}`, `{"name":"a\u0000"}`},
		"keys": {
			`{}`, `{"organization_id":"x","rate_limit":-1}`, `{"organization_id":"x","rate_limit":"on"}`, `{"organization_id":"x","rate_limit":1.5}`,
			`{"organization_id":"x","scopes":["write"]}`, `{"organization_id":"x","scopes":"read"}`, `{"organization_id":"x","privileged":true,"scopes":["read"]}`,
			`{"organization_id":"x","expires_at":1}`, `{"organization_id":"x","expires_at":1e12}`,
		},
		"webhooks": {`{}`, `{"organization_id":"x","url":"ftp://a"}`, `{"organization_id":"x","url":"https://a.example","secret":"short"}`, `{"organization_id":"x","url":"https://a.example","events":["x"]}`},
	} {
		for _, body := range bodies {
			if issuesOf(t, root.do(t, "POST", "/v1/admin/"+path, body)) == nil {
				t.Errorf("%s %s", path, body)
			}
		}
	}
}
