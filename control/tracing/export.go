package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	exportTimeout  = 30 * time.Second // for one batch, with retries
	requestTimeout = 10 * time.Second
	firstRetry     = time.Second     // doubles with each retry
	longestRetry   = 8 * time.Second // also for Retry-After
	logInterval    = time.Minute     // least time between two log lines about failures
)

// queue bounds the spans that wait, and counts the results. It wraps both ends of the batch processor of the SDK,
// because the processor does not report how many spans it drops.
type queue struct {
	sdk.SpanProcessor
	sdk.SpanExporter
	most int64
	log  *slog.Logger

	waiting, exported, failed, dropped atomic.Int64
	logged                             time.Time // belongs to the exporting goroutine
}

// ExportSpans implements sdk.SpanExporter. It handles errors itself, because the SDK would print them.
func (q *queue) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	n := int64(len(spans))
	defer q.waiting.Add(-n)
	if err := q.SpanExporter.ExportSpans(ctx, spans); err != nil {
		q.failed.Add(n)
		if time.Since(q.logged) > logInterval {
			q.logged = time.Now()
			q.log.WarnContext(ctx, "failed to export spans; calls are not affected", "spans", n, "err", err)
		}
		return nil
	}
	q.exported.Add(n)
	return nil
}

// Shutdown implements sdk.SpanExporter.
func (q *queue) Shutdown(ctx context.Context) error { return q.SpanExporter.Shutdown(ctx) }

// processor is the entry of a queue.
type processor struct{ queue *queue }

// OnStart implements sdk.SpanProcessor.
func (processor) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd implements sdk.SpanProcessor. It drops the span if the queue is full.
func (p processor) OnEnd(s sdk.ReadOnlySpan) {
	if p.queue.waiting.Add(1) > p.queue.most {
		p.queue.waiting.Add(-1)
		p.queue.dropped.Add(1)
		return
	}
	p.queue.OnEnd(s)
}

// Shutdown implements sdk.SpanProcessor.
func (p processor) Shutdown(ctx context.Context) error { return p.queue.SpanProcessor.Shutdown(ctx) }

// ForceFlush implements sdk.SpanProcessor.
func (p processor) ForceFlush(ctx context.Context) error { return p.queue.ForceFlush(ctx) }

// client posts spans as protobuf (OTLP/HTTP). It implements otlptrace.Client. The client of OpenTelemetry would make the
// program 5 MB larger, because it links gRPC.
type client struct {
	url    string
	header http.Header
	http   *http.Client

	once    sync.Once
	closing chan struct{} // closed by abort
}

func newHTTPClient() *http.Client {
	return &http.Client{
		Timeout: requestTimeout,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxConnsPerHost: 2, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: 5 * time.Second,
		},
		// The headers may hold a key, which must not reach another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Start implements otlptrace.Client.
func (*client) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (*client) Stop(context.Context) error { return nil }

// abort ends the current upload, and makes later ones fail at once.
func (c *client) abort() { c.once.Do(func() { close(c.closing) }) }

// UploadTraces implements otlptrace.Client. It retries as the protocol requires.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	body, err := encode(spans)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with this function
		select {
		case <-c.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	for wait := firstRetry; ; wait = min(2*wait, longestRetry) {
		asked, again, err := c.post(ctx, body)
		if err == nil || !again {
			return err
		}
		if end, ok := ctx.Deadline(); ok && time.Until(end) < max(wait, asked) {
			return err
		}
		select {
		case <-time.After(max(wait, asked)):
		case <-ctx.Done():
			return err
		}
	}
}

// encode returns the message TracesData, which has the wire format of ExportTraceServiceRequest, compressed.
func encode(spans []*tracepb.ResourceSpans) ([]byte, error) {
	text, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err = z.Write(text)
	err = errors.Join(err, z.Close())
	return b.Bytes(), err
}

// post sends a request. If it fails, post returns the pause that the collector asked for, and whether a retry may
// succeed.
func (c *client) post(ctx context.Context, body []byte) (asked time.Duration, again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return 0, false, err
	}
	maps.Copy(r.Header, c.header)
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("Content-Encoding", "gzip")
	r.Header.Set("User-Agent", "Parley")
	resp, err := c.http.Do(r)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return 0, ctx.Err() == nil, err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // a connection is reused only if the body was read
	switch resp.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return 0, false, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	default: // a retry would fail too
	}
	if seconds, fault := strconv.Atoi(resp.Header.Get("Retry-After")); fault == nil && seconds > 0 {
		asked = min(time.Duration(seconds)*time.Second, longestRetry)
	}
	return asked, again, fmt.Errorf("the collector answered %s", resp.Status)
}
