package book

import (
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/ear"
	"github.com/parley-voice/parley/pipeline/history"
	"github.com/parley-voice/parley/pipeline/turn"
)

// A Caller is what is known of the caller when a turn is committed.
type Caller struct {
	Last, Began ear.Edge  // where the caller last fell silent, and last began to speak
	Answered    time.Time // the call was
	Turn        int       // the next one's number
	Specs       int       // answers begun for this turn before its commit
}

// Committed opens the account of the caller's turn that a commits, or goes on with
// before, the one that was retracted; another tells that it is a turn of its own.
func Committed(a turn.Action, c Caller, before *Account) (x *Account, another bool) {
	since := func(t time.Time) time.Duration { return t.Sub(c.Answered) }
	x = &Account{
		Caller: true, T0: c.Last.Voiced, Waited: c.Last.Waited, Verdict: c.Last.At,
		Usable: c.Answered.Add(a.Usable), Commit: time.Now(),
		Estimated: c.Last.Estimated, Reason: a.Reason, Specs: c.Specs,
	}
	if a.Judged > 0 {
		x.Judged = c.Answered.Add(a.Judged)
	}
	if since(c.Last.From) != a.From { // the energy gate missed the speech
		x.T0, x.Waited, x.Verdict, x.Estimated = c.Answered.Add(a.From), 0, x.Usable, true
	}
	from := c.Began.From
	if a.Text == "" { // there are but keys
		from = x.T0
	}
	if another = before == nil || a.Fragments <= 1; another {
		x.Number = c.Turn
	} else {
		x.Number, x.Fragments, x.First = before.Number, a.Fragments, before.First
		if x.First == nil {
			x.First = before.Spans()
		}
		if before.Line != nil {
			from = c.Answered.Add(before.Line.Start)
		}
	}
	if a.Told {
		return x, another
	}
	x.Line = &pipeline.Line{
		Role: pipeline.RoleCaller, Text: history.Spoken(a.Text, a.Keys), Turn: x.Number,
		Start: min(since(from), since(x.T0)), End: since(x.T0),
	}
	return x, another
}
