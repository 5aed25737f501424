package metrics

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/pipeline/provider"
)

// Intervals of a sampler.
const (
	sampleInterval = 15 * time.Second
	sampleTimeout  = 5 * time.Second
)

// A sampler reads the backlog of the database regularly, because that is too slow for a scrape.
type sampler struct {
	read func(ctx context.Context) (store.Backlog, error)
	log  *slog.Logger

	last atomic.Pointer[store.Backlog] // nil if the last reading failed
}

func (s *sampler) run(ctx context.Context) {
	tick := time.NewTicker(sampleInterval)
	defer tick.Stop()
	for {
		s.sample(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *sampler) sample(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	b, err := s.read(ctx)
	if err != nil {
		s.log.DebugContext(ctx, "failed to read the backlog", "err", err)
		s.last.Store(nil)
		return
	}
	s.last.Store(&b)
}

// backlogs exports the last reading of a sampler.
type backlogs struct {
	sampler *sampler
	up      *prometheus.Desc
	source[store.Backlog]
}

func newBacklogs(s *sampler) backlogs {
	number := func(name, help string, read func(store.Backlog) int) reading[store.Backlog] {
		return gauge(name, help, func(b store.Backlog) float64 { return float64(read(b)) })
	}
	age := func(name, help string, read func(store.Backlog) time.Duration) reading[store.Backlog] {
		return gauge(name, help, func(b store.Backlog) float64 { return read(b).Seconds() })
	}
	return backlogs{
		sampler: s,
		up:      prometheus.NewDesc("parley_database_up", "1 if the last reading of the backlog succeeded.", nil, nil),
		source: source[store.Backlog]{all: []reading[store.Backlog]{
			number("parley_queue_calls", "Calls in the dial queue.", func(b store.Backlog) int { return b.Calls }),
			age("parley_queue_oldest_seconds", "Age of the oldest call in the dial queue.",
				func(b store.Backlog) time.Duration { return b.CallAge }),
			number("parley_events_pending", "Events that are not processed.", func(b store.Backlog) int { return b.Events }),
			age("parley_events_oldest_seconds", "Age of the oldest event that is not processed.",
				func(b store.Backlog) time.Duration { return b.EventAge }),
			number("parley_webhook_deliveries_pending", "Webhook deliveries that wait.", func(b store.Backlog) int { return b.Deliveries }),
			number("parley_webhook_deliveries_dead", "Webhook deliveries that failed and are not retried.",
				func(b store.Backlog) int { return b.DeadDeliveries }),
			age("parley_webhook_overdue_seconds", "Time since the oldest webhook delivery was due.",
				func(b store.Backlog) time.Duration { return b.DeliveryAge }),
		}},
	}
}

// Describe implements prometheus.Collector.
func (b backlogs) Describe(to chan<- *prometheus.Desc) {
	to <- b.up
	b.source.Describe(to)
}

// Collect implements prometheus.Collector. Without a successful last reading it reports only parley_database_up.
func (b backlogs) Collect(to chan<- prometheus.Metric) {
	last := b.sampler.last.Load()
	if last != nil {
		b.look = func() store.Backlog { return *last }
		b.source.Collect(to)
	}
	to <- prometheus.MustNewConstMetric(b.up, prometheus.GaugeValue, truth(last != nil))
}

// poolSources returns a source for each pool of database connections.
func poolSources(pools map[string]*pgxpool.Pool) (all []prometheus.Collector) {
	type stat = *pgxpool.Stat
	for name, pool := range pools {
		label := prometheus.Labels{"pool": name}
		read := func(name, help string, kind prometheus.ValueType, read func(stat) float64) reading[stat] {
			return reading[stat]{prometheus.NewDesc(name, help, nil, label), kind, read}
		}
		all = append(all, source[stat]{look: pool.Stat, all: []reading[stat]{
			read("parley_database_connections_used", "Connections in use.", prometheus.GaugeValue,
				func(s stat) float64 { return float64(s.AcquiredConns()) }),
			read("parley_database_connections_max", "Maximum number of connections.", prometheus.GaugeValue,
				func(s stat) float64 { return float64(s.MaxConns()) }),
			read("parley_database_waits_total", "Uses that waited for a connection.", prometheus.CounterValue,
				func(s stat) float64 { return float64(s.EmptyAcquireCount()) }),
			read("parley_database_wait_seconds_total", "Time for which uses waited for a connection.", prometheus.CounterValue,
				func(s stat) float64 { return s.EmptyAcquireWaitTime().Seconds() }),
		}})
	}
	return all
}

// providers exports the requests to providers. Endpoints of organizations are one provider, so that the number of series
// is bounded.
type providers struct {
	look                                    func() []provider.Status
	open, active, limit, requests, response *prometheus.Desc
}

// organizationEndpoints is the provider label of all endpoints of organizations.
const organizationEndpoints = "organizations"

func newProviders(look func() []provider.Status) providers {
	desc := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"kind", "provider"}, more...), nil)
	}
	return providers{
		look:     look,
		open:     desc("parley_provider_paused", "1 while requests are paused after failures."),
		active:   desc("parley_provider_active", "Streams, replies or utterances in progress."),
		limit:    desc("parley_provider_limit", "Maximum number of concurrent streams, replies or utterances; 0 means no limit."),
		requests: desc("parley_provider_requests_total", "Requests, by result.", "result"),
		response: desc("parley_provider_response_seconds", "Time from a request to the start of the response."),
	}
}

// Describe implements prometheus.Collector.
func (p providers) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{p.open, p.active, p.limit, p.requests, p.response} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (p providers) Collect(to chan<- prometheus.Metric) {
	type key struct{ kind, name string }
	all := map[key]*provider.Status{}
	for _, s := range p.look() {
		k := key{s.Kind, s.Name}
		if s.OrgID != "" {
			k.name = organizationEndpoints
		}
		sum := all[k]
		if sum == nil {
			sum = &provider.Status{}
			all[k] = sum
		}
		sum.Open = sum.Open || s.Open
		sum.Active += s.Active
		sum.Limit += s.Limit
		sum.Add(s.Counts)
	}
	for k, s := range all {
		value := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, more ...string) {
			to <- prometheus.MustNewConstMetric(d, kind, v, append([]string{k.kind, k.name}, more...)...)
		}
		value(p.open, prometheus.GaugeValue, truth(s.Open))
		value(p.active, prometheus.GaugeValue, float64(s.Active))
		value(p.limit, prometheus.GaugeValue, float64(s.Limit))
		value(p.requests, prometheus.CounterValue, float64(s.Succeeded), "succeeded")
		value(p.requests, prometheus.CounterValue, float64(s.Failed), "failed")
		value(p.requests, prometheus.CounterValue, float64(s.Rejected), "rejected")
		to <- histogramOf(p.response, s.Response, k.kind, k.name)
	}
}

func histogramOf(d *prometheus.Desc, h provider.Durations, labels ...string) prometheus.Metric {
	buckets, sum := map[float64]uint64{}, uint64(0)
	for i, bound := range h.Bounds() {
		sum += h.Counts[i]
		buckets[bound] = sum
	}
	sum += h.Counts[len(h.Counts)-1]
	return prometheus.MustNewConstHistogram(d, sum, h.Sum.Seconds(), buckets, labels...)
}

// newCertificates exports when the certificates of the server expire, by use.
func newCertificates(look func() map[string]time.Time) prometheus.Collector {
	type expiry = map[string]time.Time
	return source[expiry]{look: look, tallies: []tally[expiry]{{
		prometheus.NewDesc("parley_certificate_expiry_timestamp_seconds", "When the certificate expires, as Unix time.", []string{"use"}, nil),
		prometheus.GaugeValue, func(all expiry) map[string]int64 {
			unix := map[string]int64{}
			for use, at := range all {
				unix[use] = at.Unix()
			}
			return unix
		},
	}}}
}
