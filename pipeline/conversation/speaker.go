package conversation

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/playout"
	"github.com/parley-voice/parley/pipeline/pronounce"
	"github.com/parley-voice/parley/pipeline/tools"
	"github.com/parley-voice/parley/pipeline/turn"
)

const (
	// stallTime is how long a voice may send no sound in the middle of a reply.
	stallTime = 3 * time.Second
	// partPause separates a filler or the disclosure from the next speech.
	partPause = 200 * time.Millisecond
	// inaudible is the level in dBFS below which the caller hears nothing.
	inaudible = -60
)

var errStalled = errors.New("the voice stalled in the middle of a reply")

// A reply is prepared and then waits until it may be played.
type reply struct {
	*playout.Utterance
	began  time.Time // when the reply was requested
	cancel context.CancelFunc
	gate   chan struct{} // closed when the reply may be played
	agreed chan struct{} // closed when the caller's turn is committed; the reply's tools may then run
	book   tools.CallLog // tool calls of the reply
	words  *pronounce.Stream
	owed   atomic.Int64 // number of voice streams that have text and have not sent all their speech
}

// release lets the player play the reply. Only the session loop calls release and agree.
func (r *reply) release() { closeOnce(r.gate) }

// agree lets the reply's tools run.
func (r *reply) agree() { closeOnce(r.agreed) }

func closeOnce(gate chan struct{}) {
	select {
	case <-gate:
	default:
		close(gate)
	}
}

type pieces = func(context.Context) iter.Seq2[tools.Piece, error]

// speaker turns text into queued speech. It numbers the utterances.
type speaker struct {
	*call
	player  *playout.Player
	phrases *phraseCache
	next    int64 // number of the newest utterance
}

func (s *speaker) utterance(kind string) *playout.Utterance {
	s.next++
	return &playout.Utterance{Number: s.next, Kind: kind, Rate: s.leg.Rate()}
}

// stop drops all speech that is queued or played.
func (s *speaker) stop() { s.player.Drop(s.next + 1) }

// isSilent reports whether the caller hears nothing now.
func (s *speaker) isSilent() bool { return s.player.Level() < inaudible }

func (s *speaker) newReply(kind string) *reply {
	return &reply{
		Utterance: s.utterance(kind), began: time.Now(), gate: make(chan struct{}), agreed: make(chan struct{}),
		words: pronounce.New(s.config.Pronunciation),
	}
}

func (s *speaker) sayText(ctx context.Context, text string) *reply {
	return s.speak(ctx, s.newReply(turn.Reply), func(context.Context) iter.Seq2[tools.Piece, error] {
		return func(yield func(tools.Piece, error) bool) { yield(tools.Piece{Delta: pipeline.Delta{Text: text}}, nil) }
	})
}

// sayGoodbye starts to speak a phrase after which the agent hangs up.
func (s *speaker) sayGoodbye(ctx context.Context, what phrase, why pipeline.Reason) *reply {
	r := s.sayText(ctx, s.phraseText(what))
	r.book.AddFollowUp(pipeline.FollowUp{Step: pipeline.Hangup, Reason: why})
	return r
}

// playPhrase plays a phrase from the cache. If the phrase is not in the cache, it plays two soft tones, so that the
// caller hears that the call is still connected.
func (s *speaker) playPhrase(ctx context.Context, kind string, what phrase) *reply {
	rate, text := s.leg.Rate(), what.In(s.config.Language)
	key := phraseKey{Engine: s.config.Engines.TTS, Language: s.config.Language, Rate: rate, phrase: what}
	pcm := s.phrases.Get(key)
	if pcm == nil {
		text = ""
		pcm = append(tone.Sine(rate, rate/5, 440, 0.2), tone.Sine(rate, rate/5, 350, 0.2)...)
	}
	return s.play(ctx, kind, text, pcm)
}

// play plays speech that is already synthesized. The reply needs no release.
func (s *speaker) play(ctx context.Context, kind, text string, pcm []int16) *reply {
	ctx, cancel := context.WithCancel(ctx)
	u := s.utterance(kind)
	u.Write(text, time.Now())
	u.Add(pipeline.Speech{PCM: pcm, Words: playout.SpreadWords(text, playout.SamplesDuration(u.Rate, len(pcm)))}, time.Now())
	if kind == turn.Filler { // silence separates the filler from the reply, which may follow at once
		pcm = slices.Concat(pcm, make([]int16, int64(u.Rate)*int64(partPause)/int64(time.Second)))
	}
	u.Complete()
	s.wg.Go(func() {
		defer cancel()
		release, ok := s.player.Acquire(ctx, kind == turn.Filler)
		if !ok {
			return
		}
		defer release()
		_ = s.player.Push(ctx, u, pcm, true) // fails only if ctx has ended
	})
	return &reply{Utterance: u, began: time.Now(), cancel: cancel, gate: make(chan struct{}), agreed: make(chan struct{})}
}

// speak starts to speak a stream of text. A failure is reported to the session loop.
func (s *speaker) speak(ctx context.Context, r *reply, text pieces) *reply {
	ctx, r.cancel = context.WithCancel(ctx)
	s.wg.Go(func() {
		defer r.cancel()
		if err := s.say(ctx, r, text); err != nil && ctx.Err() == nil {
			s.report(ctx, update{of: r.Utterance, err: err})
		}
	})
	return r
}

// A voiceStream is a stream of the voice. It opens while the model prepares its answer. After done is closed, either
// speaking or err is set.
type voiceStream struct {
	done     chan struct{}
	speaking pipeline.Synthesis
	err      error
}

func (s *speaker) openVoice(ctx context.Context) *voiceStream {
	v := &voiceStream{done: make(chan struct{})}
	s.wg.Go(func() {
		defer close(v.done)
		v.speaking, v.err = s.voice.Open(ctx, s.style())
	})
	return v
}

func (v *voiceStream) close() {
	if <-v.done; v.speaking != nil {
		_ = v.speaking.Close() // its speech is no longer needed
	}
}

// say streams text into the voice and its speech into the player. It returns when all of the
// speech is queued.
func (s *speaker) say(ctx context.Context, r *reply, text pieces) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	voices := make(chan *voiceStream, 1)
	wrote := make(chan error, 1)
	s.wg.Go(func() {
		defer close(voices)
		wrote <- (&writer{speaker: s, reply: r, voices: voices}).write(ctx, text)
	})
	err := s.queueAll(ctx, r, voices)
	cancel()
	written := <-wrote
	for v := range voices {
		v.close()
	}
	if written != nil && !errors.Is(written, context.Canceled) {
		return written // the cause of err
	}
	return err
}

func ignoreCancel(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (s *speaker) queueAll(ctx context.Context, r *reply, voices <-chan *voiceStream) error {
	var release func()
	defer func() {
		if release != nil {
			release()
		}
	}()
	for v := range voices {
		if <-v.done; v.err != nil {
			return fmt.Errorf("voice: %w", v.err)
		}
		err := s.queue(ctx, r, v.speaking, &release)
		closing := v.speaking.Close() // also unblocks the writer
		if err == nil {
			err = ignoreCancel(closing)
		}
		if err != nil {
			return err
		}
	}
	if release == nil {
		return errors.New("voice: no speech was received")
	}
	r.Complete()
	return s.player.Push(ctx, r.Utterance, nil, true)
}

// queue queues the speech of one stream. The first speech of a reply waits until it may be played.
func (s *speaker) queue(ctx context.Context, r *reply, speaking pipeline.Synthesis, release *func()) error {
	u := r.Utterance
	u.StartSegment()
	stop := u.WatchStall(ctx, &s.wg, stallTime, func() { _ = speaking.Close() })
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
			if *release, err = s.awaitFloor(ctx, r); err != nil {
				return err
			}
		}
		if err := s.player.Push(ctx, u, pcm, false); err != nil {
			return err
		}
	}
	if stop() && ctx.Err() == nil {
		return errStalled
	}
	if r.owed.Load() > 0 {
		r.owed.Add(-1)
	}
	u.ExpectGap()
	return nil
}

// awaitFloor reports to the session loop that the first sound of r exists, and waits until it may be played.
func (s *speaker) awaitFloor(ctx context.Context, r *reply) (release func(), err error) {
	s.report(ctx, update{of: r.Utterance})
	select {
	case <-r.gate:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	release, ok := s.player.Acquire(ctx, false)
	if !ok {
		return nil, ctx.Err()
	}
	return release, nil
}
