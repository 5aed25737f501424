package main

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

// metrics is what Prometheus reads; docs/metrics.md explains each.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
	phases   *prometheus.HistogramVec
	turns    *prometheus.CounterVec
	calls    *prometheus.CounterVec
}

func newMetrics() *metrics {
	m := &metrics{
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
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_calls_total", Help: "Calls that are over, by status and reason.",
		}, []string{"status", "reason"}),
	}
	m.registry.MustRegister(m.requests, m.phases, m.turns, m.calls,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// watch reads what the house counts itself.
func (m *metrics) watch(h *house) {
	gauge := func(name, help string, read func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
	}
	count := func(name, help string, read func() int64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(read()) }))
	}
	gauge("parley_calls_live", "Calls of this node that are not over.", func() float64 { return float64(h.live.Count()) })
	gauge("parley_sip_legs", "Legs that are up.", func() float64 { up, _ := h.ua.Calls(); return float64(up) })
	gauge("parley_media_clock_worst_seconds", "The greatest lateness of the media clock.", func() float64 { return h.clock.Stats().Worst.Seconds() })
	count("parley_media_clock_late_ticks_total", "Ticks that began more than a tick late.", func() int64 { return h.clock.Stats().Late })
	count("parley_media_clock_skipped_ticks_total", "Ticks that were skipped.", func() int64 { return h.clock.Stats().Skipped })
	count("parley_sip_dropped_total", "Messages dropped unread.", func() int64 { n, _ := h.ua.Refused(); return n })
	count("parley_sip_unreadable_total", "Messages that could not be read.", func() int64 { _, n := h.ua.Refused(); return n })
	count("parley_rtp_lost_packets_total", "Packets of ended calls that never came.", func() int64 { return h.transport.Stats().Lost })
	count("parley_rtp_late_packets_total", "Packets of ended calls that came too late.", func() int64 { return h.transport.Stats().Late })
	count("parley_rtp_concealed_frames_total", "Frames of ended calls with holes in them.", func() int64 { return h.transport.Stats().Concealed })
	count("parley_rtp_underruns_total", "Frames of ended calls that were not sent in time.", func() int64 { return h.transport.Stats().Underruns })
}

// handler serves /metrics and the profiles of the process.
func (m *metrics) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// request is told of every answer of the API.
func (m *metrics) request(route, method string, status int, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		method = "other" // a client may call its method anything: each would be a series of its own
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Observe(took.Seconds())
}

// follower counts calls as they end.
func (m *metrics) follower(calls callFinder) control.Follower { return &counting{m, calls} }

// A callFinder finds calls; the store does.
type callFinder interface {
	Call(ctx context.Context, orgID, id string) (control.Call, error)
}

type counting struct {
	*metrics
	calls callFinder
}

// Follow implements control.Follower.
func (c *counting) Follow(ctx context.Context, e control.Event) error {
	if e.Kind != control.CallEnded {
		return nil
	}
	call, err := c.calls.Call(ctx, "", e.CallID)
	if err == nil {
		c.metrics.calls.WithLabelValues(string(call.Status), string(call.Reason)).Inc()
	}
	return err
}

// talker measures the turns of what talks.
func (m *metrics) talker(t control.Talker) control.Talker { return &measured{t, m} }

type measured struct {
	control.Talker
	metrics *metrics
}

// Talk implements control.Talker.
func (t *measured) Talk(ctx context.Context, leg media.Leg, b pipeline.Brief) (pipeline.Outcome, error) {
	b.Watch = &observed{b.Watch, t.metrics}
	return t.Talker.Talk(ctx, leg, b)
}

type observed struct {
	pipeline.Watcher
	metrics *metrics
}

// Turned implements pipeline.Watcher.
func (o *observed) Turned(t pipeline.Turn) {
	o.Watcher.Turned(t)
	o.metrics.turns.WithLabelValues(string(t.Ending)).Inc()
	for _, s := range t.Spans {
		o.metrics.phases.WithLabelValues(strings.TrimSuffix(string(s.Phase), "_ms")).Observe(s.For.Seconds())
	}
	if t.Audible() {
		o.metrics.phases.WithLabelValues("turn").Observe(t.Total().Seconds())
	}
}
