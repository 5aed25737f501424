package load

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/stat"
)

// What a step is measured to be. Times are in ms.
type measured struct {
	plan
	from, to time.Time

	own, ear, wire, setup, jitter, gc, late, ticks []float64
	turns                                          []heard // the slowest first
	dead                                           int     // lines without an answer
	orders, refused, unanswered                    int     // calls
	due, came, lateCame                            int     // packets of the server's
	packets, lost                                  int     // packets of the callees', as the server has them
	failed                                         error   // of an order

	cpu    float64 // of the server, ms for one call for one second
	memory float64 // of the server, KiB a call; what it held before the first is not counted
	shares shares
}

// shares are of the machine's CPU time, 0 to 1.
type shares struct{ server, postgres, fakes, bench, all float64 }

func (m *measured) spent(a, b usage, memory float64) {
	took := b.at.Sub(a.at)
	of := func(d time.Duration) float64 { return float64(d) / float64(took) / float64(cores()) }
	m.shares = shares{
		of(b.server.Own - a.server.Own), of(b.server.Below - a.server.Below), of(b.fakes.Own - a.fakes.Own), of(b.own.Own - a.own.Own), of(b.busy - a.busy),
	}
	m.cpu = millis(b.server.Own-a.server.Own) / took.Seconds() / float64(m.calls)
	m.memory = max(0, memory/1024) // of few calls less may be left than the start took
}

func (m *measured) received(packets, lost int) { m.packets, m.lost = packets, lost }

// overhead is what of the answers' time on the wire the fakes' script did not ask
// for.
func (m *measured) overhead() []float64 {
	var all []float64
	for _, w := range m.wire {
		all = append(all, w-millis(critical()))
	}
	return all
}

// p95 is that of the overhead at the ear.
func (m *measured) p95() float64 { return stat.Quantile(slices.Sorted(slices.Values(m.own)), .95) }

// Where the knee is, and how late the generator may be.
const (
	tooSlow   = 20   // ms of overhead at p95, above that of the first step
	tooMany   = .001 // of the packets late, or missing
	tooBusy   = .8   // of the machine, the server and its database
	tooSilent = .01  // of the lines without an answer, or of the calls
	punctual  = 10   // ms of its media clock's ticks at p99: half a packet
	saturated = .9   // of the machine
)

// knee are the reasons why a step is beyond what the server holds; none where it
// is not.
func (m *measured) knee(first *measured) []string {
	var why []string
	is := func(beyond bool, format string, args ...any) {
		if beyond {
			why = append(why, fmt.Sprintf(format, args...))
		}
	}
	above := m.p95() - first.p95()
	is(above > tooSlow, "p95 overhead is %s ms above that of %d", result.Number(above), first.calls)
	is(part(m.lateCame, m.due) > tooMany, "%s %% of the packets came late", result.Number(100*part(m.lateCame, m.due)))
	is(part(m.due-m.came, m.due) > tooMany, "%s %% of the packets did not come", result.Number(100*part(m.due-m.came, m.due)))
	busy := m.shares.server + m.shares.postgres
	is(busy > tooBusy, "the server and its Postgres take %.0f %% of the machine", 100*busy)
	is(part(m.dead, m.dead+len(m.own)) > tooSilent, "%d of %d lines had no answer", m.dead, m.dead+len(m.own))
	is(part(m.refused+m.unanswered, m.orders) > tooSilent, "%d of %d calls were not taken or did not come", m.refused+m.unanswered, m.orders)
	is(len(m.own) == 0, "nothing was heard")
	return why
}

func part(n, of int) float64 { return float64(n) / float64(max(1, of)) }

// limit says what was in the way of more calls, by why a step is beyond the knee
// and whether the callees were late in it.
func (m *measured) limit(why []string, late bool) string {
	s := m.shares
	where := fmt.Sprintf("server %.0f %%, Postgres %.0f %%, fake providers %.0f %%, callees %.0f %%, others %.0f %%",
		100*s.server, 100*s.postgres, 100*s.fakes, 100*s.bench, 100*max(0, s.all-s.server-s.postgres-s.fakes-s.bench))
	if late {
		why = append(why, "the callees were late themselves")
	}
	if len(why) == 0 {
		return fmt.Sprintf("none was met: %d calls are held (%s)", m.calls, where)
	}
	text := fmt.Sprintf("%d calls are beyond the knee: %s. ", m.calls, strings.Join(why, "; "))
	switch {
	case s.all > saturated && s.server+s.postgres < s.all/2:
		return text + "The machine's CPU was the limit, and most of it was not the server's: " + where
	case s.all > saturated:
		return text + "The machine's CPU was the limit: " + where
	case late:
		return text + "The load generator was the limit: " + where
	default:
		return text + "CPU was left, so it is something else: " + where
	}
}

// punctuality is how late the callees' clock was in the step.
func (m *measured) punctuality() stat.Summary { return stat.Summarize(m.ticks) }

// metrics are the step's rows of a file.
func (m *measured) metrics(first *measured) []result.Metric {
	var bounds []result.Bound
	if m.calls == aimed {
		bounds = append(bounds, result.Most("value", 10))
	}
	all := []result.Metric{
		result.Spread("overhead_ms", "overhead on the wire", "ms", m.overhead()),
		result.Spread("ear_overhead_ms", "overhead at the ear", "ms", m.own),
		m.above(first, bounds),
		result.Spread("ear_ms", "mouth to ear", "ms", m.ear),
		result.Spread("wire_ms", "last packet → first audible one", "ms", m.wire),
		result.Spread("setup_ms", "order due → answered", "ms", m.setup),
		result.Spread("orders_late_ms", "orders, which left late by", "ms", m.late),
		result.Spread("jitter_ms", "between two packets of the server's, off by", "ms", m.jitter),
		result.Spread("gc_pause_ms", "pauses of the server's garbage collector", "ms", m.gc),
		result.Spread("generator_late_ms", "the callees' clock, late by", "ms", m.ticks),
		result.Share("packets_missing", "packets of the server's that did not come", m.due-m.came, m.due),
		result.Share("packets_late", "packets that came too late to be played in time", m.lateCame, m.due),
		result.Share("packets_unheard", "packets of the callees' that the server has not", m.lost, m.packets+m.lost),
		result.Share("dead_turns", "lines without an answer", m.dead, m.dead+len(m.own)),
		result.Share("calls_failed", "calls not taken, or that did not come", m.refused+m.unanswered, m.orders),
		result.Figure("cpu_ms", "CPU of the server, a call and second", "ms", result.Exactly(m.cpu)),
		result.Figure("rss_kib", "memory of the server, a call", "KiB", result.Exactly(m.memory)),
		result.Figure("cpu_server", "CPU of the machine: the server", "%", result.Exactly(100*m.shares.server)),
		result.Figure("cpu_postgres", "its Postgres", "%", result.Exactly(100*m.shares.postgres)),
		result.Figure("cpu_fakes", "the fake providers", "%", result.Exactly(100*m.shares.fakes)),
		result.Figure("cpu_callees", "the callees", "%", result.Exactly(100*m.shares.bench)),
		result.Figure("cpu_all", "all there is", "%", result.Exactly(100*m.shares.all)),
	}
	for i := range all {
		all[i].Calls = m.calls
	}
	return all
}

// above is how much more overhead there is than in the first step: it is not
// known where nothing was heard in one of them.
func (m *measured) above(first *measured, bounds []result.Bound) result.Metric {
	what := fmt.Sprintf("its p95 above that of %d", first.calls)
	if len(m.own) == 0 || len(first.own) == 0 {
		return result.Metric{Name: "overhead_above_ms", What: what, Unit: "ms", Bounds: bounds}
	}
	return result.Figure("overhead_above_ms", what, "ms", stat.Differ(stat.Collect(first.own), stat.Collect(m.own), .95), bounds...)
}

// aimed is the load that the target is set for.
const aimed = 500
