package load

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/stat"
)

// stepResult is the result of a step. Times are in ms.
type stepResult struct {
	plan
	from, to time.Time

	own, ear, wire, setup, jitter, gc, late, ticks []float64
	turns                                          []heardTurn // turns, slowest first
	dead                                           int         // number of lines without an answer
	orders, refused, unanswered                    int         // number of requested calls
	due, came, lateCame                            int         // packets sent by the server
	packets, lost                                  int         // packets of the callees, as the server counts them
	failed                                         error       // error of a call request

	cpu    float64 // CPU time of the server, ms per call and second
	memory float64 // memory of the server in KiB per call, beyond its memory before the first call
	shares shares
}

// shares are parts of the machine's CPU time, 0 to 1. all includes other processes.
type shares struct{ server, postgres, fakes, bench, all float64 }

// setUsage sets the CPU time and memory between two readings.
func (m *stepResult) setUsage(a, b usage, memory float64) {
	took := b.at.Sub(a.at)
	of := func(d time.Duration) float64 { return float64(d) / float64(took) / float64(cores()) }
	m.shares = shares{
		server: of(b.server.Own - a.server.Own), postgres: of(b.server.Below - a.server.Below), fakes: of(b.fakes.Own - a.fakes.Own),
		bench: of(b.own.Own - a.own.Own), all: of(b.busy - a.busy),
	}
	m.cpu = millis(b.server.Own-a.server.Own) / took.Seconds() / float64(m.calls)
	m.memory = max(0, memory/1024) // with few calls the process may shrink
}

// overhead returns the response times on the wire without the delays of the fake providers.
func (m *stepResult) overhead() []float64 {
	var all []float64
	for _, w := range m.wire {
		all = append(all, w-millis(critical()))
	}
	return all
}

// p95 returns the p95 of own.
func (m *stepResult) p95() float64 { return stat.Quantile(slices.Sorted(slices.Values(m.own)), .95) }

// Limits of a step, and of the lateness of the load generator.
const (
	maxAddedP95    = 20   // ms of p95 overhead above that of the first step
	maxBadPackets  = .001 // share of packets that are late, or that are missing
	maxServerShare = .8   // share of the machine used by the server and its database
	maxUnanswered  = .01  // share of lines without an answer, or of failed calls
	maxLateness    = 10   // ms by which the load generator's media clock may be late, at p99: half a packet
	saturated      = .9   // share of CPU time from which the machine counts as saturated
)

// knee returns the reasons why a step exceeds the server's capacity; none if it
// does not.
func (m *stepResult) knee(first *stepResult) []string {
	var why []string
	is := func(beyond bool, format string, args ...any) {
		if beyond {
			why = append(why, fmt.Sprintf(format, args...))
		}
	}
	above := m.p95() - first.p95()
	is(above > maxAddedP95, "p95 overhead is %s ms above that of the first step", result.Number(above))
	is(part(m.lateCame, m.due) > maxBadPackets, "%s%% of the packets were late", result.Number(100*part(m.lateCame, m.due)))
	is(part(m.due-m.came, m.due) > maxBadPackets, "%s%% of the packets were lost", result.Number(100*part(m.due-m.came, m.due)))
	busy := m.shares.server + m.shares.postgres
	is(busy > maxServerShare, "the server and its Postgres used %.0f%% of the machine", 100*busy)
	is(part(m.dead, m.dead+len(m.own)) > maxUnanswered, "%d of %d utterances had no answer", m.dead, m.dead+len(m.own))
	is(part(m.refused+m.unanswered, m.orders) > maxUnanswered, "%d of %d calls were rejected or not placed", m.refused+m.unanswered, m.orders)
	is(len(m.own) == 0, "no audio was received")
	return why
}

func part(n, of int) float64 { return float64(n) / float64(max(1, of)) }

// limit describes the bottleneck. why holds the reasons from knee; late means that the load generator was late.
func (m *stepResult) limit(why []string, late bool) string {
	s := m.shares
	where := fmt.Sprintf("server %.0f%%, Postgres %.0f%%, fake providers %.0f%%, load generator %.0f%%, others %.0f%%",
		100*s.server, 100*s.postgres, 100*s.fakes, 100*s.bench, 100*max(0, s.all-s.server-s.postgres-s.fakes-s.bench))
	if late {
		why = append(why, "the load generator was late")
	}
	if len(why) == 0 {
		return fmt.Sprintf("not reached: %d calls carried (%s)", m.calls, where)
	}
	text := fmt.Sprintf("%d calls are too many: %s. ", m.calls, strings.Join(why, "; "))
	switch {
	case s.all > saturated && s.server+s.postgres < s.all/2:
		return text + "CPU was the limit, mostly used by other processes than the server: " + where
	case s.all > saturated:
		return text + "CPU was the limit: " + where
	case late:
		return text + "The load generator was the limit: " + where
	default:
		return text + "CPU was not the limit. CPU use: " + where
	}
}

// punctuality returns the lateness of the callees' clock.
func (m *stepResult) punctuality() stat.Summary { return stat.Summarize(m.ticks) }

// metrics returns the metrics of the step.
func (m *stepResult) metrics(first *stepResult) []result.Metric {
	var bounds []result.Bound
	if m.calls == targetLoad {
		bounds = append(bounds, result.Most("value", 10))
	}
	all := []result.Metric{
		result.Spread("overhead_ms", "overhead on the wire", "ms", m.overhead()),
		result.Spread("ear_overhead_ms", "overhead mouth to ear", "ms", m.own),
		m.above(first, bounds),
		result.Spread("ear_ms", "mouth to ear", "ms", m.ear),
		result.Spread("wire_ms", "last packet → first audible packet", "ms", m.wire),
		result.Spread("setup_ms", "call request due → answered", "ms", m.setup),
		result.Spread("orders_late_ms", "call requests: lateness", "ms", m.late),
		result.Spread("jitter_ms", "server's packets: deviation from their interval", "ms", m.jitter),
		result.Spread("gc_pause_ms", "server: garbage collector pauses", "ms", m.gc),
		result.Spread("generator_late_ms", "load generator: lateness of its clock", "ms", m.ticks),
		result.Share("packets_missing", "server's packets lost", m.due-m.came, m.due),
		result.Share("packets_late", "server's packets too late for playout", m.lateCame, m.due),
		result.Share("packets_unheard", "caller's packets the server did not receive", m.lost, m.packets+m.lost),
		result.Share("dead_turns", "utterances without an answer", m.dead, m.dead+len(m.own)),
		result.Share("calls_failed", "calls rejected or not placed", m.refused+m.unanswered, m.orders),
		result.Figure("cpu_ms", "server: CPU per call and second", "ms", result.Exactly(m.cpu)),
		result.Figure("rss_kib", "server: memory per call", "KiB", result.Exactly(m.memory)),
		result.Figure("cpu_server", "CPU of the machine: server", "%", result.Exactly(100*m.shares.server)),
		result.Figure("cpu_postgres", "CPU of the machine: Postgres", "%", result.Exactly(100*m.shares.postgres)),
		result.Figure("cpu_fakes", "CPU of the machine: fake providers", "%", result.Exactly(100*m.shares.fakes)),
		result.Figure("cpu_callees", "CPU of the machine: load generator", "%", result.Exactly(100*m.shares.bench)),
		result.Figure("cpu_all", "CPU of the machine: total", "%", result.Exactly(100*m.shares.all)),
	}
	for i := range all {
		all[i].Calls = m.calls
	}
	return all
}

// above returns by how much the overhead exceeds that of the first step. The metric has no value
// if one of the two steps received no audio.
func (m *stepResult) above(first *stepResult, bounds []result.Bound) result.Metric {
	what := fmt.Sprintf("increase of the p95 overhead since the step with calls: %d", first.calls)
	if len(m.own) == 0 || len(first.own) == 0 {
		return result.Metric{Name: "overhead_above_ms", What: what, Unit: "ms", Bounds: bounds}
	}
	return result.Figure("overhead_above_ms", what, "ms", stat.Differ(stat.Collect(first.own), stat.Collect(m.own), .95), bounds...)
}

// targetLoad is the number of calls for which the target is set.
const targetLoad = 500
