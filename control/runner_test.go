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

// A book is a Ledger in memory.
type book struct {
	mu       sync.Mutex
	wrote    []string
	final    CallResult
	intent   error
	finish   []error // of the first calls of Finish
	stall    time.Duration
	noteWait chan struct{} // Note waits for it, where set
}

func (b *book) write(s string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrote = append(b.wrote, s)
}

func (b *book) Intent(context.Context, Lease) error {
	if b.stall > 0 {
		<-time.After(b.stall)
	}
	b.write("intent")
	return b.intent
}
func (b *book) Release(context.Context, Lease) error { b.write("release"); return nil }
func (b *book) Mark(_ context.Context, _ Lease, s AttemptState, _ time.Time) error {
	b.write(string(s))
	return nil
}

func (b *book) Note(ctx context.Context, _ Lease, n Notes) error {
	if b.noteWait != nil {
		select {
		case <-b.noteWait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if len(n.Lines) > 0 {
		b.write("line")
	} else {
		b.write("turn")
	}
	return nil
}

func (b *book) Finish(_ context.Context, _ Lease, f CallResult) error {
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

// A still leg counts its hangups.
type still struct{ hangups int }

func (*still) Rate() int                   { return 8000 }
func (*still) ReadFrame(media.Frame) error { return io.EOF }
func (*still) Play(media.Feed)             {}
func (*still) Digits() <-chan rune         { return nil }
func (*still) Cause() media.Cause          { return "" }
func (s *still) Hangup(media.Cause) error  { s.hangups++; return nil }

func answer(leg media.Leg) dialFunc {
	return func(_ context.Context, progress func(media.Progress)) (media.Leg, error) {
		for range 3 { // carriers repeat themselves
			progress(media.Sent)
			progress(media.Ringing)
		}
		return leg, nil
	}
}

func newClaim() *Claim {
	return &Claim{Call: Call{ID: "call_1"}, Lease: Lease{AttemptID: "att_1", CallID: "call_1", Owner: "n", Epoch: 1}, Until: time.Now().Add(15 * time.Second)}
}

func TestRunnerInAStraightLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, leg := &book{}, &still{}
		lines := []pipeline.Line{{Role: pipeline.RoleAgent, Text: "Hello."}}
		r := &Runner{Attempts: b, Live: &Live{}, Dialer: answer(leg), Talker: talkFunc(func(_ context.Context, br pipeline.SessionConfig) (pipeline.Outcome, error) {
			if br.CallID != "call_1" || br.AnsweredAt.IsZero() {
				t.Errorf("brief %+v", br)
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
		book *book
		want []string
	}{
		{"fenced", &book{intent: ErrFenced}, []string{"intent"}},
		{"halted", &book{intent: &HaltError{Reason: ReasonDNCBlocked}}, []string{"intent", "finish"}},
		{"campaign stopped", &book{intent: ErrStopped}, []string{"intent", "release"}},
		{"intent in doubt", &book{intent: errors.New("the connection broke")}, []string{"intent", "release"}},
		{"stopped for a minute", &book{stall: time.Minute}, []string{"intent", "release"}},
		{"lease nearly over", &book{stall: 11 * time.Second}, []string{"intent", "release"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := tt.book
				r := &Runner{Attempts: b, Live: &Live{}, Dialer: dialFunc(func(context.Context, func(media.Progress)) (media.Leg, error) {
					t.Error("dialled")
					return nil, errors.New("no")
				})}
				_ = r.Run(t.Context(), newClaim()) // what it writes tells
				if !slices.Equal(b.wrote, tt.want) {
					t.Errorf("wrote %v, want %v", b.wrote, tt.want)
				}
			})
		})
	}
}

func TestRunnerDialsForNoAgentThatCannotTalk(t *testing.T) {
	b := &book{}
	r := &Runner{
		Attempts: b, Live: &Live{}, Check: func(pipeline.SessionConfig) error { return errors.New("no such voice") },
		Dialer: dialFunc(func(context.Context, func(media.Progress)) (media.Leg, error) {
			t.Error("dialled")
			return nil, errors.New("no")
		}),
	}
	if err := r.Run(t.Context(), newClaim()); err != nil || b.final.Reason != ReasonNotConfigured || !slices.Equal(b.wrote, []string{"finish"}) {
		t.Errorf("%v, wrote %v, final %+v", err, b.wrote, b.final)
	}
}

// TestRunnerDropsWhoWaits: a party that is on the line before it is dialled does not
// wait for the end to be written of a call that is not dialled.
func TestRunnerDropsWhoWaits(t *testing.T) {
	away := errors.New("the database is away")
	for name, c := range map[string]struct {
		intent error
		check  error
		until  time.Duration
	}{
		"cannot talk": {nil, errors.New("no voice"), 15 * time.Second},
		"halted":      {&HaltError{Reason: ReasonCancelled}, nil, 15 * time.Second},
		"no intent":   {away, nil, 15 * time.Second},
		"too late":    {nil, nil, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := &book{intent: c.intent, finish: []error{away, away}}
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

func TestRunnerWritesTheEndOnceTheDatabaseIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("the database is away")
		b := &book{finish: []error{away, away, away, away, away}}
		r := &Runner{Attempts: b, Live: &Live{}, Dialer: answer(&still{}), Talker: talkFunc(func(context.Context, pipeline.SessionConfig) (pipeline.Outcome, error) {
			return pipeline.Outcome{Reason: pipeline.CallerHungUp}, nil
		})}
		if err := r.Run(t.Context(), newClaim()); err != nil || b.final.Reason != "callee_hangup" {
			t.Errorf("%v, final %+v", err, b.final)
		}
		b.finish = slices.Repeat([]error{away}, 1000)
		if err := r.Run(t.Context(), newClaim()); !errors.Is(err, away) {
			t.Errorf("an end that was never written: %v", err)
		}
	})
}

// TestRunnerStopsWithoutItsLease: the call ends, and what it was is told of all the
// same, as far as somebody keeps it.
func TestRunnerStopsWithoutItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, leg := &book{finish: []error{ErrFenced}}, &still{}
		r := &Runner{Attempts: b, Live: &Live{}, Dialer: answer(leg), Talker: talkFunc(func(ctx context.Context, _ pipeline.SessionConfig) (pipeline.Outcome, error) {
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
		if err := <-over; !errors.Is(err, ErrFenced) || leg.hangups == 0 || len(b.finish) > 0 {
			t.Errorf("%v, %d hangups, wrote %v", err, leg.hangups, b.wrote)
		}
	})
}

func TestRunnerSurvivesAPanicOfTheConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, leg := &book{}, &still{}
		r := &Runner{Attempts: b, Live: &Live{}, Dialer: answer(leg), Talker: talkFunc(func(context.Context, pipeline.SessionConfig) (pipeline.Outcome, error) {
			panic("the model said a word") //nolint:forbidigo // what is tested
		})}
		if err := r.Run(t.Context(), newClaim()); err != nil || b.final.Reason != "agent_error" || b.final.Status != Ended || leg.hangups == 0 {
			t.Errorf("%v, final %+v", err, b.final)
		}
	})
}

// TestJournalDoesNotHoldTheConversationUp lets the database hang for good.
func TestJournalDoesNotHoldTheConversationUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{noteWait: make(chan struct{})}
		const said = 1000
		r := &Runner{Attempts: b, Live: &Live{}, Dialer: answer(&still{}), Talker: talkFunc(func(_ context.Context, br pipeline.SessionConfig) (pipeline.Outcome, error) {
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
			t.Errorf("the end waited %v for the journal", took)
		}
	})
}
