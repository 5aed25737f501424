// Package relay emulates a bad network. A UDP relay loses, delays, reorders and duplicates
// datagrams of audio and signaling. For each datagram it decides by a seed and the previous
// datagrams only.
package relay

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// A Spread is a probability distribution of delays.
type Spread uint8

// Distributions.
const (
	Even   Spread = iota // uniform from 0 to Jitter
	Normal               // half-normal: Jitter is the standard deviation, three times Jitter the maximum
	Tailed               // exponential: Jitter is the mean, ten times Jitter the maximum
)

// A Path is one direction of a network. The zero value is a perfect network. Probabilities are from 0 to 1.
type Path struct {
	Loss      float64       // share of datagrams that are lost, independently or in bursts
	Burst     float64       // mean number of datagrams lost in a row (Gilbert-Elliott); up to 1 means no bursts
	Delay     time.Duration // delay of each datagram
	Jitter    time.Duration // random delay added to each datagram; datagrams may overtake each other
	Spread    Spread        // distribution of Jitter
	Reorder   float64       // probability that a datagram has no delay
	Duplicate float64       // probability that a datagram is duplicated
	Rate      int           // bits per second; 0 means no limit
	Backlog   time.Duration // longest wait because of Rate; datagrams that would wait longer are lost; 0 means 1 s
	// Skew is by how many millionths the sender's clock is fast; it is slow if negative. A fast
	// clock uses up Delay, and has no effect after that.
	Skew float64
	// DTX drops silent RTP packets of G.711, except the first ones of each silence, like a sender
	// with silence suppression.
	DTX bool
	// Outages are times in which everything is lost. They count from the first datagram of the flow.
	Outages []Window
}

// A Window is a time range, To excluded.
type Window struct{ From, To time.Duration }

// Check validates a path.
func (p *Path) Check() error {
	for name, chance := range map[string]float64{"loss": p.Loss, "reorder": p.Reorder, "duplicate": p.Duplicate} {
		if !(chance >= 0 && chance <= 1) {
			return fmt.Errorf("%s of %v: want 0 to 1", name, chance)
		}
	}
	switch {
	case p.Delay < 0 || p.Jitter < 0 || p.Backlog < 0 || p.Rate < 0:
		return errors.New("delay and rate must not be negative")
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
		return fmt.Errorf("loss of %v in bursts of %v: too much loss for such bursts", p.Loss, p.Burst)
	default:
		return nil
	}
}

// A Flow decides which datagrams of one sender are lost, delayed or duplicated.
type Flow struct {
	path *Path
	rng  *rand.Rand
	bad  bool          // the flow is in a burst of losses
	free time.Duration // when the datagrams so far have passed the rate limit
}

// NewFlow starts a flow. Equal seeds make equal decisions.
func NewFlow(path *Path, seed uint64) *Flow {
	return &Flow{path: path, rng: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))} //nolint:gosec // repeatable on purpose
}

// Decide appends the delivery times of a datagram to out: none if it is lost, two if it is
// duplicated. at is when the datagram was sent; no delivery is earlier. size is in bytes. Times
// count from the first datagram of the flow. at must not decrease from call to call.
func (f *Flow) Decide(out []time.Duration, at time.Duration, size int) []time.Duration {
	p := f.path
	// Every datagram draws the same random numbers. So a change of one property of the path does
	// not change the effects of the other properties.
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

// lose reports whether the datagram is lost. It switches between a good state and a bad one, in
// which everything is lost. The probabilities of the switches result in the share Loss and in
// bursts of Burst datagrams.
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
