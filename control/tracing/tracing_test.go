package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/webhook"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

func open(t testing.TB, s Settings) *Tracer {
	t.Helper()
	tracer, err := Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return tracer
}

func TestTraceID(t *testing.T) {
	for id, want := range map[string]string{
		"call_00000000000000000000000001": "00000000000000000000000000000001",
		"call_7ZZZZZZZZZZZZZZZZZZZZZZZZZ": "ffffffffffffffffffffffffffffffff",
		"call_01ARZ3NDEKTSV4RRFFQ69G5FAV": "01563e3ab5d3d6764c61efb99302bd5b", // the example of the ULID specification
		"call_8ZZZZZZZZZZZZZZZZZZZZZZZZZ": "00000000000000000000000000000000",
		"call_0000000000000000000000000U": "00000000000000000000000000000000",
		"att_01ARZ3NDEKTSV4RRFFQ69G5FAV":  "00000000000000000000000000000000",
		"":                                "00000000000000000000000000000000",
	} {
		if got := TraceID(id).String(); got != want {
			t.Errorf("%q has the trace id %s, want %s", id, got, want)
		}
	}
}

// TestSamplingIsConsistent checks that processes with the same share choose the same calls, that a larger share includes
// the calls of a smaller one, and that the log agrees.
func TestSamplingIsConsistent(t *testing.T) {
	var tracers []*Tracer
	for _, share := range []float64{0.25, 0.25, 0.5, 1, 0} {
		tracers = append(tracers, open(t, Settings{URL: "http://127.0.0.1:9", Sample: share}))
	}
	logged := LogAttr(0.25)
	const all = 4000
	chosen := 0
	for range all {
		id := control.NewID("call_", time.Now())
		a, b, more := tracers[0].Traces(id), tracers[1].Traces(id), tracers[2].Traces(id)
		if a != b || a && !more || !tracers[3].Traces(id) || tracers[4].Traces(id) {
			t.Fatalf("%s: %v, %v, %v", id, a, b, more)
		}
		if inLog := logged(nil, slog.String("call", id)).Value.Kind() == slog.KindGroup; inLog != a {
			t.Fatalf("%s: traced %v, trace_id in the log %v", id, a, inLog)
		}
		if a {
			chosen++
		}
	}
	if share := float64(chosen) / all; math.Abs(share-0.25) > 0.05 {
		t.Errorf("%.3f of the calls are traced, want 0.25", share)
	}
	for _, tracer := range tracers {
		if err := tracer.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestLogHasTraceID(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{ReplaceAttr: LogAttr(1)}))
	log.With("call", "call_01ARZ3NDEKTSV4RRFFQ69G5FAV").Info("x", "call", "other", "attempt", "a")
	want := `"call":"call_01ARZ3NDEKTSV4RRFFQ69G5FAV","trace_id":"01563e3ab5d3d6764c61efb99302bd5b","call":"other","attempt":"a"}`
	if !strings.Contains(b.String(), want) {
		t.Errorf("%s, want %s in it", b.String(), want)
	}
}

func TestTurnSpans(t *testing.T) {
	end := time.Now()
	turn := pipeline.Turn{Number: 3, EndedAt: end, Ending: pipeline.Failed, Spans: []pipeline.Span{
		{Phase: pipeline.PhaseJitter, For: 20 * time.Millisecond},
		{Phase: pipeline.PhaseEOUWait, For: 300 * time.Millisecond},
		{Phase: pipeline.PhaseLLM, For: 0},
		{Phase: pipeline.PhaseOut, For: 7 * time.Millisecond},
	}}
	all := turnSpans(turn)
	if len(all) != 5 || all[0].parent != "conversation" || all[0].fault == "" || !all[0].to.Equal(end) {
		t.Fatalf("%+v", all)
	}
	at := all[0].from
	for i, name := range []string{"jitter", "eou_wait", "llm", "out"} {
		s := all[i+1]
		if s.name != name || s.key != "turn/3/"+name || s.parent != "turn/3" || !s.from.Equal(at) {
			t.Errorf("phase %d: %+v", i, s)
		}
		at = s.to
	}
	if !at.Equal(end) || end.Sub(all[0].from) != 327*time.Millisecond {
		t.Errorf("the phases end %v before the turn, which lasts %v", end.Sub(at), end.Sub(all[0].from))
	}
	if all := turnSpans(pipeline.Turn{}); all != nil {
		t.Errorf("a turn without times: %+v", all)
	}
}

func TestCallSpans(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1000+int64(s), 0) }
	const secret = "canary"
	private := control.Call{
		ID: "call_x", To: secret, From: secret, DialNumber: secret, Name: secret, SIPReason: secret, ExternalID: secret, Disclosure: secret,
		Metadata: map[string]any{secret: secret}, Variables: map[string]any{secret: secret}, CreatedAt: at(0),
	}
	answered := private
	answered.DialedAt, answered.RingingAt, answered.AnsweredAt, answered.EndedAt = at(2), at(3), at(5), at(9)
	answered.RecordingStatus = control.RecordingReady
	refused := answered
	refused.AnsweredAt, refused.RecordingStatus, refused.SIPStatus = time.Time{}, control.RecordingNone, 486
	canceled := private
	canceled.EndedAt = at(4)
	lost := answered
	lost.RecordingStatus, lost.Reason = control.RecordingFailed, control.ReasonNodeLost
	web := answered
	web.DialedAt, web.RingingAt = time.Time{}, time.Time{}
	for name, c := range map[string]struct {
		call    control.Call
		claimed time.Time
		want    string
	}{
		"answered":      {answered, at(1), "call 0-9, queue 0-1, claim 1-2, invite 2-5, ringing 3-5, conversation 5-9, recording 9-11"},
		"refused":       {refused, at(1), "call 0-9, queue 0-1, claim 1-2, invite 2-9, ringing 3-9"},
		"never claimed": {canceled, time.Time{}, "call 0-4, queue 0-4"},
		"node lost":     {lost, at(1), "call 0-9!, queue 0-1, claim 1-2, invite 2-5, ringing 3-5, conversation 5-9, recording 9-11!"},
		"web call":      {web, at(1), "call 0-9, queue 0-1, claim 1-5, conversation 5-9, recording 9-11"},
	} {
		var got []string
		for _, s := range callSpans(c.call, c.claimed, at(11)) {
			text := fmt.Sprintf("%s %d-%d", s.name, s.from.Unix()-1000, s.to.Unix()-1000)
			if s.fault != "" {
				text += "!"
			}
			got = append(got, text)
			for _, a := range s.attrs {
				if strings.Contains(a.Value.String()+string(a.Key), secret) {
					t.Errorf("%s: the attribute %s contains private data", name, a.Key)
				}
			}
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %s, want %s", name, text, c.want)
		}
	}
}

type silentTalker struct{}

func (silentTalker) Talk(context.Context, media.Leg, pipeline.SessionConfig) (pipeline.Outcome, error) {
	return pipeline.Outcome{}, nil
}

// TestOff checks that without a tracer nothing is wrapped, nothing is allocated, and no goroutine runs.
func TestOff(t *testing.T) {
	before := goleak.IgnoreCurrent()
	var off *Tracer
	talker := silentTalker{}
	if off.Talker(talker) != control.Talker(talker) {
		t.Error("the talker is wrapped")
	}
	mux := http.NewServeMux()
	if off.Handler(mux) != http.Handler(mux) {
		t.Error("the handler is wrapped")
	}
	attempt := webhook.Attempt{CallID: "call_01ARZ3NDEKTSV4RRFFQ69G5FAV"}
	if n := testing.AllocsPerRun(100, func() {
		off.Order(context.Background(), attempt.CallID, time.Time{})
		off.Delivery(attempt)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if err := off.Close(); err != nil || off.Counts()["dropped"] != 0 {
		t.Errorf("%v, %v", err, off.Counts())
	}
	goleak.VerifyNone(t, before)
}

// TestDeadCollector checks that a collector that does not answer delays nobody: spans beyond the queue are dropped and
// counted, and Close gives up after 2 s.
func TestDeadCollector(t *testing.T) {
	before := goleak.IgnoreCurrent()
	release := make(chan struct{})
	dead := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	var b bytes.Buffer
	tracer := open(t, Settings{URL: dead.URL, Sample: 1, Queue: 100, Log: slog.New(slog.NewTextHandler(&b, nil))})
	const all = 1000
	began := time.Now()
	for range all {
		tracer.Order(t.Context(), control.NewID("call_", time.Now()), began)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("%d spans took %v", all, took)
	}
	began = time.Now()
	if err := tracer.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > closeTimeout+500*time.Millisecond {
		t.Errorf("Close took %v", took)
	}
	n := tracer.Counts()
	if n["exported"] != 0 || n["failed"] == 0 || n["dropped"] < all-2*100 || n["failed"]+n["dropped"] != all {
		t.Errorf("%v", n)
	}
	if strings.Count(b.String(), "failed to export spans") != 1 {
		t.Errorf("the log says %s", b.String())
	}
	close(release)
	dead.Close()
	goleak.VerifyNone(t, before)
}

// collector is an OTLP/HTTP receiver.
type collector struct {
	mu    sync.Mutex
	spans []*tracepb.Span
	reply func(http.ResponseWriter, *http.Request) bool // returns whether to read the spans
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !c.reply(w, r) {
		return
	}
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	text, err := io.ReadAll(z)
	var all tracepb.TracesData
	if err != nil || proto.Unmarshal(text, &all) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, res := range all.GetResourceSpans() {
		for _, s := range res.GetScopeSpans() {
			c.spans = append(c.spans, s.GetSpans()...)
		}
	}
}

// TestRetries checks that spans are sent again after 503 but not after 400, that a redirect gets no key, and that the log
// has no key.
func TestRetries(t *testing.T) {
	const key = "canary"
	var requests, stray atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stray.Add(1) }))
	defer other.Close()
	for name, c := range map[string]struct {
		status   int
		requests int64
		exported int64
	}{
		"unavailable": {http.StatusServiceUnavailable, 2, 1},
		"rejected":    {http.StatusBadRequest, 1, 0},
		"redirected":  {http.StatusTemporaryRedirect, 1, 0},
	} {
		requests.Store(0)
		to := &collector{reply: func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("X-Key") != key || r.Header.Get("Content-Type") != "application/x-protobuf" {
				t.Errorf("headers %v", r.Header)
			}
			if requests.Add(1) > 1 {
				return true
			}
			w.Header().Set("Location", other.URL)
			w.WriteHeader(c.status)
			return false
		}}
		receiver := httptest.NewServer(to)
		var b bytes.Buffer
		tracer := open(t, Settings{
			URL: receiver.URL, Header: http.Header{"X-Key": {key}}, Sample: 1, Log: slog.New(slog.NewTextHandler(&b, nil)),
		})
		tracer.Order(t.Context(), control.NewID("call_", time.Now()), time.Now())
		if err := tracer.Close(); err != nil {
			t.Error(err)
		}
		receiver.Close()
		n := tracer.Counts()
		if requests.Load() != c.requests || n["exported"] != c.exported || n["failed"] != 1-c.exported || len(to.spans) != int(c.exported) {
			t.Errorf("%s: %d requests, %v", name, requests.Load(), n)
		}
		if strings.Contains(b.String(), key) || (b.Len() > 0) != (c.exported == 0) {
			t.Errorf("%s: the log says %q", name, b.String())
		}
	}
	if stray.Load() != 0 {
		t.Error("a redirect was followed")
	}
}

// TestTalkerSendsTurns checks that the turns of a traced call become spans, and that the observer still gets them.
func TestTalkerSendsTurns(t *testing.T) {
	to := &collector{reply: func(http.ResponseWriter, *http.Request) bool { return true }}
	receiver := httptest.NewServer(to)
	defer receiver.Close()
	tracer := open(t, Settings{URL: receiver.URL, Sample: 1})
	id := control.NewID("call_", time.Now())
	seen := &countingObserver{}
	_, err := tracer.Talker(greeter{}).Talk(t.Context(), nil, pipeline.SessionConfig{CallID: id, Observer: seen})
	if err != nil || seen.turns != 1 {
		t.Errorf("%v, %d turns", err, seen.turns)
	}
	if err := tracer.Close(); err != nil {
		t.Error(err)
	}
	trace := TraceID(id)
	if len(to.spans) != 2 || !slices.Equal(to.spans[0].GetTraceId(), trace[:]) || !slices.Equal(to.spans[0].GetSpanId(), to.spans[1].GetParentSpanId()) {
		t.Errorf("%v", to.spans)
	}
}

type countingObserver struct{ turns int }

func (*countingObserver) OnLine(pipeline.Line)   {}
func (o *countingObserver) OnTurn(pipeline.Turn) { o.turns++ }

// greeter is a talker with one turn.
type greeter struct{}

func (greeter) Talk(_ context.Context, _ media.Leg, b pipeline.SessionConfig) (pipeline.Outcome, error) {
	b.Observer.OnTurn(pipeline.Turn{EndedAt: time.Now(), Spans: []pipeline.Span{{Phase: pipeline.PhaseTTS, For: time.Millisecond}}})
	return pipeline.Outcome{}, nil
}

// BenchmarkTurn measures the traces of one turn: off (the observer of the conversation is unchanged), of a call that is
// not in the sample, and of a traced call.
func BenchmarkTurn(b *testing.B) {
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer receiver.Close()
	turn := pipeline.Turn{EndedAt: time.Now()}
	for _, p := range []pipeline.Phase{"jitter_ms", "vad_ms", "asr_ms", "eou_wait_ms", "llm_ms", "tts_ms", "out_ms"} {
		turn.Spans = append(turn.Spans, pipeline.Span{Phase: p, For: time.Millisecond})
	}
	run := func(b *testing.B, t *Tracer) {
		b.Helper()
		b.ReportAllocs()
		cfg := pipeline.SessionConfig{CallID: control.NewID("call_", time.Now()), Observer: &countingObserver{}}
		_, err := t.Talker(repeater{func(o pipeline.Observer) {
			for b.Loop() {
				o.OnTurn(turn)
			}
		}}).Talk(b.Context(), nil, cfg)
		if err != nil {
			b.Fatal(err)
		}
	}
	b.Run("off", func(b *testing.B) { run(b, nil) })
	for name, share := range map[string]float64{"not sampled": 0, "traced": 1} {
		b.Run(name, func(b *testing.B) {
			t := open(b, Settings{URL: receiver.URL, Sample: share})
			run(b, t)
			if err := t.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// repeater is a talker that passes its observer to a function.
type repeater struct{ run func(pipeline.Observer) }

func (r repeater) Talk(_ context.Context, _ media.Leg, b pipeline.SessionConfig) (pipeline.Outcome, error) {
	r.run(b.Observer)
	return pipeline.Outcome{}, nil
}
