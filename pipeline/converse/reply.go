package converse

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/mouth"
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
}

// release lets the reply be heard. It belongs to the mind.
func (r *reply) release() {
	select {
	case <-r.gate:
	default:
		close(r.gate)
	}
}

// answer starts the answer to what was said so far, and then, to what.
func (s *talk) answer(ctx context.Context, then ...pipeline.Message) *reply {
	prompt := pipeline.Prompt{
		Model: s.brief.Engines.LLM.Model, Instructions: s.brief.Prompt,
		Messages: append(s.history.messages(), then...),
	}
	return s.speak(ctx, func(ctx context.Context) iter.Seq2[pipeline.Delta, error] { return s.model.Reply(ctx, prompt) })
}

// greet starts the agent's first words.
func (s *talk) greet(ctx context.Context) *reply {
	return s.speak(ctx, func(context.Context) iter.Seq2[pipeline.Delta, error] {
		return func(yield func(pipeline.Delta, error) bool) { yield(pipeline.Delta{Text: s.brief.Greeting}, nil) }
	})
}

// speak starts saying what the text stream yields.
func (s *talk) speak(ctx context.Context, text func(context.Context) iter.Seq2[pipeline.Delta, error]) *reply {
	ctx, cancel := context.WithCancel(ctx)
	r := &reply{Utterance: s.utter(turn.Reply), began: time.Now(), cancel: cancel, gate: make(chan struct{})}
	s.wg.Go(func() {
		defer cancel()
		if err := s.say(ctx, r, text); err != nil && ctx.Err() == nil {
			s.report(ctx, news{r.Utterance, err})
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

// say streams text into the voice and the voice's speech into the playout. It
// returns when the last of it is queued.
func (s *talk) say(ctx context.Context, r *reply, text func(context.Context) iter.Seq2[pipeline.Delta, error]) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	voice := s.open(ctx)
	wrote := make(chan error, 1)
	s.wg.Go(func() { wrote <- s.write(ctx, r.Utterance, voice, text) })
	<-voice.done
	if voice.err != nil {
		cancel()
		return errors.Join(fmt.Errorf("voice: %w", voice.err), ignoreCancel(<-wrote))
	}
	err := s.sound(ctx, r, voice.speaking)
	cancel()
	closing := voice.speaking.Close() // unblocks the writer too
	written := <-wrote
	switch {
	case written != nil && !errors.Is(written, context.Canceled):
		return written // the cause, where the voice's error is but its echo
	case err != nil:
		return err
	default:
		return ignoreCancel(closing)
	}
}

func ignoreCancel(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// write gives the model's words to the voice as they come.
func (s *talk) write(ctx context.Context, u *mouth.Utterance, voice *opening, text func(context.Context) iter.Seq2[pipeline.Delta, error]) error {
	err := s.words(ctx, u, voice, text)
	if <-voice.done; voice.speaking == nil {
		return err // whoever listens to the voice tells why there is none
	}
	if err == nil {
		err = voice.speaking.Flush()
	}
	if err != nil {
		_ = voice.speaking.Close() // nothing more is coming: let the sound end
	}
	return err
}

func (s *talk) words(ctx context.Context, u *mouth.Utterance, voice *opening, text func(context.Context) iter.Seq2[pipeline.Delta, error]) error {
	said := false
	for d, err := range text(ctx) {
		if err != nil {
			return fmt.Errorf("model: %w", err)
		}
		if d.Usage != nil {
			u.Spend(*d.Usage)
		}
		if d.Text == "" {
			continue
		}
		said = said || strings.TrimSpace(d.Text) != ""
		u.Write(d.Text, time.Now())
		if <-voice.done; voice.err != nil {
			return nil
		}
		if err := voice.speaking.Say(d.Text); err != nil {
			return fmt.Errorf("voice: %w", err)
		}
	}
	if !said {
		return errors.New("model: the answer is empty")
	}
	return nil
}

// sound queues the voice's speech.
func (s *talk) sound(ctx context.Context, r *reply, speaking pipeline.Speaking) error {
	u := r.Utterance
	stop := s.watchStall(ctx, u, speaking)
	defer stop()
	var release func()
	defer func() {
		if release != nil {
			release()
		}
	}()
	for sp, err := range speaking.Audio() {
		if err != nil {
			return fmt.Errorf("voice: %w", err)
		}
		pcm := u.Add(sp, time.Now())
		if len(pcm) == 0 {
			continue
		}
		if release == nil {
			var err error
			if release, err = s.floor(ctx, r); err != nil {
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
	if release == nil {
		return errors.New("voice: no speech came")
	}
	u.Complete()
	return s.mouth.Push(ctx, u, nil, true)
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

// watchStall ends the voice when it has made nothing for stallTime since the
// caller heard the last of what it made. The returned function ends the watch,
// and tells whether the voice was ended.
func (s *talk) watchStall(ctx context.Context, u *mouth.Utterance, speaking pipeline.Speaking) func() bool {
	ctx, cancel := context.WithCancel(ctx)
	stalled := make(chan bool, 1)
	s.wg.Go(func() {
		tick := time.NewTicker(stallTime / 6)
		defer tick.Stop()
		dry := time.Duration(0)
		for {
			select {
			case <-ctx.Done():
				stalled <- false
				return
			case <-tick.C:
			}
			if dry += stallTime / 6; u.Played() == 0 || u.Waiting() > 0 {
				dry = 0 // not begun, which others watch, or still being heard
			}
			if dry >= stallTime {
				stalled <- true
				_ = speaking.Close()
				return
			}
		}
	})
	return sync.OnceValue(func() bool {
		cancel()
		return <-stalled
	})
}
