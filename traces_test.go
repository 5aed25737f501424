package main

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/tracing"
	"github.com/parley-voice/parley/sip/siptest"
)

// collector is an OTLP/HTTP receiver that requires a key.
type collector struct {
	t     *testing.T
	mu    sync.Mutex
	spans []*tracepb.Span
	text  []byte // all messages
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	z, err := gzip.NewReader(r.Body)
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("X-Key") != canary {
		c.t.Errorf("an invalid request: %s, %v, %v", r.URL.Path, r.Header, err)
		return
	}
	text, err := io.ReadAll(z)
	var all tracepb.TracesData
	if err != nil || proto.Unmarshal(text, &all) != nil {
		c.t.Errorf("an invalid body: %v", err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = append(c.text, text...)
	for _, res := range all.GetResourceSpans() {
		for _, s := range res.GetScopeSpans() {
			c.spans = append(c.spans, s.GetSpans()...)
		}
	}
}

// TestTrace places a call on one server process, and lets the next process deliver its webhook. All spans must form one
// tree, and the phases of a turn must add up to the turn.
func TestTrace(t *testing.T) {
	t.Parallel()
	s := newProcess(t, carrier(t, &siptest.Carrier{Answer: func(siptest.Invite) siptest.Script {
		return siptest.Script{
			Ring: 50 * time.Millisecond, After: 50 * time.Millisecond, Status: http.StatusOK,
			Talk: siptest.Person{Lines: []string{"when do you open"}}.Talk,
		}
	}}).Addr().String())
	to := &collector{t: t}
	receiver := httptest.NewServer(to)
	defer receiver.Close()
	var up, refused atomic.Bool
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !up.Load() {
			refused.Store(true)
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer hook.Close()
	if _, err := s.db.Pool.Exec(t.Context(), "UPDATE webhook_endpoints SET url = $1", hook.URL); err != nil {
		t.Fatal(err)
	}
	s.environ = append(s.environ, "PARLEY_OTLP_URL="+receiver.URL, "PARLEY_OTLP_HEADERS=X-Key="+canary, "PARLEY_LOG_LEVEL=debug")
	cmd := s.serve()
	s.waitReady()
	id, client := s.orderWithTrace()
	call, turns := waitEnded(t, s.api, id)
	eventually(t, "the webhook was refused", refused.Load)
	s.end(cmd)
	up.Store(true)
	cmd = s.serve()
	eventuallyWithin(t, 20*time.Second, "the webhook is delivered", func() bool {
		return s.count("SELECT count(*) FROM webhook_deliveries WHERE state = 'delivered'") == 1
	})
	s.waitReady()
	s.end(cmd)
	to.check(id, client, call, turns)
	if log := strings.Join(s.log, "\n"); strings.Contains(log, canary) {
		t.Errorf("the log contains a key:\n%s", log)
	}
}

// orderWithTrace requests a call as part of a trace of the client. It returns the id of the call and of the client's
// trace.
func (s *soak) orderWithTrace() (id, trace string) {
	s.t.Helper()
	trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	body, err := json.Marshal(map[string]any{"agent_id": "demo", "to_number": demo.Number})
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.api.URL+"/v1/calls/phone", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.api.Key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
	r.Header.Set("Tracestate", "vendor="+canary)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var placed apiCall
	if err := json.NewDecoder(resp.Body).Decode(&placed); err != nil || placed.CallID == "" {
		s.t.Fatalf("the order got status %d, %v", resp.StatusCode, err)
	}
	return placed.CallID, trace
}

// check compares the spans with the call.
func (c *collector) check(id, client string, call demo.Call, turns []demo.Turn) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	trace := tracing.TraceID(id)
	byID, names := map[string]*tracepb.Span{}, map[string]int{}
	for _, s := range c.spans {
		byID[string(s.GetSpanId())] = s
	}
	sums := map[string]uint64{} // length of the phases, by span of the turn
	for _, s := range c.spans {
		if !slices.Equal(s.GetTraceId(), trace[:]) {
			c.t.Errorf("span %s belongs to trace %x, want %s", s.GetName(), s.GetTraceId(), trace)
		}
		name := s.GetName()
		if up := byID[string(s.GetParentSpanId())]; up != nil {
			name = up.GetName() + "/" + name
			if up.GetName() == "turn" {
				sums[string(up.GetSpanId())] += s.GetEndTimeUnixNano() - s.GetStartTimeUnixNano()
			}
		} else if len(s.GetParentSpanId()) > 0 {
			c.t.Errorf("span %s has no parent", name)
		}
		names[name]++
	}
	want := map[string]int{
		"call": 1, "call/order": 1, "call/queue": 1, "call/claim": 1, "call/invite": 1, "invite/ringing": 1, "call/conversation": 1,
		"conversation/turn": len(turns), "call/recording": 1, "call/webhook": 2,
	}
	for _, turn := range turns {
		for key := range turn.Metrics {
			if name, ok := strings.CutSuffix(key, "_ms"); ok && name != "turn" {
				want["turn/"+name]++
			}
		}
	}
	for name := range want {
		if names[name] != want[name] {
			c.t.Errorf("%d spans %s, want %d", names[name], name, want[name])
		}
	}
	if len(names) != len(want) || want["turn/llm"] == 0 || call.Status != "ended" {
		c.t.Errorf("spans %v, want %v; the call is %s", names, want, call.Status)
	}
	for _, s := range c.spans {
		switch s.GetName() {
		case "turn":
			if length := s.GetEndTimeUnixNano() - s.GetStartTimeUnixNano(); sums[string(s.GetSpanId())] != length || length == 0 {
				c.t.Errorf("the phases last %d ns, the turn %d ns", sums[string(s.GetSpanId())], length)
			}
		case "order":
			if links := s.GetLinks(); len(links) != 1 || hex.EncodeToString(links[0].GetTraceId()) != client {
				c.t.Errorf("the order has the links %v", links)
			}
		}
	}
	for _, private := range []string{demo.Number, strings.TrimPrefix(demo.Number, "+"), "when do you open", canary, demo.Secret} {
		if bytes.Contains(c.text, []byte(private)) {
			c.t.Errorf("the spans contain %q", private)
		}
	}
}

// TestTraceDocs checks that docs/traces.md names every span and attribute, and that its example for a collector is YAML.
func TestTraceDocs(t *testing.T) {
	doc := read(t, "docs/traces.md")
	code := read(t, "control/tracing/call.go")
	for part := range strings.SplitSeq(code, `"`) {
		if (strings.HasPrefix(part, "parley.") || strings.HasPrefix(part, "gen_ai.") || strings.HasPrefix(part, "http.r")) && !strings.Contains(doc, "`"+part+"`") {
			t.Errorf("docs/traces.md does not explain %s", part)
		}
	}
	_, text, ok := strings.Cut(doc, "```yaml\n")
	text, _, closed := strings.Cut(text, "```")
	var example struct {
		Receivers map[string]struct{ Protocols map[string]map[string]string }
		Exporters map[string]any
		Service   struct {
			Pipelines map[string]struct{ Receivers, Processors, Exporters []string }
		}
	}
	if err := yaml.Unmarshal([]byte(text), &example); !ok || !closed || err != nil {
		t.Fatalf("the example: %v", err)
	}
	traces := example.Service.Pipelines["traces"]
	for _, name := range traces.Receivers {
		if example.Receivers[name].Protocols["http"]["endpoint"] == "" {
			t.Errorf("the receiver %s has no HTTP endpoint", name)
		}
	}
	for _, name := range traces.Exporters {
		if _, ok := example.Exporters[name]; !ok {
			t.Errorf("the exporter %s is not defined", name)
		}
	}
	if len(traces.Receivers) == 0 || len(traces.Exporters) == 0 {
		t.Errorf("the example has no pipeline of traces: %+v", example)
	}
}
