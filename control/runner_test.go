package control

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// memoryStore implements AttemptStore in memory.
type memoryStore struct {
	mu       sync.Mutex
	wrote    []string
	final    CallResult
	intent   error
	finish   []error // errors of the first calls of Finish
	stall    time.Duration
	noteWait chan struct{} // Note blocks until this is closed; nil: Note does not block
}

func (b *memoryStore) write(s string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrote = append(b.wrote, s)
}

func (b *memoryStore) Intent(context.Context, Lease) error {
	if b.stall > 0 {
		<-time.After(b.stall)
	}
	b.write("intent")
	return b.intent
}
func (b *memoryStore) Release(context.Context, Lease) error { b.write("release"); return nil }
func (b *memoryStore) Mark(_ context.Context, _ Lease, s AttemptState, _ time.Time) error {
	b.write(string(s))
	return nil
}

func (b *memoryStore) Note(ctx context.Context, _ Lease, n Notes) error {
	if b.noteWait != nil {
		select {
		case <-b.noteWait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for range n.Lines {
		b.write("line")
	}
	for range n.Turns {
		b.write("turn")
	}
	return nil
}

func (b *memoryStore) Finish(_ context.Context, _ Lease, f CallResult) error {
	b.write("finish")
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.finish) > 0 {
		err := b.finish[0]
		b.finish = b.finish[1:]
		return err
	}
	b.final = f
	return nil
}

type dialFunc func(ctx context.Context, progress func(media.Progress)) (media.Leg, error)

func (d dialFunc) Dial(ctx context.Context, _ media.Target, progress func(media.Progress)) (media.Leg, error) {
	return d(ctx, progress)
}

type talkFunc func(ctx context.Context, b pipeline.SessionConfig) (pipeline.Outcome, error)

func (f talkFunc) Talk(ctx context.Context, _ media.Leg, b pipeline.SessionConfig) (pipeline.Outcome, error) {
	return f(ctx, b)
}

// silentLeg is a leg without audio that counts how often it is hung up.
type silentLeg struct{ hangups int }

func (*silentLeg) Rate() int                   { return 8000 }
func (*silentLeg) ReadFrame(media.Frame) error { return io.EOF }
func (*silentLeg) Play(media.Feed)             {}
func (*silentLeg) Digits() <-chan rune         { return nil }
func (*silentLeg) Cause() media.Cause          { return "" }
func (s *silentLeg) Hangup(media.Cause) error  { s.hangups++; return nil }

func answerWith(leg media.Leg) dialFunc {
	return func(_ context.Context, progress func(media.Progress)) (media.Leg, error) {
		for range 3 { // carriers send a response several times
			progress(media.Sent)
			progress(media.Ringing)
		}
		return leg, nil
	}
}

func newClaim() *Claim {
	return &Claim{Call: Call{ID: "call_1"}, Lease: Lease{AttemptID: "att_1", CallID: "call_1", Owner: "n", Epoch: 1}, Until: time.Now().Add(15 * time.Second)}
}

func TestRunnerAnsweredCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, leg := &memoryStore{}, &silentLeg{}
		lines := []pipeline.Line{{Role: pipeline.RoleAgent, Text: "Hello."}}
		r := &Runner{Attempts: b, Live: &Live{}, Dialer: answerWith(leg), Talker: talkFunc(func(_ context.Context, br pipeline.SessionConfig) (pipeline.Outcome, error) {
			if br.CallID != "call_1" || br.AnsweredAt.IsZero() {
				t.Errorf("session %+v", br)
			}
			br.Observer.OnLine(lines[0])
			br.Observer.OnTurn(pipeline.Turn{})
			return pipeline.Outcome{Lines: lines, Turns: []pipeline.Turn{{}}, Reason: pipeline.AgentHungUp}, nil
		})}
		if err := r.Run(t.Context(), newClaim()); err != nil {
			t.Fatal(err)
		}
		want := []string{"intent", "sent", "ringing", "answered", "line", "turn", "finish"}
		if !slices.Equal(b.wrote, want) {
			t.Errorf("wrote %v, want %v", b.wrote, want)
		}
		if f := b.final; f.Status != Ended || f.Reason != "agent_hangup" || f.Recording != RecordingDisabled || len(f.Lines) != 1 || len(f.Turns) != 1 ||
			f.DialedAt.IsZero() || f.RingingAt.IsZero() || f.AnsweredAt.IsZero() || f.EndedAt.IsZero() {
			t.Errorf("final %+v", f)
		}
		if leg.hangups == 0 || r.Live.Count() != 0 {
			t.Errorf("%d hangups, %d calls left", leg.hangups, r.Live.Count())
		}
	})
}

func TestRunnerDoesNotDial(t *testing.T) {
	for _, tt := range []struct {
		name string
		book *memoryStore
		want []string
	}{
		{"fenced", &memoryStore{intent: ErrFenced}, []string{"intent"}},
		{"halted", &memoryStore{intent: &HaltError{Reason: ReasonDNCBlocked}}, []string{"intent", "finish"}},
		{"campaign stopped", &memoryStore{intent: ErrStopped}, []string{"intent", "release"}},
		{"intent in doubt", &memoryStore{intent: errors.New("the connection broke")}, []string{"intent", "release"}},
		{"stopped for a minute", &memoryStore{stall: time.Minute}, []string{"intent", "release"}},
		{"lease nearly over", &memoryStore{stall: 11 * time.Second}, []string{"intent", "release"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := tt.book
				r := &Runner{Attempts: b, Live: &Live{}, Dialer: dialFunc(func(context.Context, func(media.Progress)) (media.Leg, error) {
					t.Error("dialed")
					return nil, errors.New("no")
				})}
				_ = r.Run(t.Context(), newClaim()) // the test checks only which states were written
				if !slices.Equal(b.wrote, tt.want) {
					t.Errorf("wrote %v, want %v", b.wrote, tt.want)
				}
			})
		})
	}
}

func TestRunnerUnconfiguredProvider(t *testing.T) {
	b := &memoryStore{}
	r := &Runner{
		Attempts: b, Live: &Live{}, Check: func(pipeline.SessionConfig) error { return errors.New("no such voice") },
		Dialer: dialFunc(func(context.Context, func(media.Progress)) (media.Leg, error) {
			t.Error("dialed")
			return nil, errors.New("no")
		}),
	}
	if err := r.Run(t.Context(), newClaim()); err != nil || b.final.Reason != ReasonNotConfigured || !slices.Equal(b.wrote, []string{"finish"}) {
		t.Errorf("%v, wrote %v, final %+v", err, b.wrote, b.final)
	}
}

// TestRunnerHangsUpWaitingUser checks that a web user whose call cannot start is disconnected before the end of the
// call is written.
func TestRunnerHangsUpWaitingUser(t *testing.T) {
	unavailable := errors.New("the database is unavailable")
	for name, c := range map[string]struct {
		intent error
		check  error
		until  time.Duration
	}{
		"cannot talk": {nil, errors.New("no voice"), 15 * time.Second},
		"halted":      {&HaltError{Reason: ReasonCanceled}, nil, 15 * time.Second},
		"no intent":   {unavailable, nil, 15 * time.Second},
		"too late":    {nil, nil, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := &memoryStore{intent: c.intent, finish: []error{unavailable, unavailable}}
			r := &Runner{Attempts: b, Live: &Live{}, Check: func(pipeline.SessionConfig) error { return c.check }}
			claim := newClaim()
			claim.Call.Type, claim.Until = Web, time.Now().Add(c.until)
			claim.HangUp = func() { b.write("drop") }
			claim.OnEnd = func(f CallResult) { b.write("over " + string(f.Status)) }
			_ = r.Run(t.Context(), claim)
			got := strings.TrimPrefix(strings.Join(b.wrote, " "), "intent ")
			if got != "drop finish finish finish over ended" {
				t.Errorf("%s: %s", name, got)
			}
		})
	}
}

func TestRunnerRetriesFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unavailable := errors.New("the database is unavailable")
		b := &memoryStore{finish: []error{unavailable, unavailable, unavailable, unavailable, unavailable}}
		r := &Runner{Attempts: b, Live: &Live{}, Dialer: answerWith(&silentLeg{}), Talker: talkFunc(func(context.Context, pipeline.SessionConfig) (pipeline.Outcome, error) {
			return pipeline.Outcome{Reason: pipeline.CallerHungUp}, nil
		})}
		if err := r.Run(t.Context(), newClaim()); err != nil || b.final.Reason != "callee_hangup" {
			t.Errorf("%v, final %+v", err, b.final)
		}
		b.finish = slices.Repeat([]error{unavailable}, 1000)
		if err := r.Run(t.Context(), newClaim()); !errors.Is(err, unavailable) {
			t.Errorf("an unwritten end: %v", err)
		}
	})
}

// TestRunnerEndsAfterLostLease checks that a call that lost its lease ends, and that its end is still written.
func TestRunnerEndsAfterLostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, leg := &memoryStore{finish: []error{ErrFenced}}, &silentLeg{}
		r := &Runner{Attempts: b, Live: &Live{}, Dialer: answerWith(leg), Talker: talkFunc(func(ctx context.Context, _ pipeline.SessionConfig) (pipeline.Outcome, error) {
			<-ctx.Done()
			return pipeline.Outcome{Reason: pipeline.Stopped}, nil
		})}
		over := make(chan error, 1)
		go func() { over <- r.Run(t.Context(), newClaim()) }()
		synctest.Wait()
		r.Live.endLost([]string{"att_1"}, []Lease{{AttemptID: "att_1", Epoch: 1}})
		synctest.Wait()
		if r.Live.Count() != 1 {
			t.Fatal("a call under its lease ended")
		}
		r.Live.endLost([]string{"att_1"}, []Lease{{AttemptID: "att_1", Epoch: 2}})
		r.Live.endLost([]string{"att_1"}, nil) // the same call
		if n := r.Live.LostLeases(); n != 1 {
			t.Errorf("%d lost leases, want 1", n)
		}
		if err := <-over; !errors.Is(err, ErrFenced) || leg.hangups == 0 || len(b.finish) > 0 {
			t.Errorf("%v, %d hangups, wrote %v", err, leg.hangups, b.wrote)
		}
	})
}

func TestRunnerConversationPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, leg := &memoryStore{}, &silentLeg{}
		r := &Runner{Attempts: b, Live: &Live{}, Dialer: answerWith(leg), Talker: talkFunc(func(context.Context, pipeline.SessionConfig) (pipeline.Outcome, error) {
			panic("the model said a word") //nolint:forbidigo // under test
		})}
		if err := r.Run(t.Context(), newClaim()); err != nil || b.final.Reason != "agent_error" || b.final.Status != Ended || leg.hangups == 0 {
			t.Errorf("%v, final %+v", err, b.final)
		}
	})
}

// TestCallLogDoesNotBlockConversation checks that a database that hangs does not delay the conversation, and delays
// the end of the call by at most logCloseTimeout.
func TestCallLogDoesNotBlockConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &memoryStore{noteWait: make(chan struct{})}
		const said = 1000
		r := &Runner{Attempts: b, Live: &Live{}, Dialer: answerWith(&silentLeg{}), Talker: talkFunc(func(_ context.Context, br pipeline.SessionConfig) (pipeline.Outcome, error) {
			began := time.Now()
			lines := make([]pipeline.Line, said)
			for _, l := range lines {
				br.Observer.OnLine(l)
			}
			if took := time.Since(began); took > 0 {
				t.Errorf("the conversation waited %v", took)
			}
			return pipeline.Outcome{Lines: lines, Reason: pipeline.CallerHungUp}, nil
		})}
		began := time.Now()
		if err := r.Run(t.Context(), newClaim()); err != nil || len(b.final.Lines) != said {
			t.Errorf("%v, %d lines at the end", err, len(b.final.Lines))
		}
		if took := time.Since(began); took > logCloseTimeout {
			t.Errorf("the end waited %v for the call log", took)
		}
	})
}
