package tools

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// resultUnknown is the result of a tool call that was running when the log was closed.
const resultUnknown = "error: interrupted by the caller; it may or may not have completed"

// A CallLog records the tool calls of one answer. The answer's Loop writes it. After Close, no further
// tool call runs. The zero value is ready to use.
type CallLog struct {
	mu        sync.Mutex
	closed    bool
	reported  bool
	rounds    []round
	followUps []pipeline.FollowUp
}

// A round is the set of tool calls of one model reply.
type round struct {
	calls []pipeline.ToolCall
	began time.Time
	ended time.Time // zero while the calls run
	ran   []Result
}

// begin records calls that are about to run. If it returns false, the log is closed and the calls must not run.
func (b *CallLog) begin(calls []pipeline.ToolCall) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.rounds = append(b.rounds, round{calls: calls, began: time.Now()})
	}
	return !b.closed
}

func (b *CallLog) end(ran []Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	d := &b.rounds[len(b.rounds)-1]
	d.ended, d.ran = d.began, ran
	for _, r := range ran {
		if end := d.began.Add(r.Took); end.After(d.ended) {
			d.ended = end
		}
		if r.FollowUp.Step != "" {
			b.followUps = append(b.followUps, r.FollowUp)
		}
	}
}

// AddFollowUp adds an action to perform after the answer.
func (b *CallLog) AddFollowUp(t pipeline.FollowUp) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.followUps = append(b.followUps, t)
}

// FollowUps returns the actions to perform after the answer, in order.
func (b *CallLog) FollowUps() []pipeline.FollowUp {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.followUps)
}

// Duration returns the total run time of finished calls. Parallel calls count once.
func (b *CallLog) Duration() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	var sum time.Duration
	for _, d := range b.rounds {
		if !d.ended.IsZero() {
			sum += d.ended.Sub(d.began)
		}
	}
	return sum
}

// DurationBetween returns the part of the run time that lies between two times. Calls that still run
// count up to the second time.
func (b *CallLog) DurationBetween(from, to time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	var sum time.Duration
	for _, d := range b.rounds {
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

// An Entry is a tool call in the transcript.
type Entry struct {
	Text         string
	Began, Ended time.Time
}

// maxEntry is the most characters of Entry.Text.
const maxEntry = 500

// Close closes the log. It returns the messages for the model and the entries for the transcript. A
// second Close returns nil.
func (b *CallLog) Close() (messages []pipeline.Message, entries []Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.reported {
		return nil, nil
	}
	b.reported = true
	for _, d := range b.rounds {
		if d.ended.IsZero() {
			d.ended = time.Now()
			for _, c := range d.calls {
				d.ran = append(d.ran, Result{Call: c, ToolResult: pipeline.ToolResult{Text: resultUnknown}})
			}
		}
		messages = append(messages, results(d.calls, "", d.ran)...)
		for _, r := range d.ran {
			text := []rune(fmt.Sprintf("%s %s: %s", r.Call.Name, r.Call.Arguments, r.Text))
			entries = append(entries, Entry{Text: string(text[:min(len(text), maxEntry)]), Began: d.began, Ended: d.ended})
		}
	}
	return messages, entries
}

// results returns the messages of calls and their results.
func results(calls []pipeline.ToolCall, said string, ran []Result) []pipeline.Message {
	messages := []pipeline.Message{{Role: pipeline.RoleAgent, Text: said, Calls: calls}}
	for _, r := range ran {
		messages = append(messages, pipeline.Message{Role: pipeline.RoleTool, CallID: r.Call.ID, Text: r.Text})
	}
	return messages
}
