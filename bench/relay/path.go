// Package relay is a bad network: a UDP relay that loses, delays, reorders and
// repeats datagrams, for audio and signalling alike. What it does to a
// datagram follows from a seed and the datagrams before it; only sockets and
// the clock stand outside.
package relay

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// A Spread is how delays are spread.
type Spread uint8

// Spreads.
const (
	Even   Spread = iota // evenly, from none to Jitter
	Normal               // as the size of normal noise: Jitter is its deviation, three of them the most
	Tailed               // exponentially: Jitter is the mean, ten of them the most
)

// A Path is one direction of a network. Its zero value is a perfect one.
// Chances are from 0 to 1.
type Path struct {
	Loss      float64       // share of datagrams lost, each by itself or in bursts
	Burst     float64       // mean datagrams lost in a row (Gilbert-Elliott); up to 1 is no bursts
	Delay     time.Duration // of every datagram
	Jitter    time.Duration // on top, each by itself, so that datagrams overtake each other
	Spread    Spread        // of Jitter
	Reorder   float64       // chance not to be delayed at all
	Duplicate float64       // chance to come twice
	Rate      int           // bits per second, 0 without limit
	Backlog   time.Duration // that may wait for Rate; what would wait longer is lost. 0 is a second
	// Skew makes the sender's clock fast, by millionths, or slow where it is
	// negative. A fast one uses up Delay and ends there.
	Skew float64
	// DTX leaves RTP packets of silence in G.711 out, but for the first ones of a
	// stretch, as a sender does who sends speech alone.
	DTX bool
	// Outages are times, since the flow's first datagram, in which all is lost.
	Outages []Window
}

// A Window is a stretch of time, To not included.
type Window struct{ From, To time.Duration }

// Check says what of a path makes no sense.
func (p *Path) Check() error {
	for name, chance := range map[string]float64{"loss": p.Loss, "reorder": p.Reorder, "duplicate": p.Duplicate} {
		if !(chance >= 0 && chance <= 1) {
			return fmt.Errorf("%s of %v: want 0 to 1", name, chance)
		}
	}
	switch {
	case p.Delay < 0 || p.Jitter < 0 || p.Backlog < 0 || p.Rate < 0:
		return errors.New("a delay or rate below 0")
	case p.Spread > Tailed:
		return fmt.Errorf("unknown spread %d", p.Spread)
	case !(math.Abs(p.Skew) < 1e6):
		return fmt.Errorf("skew of %v", p.Skew)
	default:
		return p.checkBursts()
	}
}

func (p *Path) checkBursts() error {
	switch {
	case !(p.Burst >= 0) || math.IsInf(p.Burst, 1):
		return fmt.Errorf("burst of %v", p.Burst)
	case p.Burst > 1 && p.Loss < 1 && p.Loss > p.Burst*(1-p.Loss):
		return fmt.Errorf("loss of %v in bursts of %v: such bursts leave too little between them", p.Loss, p.Burst)
	default:
		return nil
	}
}

// A Flow decides what a path does to the datagrams of one sender.
type Flow struct {
	path *Path
	rng  *rand.Rand
	bad  bool          // in a burst
	free time.Duration // when the line has sent what it was given
}

// NewFlow begins a flow. The same seed makes the same decisions.
func NewFlow(path *Path, seed uint64) *Flow {
	return &Flow{path: path, rng: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))} //nolint:gosec // repeatable on purpose
}

// Decide appends to out when a datagram of so many bytes, given at at, comes
// out: never before at, not at all, or twice. Times count since the flow's
// first datagram and must not run backwards.
func (f *Flow) Decide(out []time.Duration, at time.Duration, size int) []time.Duration {
	p := f.path
	// Every datagram draws the same numbers, so that a change of one property
	// leaves what the others do as it was.
	lost, early, twice := f.lose(f.rng.Float64()), f.rng.Float64() < p.Reorder, f.rng.Float64() < p.Duplicate
	first, second := f.jitter(), f.jitter()
	for _, w := range p.Outages {
		lost = lost || at >= w.From && at < w.To
	}
	base := at
	if p.Rate > 0 && !lost {
		backlog := p.Backlog
		if backlog == 0 {
			backlog = time.Second
		}
		start := max(at, f.free)
		if start-at > backlog {
			return out
		}
		base = start + time.Duration(float64(size)*8/float64(p.Rate)*float64(time.Second))
		f.free = base
	}
	if lost {
		return out
	}
	shift := -time.Duration(float64(at) * p.Skew / 1e6)
	if early {
		out = append(out, max(at, base+shift))
	} else {
		out = append(out, max(at, base+shift+p.Delay+first))
	}
	if twice {
		out = append(out, max(at, base+shift+p.Delay+second))
	}
	return out
}

// lose walks between a good and a bad state, in which all is lost. The chances
// to change give Loss of all and Burst in a row.
func (f *Flow) lose(dice float64) bool {
	p := f.path
	if p.Burst <= 1 || p.Loss >= 1 {
		return dice < p.Loss
	}
	leave := 1 / p.Burst
	if f.bad {
		f.bad = dice >= leave
	} else {
		f.bad = dice < min(1, leave*p.Loss/(1-p.Loss))
	}
	return f.bad
}

func (f *Flow) jitter() time.Duration {
	j := float64(f.path.Jitter)
	switch f.path.Spread {
	case Normal:
		return time.Duration(j * min(3, math.Abs(f.rng.NormFloat64())))
	case Tailed:
		return time.Duration(j * min(10, f.rng.ExpFloat64()))
	default:
		return time.Duration(j * f.rng.Float64())
	}
}
