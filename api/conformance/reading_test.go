package conformance_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/parley-voice/parley/sip/siptest"
)

// TestReadCalls covers reading, listing and ending calls.
func TestReadCalls(t *testing.T) {
	checkAll(t, "L", []statement{
		{1, "a list has call summaries, has_more and next_cursor", listMembers},
		{2, "pages visit every call once in either order", cursorsVisitAll},
		{3, "each filter selects its calls only", filtersMatch},
		{4, "an invalid filter value returns 400 invalid_filter_value", filtersReject},
		{5, "unknown filters are ignored", unknownFilters},
		{6, "a malformed cursor or one of another organization or filter returns 400 invalid_cursor", cursorsReject},
		{7, "a call has every member; missing values are null or empty", allMembers},
		{8, "a completed call has transcript, latency, quality and recording", completedCall},
		{9, "a recording is served through its signed link only, with ranges", recordingByLink},
		{10, "turns are numbered in ascending order with metrics; the greeting is turn 0", turnsOfACall},
		{11, "end cancels a queued call before it is dialed", endQueued},
		{12, "end of a ringing call returns it as failed, cancelled", endRinging},
		{13, "end of a live call returns it as ended, api_hangup, also when repeated", endLive},
		{14, "a call ends max_duration_s after its answer with max_duration", maxDuration},
	})
}

func (o *organization) list(t *testing.T, query string) (ids []string, next string) {
	t.Helper()
	page := o.do(t, "GET", "/v1/calls?"+query, "").want(t, http.StatusOK).object(t)
	for _, c := range page["calls"].([]any) {
		ids = append(ids, c.(map[string]any)["call_id"].(string))
	}
	next, more := page["next_cursor"].(string)
	if page["has_more"] != more {
		t.Errorf("has_more %v, next_cursor %v", page["has_more"], page["next_cursor"])
	}
	return ids, next
}

func listMembers(t *testing.T, s *service) {
	o := s.organization(t)
	if a := o.do(t, "GET", "/v1/calls", ""); string(bytes.TrimSpace(a.body)) != `{"calls":[],"has_more":false,"next_cursor":null}` {
		t.Errorf("an empty list: %v", a)
	}
	id := o.place(t, s.busyNumber())
	c := o.do(t, "GET", "/v1/calls", "").object(t)["calls"].([]any)[0].(map[string]any)
	if c["call_id"] != id || c["to_number"] == nil {
		t.Errorf("%v", c)
	}
	for _, k := range []string{"transcript", "latency", "variables"} {
		if _, has := c[k]; has {
			t.Errorf("a summary has %s", k)
		}
	}
}

func cursorsVisitAll(t *testing.T, s *service) {
	o := s.organization(t)
	var placed []string
	for range 7 {
		placed = append(placed, o.place(t, s.busyNumber()))
	}
	for _, order := range []string{"asc", "desc", ""} {
		var walked []string
		for query, more := "limit=3&order="+order, true; more; {
			ids, next := o.list(t, query)
			walked = append(walked, ids...)
			more = next != ""
			query = "limit=2&order=" + order + "&cursor=" + url.QueryEscape(next)
		}
		if order != "asc" {
			slices.Reverse(walked)
		}
		if !slices.Equal(walked, placed) {
			t.Errorf("order %q: %v, want %v", order, walked, placed)
		}
	}
}

func filtersMatch(t *testing.T, s *service) {
	o := s.organization(t)
	busy, open := s.busyNumber(), s.phone(siptest.Script{Status: http.StatusOK, Talk: siptest.Person{Lines: []string{"when do you open"}}.Talk})
	a := o.do(t, "POST", "/v1/calls/phone", fmt.Sprintf(`{"agent_id":"sales","to_number":%q,"from_number":"+12025550101","metadata":{"external_id":"x1"}}`, busy)).want(t, 202).object(t)
	failed := a["call_id"].(string)
	ended := o.place(t, open)
	c := o.await(t, failed, "failed")
	o.await(t, ended, "ended")
	digits := strings.TrimPrefix(busy, "+1")
	both := []string{ended, failed}
	for query, want := range map[string][]string{
		"status=failed": {failed}, "status=ended": {ended}, "status=ended,failed": both, "status=ended&status=failed": both, "status=queued": nil,
		"call_type=phone": both, "call_type=web": nil, "agent_id=sales": both, "agent_id=unknown": nil, "campaign_id=c": nil, "contact_id=c": nil, "import_id=i": nil,
		"trunk_id=" + c["trunk_id"].(string): both, "route_id=" + c["route_id"].(string): both, "route_id=r": nil, "external_id=x1": {failed},
		"to_number=" + digits: {failed}, "to_number=1" + digits: {failed}, "to_number=%2B1" + digits: {failed},
		"from_number=12025550101": {failed}, "from_number=2025550100": {ended}, "disconnection_reason=busy": {failed}, "disconnection_reason=node_lost": nil,
		"answered_by=fax": nil, "min_duration_s=0": {ended}, "min_duration_s=3600": nil, "max_duration_s=3600": {ended},
		"created_after=1": both, "created_after=9999999999": nil, "created_before=9999999999": both, "created_before=1": nil,
		"status=failed&agent_id=sales&disconnection_reason=busy": {failed}, "status=ended&disconnection_reason=busy": nil, "limit=1": {ended},
	} {
		if got, _ := o.list(t, query); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
}

func filtersReject(t *testing.T, s *service) {
	o := s.empty(t)
	for _, query := range []string{
		"status=new", "status=ended,new", "call_type=fax", "answered_by=dog", "disconnection_reason=boredom", "order=up", "limit=0", "limit=101", "limit=x",
		"created_after=noon", "created_before=-1", "min_duration_s=x", "max_duration_s=NaN", "to_number=abc", "from_number=%2B", "agent_id=%00", "agent_id=%ff",
		"contact_id=" + strings.Repeat("c,", 101),
	} {
		wantError(t, o.do(t, "GET", "/v1/calls?"+query, ""), 400, "invalid_filter_value")
	}
}

func unknownFilters(t *testing.T, s *service) {
	o := s.organization(t)
	id := o.place(t, s.busyNumber())
	if got, _ := o.list(t, "color=red&status=&agent_id="); !slices.Equal(got, []string{id}) {
		t.Errorf("%v", got)
	}
}

func cursorsReject(t *testing.T, s *service) {
	o, other := s.organization(t), s.organization(t)
	for range 2 {
		o.place(t, s.busyNumber())
	}
	_, cursor := o.list(t, "limit=1&agent_id=sales")
	for _, query := range []string{
		"cursor=x", "cursor=AAAA", "cursor=" + strings.Repeat("A", 5000), "agent_id=sales&cursor=A" + cursor, "agent_id=sales&cursor=" + cursor[1:],
		"cursor=" + cursor, "agent_id=other&cursor=" + cursor, "agent_id=sales&order=asc&cursor=" + cursor,
	} {
		wantError(t, o.do(t, "GET", "/v1/calls?"+query, ""), 400, "invalid_cursor")
	}
	wantError(t, other.do(t, "GET", "/v1/calls?agent_id=sales&cursor="+cursor, ""), 400, "invalid_cursor")
	wantError(t, o.do(t, "GET", "/v1/campaigns?agent_id=sales&cursor="+cursor, ""), 400, "invalid_cursor")
	if ids, _ := o.list(t, "agent_id=sales&cursor="+cursor); len(ids) != 1 {
		t.Errorf("the cursor returns %d calls", len(ids))
	}
}

func allMembers(t *testing.T, s *service) {
	o := s.organization(t)
	id := o.place(t, s.busyNumber())
	c := o.await(t, id, "failed")
	for k := range strings.FieldsSeq(`call_id call_type direction status agent_id agent_version to_number from_number trunk_id route_id campaign_id contact_id attempt
		metadata variables created_at dialed_at ringing_at answered_at ended_at duration_s ring_s answered_by disconnection_reason hangup_by sip_status sip_reason
		transfer recording_url recording_channels recording_status call_analysis analysis_status transcript latency`) {
		if _, has := c[k]; !has {
			t.Errorf("no %s", k)
		}
	}
	if c["sip_status"] != 486.0 || c["hangup_by"] != "callee" || c["recording_url"] != nil || fmt.Sprint(c["transcript"]) != "[]" || fmt.Sprint(c["metadata"]) != "map[]" {
		t.Errorf("%v", c)
	}
}

// conversation returns a call with a finished recording. On a busy machine a call may lose its greeting;
// conversation then places another call.
func (o *organization) conversation(t *testing.T) (c map[string]any) {
	t.Helper()
	for range 3 {
		id := o.place(t, o.s.phone(siptest.Script{Status: http.StatusOK, Talk: siptest.Person{Lines: []string{"when do you open", "thanks"}}.Talk}))
		o.await(t, id, "ended")
		waitUntil(t, "the recording is ready", func() bool {
			c = o.do(t, "GET", "/v1/calls/"+id, "").object(t)
			return c["recording_status"] == "ready"
		})
		if lines := c["transcript"].([]any); len(lines) > 2 && lines[0].(map[string]any)["text"] == "Hello, this is Parley." {
			break
		}
	}
	return c
}

// maxDuration limits a call in which both sides keep talking.
func maxDuration(t *testing.T, s *service) {
	o := s.organization(t)
	lines := make([]string, 60)
	for i := range lines {
		lines[i] = "when do you open"
	}
	number := s.phone(siptest.Script{Status: http.StatusOK, Talk: siptest.Person{Lines: lines}.Talk})
	id := o.do(t, "POST", "/v1/calls/phone", fmt.Sprintf(`{"agent_id":"sales","to_number":%q,"max_duration_s":30}`, number)).want(t, 202).object(t)["call_id"].(string)
	waitUntil(t, "the conversation has six lines", func() bool {
		return len(o.do(t, "GET", "/v1/calls/"+id, "").want(t, 200).object(t)["transcript"].([]any)) >= 6
	})
	c := o.await(t, id, "ended", "failed")
	if lasted, _ := c["duration_s"].(float64); c["disconnection_reason"] != "max_duration" || c["hangup_by"] != "system" || lasted < 30 {
		t.Errorf("hangup_by %v, reason %v, after %v s", c["hangup_by"], c["disconnection_reason"], c["duration_s"])
	}
}

func completedCall(t *testing.T, s *service) {
	o := s.organization(t)
	c := o.conversation(t)
	lines := c["transcript"].([]any)
	if len(lines) < 2 || lines[0].(map[string]any)["role"] != "agent" || lines[0].(map[string]any)["text"] != "Hello, this is Parley." {
		t.Errorf("transcript %v", lines)
	}
	if l := c["latency"].(map[string]any); l["turns"].(float64) < 2 || l["turn_ms"].(map[string]any)["p95"] == nil {
		t.Errorf("latency %v", l)
	}
	used := map[any]any{}
	for _, u := range c["usage"].([]any) {
		u := u.(map[string]any)
		for _, unit := range []string{"seconds", "characters", "prompt_tokens"} {
			if u[unit] != nil {
				used[u["serves"]] = unit
			}
		}
	}
	if want := map[any]any{"asr": "seconds", "tts": "characters", "llm": "prompt_tokens"}; !maps.Equal(used, want) {
		t.Errorf("usage %v", c["usage"])
	}
	cost := c["cost"].(map[string]any)
	if len(cost["items"].([]any)) < len(used) || cost["amount"] == nil || cost["currency"] != "USD" || cost["trunk"] == nil {
		t.Errorf("cost %v", cost)
	}
	if q := c["quality"].(map[string]any); q["codec"] == nil || q["mos"] == nil || q["received"] == nil {
		t.Errorf("quality %v", q)
	}
	for _, k := range []string{"dialed_at", "answered_at", "ended_at", "duration_s", "answered_by", "disconnection_reason", "recording_url"} {
		if c[k] == nil {
			t.Errorf("%s is null", k)
		}
	}
}

func recordingByLink(t *testing.T, s *service) {
	o := s.organization(t)
	link := o.conversation(t)["recording_url"].(string)
	path, ok := strings.CutPrefix(link, o.url)
	if !ok {
		t.Fatalf("%s is not a URL of the service", link)
	}
	whole := o.do(t, "GET", path, "", "Authorization", "").want(t, http.StatusOK)
	if whole.header.Get("Content-Type") != "audio/wav" || string(whole.body[:4]) != "RIFF" {
		t.Errorf("%s, %d bytes", whole.header.Get("Content-Type"), len(whole.body))
	}
	part := o.do(t, "GET", path, "", "Authorization", "", "Range", "bytes=100-199").want(t, http.StatusPartialContent)
	if !bytes.Equal(part.body, whole.body[100:200]) || part.header.Get("Content-Range") != fmt.Sprintf("bytes 100-199/%d", len(whole.body)) {
		t.Errorf("%d bytes, %s", len(part.body), part.header.Get("Content-Range"))
	}
	o.do(t, "GET", path, "", "Range", "bytes=999999999-").want(t, http.StatusRequestedRangeNotSatisfiable)
	base, query, _ := strings.Cut(path, "?")
	q, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]string{
		"none": base, "another time": base + "?exp=1" + q.Get("exp") + "&sig=" + q.Get("sig"), "no signature": base + "?exp=" + q.Get("exp"),
		"another call": "/recordings/call_00000000000000000000000000.wav?" + query,
	} {
		if a := o.do(t, "GET", other, ""); a.status != http.StatusNotFound {
			t.Errorf("%s: %v", name, a)
		}
	}
}

func turnsOfACall(t *testing.T, s *service) {
	o := s.organization(t)
	turns := o.do(t, "GET", "/v1/calls/"+o.conversation(t)["call_id"].(string)+"/turns", "").want(t, http.StatusOK).list(t)
	if len(turns) < 2 {
		t.Fatalf("%d turns", len(turns))
	}
	last := -1.0
	for _, item := range turns {
		turn := item.(map[string]any)
		metrics, ok := turn["metrics"].(map[string]any)
		if n := turn["turn"].(float64); !ok || n <= last {
			t.Errorf("turn %v after %v: %v", n, last, metrics)
		} else {
			last = n
		}
		if _, has := metrics["llm_first_sentence_ms"]; has {
			t.Error("the metrics have llm_first_sentence_ms")
		}
	}
	if first := turns[0].(map[string]any); first["turn"] != 0.0 || first["metrics"].(map[string]any)["tts_ms"] == nil {
		t.Errorf("the greeting: %v", first)
	}
}

func endQueued(t *testing.T, s *service) {
	o := s.organization(t)
	o.limitCallStarts(t, "0.03") // the second call waits for half a minute
	o.place(t, s.busyNumber())
	number := s.busyNumber()
	id := o.place(t, number)
	c := o.do(t, "POST", "/v1/calls/"+id+"/end", "").want(t, http.StatusOK).object(t)
	if c["status"] != "failed" || c["disconnection_reason"] != "cancelled" || c["hangup_by"] != "api" || c["dialed_at"] != nil {
		t.Errorf("%v, %v by %v", c["status"], c["disconnection_reason"], c["hangup_by"])
	}
	if n := len(s.invitesTo(number)); n != 0 {
		t.Errorf("%d INVITEs", n)
	}
}

func endRinging(t *testing.T, s *service) {
	o := s.organization(t)
	id := o.place(t, s.phone(siptest.Script{}))
	o.await(t, id, "ringing")
	c := o.do(t, "POST", "/v1/calls/"+id+"/end", "").want(t, http.StatusOK).object(t)
	if c["status"] != "failed" || c["disconnection_reason"] != "cancelled" || c["answered_at"] != nil {
		t.Errorf("%v, %v", c["status"], c["disconnection_reason"])
	}
}

func endLive(t *testing.T, s *service) {
	o := s.organization(t)
	over := make(chan struct{})
	defer close(over)
	id := o.place(t, s.phone(siptest.Script{Status: http.StatusOK, Talk: hangUpOn(over)}))
	o.await(t, id, "ongoing")
	for range 2 {
		c := o.do(t, "POST", "/v1/calls/"+id+"/end", "").want(t, http.StatusOK).object(t)
		if c["status"] != "ended" || c["disconnection_reason"] != "api_hangup" || c["hangup_by"] != "api" {
			t.Errorf("%v, %v by %v", c["status"], c["disconnection_reason"], c["hangup_by"])
		}
	}
}
