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

// signaling measures SIP signaling (with the terms of RFC 6076) and the media quality of legs.
type signaling struct {
	srd, sdd, sdt, rrd prometheus.Histogram
	invites            *prometheus.CounterVec
	registers          *prometheus.CounterVec
	legs               *prometheus.CounterVec
	unanswered         prometheus.Counter
	jitter, mos        *prometheus.HistogramVec
	trip               prometheus.Histogram
}

func newCounter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func newSignaling() signaling {
	histogram := func(name, help string, buckets ...float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	}
	byDirection := func(name, help string, buckets ...float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{"direction"})
	}
	return signaling{
		srd: histogram("parley_sip_srd_seconds", "Session request delay: from an INVITE to the first response other than 100.",
			.1, .2, .5, 1, 1.5, 2, 3, 4, 5, 7.5, 10, 15, 20, 30),
		sdd: histogram("parley_sip_sdd_seconds", "Session disconnect delay: from a sent BYE to its response.",
			.005, .01, .02, .05, .1, .2, .5, 1, 2, 4, 8, 16, 32),
		sdt: histogram("parley_sip_sdt_seconds", "Session duration: from the answer to the end.",
			1, 2, 5, 10, 20, 30, 60, 120, 180, 300, 600, 1200, 1800, 3600),
		rrd: histogram("parley_sip_rrd_seconds", "Registration request delay: from a REGISTER to its success.",
			.01, .02, .05, .1, .2, .5, 1, 2, 4, 8),
		invites:   newCounter("parley_sip_invites_total", "INVITEs by their final status.", "status"),
		registers: newCounter("parley_sip_registers_total", "Registrations and refreshes, by result.", "result"),
		legs:      newCounter("parley_sip_legs_ended_total", "Legs that ended, by cause.", "cause"),
		unanswered: prometheus.NewCounter(
			prometheus.CounterOpts{Name: "parley_sip_disconnects_unanswered_total", Help: "Sent BYEs without a response."},
		),
		jitter: byDirection("parley_rtp_jitter_seconds", "Interarrival jitter at the end of a leg.",
			.001, .002, .005, .01, .02, .03, .05, .1, .2, .5),
		mos: byDirection("parley_rtp_mos", "Estimated listening quality of ended legs.",
			1, 1.5, 2, 2.5, 3, 3.2, 3.4, 3.6, 3.8, 4, 4.1, 4.2, 4.3, 4.4, 4.5),
		trip: histogram("parley_rtp_round_trip_seconds", "Round-trip time of ended legs, from the last report.",
			.005, .01, .02, .05, .1, .15, .2, .3, .5, 1, 2),
	}
}

func (s *signaling) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.srd, s.sdd, s.sdt, s.rrd, s.invites, s.registers, s.legs, s.unanswered, s.jitter, s.mos, s.trip}
}

// ObserveRequestDelay records the session request delay (RFC 6076) of an INVITE.
func (s *signaling) ObserveRequestDelay(delay time.Duration) { s.srd.Observe(delay.Seconds()) }

// CountInvite counts the final status of an INVITE; 0 means that there was no response.
func (s *signaling) CountInvite(status int) { s.invites.WithLabelValues(statusName(status)).Inc() }

// ObserveRegistration counts a registration and records how long it took.
func (s *signaling) ObserveRegistration(ok bool, delay time.Duration) {
	if !ok {
		s.registers.WithLabelValues("failed").Inc()
		return
	}
	s.registers.WithLabelValues("ok").Inc()
	s.rrd.Observe(delay.Seconds())
}

// Leg describes a leg that has ended.
type Leg struct {
	Cause      media.Cause
	Lasted     time.Duration
	Bye        time.Duration // time until the response to our BYE; 0 if the remote side sent the BYE
	Unanswered bool          // the BYE got no response
	Quality    media.Quality
}

// LegEnded records the data of a leg that has ended.
func (s *signaling) LegEnded(end Leg) {
	s.legs.WithLabelValues(string(end.Cause)).Inc()
	s.sdt.Observe(end.Lasted.Seconds())
	switch {
	case end.Unanswered:
		s.unanswered.Inc()
	case end.Bye > 0:
		s.sdd.Observe(end.Bye.Seconds())
	}
	for direction, way := range map[string]media.DirectionQuality{"received": end.Quality.Received, "sent": end.Quality.Sent} {
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

// statuses are the usual final SIP statuses. All other statuses are counted by class, to limit the number of time
// series.
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
