package converse

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/canned"
	"github.com/parley-voice/parley/pipeline/mouth"
	"github.com/parley-voice/parley/pipeline/pronounce"
	"github.com/parley-voice/parley/pipeline/tools"
	"github.com/parley-voice/parley/pipeline/turn"
)

// stallTime is how long a voice may say nothing in the middle of an answer.
const stallTime = 3 * time.Second

var errStalled = errors.New("voice stalled in the middle of an answer")

// A reply is an answer on its way to the caller. It is made, and then held until
// it may be heard.
type reply struct {
	*mouth.Utterance
	began  time.Time // when it was asked for
	cancel context.CancelFunc
	gate   chan struct{} // closed once it may be heard
	agreed chan struct{} // closed once it answers a turn that is over
	book   tools.Book    // what it has done
	words  *pronounce.Stream
	owed   atomic.Int64 // stretches that have text and are not sound to their end
}

// release lets the reply be heard. It belongs to the mind.
func (r *reply) release() { open(r.gate) }

// agree lets the reply do things. It belongs to the mind.
func (r *reply) agree() { open(r.agreed) }

func open(gate chan struct{}) {
	select {
	case <-gate:
	default:
		close(gate)
	}
}

func (s *talk) newReply(kind string) *reply {
	return &reply{
		Utterance: s.utter(kind), began: time.Now(), gate: make(chan struct{}), agreed: make(chan struct{}),
		words: pronounce.New(s.brief.Pronunciation),
	}
}

// pieces are a text as it comes.
type pieces = func(context.Context) iter.Seq2[tools.Piece, error]

// answer starts the answer to what was said so far, and then, to what.
func (s *talk) answer(ctx context.Context, then ...pipeline.Message) *reply {
	r := s.newReply(turn.Reply)
	rounds := tools.Rounds{
		Model: s.model, Set: s.tools, Book: &r.book, Agreed: r.agreed, Spend: s.limits.Call,
		Prompt: pipeline.Prompt{
			Model: s.brief.Engines.LLM.Model, Instructions: s.brief.Prompt,
			Messages: append(s.history.Messages(), then...),
		},
		Fillers: canned.Fillers(s.brief.Language),
		Quiet:   func() bool { return r.owed.Load() == 0 && r.Waiting() == 0 && s.mouth.Level() < inaudible },
	}
	return s.speak(ctx, r, rounds.Answer)
}

// inaudible is the level under which the caller hears nothing, in dBFS.
const inaudible = -60

// tellText starts saying a text of the agent's own.
func (s *talk) tellText(ctx context.Context, text string) *reply {
	return s.speak(ctx, s.newReply(turn.Reply), func(context.Context) iter.Seq2[tools.Piece, error] {
		return func(yield func(tools.Piece, error) bool) { yield(tools.Piece{Delta: pipeline.Delta{Text: text}}, nil) }
	})
}

// speak starts saying what the text stream yields.
func (s *talk) speak(ctx context.Context, r *reply, text pieces) *reply {
	ctx, r.cancel = context.WithCancel(ctx)
	s.wg.Go(func() {
		defer r.cancel()
		if err := s.say(ctx, r, text); err != nil && ctx.Err() == nil {
			s.report(ctx, news{of: r.Utterance, err: err})
		}
	})
	return r
}

// An opening is a voice on its way: the model is asked while it opens.
type opening struct {
	done     chan struct{}
	speaking pipeline.Speaking
	err      error
}

func (s *talk) open(ctx context.Context) *opening {
	o := &opening{done: make(chan struct{})}
	s.wg.Go(func() {
		defer close(o.done)
		o.speaking, o.err = s.voice.Open(ctx, s.style())
	})
	return o
}

func (o *opening) close() {
	if <-o.done; o.speaking != nil {
		_ = o.speaking.Close() // nobody listens to it
	}
}

// say streams text into the voice and the voice's speech into the playout. It
// returns when the last of it is queued.
func (s *talk) say(ctx context.Context, r *reply, text pieces) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	voices := make(chan *opening, 1)
	wrote := make(chan error, 1)
	s.wg.Go(func() {
		defer close(voices)
		wrote <- (&writer{talk: s, reply: r, voices: voices}).write(ctx, text)
	})
	err := s.sounds(ctx, r, voices)
	cancel()
	written := <-wrote
	for o := range voices {
		o.close()
	}
	if written != nil && !errors.Is(written, context.Canceled) {
		return written // the cause, where the voice's error is but its echo
	}
	return err
}

func ignoreCancel(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// sounds queues the voice's speech, stretch by stretch.
func (s *talk) sounds(ctx context.Context, r *reply, voices <-chan *opening) error {
	var release func()
	defer func() {
		if release != nil {
			release()
		}
	}()
	for o := range voices {
		if <-o.done; o.err != nil {
			return fmt.Errorf("voice: %w", o.err)
		}
		err := s.sound(ctx, r, o.speaking, &release)
		closing := o.speaking.Close() // unblocks the writer too
		if err == nil {
			err = ignoreCancel(closing)
		}
		if err != nil {
			return err
		}
	}
	if release == nil {
		return errors.New("voice: no speech came")
	}
	r.Complete()
	return s.mouth.Push(ctx, r.Utterance, nil, true)
}

// sound queues one stretch of speech, the first of it once it may be heard.
func (s *talk) sound(ctx context.Context, r *reply, speaking pipeline.Speaking, release *func()) error {
	u := r.Utterance
	u.Anew()
	stop := u.Guard(ctx, &s.wg, stallTime, func() { _ = speaking.Close() })
	defer stop()
	for sp, err := range speaking.Audio() {
		if err != nil {
			return fmt.Errorf("voice: %w", err)
		}
		sp.Words = r.words.Restore(sp.Words)
		pcm := u.Add(sp, time.Now())
		if len(pcm) == 0 {
			continue
		}
		if *release == nil {
			if *release, err = s.floor(ctx, r); err != nil {
				return err
			}
		}
		if err := s.mouth.Push(ctx, u, pcm, false); err != nil {
			return err
		}
	}
	if stop() && ctx.Err() == nil {
		return errStalled
	}
	if r.owed.Load() > 0 {
		r.owed.Add(-1)
	}
	u.Rest()
	return nil
}

// floor waits until the reply, whose first sound is made, may be heard.
func (s *talk) floor(ctx context.Context, r *reply) (release func(), err error) {
	s.report(ctx, news{of: r.Utterance})
	select {
	case <-r.gate:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	release, ok := s.mouth.Begin(ctx, false)
	if !ok {
		return nil, ctx.Err()
	}
	return release, nil
}
