package asr

import (
	"slices"
	"strings"

	"github.com/parley-voice/parley/pipeline"
)

// name notes the provider's name for the sound of the oldest ask without one.
func (l *ledger) name(item string) {
	if a := l.find(""); a != nil {
		a.item = item
	}
}

// find is the oldest ask of that name, given up or open; nil where there is none.
func (l *ledger) find(item string) *ask {
	named := func(a ask) bool { return a.item == item && a.held == nil }
	if i := slices.IndexFunc(l.lost, named); i >= 0 {
		return &l.lost[i]
	}
	if i := slices.IndexFunc(l.asks, named); i >= 0 {
		return &l.asks[i]
	}
	return nil
}

// untimed is what of a message without times is news, by the name of what it is
// of. An answer waits until those to the asks before it came or were given up.
func (l *ledger) untimed(h heard) []pipeline.Result {
	r := h.Result
	a := l.find(h.item)
	if a == nil {
		a = l.find("") // the provider tells no names in time
	}
	if a == nil {
		a = &ask{from: l.asked, at: l.asked, item: h.item}
	}
	r.Start, r.End, r.Finalized = a.from, a.at, false
	first := len(l.asks) > 0 && a == &l.asks[0]
	lost := slices.IndexFunc(l.lost, func(x ask) bool { return x.seq == a.seq })
	switch {
	case !r.Final:
		if lost >= 0 || len(l.asks) > 0 && !first {
			return nil // told as a whole, once it is final
		}
		l.partial = r
	case first:
		return l.settle(r)
	case lost >= 0:
		r = beyond(r, a.told)
		l.lost = slices.Delete(l.lost, lost, lost+1)
		if r.Text == "" {
			return nil
		}
	case a.seq > 0:
		a.held = &r
		return nil
	case r.Text == "":
		return nil
	}
	return []pipeline.Result{r}
}

// beyond is what of r comes after the first n words, of which nothing tells when
// they were said.
func beyond(r pipeline.Result, n int) pipeline.Result {
	if n > 0 {
		all := strings.Fields(r.Text)
		r.Text, r.Start = strings.Join(all[min(n, len(all)):], " "), r.End
	}
	return r
}
