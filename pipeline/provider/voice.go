package provider

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/tts"
)

// maxFirstSound bounds the time from the first complete clause to the first sound if there is a
// fallback. Many voices wait for a clause before they speak.
const maxFirstSound = 1200 * time.Millisecond

const voiceGap = 60 * time.Millisecond

// Voice returns the guarded voice of an engine. If the voice fails or is late, the fallback speaks the rest of the
// text.
func (g *Guards) Voice(c *Clients, e pipeline.Engine, meter *pipeline.UsageMeter) pipeline.Voice {
	return newVoice(g.of, c, e, meter)
}

// BackgroundVoice returns the guarded voice of an engine for use outside of calls. Its failures do not open the breakers
// of calls.
func (g *Guards) BackgroundVoice(c *Clients, e pipeline.Engine, meter *pipeline.UsageMeter) pipeline.Voice {
	return newVoice(g.background, c, e, meter)
}

func newVoice(guard func(seam, id string) *guard, c *Clients, e pipeline.Engine, meter *pipeline.UsageMeter) pipeline.Voice {
	var v voice
	for _, one := range c.resolveChain("tts", e) {
		v = append(v, guardedVoice{guard("tts", one.EndpointID()), c.of(one.OrgID).Voices[one.Provider], one, meter})
	}
	return v
}

var errNoSound = errors.New("no sound received")

type guardedVoice struct {
	*guard
	pipeline.Voice
	engine pipeline.Engine
	meter  *pipeline.UsageMeter // nil if usage is not measured
}

// open begins an utterance. asker is the context of the requester; ctx bounds the utterance. The caller must finish
// the request.
func (m guardedVoice) open(asker, ctx context.Context, s pipeline.Style) (sp pipeline.Synthesis, v *request, err error) {
	if v, err = m.begin(asker); err != nil {
		return nil, nil, err
	}
	s.Voice, s.Model, s.Options = m.engine.Voice, m.engine.Model, m.engine.Options
	if sp, err = m.Open(ctx, s); err != nil {
		if errors.Is(context.Cause(ctx), ErrSlow) {
			err = fmt.Errorf("%s: %w", m.name, ErrSlow)
		}
		v.finish(err)
		return nil, nil, err
	}
	return &meteredSynthesis{Synthesis: sp, meter: m.meter, engine: m.engine}, v, nil
}

// meteredSynthesis counts the text that is sent to a voice.
type meteredSynthesis struct {
	pipeline.Synthesis
	meter      *pipeline.UsageMeter
	engine     pipeline.Engine
	characters atomic.Int64
	once       sync.Once
}

// Write implements pipeline.Synthesis.
func (s *meteredSynthesis) Write(text string) error {
	err := s.Synthesis.Write(text)
	if err == nil {
		s.characters.Add(int64(utf8.RuneCountInString(text)))
	}
	return err
}

// Close implements pipeline.Synthesis.
func (s *meteredSynthesis) Close() error {
	err := s.Synthesis.Close()
	s.once.Do(func() {
		if n := int(s.characters.Load()); n > 0 {
			s.meter.Add(pipeline.EngineUsage{
				Serves: "tts", Provider: s.engine.Provider, OrgID: s.engine.OrgID, Model: s.engine.Model, Requests: 1, Characters: n,
			})
		}
	})
	return err
}

// voice is a chain of voices. Each is the fallback of the one before it.
type voice []guardedVoice

// Open implements pipeline.Voice.
func (v voice) Open(ctx context.Context, s pipeline.Style) (pipeline.Synthesis, error) {
	u := &utterance{rate: s.Rate, canceled: ctx.Err}
	u.open = func(left voice) (pipeline.Synthesis, *request, voice, error) { return left.openAny(ctx, s) }
	var err error
	if u.current, u.visit, u.left, err = u.open(v); err != nil {
		return nil, err
	}
	return u, nil
}

// openAny opens the first voice of v that works. left holds the voices after it.
func (v voice) openAny(ctx context.Context, s pipeline.Style) (sp pipeline.Synthesis, visit *request, left voice, err error) {
	var errs []error
	for left = v; len(left) > 0 && (len(errs) == 0 || ctx.Err() == nil); left = left[1:] {
		if sp, visit, err = left.openFirst(ctx, s); err == nil {
			return sp, visit, left[1:], nil
		}
		errs = append(errs, err)
	}
	return nil, nil, nil, errors.Join(errs...)
}

// openFirst opens the first voice of v. If v has more voices, the first must open within maxFirstSound. The context
// outlives the opening, because it bounds the whole utterance.
func (v voice) openFirst(ctx context.Context, s pipeline.Style) (pipeline.Synthesis, *request, error) {
	if len(v) == 1 {
		return v[0].open(ctx, ctx, s)
	}
	bounded, cancel := context.WithCancelCause(ctx)
	limit := time.AfterFunc(maxFirstSound, func() { cancel(ErrSlow) })
	sp, visit, err := v[0].open(ctx, bounded, s)
	if !limit.Stop() && err == nil {
		visit.finish(ErrSlow)
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", v[0].name, ErrSlow), sp.Close())
	}
	if err != nil {
		cancel(err)
		return nil, nil, err
	}
	return scoped{sp, cancel}, visit, nil
}

// scoped cancels the context of an utterance when it is closed.
type scoped struct {
	pipeline.Synthesis
	cancel context.CancelCauseFunc
}

// Close implements pipeline.Synthesis.
func (s scoped) Close() error {
	err := s.Synthesis.Close()
	s.cancel(nil)
	return err
}

// An utterance is spoken by one voice until that fails, then by the next.
type utterance struct {
	rate     int
	canceled func() error // returns why the requester canceled, or nil
	open     func(left voice) (pipeline.Synthesis, *request, voice, error)

	mu        sync.Mutex
	current   pipeline.Synthesis
	visit     *request
	left      voice           // voices that may replace the current one
	text      strings.Builder // all text received so far
	from      int             // number of bytes of text that earlier voices have spoken
	split     tts.Splitter    // finds the first clause
	clause    bool            // text contains a clause
	listening bool            // Audio is being read; until then, sound may wait unread in a socket
	flushed   bool
	closed    bool
	alive     bool        // the current voice has produced sound
	cut       bool        // the current voice was closed because it was late; its sound is dropped
	late      *time.Timer // fires if the first sound is late; nil until text has a clause and Audio is read

	feeding sync.Mutex // serializes writes to the current voice
	fed     int        // number of bytes of text written to the current voice
}

// Write implements pipeline.Synthesis.
func (u *utterance) Write(text string) error {
	u.mu.Lock()
	u.text.WriteString(text)
	if !u.clause && len(u.left) > 0 && len(u.split.Add(text)) > 0 {
		u.clause = true
		u.watch()
	}
	u.mu.Unlock()
	return u.feed()
}

// Flush implements pipeline.Synthesis.
func (u *utterance) Flush() error {
	u.mu.Lock()
	u.flushed = true
	if strings.TrimSpace(u.text.String()) != "" {
		u.clause = true
		u.watch()
	}
	u.mu.Unlock()
	return u.feed()
}

// onListener records that the audio is being read.
func (u *utterance) onListener() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.listening = true
	u.watch()
}

// watch starts the timer for the first sound once text has a clause and Audio is read. The caller holds mu.
func (u *utterance) watch() {
	if u.clause && u.listening && u.late == nil && len(u.left) > 0 && !u.closed {
		first, visit := u.current, u.visit
		u.late = time.AfterFunc(maxFirstSound, func() {
			if u.onLate(visit) {
				_ = first.Close() // Close ends Audio, which returns the reason
			}
		})
	}
}

// onLate handles the timer for the first sound. It reports whether the voice of visit must be closed: it has made no
// sound, and no other voice has replaced it.
func (u *utterance) onLate(visit *request) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.cut = u.cut || u.visit == visit && !u.alive
	return u.cut && u.visit == visit
}

// feed writes pending text to the current voice. If another voice can replace it, feed returns no error, because
// Audio handles the failure.
func (u *utterance) feed() error {
	u.feeding.Lock()
	defer u.feeding.Unlock()
	u.mu.Lock()
	sp, flush, spare := u.current, u.flushed && u.fed <= u.text.Len(), len(u.left) > 0
	more := u.text.String()[min(max(u.fed, u.from), u.text.Len()):]
	u.fed = u.text.Len()
	if flush {
		u.fed++ // so that the voice is flushed only once
	}
	u.mu.Unlock()
	var err error
	if more != "" {
		err = sp.Write(more)
	}
	if err == nil && flush {
		err = sp.Flush()
	}
	if spare {
		return nil
	}
	return err
}

// Audio implements pipeline.Synthesis.
func (u *utterance) Audio() iter.Seq2[pipeline.Speech, error] {
	return func(yield func(pipeline.Speech, error) bool) {
		var made, before time.Duration // speech produced in total, and by earlier voices
		spoken := 0                    // number of words spoken completely
		u.onListener()
		for {
			err := error(nil)
			timed := false // whether the current voice reports word times
			for sp, broke := range u.voice().Audio() {
				if err = broke; err != nil {
					break
				}
				if len(sp.PCM) > 0 && !u.onSound() {
					err = ErrSlow
					break
				}
				for i := range sp.Words {
					sp.Words[i].Start, sp.Words[i].End = sp.Words[i].Start+before, sp.Words[i].End+before
				}
				timed = timed || len(sp.Words) > 0
				made += time.Duration(len(sp.PCM)) * time.Second / time.Duration(u.rate)
				spoken += len(sp.Words)
				if !yield(sp, nil) {
					return
				}
			}
			switch again := u.replaceVoice(&err, made > before, timed, spoken); {
			case again && made > 0: // leave a short gap between two voices
				made += voiceGap
				if !yield(pipeline.Speech{PCM: make([]int16, int64(u.rate)*int64(voiceGap)/int64(time.Second))}, nil) {
					return
				}
			case again:
			case err != nil:
				yield(pipeline.Speech{}, err)
				return
			default:
				return
			}
			before = made
		}
	}
}

func (u *utterance) voice() pipeline.Synthesis {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.current
}

// onSound records that the voice produces sound. It reports false if the voice was already closed for being late.
func (u *utterance) onSound() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.cut {
		return false
	}
	if u.late != nil {
		u.late.Stop()
	}
	if !u.alive {
		u.alive = true
		u.visit.note(Responding)
	}
	return true
}

// replaceVoice handles the end of the current voice and reports whether another voice replaces it. If the voice ended
// without sound and without an error, replaceVoice sets err to the reason.
func (u *utterance) replaceVoice(err *error, sounded, timed bool, spoken int) bool {
	u.mu.Lock()
	if u.late != nil {
		u.late.Stop()
	}
	if *err == nil && !u.alive {
		*err = u.silenceError()
	}
	visit, left := u.visit, u.left
	if u.closed {
		u.mu.Unlock()
		return false
	}
	broken := u.current
	u.left, u.late, u.cut = nil, nil, false
	u.mu.Unlock()
	visit.finish(*err)
	// without word times the position is unknown, and nothing may be said twice
	if *err == nil || len(left) == 0 || u.canceled() != nil || sounded && !timed {
		return false
	}
	_ = broken.Close() // the voice has already failed; its error is known
	sp, next, left, again := u.open(left)
	if again != nil {
		*err = errors.Join(*err, again)
		return false
	}
	u.feeding.Lock()
	u.mu.Lock()
	u.current, u.visit, u.left, u.alive, u.from, u.fed = sp, next, left, false, wordOffset(u.text.String(), spoken), 0
	u.watch()
	closed := u.closed
	u.mu.Unlock()
	u.feeding.Unlock()
	if closed {
		next.finish(context.Canceled)
		_ = sp.Close() // the utterance was closed in the meantime
		return false
	}
	if fed := u.feed(); fed != nil {
		*err = fed
		return false
	}
	*err = nil
	return true
}

// silenceError returns why the voice ended without sound. The caller holds mu.
func (u *utterance) silenceError() error {
	switch lost := u.canceled(); {
	case lost != nil:
		return lost
	case u.cut:
		return ErrSlow
	case strings.TrimSpace(u.text.String()[u.from:]) != "":
		return errNoSound
	}
	return nil
}

// wordOffset returns the offset at which the first n words of text end.
func wordOffset(text string, n int) int {
	at := 0
	for range n {
		rest := strings.TrimLeft(text[at:], " \n\t")
		at = len(text) - len(rest)
		end := strings.IndexAny(rest, " \n\t")
		if end < 0 {
			return len(text)
		}
		at += end
	}
	return at
}

// Close implements pipeline.Synthesis.
func (u *utterance) Close() error {
	u.mu.Lock()
	u.closed = true
	if u.late != nil {
		u.late.Stop()
	}
	sp, visit := u.current, u.visit
	u.mu.Unlock()
	err := sp.Close()
	visit.finish(context.Canceled) // no effect if the request has finished
	return err
}
