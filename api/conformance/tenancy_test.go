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

// TestTenancy covers the isolation of organizations. It tests every operation of the OpenAPI description, so that new
// operations are covered.
func TestTenancy(t *testing.T) {
	hold(t, "T", []statement{
		{1, "any id of another organization in any path is 404, with the very body that an id of nobody gets", foreignPaths},
		{2, "any id of another organization in any query is answered as one of nobody", foreignQueries},
		{3, "any id of another organization in any body is answered as one of nobody", foreignBodies},
		{4, "lists tell of the key's organization alone", ownLists},
		{5, "the database itself refuses what belongs to two organizations", twoOwners},
	})
}

// A neighbour is another organization with ids of every kind.
type neighbour struct {
	*organization

	ids []string
}

func neighbours(t *testing.T, s *service) neighbour {
	t.Helper()
	n := neighbour{organization: s.organization(t)}
	n.apply(t, fmt.Sprintf(`
organizations:
- name: %s
  webhooks: [{url: "https://crm.example/hook", secret: "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}]
  agents:
  - {name: %[1]s-agent, published: true, prompt: x, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}
`, n.name))
	call := n.await(t, n.place(t, s.busy()), "failed")
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

// nobodys returns an id of the same form that does not exist.
func nobodys(id string) string {
	prefix, _, ok := strings.Cut(id, "_")
	if !ok {
		return control.NewID("nobody-", time.Now())
	}
	return control.NewID(prefix+"_", time.Now())
}

// An operation is an operation of the OpenAPI description.
type operation struct {
	method, path string
	query, body  []string // parameters that contain ids
}

// operations reads the OpenAPI description.
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
	if err := json.Unmarshal(o.do(t, "GET", "/openapi.json", "").is(t, 200).body, &doc); err != nil {
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

// same checks that the response for an id of another organization equals the response for an id that does not exist,
// in status and body.
func same(t *testing.T, id string, ask func(id string) answer) answer {
	t.Helper()
	nobody := nobodys(id)
	theirs, none := ask(id), ask(nobody)
	if theirs.status != none.status || !bytes.Equal(bytes.ReplaceAll(theirs.body, []byte(id), []byte(nobody)), none.body) {
		t.Errorf("%s of another organization: %v; an id of nobody: %v", id, theirs, none)
	}
	return theirs
}

func foreignPaths(t *testing.T, s *service) {
	o, n := s.organization(t), neighbours(t, s)
	asked := 0
	for _, op := range s.operations(t) {
		if !strings.Contains(op.path, "{id}") {
			continue
		}
		for _, id := range n.ids {
			body := "{}"
			if strings.HasSuffix(op.path, "/calls") && op.method == "POST" { // what is wrong with it is told before
				body = `{"calls":[{"phone":"2125550123"}],"attestation":{"confirmed":true}}`
			}
			a := same(t, id, func(id string) answer {
				return o.do(t, op.method, strings.ReplaceAll(op.path, "{id}", id), body, "Idempotency-Key", "k")
			})
			switch {
			case strings.HasPrefix(op.path, "/v1/admin/"):
				refused(t, a, 403, "privileged_key_required")
			case a.status != 404:
				t.Errorf("%s %s of another's %s: %v", op.method, op.path, id, a)
			}
			asked++
		}
	}
	if asked < 50 {
		t.Errorf("only %d requests were made", asked)
	}
	if c := n.do(t, "GET", "/v1/calls/"+n.ids[0], "").is(t, 200).object(t); c["status"] != "failed" {
		t.Errorf("the neighbour's call is %v", c["status"])
	}
}

func foreignQueries(t *testing.T, s *service) {
	o, n := s.organization(t), neighbours(t, s)
	asked := 0
	for _, op := range s.operations(t) {
		for _, name := range op.query {
			for _, id := range n.ids {
				same(t, id, func(id string) answer { return o.do(t, op.method, op.path+"?"+name+"="+url.QueryEscape(id), "") })
				asked++
			}
		}
	}
	if asked < 50 {
		t.Errorf("only %d requests were made", asked)
	}
}

func foreignBodies(t *testing.T, s *service) {
	o, n := s.organization(t), neighbours(t, s)
	asked := 0
	for _, op := range s.operations(t) {
		for _, name := range op.body {
			for _, id := range n.ids {
				body := map[string]any{"agent_id": "sales", "to_number": "+12025550000"}
				a := same(t, id, func(id string) answer {
					body[name] = id
					text, err := json.Marshal(body)
					if err != nil {
						t.Fatal(err)
					}
					return o.do(t, op.method, strings.ReplaceAll(op.path, "{id}", "x"), string(text))
				})
				if a.status < 400 {
					t.Errorf("%s %s takes another's %s as %s: %v", op.method, op.path, id, name, a)
				}
				asked++
			}
		}
	}
	if asked < 30 {
		t.Errorf("only %d requests were made", asked)
	}
}

func ownLists(t *testing.T, s *service) {
	o, n := s.organization(t), neighbours(t, s)
	own := o.place(t, s.busy())
	for _, op := range s.operations(t) {
		if op.method != "GET" || strings.Contains(op.path, "{") {
			continue
		}
		a := o.do(t, "GET", op.path+"?agent_id=sales&limit=100", "")
		for _, id := range n.ids {
			if bytes.Contains(a.body, []byte(id)) {
				t.Errorf("GET %s tells of another organization's %s", op.path, id)
			}
		}
		if op.path == "/v1/calls" && !bytes.Contains(a.body, []byte(own)) {
			t.Errorf("GET %s does not tell of its own: %v", op.path, a)
		}
	}
}

// twoOwners writes rows directly to the database that would belong to two organizations.
func twoOwners(t *testing.T, s *service) {
	o, n := s.organization(t), neighbours(t, s)
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
			t.Errorf("%s of another organization's: %v, want a foreign key to refuse it", what, err)
		}
	}
}
