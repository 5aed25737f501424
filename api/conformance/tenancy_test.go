package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
)

// TestTenancy covers the isolation of organizations for every operation of the OpenAPI description.
func TestTenancy(t *testing.T) {
	checkAll(t, "T", []statement{
		{1, "a foreign id in any path returns 404 with the same body as an unknown id", foreignPaths},
		{2, "a foreign id in any query is treated like an unknown id", foreignQueries},
		{3, "a foreign id in any body is treated like an unknown id", foreignBodies},
		{4, "lists contain only objects of the key's organization", ownLists},
		{5, "foreign keys reject rows that belong to two organizations", crossOrganizationRows},
	})
}

// A neighbor is another organization with an id of each kind.
type neighbor struct {
	*organization

	ids []string
}

func newNeighbor(t *testing.T, s *service) neighbor {
	t.Helper()
	n := neighbor{organization: s.organization(t)}
	n.apply(t, fmt.Sprintf(`
organizations:
- name: %s
  webhooks: [{url: "https://crm.example/hook", secret: "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}]
  agents:
  - {name: %[1]s-agent, published: true, prompt: x, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}
`, n.name))
	call := n.await(t, n.place(t, s.busyNumber()), "failed")
	n.ids = []string{call["call_id"].(string), n.id, n.name, n.name + "-agent"}
	for _, table := range []string{"api_keys", "agents", "trunks", "subgroups", "attempts", "webhook_endpoints"} {
		var id string
		if err := s.db.Pool.QueryRow(t.Context(), "SELECT id FROM "+table+" WHERE org_id = $1 LIMIT 1", n.id).Scan(&id); err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		n.ids = append(n.ids, id)
	}
	return n
}

// unknownID returns an id of the same form that no object has.
func unknownID(id string) string {
	prefix, _, ok := strings.Cut(id, "_")
	if !ok {
		return control.NewID("unknown-", time.Now())
	}
	return control.NewID(prefix+"_", time.Now())
}

type operation struct {
	method, path string
	query, body  []string // query parameters that contain IDs
}

func (s *service) operations(t *testing.T) (all []operation) {
	t.Helper()
	o := s.empty(t)
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters  []struct{ Name, In string }
			RequestBody struct {
				Content map[string]struct {
					Schema struct {
						Ref string `json:"$ref"`
					}
				}
			}
		}
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(o.do(t, "GET", "/openapi.json", "").want(t, 200).body, &doc); err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for method, op := range doc.Paths[path] {
			x := operation{method: strings.ToUpper(method), path: path}
			for _, p := range op.Parameters {
				if p.In == "query" && strings.HasSuffix(p.Name, "_id") {
					x.query = append(x.query, p.Name)
				}
			}
			schema := strings.TrimPrefix(op.RequestBody.Content["application/json"].Schema.Ref, "#/components/schemas/")
			for name := range doc.Components.Schemas[schema].Properties {
				if strings.HasSuffix(name, "_id") {
					x.body = append(x.body, name)
				}
			}
			all = append(all, x)
		}
	}
	return all
}

// same checks that a foreign ID gets the same status and body as an unknown ID.
func same(t *testing.T, id string, request func(id string) response) response {
	t.Helper()
	unknown := unknownID(id)
	theirs, none := request(id), request(unknown)
	if theirs.status != none.status || !bytes.Equal(bytes.ReplaceAll(theirs.body, []byte(id), []byte(unknown)), none.body) {
		t.Errorf("%s of another organization: %v; an unknown id: %v", id, theirs, none)
	}
	return theirs
}

func foreignPaths(t *testing.T, s *service) {
	o, n := s.organization(t), newNeighbor(t, s)
	requests := 0
	for _, op := range s.operations(t) {
		if !strings.Contains(op.path, "{id}") {
			continue
		}
		for _, id := range n.ids {
			body := "{}"
			if strings.HasSuffix(op.path, "/calls") && op.method == "POST" { // errors of the body precede
				body = `{"calls":[{"phone":"2125550123"}],"attestation":{"confirmed":true}}`
			}
			a := same(t, id, func(id string) response {
				return o.do(t, op.method, strings.ReplaceAll(op.path, "{id}", id), body, "Idempotency-Key", "k")
			})
			switch {
			case strings.HasPrefix(op.path, "/v1/admin/"):
				wantError(t, a, 403, "privileged_key_required")
			case a.status != 404:
				t.Errorf("%s %s with a foreign %s: %v", op.method, op.path, id, a)
			}
			requests++
		}
	}
	if requests < 50 {
		t.Errorf("only %d requests were made", requests)
	}
	if c := n.do(t, "GET", "/v1/calls/"+n.ids[0], "").want(t, 200).object(t); c["status"] != "failed" {
		t.Errorf("the status of the neighbor's call is %v", c["status"])
	}
}

func foreignQueries(t *testing.T, s *service) {
	o, n := s.organization(t), newNeighbor(t, s)
	requests := 0
	for _, op := range s.operations(t) {
		for _, name := range op.query {
			for _, id := range n.ids {
				same(t, id, func(id string) response { return o.do(t, op.method, op.path+"?"+name+"="+url.QueryEscape(id), "") })
				requests++
			}
		}
	}
	if requests < 50 {
		t.Errorf("only %d requests were made", requests)
	}
}

func foreignBodies(t *testing.T, s *service) {
	o, n := s.organization(t), newNeighbor(t, s)
	requests := 0
	for _, op := range s.operations(t) {
		for _, name := range op.body {
			for _, id := range n.ids {
				body := map[string]any{"agent_id": "sales", "to_number": "+12025550000"}
				a := same(t, id, func(id string) response {
					body[name] = id
					text, err := json.Marshal(body)
					if err != nil {
						t.Fatal(err)
					}
					return o.do(t, op.method, strings.ReplaceAll(op.path, "{id}", "x"), string(text))
				})
				if a.status < 400 {
					t.Errorf("%s %s accepts a foreign %s as %s: %v", op.method, op.path, id, name, a)
				}
				requests++
			}
		}
	}
	if requests < 30 {
		t.Errorf("only %d requests were made", requests)
	}
}

func ownLists(t *testing.T, s *service) {
	o, n := s.organization(t), newNeighbor(t, s)
	own := o.place(t, s.busyNumber())
	for _, op := range s.operations(t) {
		if op.method != "GET" || strings.Contains(op.path, "{") {
			continue
		}
		a := o.do(t, "GET", op.path+"?agent_id=sales&limit=100", "")
		for _, id := range n.ids {
			if bytes.Contains(a.body, []byte(id)) {
				t.Errorf("GET %s contains the foreign %s", op.path, id)
			}
		}
		if op.path == "/v1/calls" && !bytes.Contains(a.body, []byte(own)) {
			t.Errorf("GET %s lacks its own call: %v", op.path, a)
		}
	}
}

func crossOrganizationRows(t *testing.T, s *service) {
	o, n := s.organization(t), newNeighbor(t, s)
	call := n.ids[0]
	for what, sql := range map[string]string{
		"an attempt":   "INSERT INTO attempts (id, call_id, org_id, trunk_id, subgroup_id, attempt_no, leg) VALUES ('x', $2, $1, '', '', 9, 'transfer')",
		"an event":     "INSERT INTO events (call_id, org_id, kind) VALUES ($2, $1, 'x')",
		"a trace":      "INSERT INTO call_signalling (call_id, attempt_id, org_id, messages) VALUES ($2, 'x', $1, '[]')",
		"a subgroup":   "INSERT INTO subgroups (id, org_id, trunk_id, name, concurrent_calls, calls_per_minute) SELECT 'x', $1, id, 'x', 1, 1 FROM trunks t WHERE org_id = (SELECT org_id FROM calls WHERE id = $2)",
		"an agent":     "INSERT INTO subgroup_agents (org_id, subgroup_id, agent_id) SELECT $1, s.id, a.id FROM subgroups s, agents a WHERE s.org_id = $1 AND a.org_id = (SELECT org_id FROM calls WHERE id = $2)",
		"its subgroup": "INSERT INTO subgroup_agents (org_id, subgroup_id, agent_id) SELECT $1, s.id, a.id FROM subgroups s, agents a WHERE a.org_id = $1 AND s.org_id = (SELECT org_id FROM calls WHERE id = $2)",
	} {
		if _, err := s.db.Pool.Exec(t.Context(), sql, o.id, call); err == nil || !strings.Contains(err.Error(), "23503") {
			t.Errorf("%s of another organization: %v, want a foreign key violation", what, err)
		}
	}
}
