// Package metrics is what Prometheus reads of a running service;
// docs/metrics.md explains each. It counts what it is told, and asks the rest
// of those who count it themselves.
package metrics

import (
	"context"
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// Metrics counts. It may be used by any goroutine.
type Metrics struct {
	signalling

	registry *prometheus.Registry
	requests *prometheus.HistogramVec
	phases   *prometheus.HistogramVec
	turns    *prometheus.CounterVec
	early    *prometheus.CounterVec
	calls    *prometheus.CounterVec
	notices  *prometheus.CounterVec
	dials    *prometheus.CounterVec
}

// New returns metrics that have counted nothing.
func New() *Metrics {
	m := &Metrics{
		signalling: newSignalling(),

		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "parley_http_request_seconds", Help: "How long a request took.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"route", "method", "status"}),
		phases: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "parley_turn_seconds", Help: "Phases of a turn, and the whole of it as phase turn.",
			Buckets: []float64{.005, .01, .02, .05, .1, .15, .2, .3, .4, .5, .6, .8, 1, 1.5, 2, 3, 5, 8},
		}, []string{"phase"}),
		turns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_turns_total", Help: "Turns by how they ended.",
		}, []string{"ending"}),
		early: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_speculations_total", Help: "Answers begun before a turn was committed, by whether they were heard.",
		}, []string{"outcome"}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_calls_total", Help: "Calls that are over, by status and reason.",
		}, []string{"status", "reason"}),
		notices: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_webhook_attempts_total", Help: "Attempts to deliver a webhook, by what became of it.",
		}, []string{"state"}),
		dials: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_campaign_attempts_total", Help: "Calls of campaigns that are over, by what came of them.",
		}, []string{"outcome"}),
	}
	m.registry.MustRegister(m.collectors()...)
	m.registry.MustRegister(m.requests, m.phases, m.turns, m.early, m.calls, m.notices, m.dials,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler serves /metrics and the profiles of the process.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// Request is told of every answer of the API.
func (m *Metrics) Request(route, method string, status int, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		method = "other" // a client may call its method anything: each would be a series of its own
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Observe(took.Seconds())
}

// Notice is told of every attempt to deliver a webhook.
func (m *Metrics) Notice(state string) { m.notices.WithLabelValues(state).Inc() }

// Follower counts calls as they end.
func (m *Metrics) Follower() control.Follower { return &counting{m} }

type counting struct{ metrics *Metrics }

// Follow implements control.Follower.
func (c *counting) Follow(_ context.Context, e control.Event) error {
	if e.Kind == control.CallEnded {
		c.metrics.calls.WithLabelValues(string(e.Status), string(e.Reason)).Inc()
	}
	return nil
}

// Talker measures the turns of what talks.
func (m *Metrics) Talker(t control.Talker) control.Talker { return &measured{t, m} }

type measured struct {
	control.Talker
	metrics *Metrics
}

// Talk implements control.Talker.
func (t *measured) Talk(ctx context.Context, leg media.Leg, b pipeline.Brief) (pipeline.Outcome, error) {
	b.Watch = &observed{b.Watch, t.metrics}
	return t.Talker.Talk(ctx, leg, b)
}

type observed struct {
	pipeline.Watcher
	metrics *Metrics
}

// Turned implements pipeline.Watcher.
func (o *observed) Turned(t pipeline.Turn) {
	o.Watcher.Turned(t)
	o.metrics.turns.WithLabelValues(string(t.Ending)).Inc()
	used := 0
	if t.Saved > 0 {
		used = 1
	}
	o.metrics.early.WithLabelValues("used").Add(float64(used))
	o.metrics.early.WithLabelValues("dropped").Add(float64(max(0, t.Speculations-used)))
	for _, s := range t.Spans {
		o.metrics.phases.WithLabelValues(strings.TrimSuffix(string(s.Phase), "_ms")).Observe(s.For.Seconds())
	}
	if t.Audible() {
		o.metrics.phases.WithLabelValues("turn").Observe(t.Total().Seconds())
	}
}

// Stands implements pipeline.Follower.
func (o *observed) Stands(state string) {
	if f, ok := o.Watcher.(pipeline.Follower); ok {
		f.Stands(state)
	}
}

// Saying implements pipeline.Follower.
func (o *observed) Saying(role pipeline.Role, text string, turn int) {
	if f, ok := o.Watcher.(pipeline.Follower); ok {
		f.Saying(role, text, turn)
	}
}
