package control

import (
	"sync"
	"time"
)

// Parameters of LoadLimit.
const (
	maxCPU     = 0.75                   // share of the processors that calls may use
	firstCost  = 0.010                  // processors that one conversation uses, until it was measured
	minCost    = 0.001                  // smallest cost that a measurement yields
	minTalking = 10                     // conversations that a measurement of the cost requires
	maxLate    = 0.02                   // share of late ticks of the media clock above which audio suffers
	calmTime   = 5 * time.Second        // time without late ticks after which new calls start again
	slowRaise  = 15 * time.Second       // time after which 1 % more calls are tried
	fastRaise  = 5 * time.Second        // time after which 25 % more calls are tried
	forgetTime = 10 * time.Minute       // time without late ticks after which the number of calls is not restricted
	minSample  = 100 * time.Millisecond // a sample that follows sooner is ignored
)

// A Hold is the reason for which a node starts no call; empty if it starts calls.
type Hold string

// Reasons.
const (
	HoldStopping  Hold = "stopping"   // the node starts or shuts down
	HoldMaxCalls  Hold = "max_calls"  // as many calls run as the settings allow
	HoldCPU       Hold = "cpu"        // further calls would use too much CPU time
	HoldLateMedia Hold = "late_media" // the media clock is late
)

// A LoadSample is the load of a process at a time. All numbers except Talking count from the start of the process.
type LoadSample struct {
	At      time.Time
	CPU     time.Duration // CPU time
	Ticks   int64         // ticks of the media clock that were due
	Late    int64         // ticks that began late or were skipped
	Talking int           // conversations now
}

// LoadLimit decides how many calls a node can start without harm to the audio of its running calls. A ringing call
// costs little until somebody answers. LoadLimit therefore assumes that every ringing call will be answered and will
// cost the CPU time measured for a conversation. If the media clock is late nevertheless, for example because other
// processes use the CPU, no call starts until the clock has been punctual for calmTime. Afterwards the node runs a
// tenth fewer calls than there were conversations, and slowly tries more. If the same number of conversations as before
// does no harm, it was not the cause, and the node quickly tries more. It is safe for concurrent use.
type LoadLimit struct {
	Processors float64 // processors that the process may use

	mu      sync.Mutex
	last    LoadSample
	cpu     float64   // processors in use, as a moving mean
	cost    float64   // processors for each conversation, as a moving mean; 0 if unknown
	late    float64   // share of late ticks, as a moving mean
	until   time.Time // no call starts before this time because ticks were late; zero if they were not
	ceiling int       // maximum number of calls after ticks were late; 0 means no maximum
	raised  time.Time // when the ceiling last grew
	harmful int       // number of conversations when ticks were last late
}

// Observe evaluates a sample. running is the number of calls. It must be called about once per second.
func (l *LoadLimit) Observe(s LoadSample, running int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	span := s.At.Sub(l.last.At)
	switch {
	case l.last.At.IsZero():
		l.last = s
		return
	case span < minSample:
		return
	}
	cpu := float64(s.CPU-l.last.CPU) / float64(span)
	l.cpu += (cpu - l.cpu) / 3
	if talking := (s.Talking + l.last.Talking) / 2; talking >= minTalking && abs(s.Talking-l.last.Talking) <= talking/4 {
		l.cost = max(minCost, l.expectedCost()+(cpu/float64(talking)-l.expectedCost())/8)
	}
	late := 0.0
	if ticks := s.Ticks - l.last.Ticks; ticks > 0 {
		late = float64(s.Late-l.last.Late) / float64(ticks)
	}
	l.late += (late - l.late) / 3
	l.last = s
	switch {
	case l.late > maxLate:
		if s.At.After(l.until) {
			l.harmful = max(s.Talking, running/2) // many ringing calls are never answered
			l.ceiling = max(1, l.harmful*9/10)
		}
		l.until = s.At.Add(calmTime)
		l.raised = l.until
	case s.At.Sub(l.until) > forgetTime:
		l.ceiling = 0
	case l.ceiling == 0 || running < l.ceiling: // the node needs no higher ceiling
	case l.ceiling > l.harmful && s.At.Sub(l.raised) >= fastRaise:
		l.ceiling += max(1, l.ceiling/4)
		l.raised = s.At
	case s.At.Sub(l.raised) >= slowRaise:
		l.ceiling += max(1, l.ceiling/100)
		l.raised = s.At
	}
}

// Room returns how many more calls can start while running calls run, and if it is 0, the reason. A node without calls
// can always start one.
func (l *LoadLimit) Room(running int) (int, Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch room := l.roomByCPU(running); {
	case running == 0:
		return max(1, room), ""
	case l.last.At.Before(l.until), l.ceiling > 0 && running >= l.ceiling:
		return 0, HoldLateMedia
	case room <= 0:
		return 0, HoldCPU
	case l.ceiling > 0:
		return min(room, l.ceiling-running), ""
	default:
		return room, ""
	}
}

// roomByCPU returns how many more conversations the CPU can hold after all calls were answered.
func (l *LoadLimit) roomByCPU(running int) int {
	cost := l.expectedCost()
	used := max(l.cpu, cost*float64(l.last.Talking)) + cost*float64(max(0, running-l.last.Talking))
	return int((maxCPU*l.Processors - used) / cost)
}

func abs(n int) int { return max(n, -n) }

func (l *LoadLimit) expectedCost() float64 {
	if l.cost == 0 {
		return firstCost
	}
	return l.cost
}
