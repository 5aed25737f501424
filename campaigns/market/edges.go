package market

import (
	"slices"
	"time"
)

// Edges returns the times after at, unordered, at which the result of Legal may change: starts
// and ends of hours in each zone of the location, midnights, and clock changes.
func (p *Package) Edges(at time.Time, within time.Duration, place Location, class Classification) []time.Time {
	var clocks []Clock
	for _, state := range append([]string{p.Region}, place.States...) {
		for _, w := range p.windows[state] {
			if w.class != "" && w.class != class {
				continue
			}
			for _, h := range append(w.week[:], w.holidays) {
				clocks = append(clocks, h.From, h.To)
			}
		}
	}
	var all []time.Time
	for _, name := range place.Zones {
		if zone := p.location(name); zone != nil {
			all = append(all, LocalEdges(at, within, zone, clocks)...)
		}
	}
	return all
}

// LocalEdges returns the times after at when the local time in zone is midnight or one of clocks, and the times of
// clock changes. If a clock change skips a time of day, the time of the change stands for it.
func LocalEdges(at time.Time, within time.Duration, zone *time.Location, clocks []Clock) []time.Time {
	clocks = append(slices.Clone(clocks), 0)
	slices.Sort(clocks)
	clocks = slices.Compact(clocks)
	end := at.Add(within)
	var all []time.Time
	add := func(t time.Time) {
		if t.After(at) && !t.After(end) {
			all = append(all, t)
		}
	}
	for t := at; ; {
		_, next := t.In(zone).ZoneBounds()
		if next.IsZero() || next.After(end) {
			break
		}
		add(next)
		t = next
	}
	// An hour that occurs twice has its edges twice, so both offsets are tried.
	offsets := offsetsIn(at, end, zone)
	local := at.In(zone)
	for d := -1; ; d++ {
		day := time.Date(local.Year(), local.Month(), local.Day()+d, 0, 0, 0, 0, time.UTC)
		if day.Add(-15 * time.Hour).After(end) {
			return all
		}
		for _, c := range clocks {
			for _, offset := range offsets {
				add(day.Add(time.Duration(c)*time.Minute - offset))
			}
		}
	}
}

// offsetsIn returns the UTC offsets of a zone between two instants.
func offsetsIn(from, to time.Time, zone *time.Location) []time.Duration {
	var all []time.Duration
	for t := from; !t.After(to); {
		local := t.In(zone)
		_, seconds := local.Zone()
		if o := time.Duration(seconds) * time.Second; !slices.Contains(all, o) {
			all = append(all, o)
		}
		_, next := local.ZoneBounds()
		if next.IsZero() {
			break
		}
		t = next
	}
	return all
}
