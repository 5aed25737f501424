package control

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// A tracedLeg has a ladder that is whole a while after its end.
type tracedLeg struct {
	gaugedLeg
	after time.Duration
}

func (l *tracedLeg) Ladder(ctx context.Context) []media.Message {
	select {
	case <-time.After(l.after):
		return []media.Message{{Line: "INVITE"}, {Line: "200 OK"}}
	case <-ctx.Done():
		return []media.Message{{Line: "INVITE"}}
	}
}

// A shelfOfLadders is a Tracer.
type shelfOfLadders struct {
	mu   sync.Mutex
	kept map[string]int // messages, by attempt
	err  error
}

func (s *shelfOfLadders) Trace(_ context.Context, l Lease, ladder []media.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[string]int{}
	}
	s.kept[l.AttemptID] = len(ladder)
	return s.err
}

func TestRunnerKeepsTheSignalling(t *testing.T) {
	refused := func(context.Context, func(media.Progress)) (media.Leg, error) {
		return nil, &media.DialError{Cause: media.Busy, Ladder: make([]media.Message, 3)}
	}
	for name, row := range map[string]struct {
		dial dialFunc
		want int
		err  error
	}{
		"answered":                {answer(&tracedLeg{after: time.Second}), 2, nil},
		"a BYE without answer":    {answer(&tracedLeg{after: time.Minute}), 1, nil},
		"refused":                 {refused, 3, nil},
		"a leg without a ladder":  {answer(&still{}), 0, nil},
		"a database that is away": {refused, 3, errors.New("away")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, shelf := &book{}, &shelfOfLadders{err: row.err}
				r := &Runner{
					Attempts: b, Live: &Live{}, Dialer: row.dial, Tracer: shelf,
					Talker: talkFunc(func(context.Context, pipeline.SessionConfig) (pipeline.Outcome, error) {
						return pipeline.Outcome{Reason: pipeline.AgentHungUp}, nil
					}),
				}
				began := time.Now()
				if err := r.Run(t.Context(), newClaim()); err != nil {
					t.Fatal(err)
				}
				if d := time.Since(began); d != 0 || r.Live.Count() != 0 {
					t.Errorf("the call's end was held up for %v", d)
				}
				r.Wait()
				if got := shelf.kept["att_1"]; got != row.want {
					t.Errorf("%d messages kept, want %d", got, row.want)
				}
				if d := time.Since(began); d > ladderTimeout {
					t.Errorf("it took %v", d)
				}
			})
		})
	}
}

// TestRunnerGaugesTheLeg: the quality is the leg's, whatever tapes it.
func TestRunnerGaugesTheLeg(t *testing.T) {
	b := &book{}
	r := &Runner{
		Attempts: b, Live: &Live{}, Dialer: answer(&gaugedLeg{q: media.Quality{Codec: "G722"}}), Recorder: mute{},
		Talker: talkFunc(func(context.Context, pipeline.SessionConfig) (pipeline.Outcome, error) {
			return pipeline.Outcome{Reason: pipeline.AgentHungUp}, nil
		}),
	}
	c := newClaim()
	c.Record = true
	if err := r.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if want := EncodeQuality(&gaugedLeg{q: media.Quality{Codec: "G722"}}); string(b.final.Quality) != string(want) {
		t.Errorf("%s, want %s", b.final.Quality, want)
	}
}

// mute is a Taper whose tapes hide what the leg can do.
type mute struct{}

func (mute) Record(_ string, leg media.Leg) (media.Leg, Recording, error) {
	return struct{ media.Leg }{leg}, mute{}, nil
}
func (mute) Close() (string, error) { return "tape", nil }

// TestRunnerKeepsTheSignallingOfSecondLegs, answered or not.
func TestRunnerKeepsTheSignallingOfSecondLegs(t *testing.T) {
	for name, row := range map[string]struct {
		leg  media.Leg
		err  error
		want int
	}{
		"answered": {&tracedLeg{after: time.Second}, nil, 2},
		"refused":  {nil, &media.DialError{Cause: media.Busy, Ladder: make([]media.Message, 3)}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shelf := &shelfOfLadders{}
				r := &Runner{Attempts: &book{}, Live: &Live{}, Legs: &legBook{}, Tracer: shelf, Dialer: phones(func(to media.Target, _ func(media.Progress)) (media.Leg, error) {
					if to.ID != "att_2" {
						return &tracedLeg{}, nil
					}
					return row.leg, row.err
				})}
				r.Talker = talkFunc(func(ctx context.Context, b pipeline.SessionConfig) (pipeline.Outcome, error) {
					_, err := b.Bridge(ctx, "+1 2")
					if !errors.Is(err, row.err) {
						t.Error(err)
					}
					return pipeline.Outcome{Reason: pipeline.AgentHungUp}, nil
				})
				if err := r.Run(t.Context(), newClaim()); err != nil {
					t.Fatal(err)
				}
				r.Wait()
				if shelf.kept["att_1"] != 2 || shelf.kept["att_2"] != row.want {
					t.Errorf("kept %v, want %d of the second leg", shelf.kept, row.want)
				}
			})
		})
	}
}
