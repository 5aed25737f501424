package metrics

import "github.com/prometheus/client_golang/prometheus"

// reading is one metric of a source.
type reading[T any] struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(T) float64
}

func gauge[T any](name, help string, read func(T) float64) reading[T] {
	return reading[T]{prometheus.NewDesc(name, help, nil, nil), prometheus.GaugeValue, read}
}

func count[T any](name, help string, read func(T) int64) reading[T] {
	return reading[T]{prometheus.NewDesc(name, help, nil, nil), prometheus.CounterValue, func(v T) float64 { return float64(read(v)) }}
}

// tally is a metric with one label. It has one value for each kind that it counts.
type tally[T any] struct {
	desc *prometheus.Desc // description of the metric, which has one label
	kind prometheus.ValueType
	read func(T) map[string]int64
}

// source is a component with several metrics. It is read once for each scrape.
type source[T any] struct {
	look    func() T
	all     []reading[T]
	tallies []tally[T]
}

// Describe implements prometheus.Collector.
func (s source[T]) Describe(to chan<- *prometheus.Desc) {
	for _, r := range s.all {
		to <- r.desc
	}
	for _, t := range s.tallies {
		to <- t.desc
	}
}

// Collect implements prometheus.Collector.
func (s source[T]) Collect(to chan<- prometheus.Metric) {
	seen := s.look()
	for _, r := range s.all {
		to <- prometheus.MustNewConstMetric(r.desc, r.kind, r.read(seen))
	}
	for _, t := range s.tallies {
		for kind, n := range t.read(seen) {
			to <- prometheus.MustNewConstMetric(t.desc, t.kind, float64(n), kind)
		}
	}
}
