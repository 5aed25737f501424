package tools

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// unknown is what the model is told of a call that was under way when the answer
// was given up.
const unknown = "error: the caller spoke first; whether it was done is not known"

// A Book keeps what an answer had done. Whoever makes the answer writes it;
// whoever ends the answer closes it, and nothing is begun after that. Its zero
// value is ready.
type Book struct {
	mu     sync.Mutex
	closed bool
	told   bool
	deeds  []deed
	then   []pipeline.Then
}

// deed is the calls of one round.
type deed struct {
	calls []pipeline.ToolCall
	began time.Time
	ended time.Time // zero while they run
	ran   []Ran
}

// begin notes calls that are about to be made; false where the answer was given
// up, and they must not be.
func (b *Book) begin(calls []pipeline.ToolCall) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.deeds = append(b.deeds, deed{calls: calls, began: time.Now()})
	}
	return !b.closed
}

func (b *Book) end(ran []Ran) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	d := &b.deeds[len(b.deeds)-1]
	d.ended, d.ran = d.began, ran
	for _, r := range ran {
		if end := d.began.Add(r.Took); end.After(d.ended) {
			d.ended = end
		}
		if r.Then.Step != "" {
			b.then = append(b.then, r.Then)
		}
	}
}

// Plan has something happen after the answer.
func (b *Book) Plan(t pipeline.Then) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.then = append(b.then, t)
}

// Then is what is to happen after the answer, in this order.
func (b *Book) Then() []pipeline.Then {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.then)
}

// Took is how long functions ran, the waiting for nothing else left out.
func (b *Book) Took() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	var sum time.Duration
	for _, d := range b.deeds {
		if !d.ended.IsZero() {
			sum += d.ended.Sub(d.began)
		}
	}
	return sum
}

// Within is how long functions ran between two moments.
func (b *Book) Within(from, to time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	var sum time.Duration
	for _, d := range b.deeds {
		began, ended := d.began, d.ended
		if began.Before(from) {
			began = from
		}
		if ended.IsZero() || ended.After(to) {
			ended = to
		}
		sum += max(0, ended.Sub(began))
	}
	return sum
}

// An Entry is a call as a transcript has it.
type Entry struct {
	Text         string
	Began, Ended time.Time
}

// longestEntry bounds the result that a transcript repeats, in characters.
const longestEntry = 500

// Close closes the book and returns what the model and the transcript are to be
// told of it, once: later calls return nothing.
func (b *Book) Close() (messages []pipeline.Message, entries []Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.told {
		return nil, nil
	}
	b.told = true
	for _, d := range b.deeds {
		if d.ended.IsZero() {
			d.ended = time.Now()
			for _, c := range d.calls {
				d.ran = append(d.ran, Ran{Call: c, Done: pipeline.Done{Text: unknown}})
			}
		}
		messages = append(messages, results(d.calls, "", d.ran)...)
		for _, r := range d.ran {
			text := []rune(fmt.Sprintf("%s %s: %s", r.Call.Name, r.Call.Arguments, r.Text))
			entries = append(entries, Entry{Text: string(text[:min(len(text), longestEntry)]), Began: d.began, Ended: d.ended})
		}
	}
	return messages, entries
}

// results are the messages of calls and what came of them.
func results(calls []pipeline.ToolCall, said string, ran []Ran) []pipeline.Message {
	messages := []pipeline.Message{{Role: pipeline.RoleAgent, Text: said, Calls: calls}}
	for _, r := range ran {
		messages = append(messages, pipeline.Message{Role: pipeline.RoleTool, CallID: r.Call.ID, Text: r.Text})
	}
	return messages
}
