package tools

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

const (
	mostRounds = 8           // answers of the model in one turn
	dullTime   = time.Second // of silence, until the first filler
	// againTime is how long it is silent until the next one, which the voice
	// takes a moment to begin.
	againTime   = 3300 * time.Millisecond
	mostFillers = 4 // of the calls of one round, which are then given up
	look        = 100 * time.Millisecond
)

// A Piece is a stretch of an answer.
type Piece struct {
	pipeline.Delta
	// Pause: nothing more comes for a while. Resume: more is about to come.
	Pause, Resume bool
}

// Rounds make one answer: the model is asked, what it calls is done, and it is
// asked again with the results.
type Rounds struct {
	Model  pipeline.Model
	Set    *Set
	Book   *Book
	Prompt pipeline.Prompt
	// Agreed is closed once the caller's turn is over. Nothing is done before:
	// an answer that was begun early may be dropped.
	Agreed <-chan struct{}
	// Fillers are said in turn while nothing else is. A function's own one comes
	// in place of the first.
	Fillers []string
	Quiet   func() bool // nothing is heard right now, and nothing waits to be
	Spend   func() bool // takes one call of those left to the whole conversation
}

// errTooLong is why calls were given up.
var errTooLong = errors.New("it took too long and was given up; whether it was done is not known")

// errEmpty is an answer without a word and without anything done.
var errEmpty = errors.New("model: the answer is empty")

// answer is an answer under way.
type answer struct {
	Rounds
	yield func(Piece, error) bool
	said  bool      // anything but the filler
	fills int       // fillers that were said
	heard time.Time // when something was heard last, or was to be
}

// Answer yields the answer. The sequence ends after the first error.
func (r Rounds) Answer(ctx context.Context) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		a := &answer{Rounds: r, yield: yield}
		a.Prompt.Tools = r.Set.Specs()
		for n := range mostRounds {
			calls, text, ok := a.ask(ctx)
			if !ok {
				return
			}
			if over := len(a.Book.Then()) > 0 || n == mostRounds-1; over || len(calls) == 0 {
				break
			}
			ran, ok := a.do(ctx, calls)
			if !ok {
				return
			}
			a.Prompt.Messages = append(a.Prompt.Messages, results(calls, text, ran)...)
			if a.parts(ran) {
				break
			}
			if !yield(Piece{Resume: true}, nil) {
				return
			}
		}
		if !a.said && len(a.Book.Then()) == 0 {
			yield(Piece{}, errEmpty)
		}
	}
}

// ask passes the model's words on, and returns what it calls.
func (a *answer) ask(ctx context.Context) (calls []pipeline.ToolCall, text string, ok bool) {
	var all strings.Builder
	for d, err := range a.Model.Reply(ctx, a.Prompt) {
		if err != nil {
			a.yield(Piece{}, fmt.Errorf("model: %w", err))
			return nil, "", false
		}
		calls = append(calls, d.Calls...)
		d.Calls = nil
		if all.WriteString(d.Text); d.Text != "" {
			a.heard = time.Now()
		}
		if (d.Text != "" || d.Usage != nil) && !a.yield(Piece{Delta: d}, nil) {
			return nil, "", false
		}
	}
	text = strings.TrimSpace(all.String())
	a.said = a.said || text != ""
	return calls, text, true
}

// do has calls made once the turn is committed, and fills the silence.
func (a *answer) do(ctx context.Context, calls []pipeline.ToolCall) (ran []Ran, ok bool) {
	if !a.yield(Piece{Pause: true}, nil) {
		return nil, false
	}
	select {
	case <-a.Agreed:
	case <-ctx.Done():
		a.yield(Piece{}, ctx.Err())
		return nil, false
	}
	if !a.Book.begin(calls) {
		a.yield(Piece{}, context.Canceled)
		return nil, false
	}
	var may []pipeline.ToolCall
	for _, c := range calls {
		if a.Spend() {
			may = append(may, c)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan []Ran, 1)
	go func() { done <- a.Set.Run(ctx, may) }()
	if ran, ok = a.wait(calls, done, func() { cancel(errTooLong) }); !ok {
		cancel(nil)
		<-done
		return nil, false
	}
	for _, c := range calls[len(may):] {
		ran = append(ran, Ran{Call: c, Failed: true, Done: pipeline.Done{Text: "error: no more tools may be used in this call"}})
	}
	a.Book.end(ran)
	return ran, true
}

// wait waits for calls, and has fillers said where nothing is heard. When they
// are used up, it gives the calls up.
func (a *answer) wait(calls []pipeline.ToolCall, done <-chan []Ran, giveUp func()) (ran []Ran, ok bool) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	if a.fills == 0 {
		a.heard = time.Now()
	}
	for said := 0; ; {
		select {
		case ran := <-done:
			return ran, true
		case <-tick.C:
		}
		if !a.Quiet() {
			a.heard = time.Now()
		}
		due := againTime
		if a.fills == 0 {
			due = dullTime
		}
		if time.Since(a.heard) < due {
			continue
		}
		if said == mostFillers {
			giveUp()
			return <-done, true
		}
		if !a.fill(calls) {
			return nil, false
		}
		said++
	}
}

// fill says the next filler, where there is one.
func (a *answer) fill(calls []pipeline.ToolCall) bool {
	text, n := "", len(a.Fillers)
	if n > 0 {
		text = a.Fillers[a.fills%n]
	}
	if own := a.Set.Filler(calls); own != "" && (n == 0 || a.fills%n == 0) {
		text = own
	}
	a.fills++
	a.heard = time.Now()
	return text == "" || a.tell(text)
}

// tell says a whole sentence of its own.
func (a *answer) tell(text string) bool {
	return a.yield(Piece{Resume: true}, nil) && a.yield(Piece{Delta: pipeline.Delta{Text: text}}, nil) && a.yield(Piece{Pause: true}, nil)
}

// parts says what is to be said before what happens next, and tells whether the
// answer is whole with it. A goodbye that was not said is asked for.
func (a *answer) parts(ran []Ran) bool {
	whole := false
	for _, r := range ran {
		if r.Then.Say != "" {
			if a.said = true; !a.tell(r.Then.Say) {
				return true
			}
		}
		whole = whole || r.Then.Step != "" && (a.said || r.Then.Step == pipeline.Press)
	}
	return whole
}
