package provider

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// A Status is the state of a provider.
type Status struct {
	Kind, Name    string // Kind is asr, llm or tts
	OrgID         string // organization that owns the endpoint; empty for the operator's
	Active, Limit int    // Active counts concurrent streams, replies or utterances; a Limit of 0 means none
	// Open means that requests are paused after failures, at least until Until. Probing
	// means that a probe is running.
	Open, Probing bool
	Until         time.Time
	Counts
}

// Counts counts the requests to a provider since the start of the process.
type Counts struct {
	Succeeded, Failed int64
	Rejected          int64     // requests that were not sent: the provider was at its limit, or paused after failures
	Response          Durations // time from a request to the start of its response
}

// Add adds other counts.
func (c *Counts) Add(other Counts) {
	c.Succeeded += other.Succeeded
	c.Failed += other.Failed
	c.Rejected += other.Rejected
	c.Response.Sum += other.Response.Sum
	for i, n := range other.Response.Counts {
		c.Response.Counts[i] += n
	}
}

// Durations is a histogram of durations.
type Durations struct {
	Counts [10]uint64 // number of durations up to each of Bounds, and then of longer ones
	Sum    time.Duration
}

// Bounds returns the upper bounds of the histogram, in seconds.
func (Durations) Bounds() [9]float64 { return [9]float64{.05, .1, .2, .3, .5, .75, 1, 1.5, 3} }

func (d *Durations) observe(took time.Duration) {
	n := 0
	for _, bound := range d.Bounds() {
		if took.Seconds() > bound {
			n++
		}
	}
	d.Counts[n]++
	d.Sum += took
}

// Statuses returns the state of all providers used so far, sorted by kind, organization and name.
func (g *Guards) Statuses() []Status {
	g.mu.Lock()
	all := make([]Status, 0, len(g.guards))
	of := make([]*guard, 0, len(g.guards))
	for key, x := range g.guards {
		seam, _, _ := strings.Cut(key, " ")
		if seam == backgroundPrefix {
			continue
		}
		orgID, _, _ := strings.Cut(x.id, "/")
		if orgID == x.id {
			orgID = ""
		}
		all, of = append(all, Status{Kind: seam, Name: x.name, OrgID: orgID}), append(of, x)
	}
	g.mu.Unlock()
	for i, x := range of {
		s := &all[i]
		x.mu.Lock()
		s.Open, s.Probing, s.Until = x.breaker.State()
		s.Counts = x.counts
		x.mu.Unlock()
		x.slots.mu.Lock()
		s.Active, s.Limit = x.slots.active, x.slots.limit
		x.slots.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b Status) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.OrgID, b.OrgID), cmp.Compare(a.Name, b.Name))
	})
	return all
}
