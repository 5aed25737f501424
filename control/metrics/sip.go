package metrics

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-voice/parley/media"
)

// signalling is what is told of signalling, by the names of RFC 6076, and
// how the audio of its legs travelled.
type signalling struct {
	srd, sdd, sdt, rrd prometheus.Histogram
	invites            *prometheus.CounterVec
	registers          *prometheus.CounterVec
	legs               *prometheus.CounterVec
	unanswered         prometheus.Counter
	jitter, mos        *prometheus.HistogramVec
	trip               prometheus.Histogram
}

func newSignalling() signalling {
	histogram := func(name, help string, buckets ...float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	ways := func(name, help string, buckets ...float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{"direction"})
	}
	return signalling{
		srd: histogram("parley_sip_srd_seconds", "Session request delay: from an INVITE to the first answer beyond 100.",
			.1, .2, .5, 1, 1.5, 2, 3, 4, 5, 7.5, 10, 15, 20, 30),
		sdd: histogram("parley_sip_sdd_seconds", "Session disconnect delay: from our BYE to its answer.",
			.005, .01, .02, .05, .1, .2, .5, 1, 2, 4, 8, 16, 32),
		sdt: histogram("parley_sip_sdt_seconds", "Session duration: from the answer to the end.",
			1, 2, 5, 10, 20, 30, 60, 120, 180, 300, 600, 1200, 1800, 3600),
		rrd: histogram("parley_sip_rrd_seconds", "Registration request delay: from a REGISTER to its success.",
			.01, .02, .05, .1, .2, .5, 1, 2, 4, 8),
		invites:    counter("parley_sip_invites_total", "INVITEs by their final status.", "status"),
		registers:  counter("parley_sip_registers_total", "Registrations and refreshes by how they went.", "result"),
		legs:       counter("parley_sip_legs_ended_total", "Legs that ended, by cause.", "cause"),
		unanswered: prometheus.NewCounter(prometheus.CounterOpts{Name: "parley_sip_disconnects_unanswered_total", Help: "BYEs of ours that were never answered."}),
		jitter: ways("parley_rtp_jitter_seconds", "Interarrival jitter of legs that ended, as of their end.",
			.001, .002, .005, .01, .02, .03, .05, .1, .2, .5),
		mos: ways("parley_rtp_mos", "Estimated listening quality of legs that ended.",
			1, 1.5, 2, 2.5, 3, 3.2, 3.4, 3.6, 3.8, 4, 4.1, 4.2, 4.3, 4.4, 4.5),
		trip: histogram("parley_rtp_round_trip_seconds", "Round trip of legs that ended, as of the last report.",
			.005, .01, .02, .05, .1, .15, .2, .3, .5, 1, 2),
	}
}

func (s *signalling) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.srd, s.sdd, s.sdt, s.rrd, s.invites, s.registers, s.legs, s.unanswered, s.jitter, s.mos, s.trip}
}

// Requested is told of the session request delay of an INVITE.
func (s *signalling) Requested(delay time.Duration) { s.srd.Observe(delay.Seconds()) }

// Invited is told of the final answer to an INVITE; 0 where none came.
func (s *signalling) Invited(status int) { s.invites.WithLabelValues(statusName(status)).Inc() }

// Registered is told of a registration, and how long it took.
func (s *signalling) Registered(ok bool, delay time.Duration) {
	if !ok {
		s.registers.WithLabelValues("failed").Inc()
		return
	}
	s.registers.WithLabelValues("ok").Inc()
	s.rrd.Observe(delay.Seconds())
}

// A Leg is how one ended.
type Leg struct {
	Cause      media.Cause
	Lasted     time.Duration
	Bye        time.Duration // until our BYE was answered; 0 where it was the peer's
	Unanswered bool          // it never was
	Quality    media.Quality
}

// LegEnded is told of each leg that has ended.
func (s *signalling) LegEnded(end Leg) {
	s.legs.WithLabelValues(string(end.Cause)).Inc()
	s.sdt.Observe(end.Lasted.Seconds())
	switch {
	case end.Unanswered:
		s.unanswered.Inc()
	case end.Bye > 0:
		s.sdd.Observe(end.Bye.Seconds())
	}
	for direction, way := range map[string]media.Stretch{"received": end.Quality.Heard, "sent": end.Quality.Sent} {
		if way.Packets > 0 {
			s.jitter.WithLabelValues(direction).Observe(way.Jitter.Seconds())
		}
		if way.MOS > 0 {
			s.mos.WithLabelValues(direction).Observe(way.MOS)
		}
	}
	if end.Quality.RoundTrip > 0 {
		s.trip.Observe(end.Quality.RoundTrip.Seconds())
	}
}

// statuses are the final answers that carriers give. Each other one would be a
// series of its own, and goes by its class.
//
//nolint:gochecknoglobals // read-only table
var statuses = []int{
	http.StatusOK, 300, 301, 302, 305, 380,
	400, 401, 402, 403, 404, 405, 406, 407, 408, 410, 413, 415, 416, 420, 421, 422, 423, 433, 436, 437, 438, 480, 481, 482, 483, 484,
	485, 486, 487, 488, 491, 493, 494, 500, 501, 502, 503, 504, 505, 513, 580, 600, 603, 604, 606, 607, 608,
}

func statusName(status int) string {
	switch {
	case status == 0:
		return "none"
	case slices.Contains(statuses, status):
		return strconv.Itoa(status)
	case status >= 200 && status < 700:
		return fmt.Sprintf("%dxx", status/100)
	default:
		return "other"
	}
}
