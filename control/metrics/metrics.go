// Package metrics exports Prometheus metrics of a running service. docs/metrics.md explains each metric. The package
// counts some metrics itself. It reads the others from other components at each scrape.
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
	"github.com/parley-voice/parley/control/pricing"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/webhook"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// Metrics holds the counters. It is safe for concurrent use.
type Metrics struct {
	signaling

	sampler    *sampler // set by Register
	registry   *prometheus.Registry
	requests   *prometheus.HistogramVec
	phases     *prometheus.HistogramVec
	turns      *prometheus.CounterVec
	early      *prometheus.CounterVec
	calls      *prometheus.CounterVec
	cost       *prometheus.CounterVec
	tests      *prometheus.CounterVec
	deliveries *prometheus.CounterVec
	dials      *prometheus.CounterVec
	recordings *prometheus.CounterVec
}

// New returns metrics without values.
func New() *Metrics {
	m := &Metrics{
		signaling: newSignaling(),

		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "parley_http_request_seconds", Help: "Duration of a request.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"route", "method", "status"}),
		phases: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "parley_turn_seconds", Help: "Duration of the phases of a turn; the phase turn is the whole turn.",
			Buckets: []float64{.005, .01, .02, .05, .1, .15, .2, .3, .4, .5, .6, .8, 1, 1.5, 2, 3, 5, 8},
		}, []string{"phase"}),
		turns:      newCounter("parley_turns_total", "Turns, by ending.", "ending"),
		early:      newCounter("parley_speculations_total", "Answers started before the end of the turn was certain, by outcome.", "outcome"),
		calls:      newCounter("parley_calls_total", "Ended calls, by status and reason.", "status", "reason"),
		cost:       newCounter("parley_call_cost_total", "Cost of ended calls, by service and currency.", "serves", "currency"),
		tests:      newCounter("parley_test_cost_total", "Cost of tests outside of calls, by service and currency.", "serves", "currency"),
		deliveries: newCounter("parley_webhook_attempts_total", "Attempts to deliver a webhook, by state after the attempt.", "state"),
		dials:      newCounter("parley_campaign_attempts_total", "Ended calls of campaigns, by outcome.", "outcome"),
		recordings: newCounter("parley_recordings_total", "Recordings, by result.", "result"),
	}
	// These series start at 0. If a series started with its first event, its increase would not include that event, and
	// alerts would miss it.
	for _, result := range []string{recording.Stored, recording.Truncated, recording.Lost} {
		m.recordings.WithLabelValues(result)
	}
	for _, state := range webhook.States() {
		m.deliveries.WithLabelValues(state)
	}
	m.registry.MustRegister(m.collectors()...)
	m.registry.MustRegister(m.requests, m.phases, m.turns, m.early, m.calls, m.cost, m.tests, m.deliveries, m.dials, m.recordings,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Run reads values that are too slow to read at a scrape, until ctx ends.
func (m *Metrics) Run(ctx context.Context) { m.sampler.run(ctx) }

// Handler serves /metrics and, if profiles is set, the Go profiles of the process.
func (m *Metrics) Handler(profiles bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	if !profiles {
		return mux
	}
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// ObserveRequest records a response of the API.
func (m *Metrics) ObserveRequest(route, method string, status int, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		method = "other" // clients can send any text as the method
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Observe(took.Seconds())
}

// CountDelivery counts one try to deliver a webhook, by the delivery's state afterwards.
func (m *Metrics) CountDelivery(state string) { m.deliveries.WithLabelValues(state).Inc() }

// CountRecording counts the result of one recording.
func (m *Metrics) CountRecording(result string) { m.recordings.WithLabelValues(result).Inc() }

// CountCost counts the cost of a call, or a part of the cost that was added later.
func (m *Metrics) CountCost(c pricing.Cost) {
	for serves, amount := range c.ByService() {
		m.cost.WithLabelValues(serves, c.Currency).Add(amount.Units())
	}
}

// CountTestCost counts the cost of a test of an agent that belongs to no call.
func (m *Metrics) CountTestCost(c pricing.Cost) {
	for serves, amount := range c.ByService() {
		m.tests.WithLabelValues(serves, c.Currency).Add(amount.Units())
	}
}

// Costs reads the costs of calls. *store.Costs implements it.
type Costs interface {
	Cost(ctx context.Context, callID string) (pricing.Cost, error)
}

// CallCounter returns a handler that counts ended calls and their cost.
func (m *Metrics) CallCounter(costs Costs) control.EventHandler { return &callCounter{m, costs} }

type callCounter struct {
	metrics *Metrics
	costs   Costs
}

// HandleEvent implements control.EventHandler.
func (c *callCounter) HandleEvent(ctx context.Context, e control.Event) error {
	if e.Kind != control.CallEnded {
		return nil
	}
	if e.Status == control.Ended { // other calls cost nothing
		cost, err := c.costs.Cost(ctx, e.CallID)
		if err != nil {
			return err
		}
		c.metrics.CountCost(cost)
	}
	c.metrics.calls.WithLabelValues(string(e.Status), string(e.Reason)).Inc()
	return nil
}

// Talker returns a Talker that calls t and measures its turns.
func (m *Metrics) Talker(t control.Talker) control.Talker { return &measuredTalker{t, m} }

type measuredTalker struct {
	control.Talker
	metrics *Metrics
}

// Talk implements control.Talker.
func (t *measuredTalker) Talk(ctx context.Context, leg media.Leg, b pipeline.SessionConfig) (pipeline.Outcome, error) {
	b.Observer = &measuredWatcher{b.Observer, t.metrics}
	return t.Talker.Talk(ctx, leg, b)
}

type measuredWatcher struct {
	pipeline.Observer
	metrics *Metrics
}

// OnTurn implements pipeline.Observer.
func (o *measuredWatcher) OnTurn(t pipeline.Turn) {
	o.Observer.OnTurn(t)
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

// OnState implements pipeline.StateObserver.
func (o *measuredWatcher) OnState(state string) {
	if f, ok := o.Observer.(pipeline.StateObserver); ok {
		f.OnState(state)
	}
}

// OnPartial implements pipeline.StateObserver.
func (o *measuredWatcher) OnPartial(role pipeline.Role, text string, turn int) {
	if f, ok := o.Observer.(pipeline.StateObserver); ok {
		f.OnPartial(role, text, turn)
	}
}
