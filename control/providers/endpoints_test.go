package providers

import (
	"bytes"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
)

// TestEndpoints checks that endpoints are read as they were stored, and that their secrets are encrypted. A change must
// delete old test results. Storing the same endpoints again must change nothing.
func TestEndpoints(t *testing.T) {
	d, ctx := dbtest.New(t), t.Context()
	dbtest.Exec(t, d, "INSERT INTO organizations (id, name) VALUES ('org_1', 'acme'), ('org_2', 'globex')")
	groq := endpoints.Endpoint{
		Kind: "chat", URL: "https://api.groq.com/openai/v1", Key: "canary1", Model: "m", Concurrency: 7,
		Header: http.Header{"X-Key": {"canary2"}},
	}
	azure := endpoints.Endpoint{Kind: "azure", Key: "canary3", Region: "westeurope"}
	old := endpoints.Endpoint{Kind: "azure-openai", URL: "https://x.openai.azure.com", APIVersion: "2024-10-21", Key: "k"}
	for orgID, all := range map[string]map[string]endpoints.Endpoint{
		"": {"groq": groq, "old": old}, "org_1": {"groq": groq, "azure": azure}, "org_2": {"azure": azure},
	} {
		if err := ReplaceEndpoints(ctx, d.Pool, orgID, all); err != nil {
			t.Fatal(err)
		}
	}
	read := func() endpoints.Set {
		t.Helper()
		s, err := ReadEndpoints(ctx, d.Pool)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	want := endpoints.Set{
		Named: map[string]endpoints.Endpoint{"groq": groq, "old": old},
		Organizations: map[string]map[string]endpoints.Endpoint{
			"org_1": {"groq": groq, "azure": azure}, "org_2": {"azure": azure},
		},
	}
	if got := read(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	stored := dbtest.Value[string](t, d, "SELECT json_agg(p)::text FROM provider_endpoints p")
	if strings.Contains(stored, "canary") {
		t.Errorf("a secret is not sealed: %s", stored)
	}

	age := func() {
		dbtest.Exec(t, d, `INSERT INTO provider_checks (org_id, engines, report, at)
			SELECT 'org_' || n, '', '[]', now() - interval '1 minute' FROM generate_series(1, 2) n ON CONFLICT DO NOTHING`)
	}
	checks := func() int { return dbtest.Value[int](t, d, "SELECT count(*) FROM provider_checks") }
	for _, tt := range []struct {
		orgID string
		all   map[string]endpoints.Endpoint
		left  int
	}{
		{"org_1", map[string]endpoints.Endpoint{"groq": groq, "azure": azure}, 2}, // no change
		{"org_1", map[string]endpoints.Endpoint{"azure": azure}, 1},
		{"", map[string]endpoints.Endpoint{}, 0},
	} {
		age()
		before := dbtest.Value[string](t, d, "SELECT coalesce(string_agg(xmin::text, ' ' ORDER BY org_id, name), '') FROM provider_endpoints")
		if err := ReplaceEndpoints(ctx, d.Pool, tt.orgID, tt.all); err != nil {
			t.Fatal(err)
		}
		after := dbtest.Value[string](t, d, "SELECT coalesce(string_agg(xmin::text, ' ' ORDER BY org_id, name), '') FROM provider_endpoints")
		if n := checks(); n != tt.left || (before == after) != (tt.left == 2) {
			t.Errorf("%q: %d checks, rows %s, then %s", tt.orgID, n, before, after)
		}
	}
	dbtest.Exec(t, d, `INSERT INTO provider_endpoints (org_id, name, settings, secret, header_secrets)
		VALUES (NULL, 'type', '{"kind": "chat", "concurrency": "x"}', '', ''), (NULL, 'headers', '{"kind": "chat"}', '', 'canary')`)
	if all, notes := Merge(endpoints.Set{}, read()); len(all.Named) != 0 || notes == nil || strings.Contains(notes.Error(), "canary") {
		t.Errorf("rows that cannot be read: %+v, %v", all.Named, notes)
	}
	if err := ReplaceEndpoints(ctx, d.Pool, "", nil); err != nil { // overwrites the unreadable endpoints
		t.Fatal(err)
	}
	dbtest.Exec(t, d, "DELETE FROM organizations WHERE id = 'org_2'")
	if got := read(); len(got.Named) != 0 || len(got.Organizations) != 1 || len(got.Organizations["org_1"]) != 1 {
		t.Errorf("%+v", got)
	}
}

// TestFollower checks that a server gets the valid endpoints of its settings and of the database. It must get them
// again only after a change.
func TestFollower(t *testing.T) {
	d, ctx := dbtest.New(t), t.Context()
	chat := func(url string) endpoints.Endpoint { return endpoints.Endpoint{Kind: "chat", URL: url} }
	dbtest.Exec(t, d, "INSERT INTO organizations (id, name) VALUES ('org_1', 'acme')")
	stored := map[string]endpoints.Endpoint{"a": chat("https://file"), "b": chat("https://file"), "gone": {Kind: "kind-of-a-later-version"}}
	for _, orgID := range []string{"", "org_1"} {
		if err := ReplaceEndpoints(ctx, d.Pool, orgID, stored); err != nil {
			t.Fatal(err)
		}
	}
	var used []endpoints.Set
	var log bytes.Buffer
	f := &Follower{
		DB: d.Pool, Settings: endpoints.Set{Named: map[string]endpoints.Endpoint{"a": chat("https://settings")}, Fake: "fakes"},
		Use: func(s endpoints.Set) { used = append(used, s) }, Log: slog.New(slog.NewTextHandler(&log, nil)),
	}
	for range 2 {
		if err := f.Load(ctx); err != nil {
			t.Fatal(err)
		}
	}
	want := endpoints.Set{
		Named:         map[string]endpoints.Endpoint{"a": chat("https://settings"), "b": chat("https://file")},
		Organizations: map[string]map[string]endpoints.Endpoint{"org_1": {"a": chat("https://file"), "b": chat("https://file"), "gone": {}}},
		Fake:          "fakes",
	}
	if len(used) != 1 || !reflect.DeepEqual(used[0], want) {
		t.Errorf("%+v", used)
	}
	for _, text := range []string{"a: the server's settings have an endpoint with this name", "gone: kind", "gone of organization org_1: kind"} {
		if strings.Count(log.String(), text) != 1 {
			t.Errorf("no %q in %s", text, log.String())
		}
	}
	stored["a"] = chat("https://other") // still overridden by the settings
	if err := ReplaceEndpoints(ctx, d.Pool, "", stored); err != nil {
		t.Fatal(err)
	}
	if err := f.Load(ctx); err != nil || len(used) != 1 || strings.Count(log.String(), "settings have an endpoint") != 1 {
		t.Errorf("%v, %+v, %s", err, used, log.String())
	}
	delete(stored, "gone")
	if err := ReplaceEndpoints(ctx, d.Pool, "", stored); err != nil {
		t.Fatal(err)
	}
	if err := f.Load(ctx); err != nil || len(used) != 1 || strings.Count(log.String(), "settings have an endpoint") != 2 {
		t.Errorf("other notes: %v, %+v, %s", err, used, log.String())
	}
	if err := ReplaceEndpoints(ctx, d.Pool, "", nil); err != nil {
		t.Fatal(err)
	}
	if err := f.Load(ctx); err != nil || len(used) != 2 || len(used[1].Named) != 1 {
		t.Errorf("%v, %+v", err, used)
	}
}
