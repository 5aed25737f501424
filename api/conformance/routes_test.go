package conformance_test

import (
	"fmt"
	"testing"

	"github.com/parley-voice/parley/sip/siptest"
)

// TestRoutes covers trunks, subgroups and grants.
func TestRoutes(t *testing.T) {
	checkAll(t, "R", []statement{
		{1, "a missing agent_id returns 422 invalid_request at query.agent_id", routesWithoutAgent},
		{2, "an unknown agent returns 422 campaign_agent_unknown", routesUnknownAgent},
		{3, "the list has the trunks and subgroups of the agent", routesOfAnAgent},
		{4, "one subgroup is the default binding; several are ambiguous", routesAreAmbiguous},
		{5, "a subgroup reports its limits and their use", routesInUse},
		{6, "a reachable trunk is up, an unreachable one is down", trunkStatus},
		{7, "a lent trunk is listed with access grant, the lent pool and the smaller limits", routesLent},
		{8, "a call through a lent trunk uses the grant's pool; other numbers return 400 caller_number_outside_grant_pool", grantCallerNumber},
		{9, "a grant's lower concurrency limit applies: 429 subgroup_concurrency_limit without Retry-After", grantConcurrency},
		{10, "a grant's lower rate limit applies: 429 subgroup_rate_limit, Retry-After 60", grantRate},
		{11, "a subgroup's lower limits apply on a lent trunk", subgroupBelowGrant},
		{12, "a trunk whose grant was revoked returns 404 trunk_not_found, its subgroups 404 subgroup_not_found", revokedGrant},
		{13, "a trunk of another organization returns 404 trunk_not_found, like an unknown one", foreignTrunk},
		{14, "after a 503 of the first proxy, the call goes to the next", failsOver},
	})
}

func (o *organization) routes(t *testing.T, agent string) map[string]any {
	t.Helper()
	return o.do(t, "GET", "/v1/dialing-routes?agent_id="+agent, "").want(t, 200).object(t)
}

func first(t *testing.T, of map[string]any, member string) map[string]any {
	t.Helper()
	all, _ := of[member].([]any)
	if len(all) == 0 {
		t.Fatalf("no %s in %v", member, of)
	}
	return all[0].(map[string]any)
}

// lend grants the trunk main to a new organization and adds a subgroup to it.
func (o *organization) lend(t *testing.T, grant, subgroup string) *organization {
	t.Helper()
	b := o.s.empty(t)
	b.apply(t, fmt.Sprintf(`
organizations:
- {name: %s, grants: [{trunk: main, to: %s, caller_numbers: ["+12025550101"]%s}]}
- name: %[2]s
  agents: [{name: sales, published: true, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}]
  granted_trunks:
  - {trunk: main, of: %[1]s, subgroups: [{name: default, allowed_destinations: ["1"], agents: [sales]%[4]s}]}
`, o.name, b.name, grant, subgroup))
	return b
}

func routesWithoutAgent(t *testing.T, s *service) {
	a := s.empty(t).do(t, "GET", "/v1/dialing-routes", "")
	wantError(t, a, 422, "invalid_request")
	issue, _ := a.envelope(t)["message"].([]any)[0].(map[string]any)
	if fmt.Sprint(issue["loc"]) != "[query agent_id]" || issue["type"] != "missing" {
		t.Errorf("%v", a)
	}
}

func routesUnknownAgent(t *testing.T, s *service) {
	o, other := s.empty(t), s.organization(t)
	for _, agent := range []string{"unknown", "sales", "%00", "%ff"} {
		wantError(t, o.do(t, "GET", "/v1/dialing-routes?agent_id="+agent, ""), 422, "campaign_agent_unknown")
	}
	if len(other.routes(t, "sales")["trunks"].([]any)) != 1 {
		t.Error("the owner does not see the trunk")
	}
}

func routesOfAnAgent(t *testing.T, s *service) {
	o := s.organization(t)
	o.apply(t, fmt.Sprintf(`organizations: [{name: %s, agents: [{name: idle, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}]}]`, o.name))
	if l := o.routes(t, "idle"); len(l["trunks"].([]any)) != 0 || l["default_binding"] != nil || l["ambiguous"] != false {
		t.Errorf("an agent without a subgroup: %v", l)
	}
	l := o.routes(t, "sales")
	trunk := first(t, l, "trunks")
	subgroup := first(t, trunk, "subgroups")
	if l["agent_id"] != "sales" || trunk["name"] != "main" || trunk["access"] != "own" || subgroup["name"] != "default" ||
		subgroup["default_from_number"] != "+12025550100" || len(subgroup["from_numbers"].([]any)) != 2 ||
		fmt.Sprint(subgroup["allowed_destinations"]) != "[1]" || subgroup["dial_prefix"] != "" {
		t.Errorf("%v", l)
	}
	// A listed route accepts calls.
	o.do(t, "POST", "/v1/calls/phone", fmt.Sprintf(`{"agent_id":"sales","to_number":%q,"trunk_id":%q,"route_id":%q,"from_number":"+12025550101"}`,
		s.phone(siptest.Script{Status: 486}), trunk["trunk_id"], subgroup["route_id"])).want(t, 202)
}

func routesAreAmbiguous(t *testing.T, s *service) {
	o := s.organization(t)
	l := o.routes(t, "sales")
	subgroup := first(t, first(t, l, "trunks"), "subgroups")
	b, _ := l["default_binding"].(map[string]any)
	if l["ambiguous"] != false || b["trunk_id"] != first(t, l, "trunks")["trunk_id"] || b["route_id"] != subgroup["route_id"] || b["from_number"] != "+12025550100" {
		t.Errorf("%v", l)
	}
	o.apply(t, fmt.Sprintf(`organizations: [{name: %s, trunks: [{name: main, subgroups: [{name: second, allowed_destinations: ["1"], agents: [sales]}]}]}]`, o.name))
	if l := o.routes(t, "sales"); l["ambiguous"] != true || l["default_binding"] != nil {
		t.Errorf("two subgroups: %v", l)
	}
	wantError(t, o.order(t, ""), 409, "agent_subgroup_ambiguous")
}

func routesInUse(t *testing.T, s *service) {
	o := s.organization(t)
	over := make(chan struct{})
	id := o.place(t, s.phone(siptest.Script{Status: 200, Talk: hangUpOn(over)}))
	o.await(t, o.place(t, s.phone(siptest.Script{Status: 486})), "failed")
	o.await(t, id, "ongoing")
	subgroup := first(t, first(t, o.routes(t, "sales"), "trunks"), "subgroups")
	close(over)
	if got := fmt.Sprint(subgroup["limits"], subgroup["in_use"]); got != "map[calls_per_minute:60000 concurrent_calls:1000] map[calls_last_60s:2 concurrent_calls:1]" {
		t.Errorf("%s", got)
	}
}

func trunkStatus(t *testing.T, s *service) {
	o := s.organization(t)
	o.apply(t, fmt.Sprintf(`organizations: [{name: %s, trunks: [{name: gone, proxy: "sip:127.0.0.1:9;transport=tcp", subgroups: [{name: d, agents: [sales]}]}]}]`, o.name))
	waitUntil(t, "main is up, gone is down", func() bool {
		all := o.routes(t, "sales")["trunks"].([]any)
		gone, main := all[0].(map[string]any), all[1].(map[string]any)
		return main["status"] == "up" && gone["status"] == "down"
	})
}

func routesLent(t *testing.T, s *service) {
	b := s.organization(t).lend(t, ", concurrent_calls: 5, calls_per_minute: 40", ", concurrent_calls: 10, calls_per_minute: 30")
	trunk := first(t, b.routes(t, "sales"), "trunks")
	subgroup := first(t, trunk, "subgroups")
	if trunk["access"] != "grant" || fmt.Sprint(subgroup["from_numbers"]) != "[+12025550101]" ||
		fmt.Sprint(subgroup["limits"]) != "map[calls_per_minute:30 concurrent_calls:5]" {
		t.Errorf("%v", trunk)
	}
}

func grantCallerNumber(t *testing.T, s *service) {
	b := s.organization(t).lend(t, "", "")
	number := s.phone(siptest.Script{Status: 486})
	b.await(t, b.place(t, number), "failed")
	if invites := s.invitesTo(number); len(invites) != 1 || invites[0].From != "+12025550101" {
		t.Errorf("the carrier received %+v", invites)
	}
	b.order(t, `"from_number":"12025550101"`).want(t, 202)
	for _, n := range []string{"+12025550100", "+12025550199"} {
		wantError(t, b.order(t, `"from_number":"`+n+`"`), 400, "caller_number_outside_grant_pool")
	}
}

func grantConcurrency(t *testing.T, s *service) {
	b := s.organization(t).lend(t, ", concurrent_calls: 1", ", concurrent_calls: 100, calls_per_minute: 100")
	over := make(chan struct{})
	defer close(over)
	b.await(t, b.place(t, s.phone(siptest.Script{Status: 200, Talk: hangUpOn(over)})), "ongoing")
	a := b.order(t, "")
	wantError(t, a, 429, "subgroup_concurrency_limit")
	if after := a.header.Get("Retry-After"); after != "" {
		t.Errorf("Retry-After %s", after)
	}
}

func grantRate(t *testing.T, s *service) {
	b := s.organization(t).lend(t, ", calls_per_minute: 2", ", concurrent_calls: 100, calls_per_minute: 100")
	b.order(t, "").want(t, 202)
	b.order(t, "").want(t, 202)
	a := b.order(t, "")
	wantError(t, a, 429, "subgroup_rate_limit")
	if after := a.header.Get("Retry-After"); after != "60" {
		t.Errorf("Retry-After %s", after)
	}
}

func subgroupBelowGrant(t *testing.T, s *service) {
	b := s.organization(t).lend(t, ", concurrent_calls: 100, calls_per_minute: 100", ", concurrent_calls: 100, calls_per_minute: 2")
	b.order(t, "").want(t, 202)
	b.order(t, "").want(t, 202)
	wantError(t, b.order(t, ""), 429, "subgroup_rate_limit")
}

func revokedGrant(t *testing.T, s *service) {
	o := s.organization(t)
	b := o.lend(t, "", "")
	trunk := first(t, b.routes(t, "sales"), "trunks")
	route := first(t, trunk, "subgroups")["route_id"]
	o.apply(t, fmt.Sprintf(`organizations: [{name: %s, grants: []}]`, o.name))
	wantError(t, b.order(t, fmt.Sprintf(`"trunk_id":%q`, trunk["trunk_id"])), 404, "trunk_not_found")
	wantError(t, b.order(t, fmt.Sprintf(`"route_id":%q`, route)), 404, "subgroup_not_found")
	if l := b.routes(t, "sales"); len(l["trunks"].([]any)) != 0 {
		t.Errorf("%v", l)
	}
}

func foreignTrunk(t *testing.T, s *service) {
	o, b := s.organization(t), s.organization(t)
	theirs := first(t, b.routes(t, "sales"), "trunks")
	a := o.order(t, fmt.Sprintf(`"trunk_id":%q`, theirs["trunk_id"]))
	wantError(t, a, 404, "trunk_not_found")
	if none := o.order(t, `"trunk_id":"trk_00000000000000000000000000"`); string(none.body) != string(a.body) {
		t.Errorf("%v and %v", a, none)
	}
}

func failsOver(t *testing.T, s *service) {
	o := s.organization(t)
	dead := &siptest.Carrier{Listen: "127.0.0.1:0", Answer: func(siptest.Invite) siptest.Script { return siptest.Script{Ring: -1, Status: 503} }}
	if err := dead.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dead.Close() }()
	o.apply(t, fmt.Sprintf(`organizations: [{name: %s, trunks: [{name: main, proxy: %q, backups: [%q]}]}]`, o.name, dead.Proxy(), s.carrier.Proxy()))
	number := s.phone(siptest.Script{Status: 486})
	if c := o.await(t, o.place(t, number), "failed"); c["disconnection_reason"] != "busy" {
		t.Errorf("%v", c["disconnection_reason"])
	}
	first, second := dead.Journal(), s.invitesTo(number)
	if len(first) != 1 || len(second) != 1 || first[0].ID != second[0].ID {
		t.Errorf("the first proxy received %d INVITEs, the second %d", len(first), len(second))
	}
}
