package conformance_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestPlaceCall covers POST /v1/calls/phone.
func TestPlaceCall(t *testing.T) {
	checkAll(t, "P", []statement{
		{1, "a valid order returns 202 with the queued call", validOrder},
		{2, "only the digits of to_number count; without digits: 400 destination_number_invalid", digitsOnly},
		{3, "the dial prefix precedes the number; allowed destinations are checked without it", prefixAfterPolicy},
		{4, "errors are reported in the documented order", orderOfChecks},
		{5, "a rejected order creates no call", rejectionLeavesNoCall},
		{6, "emergency, short, premium-rate and satellite numbers return 403 destination_not_allowed in every subgroup", forbiddenNumbers},
		{7, "a number on the organization's do-not-call list returns 403 destination_not_allowed in any notation", suppressed},
		{8, "an agent without a subgroup and an unknown agent return 403 agent_not_in_subgroup", notInSubgroup},
		{9, "a caller number outside the pool returns 400 caller_number_not_allowed", callerNumber},
		{10, "queued, ringing and ongoing calls count toward a subgroup's concurrency; ended calls do not", concurrency},
		{11, "a subgroup's rate counts the calls accepted in 60 seconds", rate},
		{12, "ring_duration other than 5 to 120 whole seconds returns 400 ring_duration_invalid", ringDuration},
		{13, "a call that rings for ring_duration fails with no_answer", ringTimeout},
		{14, "an unpublished agent returns 409 agent_not_published, checked after all limits", unpublished},
		{15, "unknown top-level keys are ignored; wrong types return 422 invalid_request", schemas},
		{16, "metadata and variables are echoed; contact_id, campaign_id and import_id are reserved", echoes},
		{17, "record switches recording on and off", recordSwitch},
		{18, "a repeat with the same Idempotency-Key returns the call as created and dials nothing", replay},
		{19, "the same key with another body returns 422 idempotency_key_reuse", reuse},
		{20, "idempotency keys are scoped to an API key", keysAreScoped},
		{21, "a rejected request frees its idempotency key", rejectionFreesKey},
		{22, "100 concurrent orders with one key create one call with one INVITE", concurrentOrders},
		{23, "the response does not wait for the carrier", respondsBeforeRinging},
		{24, "calls_per_second is the minimum spacing of a trunk's calls", spacedCalls},
		{25, "a long queue of one subgroup does not delay another", fairQueue},
		{26, "a full queue returns 429 dial_queue_full before validation, with Retry-After 1 to 60", queueFull},
		{27, "calls beyond the daily limit of the organization return 429 organization_daily_limit with Retry-After", dailyLimit},
		{28, "calls within calls_per_minute of their subgroup are dialed immediately", unspacedCalls},
	})
}

func (o *organization) order(t *testing.T, more string, headers ...string) response {
	t.Helper()
	if more != "" {
		more = "," + more
	}
	return o.do(t, "POST", "/v1/calls/phone", `{"agent_id":"sales","to_number":"+12025550000"`+more+`}`, headers...)
}

// subgroup changes settings of the subgroup default.
func (o *organization) subgroup(t *testing.T, keys string) {
	t.Helper()
	o.apply(t, fmt.Sprintf(`organizations: [{name: %s, trunks: [{name: main, subgroups: [{name: default, %s}]}]}]`, o.name, keys))
}

func (o *organization) limitCallStarts(t *testing.T, perSecond string) {
	t.Helper()
	o.apply(t, fmt.Sprintf(`organizations: [{name: %s, trunks: [{name: main, limits: {calls_per_second: %s}}]}]`, o.name, perSecond))
}

func (o *organization) count(t *testing.T) int {
	t.Helper()
	all, _ := o.do(t, "GET", "/v1/calls?limit=100", "").want(t, 200).object(t)["calls"].([]any)
	return len(all)
}

const longRing = 20 * time.Second

func validOrder(t *testing.T, s *service) {
	o := s.organization(t)
	c := o.order(t, `"name":"Ada"`).want(t, http.StatusAccepted).object(t)
	if c["status"] != "queued" || c["call_type"] != "phone" || c["to_number"] != "+12025550000" || c["from_number"] != "+12025550100" || c["agent_id"] != "sales" {
		t.Errorf("%v", c)
	}
}

func digitsOnly(t *testing.T, s *service) {
	o := s.organization(t)
	number := s.phone(siptest.Script{Status: 486})
	written := "tel: +" + number[1:2] + " (" + number[2:5] + ") " + number[5:8] + "-" + number[8:] + " x"
	o.await(t, o.place(t, written), "failed")
	if invites := s.invitesTo(number); len(invites) != 1 || invites[0].To != number[1:] {
		t.Errorf("%q: %+v", written, invites)
	}
	for _, n := range []string{"", "call me", "+", strings.Repeat("1", 21)} {
		wantError(t, o.do(t, "POST", "/v1/calls/phone", fmt.Sprintf(`{"agent_id":"sales","to_number":%q}`, n)), 400, "destination_number_invalid")
	}
}

func prefixAfterPolicy(t *testing.T, s *service) {
	o := s.organization(t)
	o.subgroup(t, `dial_prefix: "77", allowed_destinations: ["1202"]`)
	number := s.phone(siptest.Script{Status: 486})
	id := o.place(t, number)
	if c := o.await(t, id, "failed"); c["to_number"] != number {
		t.Errorf("to_number %v", c["to_number"])
	}
	if invites := s.invitesTo(number); len(invites) != 1 || invites[0].To != "77"+number[1:] {
		t.Errorf("%+v", invites)
	}
	wantError(t, o.do(t, "POST", "/v1/calls/phone", `{"agent_id":"sales","to_number":"77012345678"}`), 403, "destination_not_allowed")
}

func orderOfChecks(t *testing.T, s *service) {
	o := s.organization(t)
	o.apply(t, fmt.Sprintf(`
organizations:
- name: %s
  agents: [{name: draft, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}]
  trunks: [{name: main, subgroups: [{name: drafts, allowed_destinations: ["1"], agents: [draft], concurrent_calls: 1, calls_per_minute: 1}]}]`, o.name))
	order := func(body string) response { return o.do(t, "POST", "/v1/calls/phone", body) }
	// Each request also has the errors that all later requests test.
	wantError(t, order(`{"agent_id":"draft","to_number":5,"trunk_id":"x"}`), 422, "invalid_request")
	wantError(t, order(`{"agent_id":"draft","to_number":"","trunk_id":"x","route_id":"x"}`), 404, "trunk_not_found")
	wantError(t, order(`{"agent_id":"unknown","to_number":"","route_id":"x","from_number":"1"}`), 404, "subgroup_not_found")
	wantError(t, order(`{"agent_id":"unknown","to_number":"","from_number":"1"}`), 403, "agent_not_in_subgroup")
	wantError(t, order(`{"agent_id":"draft","to_number":"","from_number":"1"}`), 400, "caller_number_not_allowed")
	wantError(t, order(`{"agent_id":"draft","to_number":"","ring_duration":1}`), 400, "destination_number_invalid")
	wantError(t, order(`{"agent_id":"draft","to_number":"911","ring_duration":1}`), 403, "destination_not_allowed")
	wantError(t, order(`{"agent_id":"draft","to_number":"+12025550000","ring_duration":1}`), 400, "ring_duration_invalid")
	wantError(t, order(`{"agent_id":"draft","to_number":"+12025550000"}`), 409, "agent_not_published")
	o.publish(t, "draft")
	order(`{"agent_id":"draft","to_number":"`+s.phone(siptest.Script{Silent: true})+`"}`).want(t, 202)
	o.apply(t, fmt.Sprintf(`organizations: [{name: %s, agents: [{name: draft, published: false}]}]`, o.name))
	wantError(t, order(`{"agent_id":"draft","to_number":"+12025550000","ring_duration":1}`), 429, "subgroup_concurrency_limit")
	o.apply(t, fmt.Sprintf(`organizations: [{name: %s, trunks: [{name: main, subgroups: [{name: drafts, concurrent_calls: 9}]}]}]`, o.name))
	wantError(t, order(`{"agent_id":"draft","to_number":"+12025550000","ring_duration":1}`), 429, "subgroup_rate_limit")
}

func (o *organization) publish(t *testing.T, agent string) {
	t.Helper()
	o.apply(t, fmt.Sprintf(`organizations: [{name: %s, agents: [{name: %s, published: true}]}]`, o.name, agent))
}

func rejectionLeavesNoCall(t *testing.T, s *service) {
	o := s.organization(t)
	o.subgroup(t, "concurrent_calls: 1, calls_per_minute: 1")
	wantError(t, o.order(t, `"ring_duration":1`), 400, "ring_duration_invalid")
	wantError(t, o.order(t, `"from_number":"1"`), 400, "caller_number_not_allowed")
	if n := o.count(t); n != 0 {
		t.Errorf("%d calls", n)
	}
	o.order(t, "").want(t, 202) // the rejected calls used no channel
}

func forbiddenNumbers(t *testing.T, s *service) {
	o := s.organization(t)
	o.subgroup(t, `allowed_destinations: ["0","1","2","3","4","5","6","7","8","9"], dial_prefix: "9"`)
	for _, n := range []string{
		"911", "112", "999", "101", "104", "411", "1911", "+44 999", "123456", "+1 900 555 0123", "+1 202 976 0123", "+882 13 123456",
		"+881 612345678", "+870 773 123456", "+979 123456789", "00 881 612345678", "011 882 13 123456", "+44 9098765432",
	} {
		wantError(t, o.do(t, "POST", "/v1/calls/phone", fmt.Sprintf(`{"agent_id":"sales","to_number":%q}`, n)), 403, "destination_not_allowed")
	}
}

func suppressed(t *testing.T, s *service) {
	o := s.organization(t)
	o.subgroup(t, `allowed_destinations: ["1","2"]`)
	o.apply(t, fmt.Sprintf(`organizations: [{name: %s, suppression: ["+1 202 555 0000"]}]`, o.name))
	wantError(t, o.order(t, ""), 403, "destination_not_allowed")
	wantError(t, o.do(t, "POST", "/v1/calls/phone", `{"agent_id":"sales","to_number":"202 555 0000"}`), 403, "destination_not_allowed")
	s.organization(t).order(t, "").want(t, 202)
}

func notInSubgroup(t *testing.T, s *service) {
	o := s.organization(t)
	o.apply(t, fmt.Sprintf(`organizations: [{name: %s, agents: [{name: idle, published: true, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}]}]`, o.name))
	for _, agent := range []string{"idle", "unknown", ""} {
		wantError(t, o.do(t, "POST", "/v1/calls/phone", fmt.Sprintf(`{"agent_id":%q,"to_number":"+12025550000"}`, agent)), 403, "agent_not_in_subgroup")
	}
}

func callerNumber(t *testing.T, s *service) {
	o := s.organization(t)
	wantError(t, o.order(t, `"from_number":"+12025550199"`), 400, "caller_number_not_allowed")
	if c := o.order(t, `"from_number":"1 202 555 0101"`).want(t, 202).object(t); c["from_number"] != "+12025550101" {
		t.Errorf("from_number %v", c["from_number"])
	}
	o.subgroup(t, `caller_numbers: ["+12025550101"]`)
	wantError(t, o.order(t, `"from_number":"+12025550100"`), 400, "caller_number_not_allowed")
}

func concurrency(t *testing.T, s *service) {
	o := s.organization(t)
	o.subgroup(t, "concurrent_calls: 3")
	over := make(chan struct{})
	ongoing := o.place(t, s.phone(siptest.Script{Status: 200, Talk: hangUpOn(over)}))
	ringing := o.place(t, s.phone(siptest.Script{After: longRing, Status: 486}))
	o.await(t, ongoing, "ongoing")
	o.await(t, ringing, "ringing")
	queued := o.place(t, s.phone(siptest.Script{Silent: true}))
	a := o.order(t, "")
	wantError(t, a, 429, "subgroup_concurrency_limit")
	if _, set := a.header["Retry-After"]; set {
		t.Error("Retry-After is set for an unknown time")
	}
	o.do(t, "POST", "/v1/calls/"+queued+"/end", "").want(t, 200)
	o.do(t, "POST", "/v1/calls/"+ringing+"/end", "").want(t, 200)
	close(over)
	o.await(t, ongoing, "ended")
	o.await(t, ringing, "failed")
	o.await(t, queued, "failed")
	o.order(t, "").want(t, 202)
}

func rate(t *testing.T, s *service) {
	o := s.organization(t)
	o.subgroup(t, "calls_per_minute: 2")
	first := o.order(t, "").want(t, 202).object(t)["call_id"].(string)
	o.do(t, "POST", "/v1/calls/"+first+"/end", "").want(t, 200)
	o.order(t, "").want(t, 202) // a call that has ended counts, too
	a := o.order(t, "")
	wantError(t, a, 429, "subgroup_rate_limit")
	if a.header.Get("Retry-After") != "60" {
		t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
	}
}

func ringDuration(t *testing.T, s *service) {
	o := s.organization(t)
	for _, d := range []string{"4", "121", "5.5", "0", "-5", "1e9"} {
		wantError(t, o.order(t, `"ring_duration":`+d), 400, "ring_duration_invalid")
	}
	for _, d := range []string{"5", "120", "5.0", "null"} {
		o.order(t, `"ring_duration":`+d).want(t, 202)
	}
	wantError(t, o.order(t, `"ring_duration":"45"`), 422, "invalid_request")
}

func ringTimeout(t *testing.T, s *service) {
	o := s.organization(t)
	number := s.phone(siptest.Script{After: longRing, Status: 200})
	id, _ := o.do(t, "POST", "/v1/calls/phone", fmt.Sprintf(`{"agent_id":"sales","to_number":%q,"ring_duration":5}`, number)).want(t, 202).object(t)["call_id"].(string)
	if c := o.await(t, id, "failed"); c["disconnection_reason"] != "no_answer" || c["ended_at"].(float64)-c["dialed_at"].(float64) < 4.9 {
		t.Errorf("%v from %v to %v", c["disconnection_reason"], c["dialed_at"], c["ended_at"])
	}
}

func unpublished(t *testing.T, s *service) {
	o := s.organization(t)
	o.apply(t, fmt.Sprintf(`organizations: [{name: %s, agents: [{name: sales, published: false}]}]`, o.name))
	wantError(t, o.order(t, ""), 409, "agent_not_published")
	o.publish(t, "sales")
	o.order(t, "").want(t, 202)
}

func schemas(t *testing.T, s *service) {
	o := s.organization(t)
	o.order(t, `"extra":{"a":[1]},"TO_NUMBER":5`).want(t, 202)
	for _, more := range []string{`"name":5`, `"variables":[]`, `"metadata":"x"`, `"record":"yes"`, `"max_duration_s":29`, `"voicemail":"shout"`, `"trunk_id":1`} {
		wantError(t, o.order(t, more), 422, "invalid_request")
	}
	for _, body := range []string{``, `{`, `[]`, `{"agent_id":"sales"}`, `{"agent_id":"sales","to_number":12025550000}`} {
		wantError(t, o.do(t, "POST", "/v1/calls/phone", body), 422, "invalid_request")
	}
}

func echoes(t *testing.T, s *service) {
	o := s.organization(t)
	c := o.order(t, `"metadata":{"external_id":"x-1","n":1.50,"contact_id":"con_1","campaign_id":"c","import_id":"i"},"variables":{"a":"b"}`).want(t, 202).object(t)
	if fmt.Sprint(c["metadata"]) != "map[external_id:x-1 n:1.5]" || fmt.Sprint(c["variables"]) != "map[a:b]" || c["contact_id"] != nil || c["campaign_id"] != nil {
		t.Errorf("%v", c)
	}
}

func recordSwitch(t *testing.T, s *service) {
	o := s.organization(t)
	for _, row := range []struct{ more, want string }{{`"record":false`, "disabled"}, {`"record":true`, "none"}, {``, "none"}} {
		if c := o.order(t, row.more).want(t, 202).object(t); c["recording_status"] != row.want {
			t.Errorf("%s: %v", row.more, c["recording_status"])
		}
	}
}

func replay(t *testing.T, s *service) {
	o := s.organization(t)
	number := s.phone(siptest.Script{Status: 486})
	body := fmt.Sprintf(`{"agent_id":"sales","to_number":%q}`, number)
	first := o.do(t, "POST", "/v1/calls/phone", body, "Idempotency-Key", "k").want(t, 202)
	o.await(t, first.object(t)["call_id"].(string), "failed")
	again := o.do(t, "POST", "/v1/calls/phone", " "+body, "Idempotency-Key", " k ").want(t, 202)
	if !bytes.Equal(first.body, again.body) || again.object(t)["status"] != "queued" || again.header.Get("Idempotent-Replayed") != "true" || first.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("%v and then %v", first, again)
	}
	if n := len(s.invitesTo(number)); n != 1 || o.count(t) != 1 {
		t.Errorf("%d INVITEs", n)
	}
}

func reuse(t *testing.T, s *service) {
	o := s.organization(t)
	o.order(t, "", "Idempotency-Key", "k").want(t, 202)
	wantError(t, o.order(t, `"name":"x"`, "Idempotency-Key", "k"), 422, "idempotency_key_reuse")
	wantError(t, o.do(t, "POST", "/v1/calls/phone", "{", "Idempotency-Key", "k"), 422, "idempotency_key_reuse")
}

func keysAreScoped(t *testing.T, s *service) {
	o := s.organization(t)
	first := o.order(t, "", "Idempotency-Key", "k").want(t, 202)
	o.key, _ = o.newKey(t, apikeys.Key{RateLimit: apikeys.RateOff})
	second := o.order(t, "", "Idempotency-Key", "k").want(t, 202)
	if first.object(t)["call_id"] == second.object(t)["call_id"] {
		t.Error("another API key received the first key's call")
	}
}

func rejectionFreesKey(t *testing.T, s *service) {
	o := s.organization(t)
	wantError(t, o.order(t, `"from_number":"1"`, "Idempotency-Key", "k"), 400, "caller_number_not_allowed")
	o.order(t, "", "Idempotency-Key", "k").want(t, 202)
	o.apply(t, fmt.Sprintf(`organizations: [{name: %s, agents: [{name: sales, published: false}]}]`, o.name))
	wantError(t, o.order(t, "", "Idempotency-Key", "l"), 409, "agent_not_published")
	o.publish(t, "sales")
	o.order(t, "", "Idempotency-Key", "l").want(t, 202)
}

func concurrentOrders(t *testing.T, s *service) {
	o := s.organization(t)
	number := s.phone(siptest.Script{Status: 486})
	body := fmt.Sprintf(`{"agent_id":"sales","to_number":%q}`, number)
	var all sync.WaitGroup
	answers := make([]response, 100)
	for i := range answers {
		all.Go(func() {
			var err error
			if answers[i], err = o.request(t.Context(), "POST", "/v1/calls/phone", body, "Idempotency-Key", "k"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	ids := map[any]bool{}
	for _, a := range answers {
		if a.status == 202 {
			ids[a.object(t)["call_id"]] = true
		} else {
			wantError(t, a, 409, "idempotency_key_in_flight")
		}
	}
	if len(ids) != 1 || o.count(t) != 1 {
		t.Fatalf("calls %v", ids)
	}
	for id := range ids {
		o.await(t, id.(string), "failed")
	}
	if n := len(s.invitesTo(number)); n != 1 {
		t.Errorf("%d INVITEs", n)
	}
}

func respondsBeforeRinging(t *testing.T, s *service) {
	o := s.organization(t)
	ring := make(chan struct{})
	number := s.phones(func(siptest.Invite) siptest.Script {
		<-ring
		return siptest.Script{Status: 486}
	})
	id := o.place(t, number)
	if c := o.await(t, id, "queued"); c["ringing_at"] != nil {
		t.Errorf("%v", c)
	}
	close(ring)
	o.await(t, id, "failed")
}

// spacedCalls makes up to three attempts, because a delay between a claim and its INVITE shortens the gap
// to the next call.
func spacedCalls(t *testing.T, s *service) {
	var apart time.Duration
	for range 3 {
		if apart = minGap(t, s); apart >= 350*time.Millisecond {
			return
		}
	}
	t.Errorf("calls started %v apart", apart)
}

// unspacedCalls makes up to three attempts, because a slow machine delays calls.
func unspacedCalls(t *testing.T, s *service) {
	var apart time.Duration
	for range 3 {
		o := s.organization(t)
		o.subgroup(t, "calls_per_minute: 4") // with spacing they would be 15 s apart
		if apart = span(s, fourCalls(t, s, o)); apart < 10*time.Second {
			return
		}
	}
	t.Errorf("four calls of one subgroup started within %v", apart)
}

func span(s *service, numbers []string) time.Duration {
	return s.invitesTo(numbers[len(numbers)-1])[0].At.Sub(s.invitesTo(numbers[0])[0].At).Abs()
}

// minGap returns the shortest time between two calls of a trunk that starts two per second.
func minGap(t *testing.T, s *service) time.Duration {
	o := s.organization(t)
	o.limitCallStarts(t, "2")
	numbers := fourCalls(t, s, o)
	least := time.Hour
	for i := range 3 {
		least = min(least, s.invitesTo(numbers[i+1])[0].At.Sub(s.invitesTo(numbers[i])[0].At))
	}
	return least
}

// fourCalls places four calls and waits until all are dialed.
func fourCalls(t *testing.T, s *service, o *organization) []string {
	var numbers []string
	for range 4 {
		numbers = append(numbers, s.phone(siptest.Script{Status: 486}))
	}
	for _, n := range numbers {
		o.place(t, n)
	}
	waitUntil(t, "all calls are dialed", func() bool {
		for _, n := range numbers {
			if len(s.invitesTo(n)) != 1 {
				return false
			}
		}
		return true
	})
	return numbers
}

func fairQueue(t *testing.T, s *service) {
	o := s.organization(t)
	o.limitCallStarts(t, "1")
	o.apply(t, fmt.Sprintf(`
organizations:
- name: %s
  agents: [{name: other, published: true, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}]
  trunks: [{name: main, subgroups: [{name: other, allowed_destinations: ["1"], agents: [other]}]}]`, o.name))
	for range 20 {
		o.order(t, "").want(t, 202)
	}
	number := s.phone(siptest.Script{Status: 486})
	o.do(t, "POST", "/v1/calls/phone", fmt.Sprintf(`{"agent_id":"other","to_number":%q}`, number)).want(t, 202)
	waitUntil(t, "the other subgroup's call is dialed", func() bool { return len(s.invitesTo(number)) == 1 })
	if n := len(o.do(t, "GET", "/v1/calls?status=queued", "").want(t, 200).object(t)["calls"].([]any)); n == 0 {
		t.Error("the call waited for the whole queue")
	}
}

func queueFull(t *testing.T, s *service) {
	o := s.isolated(t, "PARLEY_DIAL_QUEUE_DEPTH=2")
	o.limitCallStarts(t, "0.1")
	o.await(t, o.order(t, "").want(t, 202).object(t)["call_id"].(string), "ringing", "ongoing", "ended")
	o.order(t, "", "Idempotency-Key", "k").want(t, 202)
	o.order(t, "").want(t, 202)
	a := o.do(t, "POST", "/v1/calls/phone", "{")
	wantError(t, a, 429, "dial_queue_full")
	if after, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || after < 1 || after > 60 {
		t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
	}
	wantError(t, o.order(t, "", "Idempotency-Key", "l"), 429, "dial_queue_full")
	o.order(t, "", "Idempotency-Key", "k").want(t, 202) // a replay queues no second call
	if n := o.count(t); n != 3 {
		t.Errorf("%d calls", n)
	}
}

func dailyLimit(t *testing.T, s *service) {
	o := s.organization(t)
	o.apply(t, fmt.Sprintf(`organizations: [{name: %s, limits: {daily_calls: 1}}]`, o.name))
	o.order(t, "").want(t, 202)
	a := o.order(t, `"ring_duration":1`)
	wantError(t, a, 429, "organization_daily_limit")
	if after, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || after < 1 || after > 86400 {
		t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
	}
}
