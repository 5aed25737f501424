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

// tracedLeg is a leg whose list of SIP messages is complete only some time after the call of Ladder.
type tracedLeg struct {
	measuredLeg
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

// memoryTracer implements Tracer in memory.
type memoryTracer struct {
	mu   sync.Mutex
	kept map[string]int // number of messages by attempt
	err  error
}

func (s *memoryTracer) Trace(_ context.Context, l Lease, ladder []media.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[string]int{}
	}
	s.kept[l.AttemptID] = len(ladder)
	return s.err
}

func TestRunnerStoresSignaling(t *testing.T) {
	refused := func(context.Context, func(media.Progress)) (media.Leg, error) {
		return nil, &media.DialError{Cause: media.Busy, Ladder: make([]media.Message, 3)}
	}
	for name, row := range map[string]struct {
		dial dialFunc
		want int
		err  error
	}{
		"answered":               {answerWith(&tracedLeg{after: time.Second}), 2, nil},
		"a BYE without answer":   {answerWith(&tracedLeg{after: time.Minute}), 1, nil},
		"refused":                {refused, 3, nil},
		"a leg without a ladder": {answerWith(&silentLeg{}), 0, nil},
		"unavailable database":   {refused, 3, errors.New("away")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, tracer := &memoryStore{}, &memoryTracer{err: row.err}
				r := &Runner{
					Attempts: b, Live: &Live{}, Dialer: row.dial, Tracer: tracer,
					Talker: talkFunc(func(context.Context, pipeline.SessionConfig) (pipeline.Outcome, error) {
						return pipeline.Outcome{Reason: pipeline.AgentHungUp}, nil
					}),
				}
				began := time.Now()
				if err := r.Run(t.Context(), newClaim()); err != nil {
					t.Fatal(err)
				}
				if d := time.Since(began); d != 0 || r.Live.Count() != 0 {
					t.Errorf("the end of the call was delayed by %v", d)
				}
				r.Wait()
				if got := tracer.kept["att_1"]; got != row.want {
					t.Errorf("%d messages kept, want %d", got, row.want)
				}
				if d := time.Since(began); d > ladderTimeout {
					t.Errorf("it took %v", d)
				}
			})
		})
	}
}

// TestRunnerStoresQuality checks that the audio quality is stored even if the recording leg does not implement
// media.QualityReporter.
func TestRunnerStoresQuality(t *testing.T) {
	b := &memoryStore{}
	r := &Runner{
		Attempts: b, Live: &Live{}, Dialer: answerWith(&measuredLeg{q: media.Quality{Codec: "G722"}}), Recorder: opaqueRecorder{},
		Talker: talkFunc(func(context.Context, pipeline.SessionConfig) (pipeline.Outcome, error) {
			return pipeline.Outcome{Reason: pipeline.AgentHungUp}, nil
		}),
	}
	c := newClaim()
	c.Record = true
	if err := r.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if want := EncodeQuality(&measuredLeg{q: media.Quality{Codec: "G722"}}); string(b.final.Quality) != string(want) {
		t.Errorf("%s, want %s", b.final.Quality, want)
	}
}

// opaqueRecorder is a Recorder whose legs lack the optional interfaces of the original leg.
type opaqueRecorder struct{}

func (opaqueRecorder) Record(_ string, leg media.Leg) (media.Leg, Recording, error) {
	return struct{ media.Leg }{leg}, opaqueRecorder{}, nil
}
func (opaqueRecorder) Close() (string, error) { return "file", nil }

func TestRunnerStoresSignalingOfTransferLegs(t *testing.T) {
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
				tracer := &memoryTracer{}
				r := &Runner{Attempts: &memoryStore{}, Live: &Live{}, Legs: &memoryLegs{}, Tracer: tracer, Dialer: targetDialer(func(to media.Target, _ func(media.Progress)) (media.Leg, error) {
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
				if tracer.kept["att_1"] != 2 || tracer.kept["att_2"] != row.want {
					t.Errorf("kept %v, want %d of the second leg", tracer.kept, row.want)
				}
			})
		})
	}
}
