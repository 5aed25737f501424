package tracing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/webhook"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// Handler reads the header traceparent (W3C Trace Context) of requests, for Order.
func (t *Tracer) Handler(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Traceparent") != "" {
			r = r.WithContext(propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header)))
		}
		next.ServeHTTP(w, r)
	})
}

// Order sends the span of an accepted order, which was received at began. The span links to the trace of the client.
func (t *Tracer) Order(ctx context.Context, callID string, began time.Time) {
	if !t.Traces(callID) {
		return
	}
	s := span{key: "order", name: "order", kind: trace.SpanKindServer, from: began, to: time.Now()}
	if client := trace.SpanContextFromContext(ctx); client.IsValid() {
		// The state of the client's trace may contain anything, so it is left out.
		s.links = []trace.Link{{SpanContext: client.WithTraceState(trace.TraceState{})}}
	}
	t.send(callID, s)
}

// Talker returns a Talker that calls next and sends the spans of its turns.
func (t *Tracer) Talker(next control.Talker) control.Talker {
	if t == nil {
		return next
	}
	return tracedTalker{next, t}
}

type tracedTalker struct {
	control.Talker
	tracer *Tracer
}

// Talk implements control.Talker.
func (k tracedTalker) Talk(ctx context.Context, leg media.Leg, b pipeline.SessionConfig) (pipeline.Outcome, error) {
	if k.tracer.Traces(b.CallID) {
		b.Observer = pipeline.CombineObservers(b.Observer, turnObserver{k.tracer, b.CallID})
	}
	return k.Talker.Talk(ctx, leg, b)
}

type turnObserver struct {
	tracer *Tracer
	callID string
}

// OnLine implements pipeline.Observer.
func (turnObserver) OnLine(pipeline.Line) {}

// OnTurn implements pipeline.Observer.
func (o turnObserver) OnTurn(t pipeline.Turn) { o.tracer.send(o.callID, turnSpans(t)...) }

// turnSpans returns the span of a turn and those of its phases, which add up to it.
func turnSpans(t pipeline.Turn) []span {
	if t.EndedAt.IsZero() {
		return nil
	}
	key := fmt.Sprint("turn/", t.Number)
	from := t.EndedAt.Add(-t.Total())
	whole := span{key: key, name: "turn", parent: "conversation", from: from, to: t.EndedAt, attrs: []attribute.KeyValue{
		attribute.Int("parley.turn.number", t.Number), attribute.String("parley.turn.ending", string(t.Ending)),
		attribute.String("parley.turn.reason", t.Reason), attribute.Bool("parley.turn.estimated", t.Estimated),
		attribute.Int("parley.turn.speculations", t.Speculations), attribute.Int("parley.turn.merged_from", t.MergedFrom),
		attribute.Int("gen_ai.usage.input_tokens", t.TokensIn), attribute.Int("gen_ai.usage.output_tokens", t.TokensOut),
	}}
	if t.Ending == pipeline.Failed {
		whole.fault = "a provider failed"
	}
	all := []span{whole}
	for _, s := range t.Spans {
		name := strings.TrimSuffix(string(s.Phase), "_ms")
		all = append(all, span{key: key + "/" + name, name: name, parent: key, from: from, to: from.Add(s.For)})
		from = from.Add(s.For)
	}
	return all
}

// Delivery sends the span of an attempt to deliver a webhook.
func (t *Tracer) Delivery(a webhook.Attempt) {
	if !t.Traces(a.CallID) {
		return
	}
	s := span{
		key: fmt.Sprint("webhook/", a.DeliveryID, "/", a.Number), name: "webhook", kind: trace.SpanKindClient, from: a.Began, to: a.Ended,
		attrs: []attribute.KeyValue{
			attribute.String("parley.webhook.type", a.Type), attribute.String("parley.webhook.delivery", a.DeliveryID),
			attribute.String("parley.webhook.endpoint", a.EndpointID), attribute.Int("parley.webhook.attempt", a.Number),
			attribute.String("parley.webhook.state", a.State),
		},
	}
	s.attrs = append(s.attrs, status("http.response.status_code", a.Status)...)
	if a.State != "delivered" {
		s.fault = "not delivered"
	}
	t.send(a.CallID, s)
}

// Calls reads calls. *store.Store implements it.
type Calls interface {
	Call(ctx context.Context, orgID, id string) (control.Call, error)
}

// Follower is an event handler that sends the spans of ended calls. It runs after the recording was stored.
type Follower struct {
	Tracer *Tracer
	Calls  Calls
	Pool   *pgxpool.Pool
}

// HandleEvent implements control.EventHandler. If it gets an event again, it sends spans with the same ids.
func (f *Follower) HandleEvent(ctx context.Context, e control.Event) error {
	if e.Kind != control.CallEnded || !f.Tracer.Traces(e.CallID) {
		return nil
	}
	c, err := f.Calls.Call(ctx, "", e.CallID)
	if err != nil {
		return err
	}
	var claimed time.Time
	err = f.Pool.QueryRow(ctx, `SELECT claimed_at FROM attempts
		WHERE call_id = $1 AND leg = 'callee' AND claimed_at IS NOT NULL ORDER BY attempt_no DESC LIMIT 1`, c.ID).Scan(&claimed)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("attempt: %w", err)
	}
	f.Tracer.send(c.ID, callSpans(c, claimed, time.Now())...)
	return nil
}

// callSpans returns the spans of an ended call, except for those of its order, turns and webhooks. claimed is zero if no
// node claimed the call. recorded is when its recording was stored.
func callSpans(c control.Call, claimed, recorded time.Time) []span {
	all := []span{rootSpan(c)}
	add := func(name, parent string, from, to time.Time, attrs ...attribute.KeyValue) {
		if !from.IsZero() && !to.IsZero() {
			all = append(all, span{key: name, name: name, parent: parent, from: from, to: to, attrs: attrs})
		}
	}
	add("queue", "", c.CreatedAt, first(claimed, c.EndedAt))
	if !claimed.IsZero() {
		add("claim", "", claimed, first(c.DialedAt, c.AnsweredAt, c.EndedAt))
	}
	reached := first(c.AnsweredAt, c.EndedAt)
	add("invite", "", c.DialedAt, reached, status("parley.sip.status", c.SIPStatus)...)
	add("ringing", "invite", c.RingingAt, reached)
	add("conversation", "", c.AnsweredAt, c.EndedAt)
	if !c.AnsweredAt.IsZero() && (c.RecordingStatus == control.RecordingReady || c.RecordingStatus == control.RecordingFailed) {
		add("recording", "", c.EndedAt, recorded,
			attribute.String("parley.recording.status", string(c.RecordingStatus)), attribute.Bool("parley.recording.truncated", c.Truncated))
		if c.RecordingStatus == control.RecordingFailed {
			all[len(all)-1].fault = "the recording was lost"
		}
	}
	return all
}

// rootSpan returns the span of a whole call. Its attributes contain neither numbers nor anything that a client or a
// caller wrote.
func rootSpan(c control.Call) span {
	s := span{key: rootKey, name: "call", from: c.CreatedAt, to: c.EndedAt}
	for _, a := range [][2]string{
		{"parley.call.id", c.ID},
		{"parley.call.type", c.Type},
		{"parley.call.status", string(c.Status)},
		{"parley.call.reason", string(c.Reason)},
		{"parley.call.hangup_by", string(c.HangupBy)},
		{"parley.call.answered_by", c.AnsweredBy},
		{"parley.organization.id", c.OrgID},
		{"parley.agent.id", c.AgentID},
		{"parley.trunk.id", c.TrunkID},
		{"parley.route.id", c.RouteID},
		{"parley.campaign.id", c.CampaignID},
	} {
		if a[1] != "" {
			s.attrs = append(s.attrs, attribute.String(a[0], a[1]))
		}
	}
	s.attrs = append(s.attrs, attribute.Int("parley.agent.version", c.AgentVersion))
	faults := []control.Reason{
		control.ReasonAgentError, control.ReasonInternalError, control.ReasonNotConfigured, control.ReasonNodeLost, control.ReasonUnknown,
	}
	if slices.Contains(faults, c.Reason) {
		s.fault = string(c.Reason)
	}
	return s
}

// status returns an attribute with the status of a response, and none if there was no response.
func status(key string, code int) []attribute.KeyValue {
	if code == 0 {
		return nil
	}
	return []attribute.KeyValue{attribute.Int(key, code)}
}

// first returns the first time that is set.
func first(all ...time.Time) time.Time {
	for _, t := range all {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}
