package provider

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// A Standing is how it stands with a provider.
type Standing struct {
	Seam, Name  string // what it does: asr, llm or tts
	Asked, Most int    // how many streams, answers or utterances it has now, and may have; 0 is no limit
	// Open tells that it is left alone after it failed, until a time or longer; Tried
	// that somebody tries whether it works again.
	Open, Tried bool
	Until       time.Time
}

// Standings are how it stands with the providers that were asked so far, by what they
// do and their names.
func (g *Guards) Standings() []Standing {
	g.mu.Lock()
	all := make([]Standing, 0, len(g.guards))
	of := make([]*guard, 0, len(g.guards))
	for key, x := range g.guards {
		seam, _, _ := strings.Cut(key, " ")
		if seam == aside {
			continue
		}
		all, of = append(all, Standing{Seam: seam, Name: x.name}), append(of, x)
	}
	g.mu.Unlock()
	for i, x := range of {
		s := &all[i]
		x.mu.Lock()
		s.Open, s.Tried, s.Until = x.breaker.Stands()
		x.mu.Unlock()
		x.room.mu.Lock()
		s.Asked, s.Most = x.room.asked, x.room.limit
		x.room.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b Standing) int { return cmp.Or(cmp.Compare(a.Seam, b.Seam), cmp.Compare(a.Name, b.Name)) })
	return all
}
