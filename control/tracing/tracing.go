// Package tracing sends OpenTelemetry traces of calls over OTLP/HTTP. A trace is one call. Its ids are computed from the
// id of the call, so that spans of several nodes and processes form one trace. Spans are built from stored times after
// the fact: the audio path does not know about them. docs/traces.md lists the spans.
//
// A nil *Tracer is valid and does nothing.
package tracing

import (
	"cmp"
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Settings defines where spans are sent, and of which calls.
type Settings struct {
	URL    string // where spans are posted
	Header http.Header
	Sample float64 // share of the calls that are traced, 0 to 1
	Node   string  // name of this node
	// Version is the version of this program.
	Version string
	// Queue is the maximum number of spans that wait; further spans are dropped. 0 means 8192.
	Queue int
	Log   *slog.Logger
}

// Tracer sends the spans of calls. It is safe for concurrent use. None of its methods waits for the network, except
// for Close.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	sampler  sdk.Sampler
	queue    *queue
	client   *client
}

const (
	queueSize    = 8192 // spans, each about 1 KB
	batchSize    = 512
	batchDelay   = 2 * time.Second
	closeTimeout = 2 * time.Second
)

// Open returns a Tracer that runs until Close.
func Open(ctx context.Context, s Settings) (*Tracer, error) {
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(
			attribute.String("service.name", "parley"), attribute.String("service.version", s.Version),
			attribute.String("service.instance.id", s.Node),
		),
		resource.WithFromEnv(), // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win
	)
	if err != nil {
		return nil, err
	}
	t := &Tracer{
		sampler: newSampler(s.Sample),
		client:  &client{url: s.URL, header: s.Header, http: newHTTPClient(), closing: make(chan struct{})},
	}
	log := cmp.Or(s.Log, slog.New(slog.DiscardHandler))
	t.queue = &queue{SpanExporter: otlptrace.NewUnstarted(t.client), most: int64(cmp.Or(s.Queue, queueSize)), log: log}
	t.queue.SpanProcessor = sdk.NewBatchSpanProcessor(
		t.queue, sdk.WithMaxQueueSize(int(t.queue.most)), sdk.WithMaxExportBatchSize(min(batchSize, int(t.queue.most))),
		sdk.WithBatchTimeout(batchDelay), sdk.WithExportTimeout(exportTimeout),
	)
	t.provider = sdk.NewTracerProvider(
		sdk.WithSampler(t.sampler), sdk.WithIDGenerator(givenIDs{}), sdk.WithResource(about), sdk.WithSpanProcessor(processor{t.queue}),
	)
	t.tracer = t.provider.Tracer("parley")
	return t, nil
}

// Close sends the remaining spans, for closeTimeout at most, and drops the rest.
func (t *Tracer) Close() error {
	if t == nil {
		return nil
	}
	late := time.AfterFunc(closeTimeout, t.client.abort)
	defer late.Stop()
	err := t.provider.Shutdown(context.Background()) // ends soon after abort
	t.client.http.CloseIdleConnections()
	return err
}

// Counts returns the number of spans by result: "exported", "failed" (the collector did not accept them) or "dropped"
// (the queue was full).
func (t *Tracer) Counts() map[string]int64 {
	if t == nil {
		return map[string]int64{"exported": 0, "failed": 0, "dropped": 0}
	}
	return map[string]int64{
		"exported": t.queue.exported.Load(), "failed": t.queue.failed.Load(), "dropped": t.queue.dropped.Load(),
	}
}

// newSampler returns a sampler that decides by the trace id alone, so that all processes with the same share agree.
func newSampler(share float64) sdk.Sampler { return sdk.TraceIDRatioBased(share) }

func isSampled(by sdk.Sampler, id trace.TraceID) bool {
	asked := sdk.SamplingParameters{ParentContext: context.Background(), TraceID: id}
	return id.IsValid() && by.ShouldSample(asked).Decision == sdk.RecordAndSample
}

// Traces reports whether a call is traced.
func (t *Tracer) Traces(callID string) bool { return t != nil && isSampled(t.sampler, TraceID(callID)) }

const (
	callPrefix = "call_"
	crockford  = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
)

// TraceID returns the trace id of a call: the 128 bits of the ULID in the call's id. Its last 80 bits are random. For
// a text that is not the id of a call it returns an invalid id.
func TraceID(callID string) (id trace.TraceID) {
	ulid, ok := strings.CutPrefix(callID, callPrefix)
	if !ok || len(ulid) != 26 || ulid[0] > '7' {
		return id
	}
	for _, c := range []byte(ulid) {
		digit := strings.IndexByte(crockford, c)
		if digit < 0 {
			return trace.TraceID{}
		}
		carry := uint(digit)
		for i := len(id) - 1; i >= 0; i-- { // id = id*32 + digit
			carry |= uint(id[i]) << 5
			id[i], carry = byte(carry&0xff), carry>>8
		}
	}
	return id
}

// spanID returns the id of the span with this key. A span that is sent twice has the same id both times.
func spanID(of trace.TraceID, key string) (id trace.SpanID) {
	sum := sha256.Sum256(append(of[:], key...))
	copy(id[:], sum[:])
	return id
}

// LogAttr adds trace_id to log lines with the id of a traced call, in the attribute "call". Use it as the ReplaceAttr of
// a slog.HandlerOptions. share is Settings.Sample.
func LogAttr(share float64) func([]string, slog.Attr) slog.Attr {
	by := newSampler(share)
	return func(_ []string, a slog.Attr) slog.Attr {
		if a.Key != "call" || a.Value.Kind() != slog.KindString {
			return a
		}
		id := TraceID(a.Value.String())
		if !isSampled(by, id) {
			return a
		}
		// slog passes the attributes of a group to this function again. The type callID ends the recursion.
		return slog.Group("", slog.Any("call", callID(a.Value.String())), slog.String("trace_id", id.String()))
	}
}

type callID string

// rootKey is the key of the span of the whole call.
const rootKey = "call"

// span is a span of a call. Its key is unique within the call.
type span struct {
	key, name string
	parent    string // key of the parent; empty: rootKey
	kind      trace.SpanKind
	from, to  time.Time
	attrs     []attribute.KeyValue
	links     []trace.Link
	fault     string // what went wrong; empty: nothing
}

// send queues spans of a call that is traced.
func (t *Tracer) send(callID string, all ...span) {
	id := TraceID(callID)
	for _, s := range all {
		ctx := context.WithValue(context.Background(), idsKey{}, ids{id, spanID(id, s.key)})
		if s.key != rootKey {
			ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
				TraceID: id, SpanID: spanID(id, cmp.Or(s.parent, rootKey)), TraceFlags: trace.FlagsSampled, Remote: true,
			}))
		}
		if s.to.Before(s.from) { // two clocks measured it
			s.to = s.from
		}
		_, o := t.tracer.Start(ctx, s.name, trace.WithTimestamp(s.from), trace.WithSpanKind(cmp.Or(s.kind, trace.SpanKindInternal)),
			trace.WithAttributes(s.attrs...), trace.WithLinks(s.links...))
		if s.fault != "" {
			o.SetStatus(codes.Error, s.fault)
		}
		o.End(trace.WithTimestamp(s.to))
	}
}

type (
	idsKey struct{}
	ids    struct {
		trace trace.TraceID
		span  trace.SpanID
	}
)

// givenIDs implements sdk.IDGenerator with the ids in the context.
type givenIDs struct{}

// NewIDs implements sdk.IDGenerator.
func (givenIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	given, _ := ctx.Value(idsKey{}).(ids)
	return given.trace, given.span
}

// NewSpanID implements sdk.IDGenerator.
func (g givenIDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	_, id := g.NewIDs(ctx)
	return id
}
