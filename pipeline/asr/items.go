package asr

import (
	"slices"
	"strings"

	"github.com/parley-voice/parley/pipeline"
)

// nameOldest assigns the provider's item name to the oldest request without one.
func (l *tracker) nameOldest(item string) {
	if a := l.findByName(""); a != nil {
		a.item = item
	}
}

// findByName returns the oldest request with that item name that has no result yet, abandoned or
// open. It returns nil if there is none.
func (l *tracker) findByName(item string) *request {
	named := func(a request) bool { return a.item == item && a.result == nil }
	if i := slices.IndexFunc(l.abandoned, named); i >= 0 {
		return &l.abandoned[i]
	}
	if i := slices.IndexFunc(l.requests, named); i >= 0 {
		return &l.requests[i]
	}
	return nil
}

// untimed returns the results of an update without times. It finds the request by the item name. An
// answer waits until all earlier requests are answered or abandoned.
func (l *tracker) untimed(h update) []pipeline.Result {
	r := h.Result
	a := l.findByName(h.item)
	if a == nil {
		a = l.findByName("") // the provider never sent the name
	}
	if a == nil {
		a = &request{from: l.lastRequest, at: max(l.lastRequest, l.heard), item: h.item} // the text came before its Finalize
	}
	r.Start, r.End, r.Finalized = a.from, a.at, false
	first := len(l.requests) > 0 && a == &l.requests[0]
	lost := slices.IndexFunc(l.abandoned, func(x request) bool { return x.seq == a.seq })
	switch {
	case !r.Final:
		if lost >= 0 || len(l.requests) > 0 && !first {
			return nil // the final text of this item contains this text
		}
		l.partial = r
	case first:
		return l.settle(r)
	case lost >= 0:
		r = skipWords(r, a.deliveredWords)
		l.abandoned = slices.Delete(l.abandoned, lost, lost+1)
		if r.Text == "" {
			return nil
		}
	case a.seq > 0:
		a.result = &r
		return nil
	case r.Text == "":
		return nil
	}
	return []pipeline.Result{r}
}

// skipWords returns r without its first n words, whose times are unknown.
func skipWords(r pipeline.Result, n int) pipeline.Result {
	if n > 0 {
		all := strings.Fields(r.Text)
		r.Text, r.Start = strings.Join(all[min(n, len(all)):], " "), r.End
	}
	return r
}
