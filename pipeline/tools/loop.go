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
	maxRounds        = 8           // most model replies in one answer
	firstFillerAfter = time.Second // silence before the first filler
	// nextFillerAfter is the silence before each further filler. It includes the moment that the voice
	// needs to start.
	nextFillerAfter = 3300 * time.Millisecond
	maxFillers      = 4 // most fillers per round; after one more silence, the calls are abandoned
	pollInterval    = 100 * time.Millisecond
)

// A Piece is a part of an answer.
type Piece struct {
	pipeline.Delta
	// Pause means that no text follows for a while. Resume means that text follows soon.
	Pause, Resume bool
	// Cut is why the model ended the answer early; nil if it did not. The text so far remains valid.
	Cut error
}

// A Loop makes one answer. It asks the model, runs the tools that the model calls, and asks again with the results.
type Loop struct {
	Model  pipeline.Model
	Set    *Set
	Log    *CallLog
	Prompt pipeline.Prompt
	// Committed is closed once the caller's turn is committed. No tool runs before that,
	// because a speculative answer may be dropped.
	Committed <-chan struct{}
	// Fillers are phrases to say in rotation during silence. A function's own filler replaces the first one.
	Fillers []string
	Quiet   func() bool // reports whether nothing is playing or waiting to be played
	UseCall func() bool // counts one tool call toward the session's limit; reports false at the limit
}

// errAbandoned is the error of tool calls that took too long.
var errAbandoned = errors.New("timed out; it may or may not have completed")

// errEmpty reports an answer with neither text nor follow-up.
var errEmpty = errors.New("model: empty answer")

// An answer is an answer in progress.
type answer struct {
	Loop
	yield     func(Piece, error) bool
	spoke     bool      // the answer contains text other than fillers
	fillers   int       // number of fillers said
	lastSound time.Time // when sound last played or was last queued
}

// Answer yields the answer. The sequence ends after the first error.
func (r Loop) Answer(ctx context.Context) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		a := &answer{Loop: r, yield: yield}
		a.Prompt.Tools = r.Set.Specs()
		for n := range maxRounds {
			calls, text, ok := a.ask(ctx)
			if !ok {
				return
			}
			if over := len(a.Log.FollowUps()) > 0 || n == maxRounds-1; over || len(calls) == 0 {
				break
			}
			ran, ok := a.runCalls(ctx, calls)
			if !ok {
				return
			}
			a.Prompt.Messages = append(a.Prompt.Messages, results(calls, text, ran)...)
			if a.sayFollowUps(ran) {
				break
			}
			if !yield(Piece{Resume: true}, nil) {
				return
			}
		}
		if !a.spoke && len(a.Log.FollowUps()) == 0 {
			yield(Piece{}, errEmpty)
		}
	}
}

// ask asks the model and yields its text. It returns the tool calls and the text.
func (a *answer) ask(ctx context.Context) (calls []pipeline.ToolCall, text string, ok bool) {
	var all strings.Builder
	for d, err := range a.Model.Reply(ctx, a.Prompt) {
		if err != nil && !a.endEarly(err, &all) {
			return nil, "", false
		}
		calls = append(calls, d.Calls...)
		d.Calls = nil
		if all.WriteString(d.Text); d.Text != "" {
			a.lastSound = time.Now()
		}
		if (d.Text != "" || d.Usage != nil) && !a.yield(Piece{Delta: d}, nil) {
			return nil, "", false
		}
	}
	text = strings.TrimSpace(all.String())
	a.spoke = a.spoke || text != ""
	return calls, text, true
}

// endEarly handles the error that ends the model's answer. It returns true if the text so far stands as
// the answer: the words with which the model declined, or the text before the token limit or the content
// filter. An error would lead to an apology, which would confuse the caller after that text.
func (a *answer) endEarly(err error, said *strings.Builder) bool {
	var refusal *pipeline.RefusalError
	spoke := strings.TrimSpace(said.String()) != ""
	switch {
	case errors.As(err, &refusal) && refusal.Text != "":
		text := refusal.Text
		if spoke {
			text = " " + text
		}
		said.WriteString(text)
		a.lastSound = time.Now()
		return a.yield(Piece{Delta: pipeline.Delta{Text: text}}, nil) && a.yield(Piece{Cut: err}, nil)
	case spoke && (refusal != nil || errors.Is(err, pipeline.ErrLength) || errors.Is(err, pipeline.ErrContentFilter)):
		return a.yield(Piece{Cut: err}, nil)
	}
	a.yield(Piece{}, fmt.Errorf("model: %w", err))
	return false
}

// runCalls runs calls once the caller's turn is committed. It says fillers during silence.
func (a *answer) runCalls(ctx context.Context, calls []pipeline.ToolCall) (ran []Result, ok bool) {
	if !a.yield(Piece{Pause: true}, nil) {
		return nil, false
	}
	select {
	case <-a.Committed:
	case <-ctx.Done():
		a.yield(Piece{}, ctx.Err())
		return nil, false
	}
	if !a.Log.begin(calls) {
		a.yield(Piece{}, context.Canceled)
		return nil, false
	}
	var may []pipeline.ToolCall
	for _, c := range calls {
		if a.UseCall() {
			may = append(may, c)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan []Result, 1)
	go func() { done <- a.Set.Run(ctx, may) }()
	if ran, ok = a.await(calls, done, func() { cancel(errAbandoned) }); !ok {
		cancel(nil)
		<-done
		return nil, false
	}
	for _, c := range calls[len(may):] {
		ran = append(ran, Result{Call: c, Failed: true, ToolResult: pipeline.ToolResult{Text: "error: no more tools may be used in this call"}})
	}
	a.Log.end(ran)
	return ran, true
}

// await waits for calls and says fillers during silence. When the fillers are used up, it
// abandons the calls.
func (a *answer) await(calls []pipeline.ToolCall, done <-chan []Result, giveUp func()) (ran []Result, ok bool) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	if a.fillers == 0 {
		a.lastSound = time.Now()
	}
	for said := 0; ; {
		select {
		case ran := <-done:
			return ran, true
		case <-tick.C:
		}
		if !a.Quiet() {
			a.lastSound = time.Now()
		}
		due := nextFillerAfter
		if a.fillers == 0 {
			due = firstFillerAfter
		}
		if time.Since(a.lastSound) < due {
			continue
		}
		if said == maxFillers {
			giveUp()
			return <-done, true
		}
		if !a.sayFiller(calls) {
			return nil, false
		}
		said++
	}
}

func (a *answer) sayFiller(calls []pipeline.ToolCall) bool {
	text, n := "", len(a.Fillers)
	if n > 0 {
		text = a.Fillers[a.fillers%n]
	}
	if own := a.Set.Filler(calls); own != "" && (n == 0 || a.fillers%n == 0) {
		text = own
	}
	a.fillers++
	a.lastSound = time.Now()
	return text == "" || a.saySentence(text)
}

func (a *answer) saySentence(text string) bool {
	return a.yield(Piece{Resume: true}, nil) && a.yield(Piece{Delta: pipeline.Delta{Text: text}}, nil) && a.yield(Piece{Pause: true}, nil)
}

// sayFollowUps says the texts of follow-ups. It reports whether the answer is complete: there is a follow-up, and
// the agent has said something before a hangup or a transfer. If not, the loop asks the model again.
func (a *answer) sayFollowUps(ran []Result) bool {
	whole := false
	for _, r := range ran {
		if r.FollowUp.Say != "" {
			if a.spoke = true; !a.saySentence(r.FollowUp.Say) {
				return true
			}
		}
		whole = whole || r.FollowUp.Step != "" && (a.spoke || r.FollowUp.Step == pipeline.Press)
	}
	return whole
}
