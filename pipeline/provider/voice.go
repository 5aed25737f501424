package provider

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/clause"
)

// firstSound is how long a voice may take from the first clause, which many wait
// for, to the first sound where there is a second one.
const firstSound = 1200 * time.Millisecond

const breath = 60 * time.Millisecond

// Voice returns what an engine asks for. Where a voice fails or makes no sound
// in time, the fallback speaks what was not yet spoken.
func (g *Guards) Voice(all map[string]pipeline.Voice, e pipeline.Engine) pipeline.Voice {
	first, second := ends(e)
	v := voice{first: mouth{g.of("tts", first.Provider), all[first.Provider], first}}
	if second != nil {
		v.second = &mouth{g.of("tts", second.Provider), all[second.Provider], *second}
	}
	return v
}

var errMute = errors.New("no sound came")

// A mouth is one voice and its guard.
type mouth struct {
	*guard
	pipeline.Voice
	engine pipeline.Engine
}

// open begins an utterance. The visit is to be ended.
func (m mouth) open(ctx context.Context, s pipeline.Style) (sp pipeline.Speaking, v *visit, err error) {
	if v, err = m.enter(); err != nil {
		return nil, nil, err
	}
	s.Voice, s.Model = m.engine.Voice, m.engine.Model
	if sp, err = m.Open(ctx, s); err != nil {
		if errors.Is(context.Cause(ctx), ErrSlow) {
			err = fmt.Errorf("%s: %w", m.name, ErrSlow)
		}
		v.leave(err)
		return nil, nil, err
	}
	return sp, v, nil
}

type voice struct {
	first  mouth
	second *mouth // nil: there is none
}

// Open implements pipeline.Voice.
func (v voice) Open(ctx context.Context, s pipeline.Style) (pipeline.Speaking, error) {
	u := &utterance{rate: s.Rate}
	if v.second != nil {
		u.replace = func() (pipeline.Speaking, *visit, error) { return v.second.open(ctx, s) }
	}
	var err error
	if u.current, u.visit, err = v.openFirst(ctx, s); err == nil {
		return u, nil
	}
	if u.replace == nil || ctx.Err() != nil {
		return nil, err
	}
	replace := u.replace
	u.replace = nil
	var again error
	if u.current, u.visit, again = replace(); again != nil {
		return nil, errors.Join(err, again)
	}
	return u, nil
}

// openFirst opens the first voice. Its context goes on after the time that the
// opening may take, for it bounds the whole utterance.
func (v voice) openFirst(ctx context.Context, s pipeline.Style) (pipeline.Speaking, *visit, error) {
	if v.second == nil {
		return v.first.open(ctx, s)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	limit := time.AfterFunc(firstSound, func() { cancel(ErrSlow) })
	sp, visit, err := v.first.open(ctx, s)
	if !limit.Stop() && err == nil {
		visit.leave(ErrSlow)
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", v.first.name, ErrSlow), sp.Close())
	}
	if err != nil {
		cancel(err)
		return nil, nil, err
	}
	return scoped{sp, cancel}, visit, nil
}

// scoped is an utterance whose context ends with it.
type scoped struct {
	pipeline.Speaking
	cancel context.CancelCauseFunc
}

// Close implements pipeline.Speaking.
func (s scoped) Close() error {
	err := s.Speaking.Close()
	s.cancel(nil)
	return err
}

// utterance is one utterance, of the first voice until that fails.
type utterance struct {
	rate int

	mu      sync.Mutex
	current pipeline.Speaking
	visit   *visit
	replace func() (pipeline.Speaking, *visit, error) // nil: there is no other voice any more
	text    string                                    // all of it so far
	from    int                                       // bytes of text that are not for the current voice, for they were spoken
	split   clause.Splitter                           // of the text, until late is set
	flushed bool
	closed  bool
	alive   bool        // the current voice made sound
	late    *time.Timer // no sound came in time; nil before there is a clause

	feeding sync.Mutex // who gives the current voice its text
	fed     int        // bytes of text
}

// Say implements pipeline.Speaking.
func (u *utterance) Say(text string) error {
	u.mu.Lock()
	u.text += text
	if u.late == nil && u.replace != nil && len(u.split.Add(text)) > 0 {
		u.watch()
	}
	u.mu.Unlock()
	return u.feed()
}

// Flush implements pipeline.Speaking.
func (u *utterance) Flush() error {
	u.mu.Lock()
	u.flushed = true
	if strings.TrimSpace(u.text) != "" {
		u.watch()
	}
	u.mu.Unlock()
	return u.feed()
}

// watch starts to wait for the first sound.
func (u *utterance) watch() {
	if u.late == nil && u.replace != nil {
		first := u.current
		u.late = time.AfterFunc(firstSound, func() { _ = first.Close() }) // Audio sees why
	}
}

// feed gives the current voice the text that it has not got. An error of a voice
// that can be replaced is for Audio to see.
func (u *utterance) feed() error {
	u.feeding.Lock()
	defer u.feeding.Unlock()
	u.mu.Lock()
	sp, more, flush, spare := u.current, u.text[min(max(u.fed, u.from), len(u.text)):], u.flushed && u.fed <= len(u.text), u.replace != nil
	u.fed = len(u.text)
	if flush {
		u.fed++ // once
	}
	u.mu.Unlock()
	var err error
	if more != "" {
		err = sp.Say(more)
	}
	if err == nil && flush {
		err = sp.Flush()
	}
	if spare {
		return nil
	}
	return err
}

// Audio implements pipeline.Speaking.
func (u *utterance) Audio() iter.Seq2[pipeline.Speech, error] {
	return func(yield func(pipeline.Speech, error) bool) {
		var made, before time.Duration // of speech; and before the current voice
		spoken := 0                    // words that were, to their end
		timed := false
		for {
			err := error(nil)
			for sp, broke := range u.voice().Audio() {
				if err = broke; err != nil {
					break
				}
				if len(sp.PCM) > 0 {
					u.sounds()
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
			switch again := u.next(&err, made > 0, timed, spoken); {
			case again && made > 0: // a breath between two voices
				made += breath
				if !yield(pipeline.Speech{PCM: make([]int16, int64(u.rate)*int64(breath)/int64(time.Second))}, nil) {
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

func (u *utterance) voice() pipeline.Speaking {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.current
}

// sounds notes that the voice makes sound.
func (u *utterance) sounds() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.late != nil {
		u.late.Stop()
	}
	if !u.alive {
		u.alive = true
		u.visit.note(Alive)
	}
}

// next is told how the current voice ended. It returns true where another takes
// its place. A voice that was closed for being slow ends without an error.
func (u *utterance) next(err *error, sounded, timed bool, spoken int) bool {
	u.mu.Lock()
	switch late := u.late != nil && !u.late.Stop(); {
	case *err != nil || sounded:
	case late:
		*err = ErrSlow
	case strings.TrimSpace(u.text) != "":
		*err = errMute
	}
	visit, replace := u.visit, u.replace
	if u.closed {
		u.mu.Unlock()
		return false
	}
	broken := u.current
	u.replace = nil
	u.mu.Unlock()
	visit.leave(*err)
	if *err == nil || replace == nil || sounded && !timed { // what was heard cannot be told: nothing is to be said twice
		return false
	}
	_ = broken.Close() // it failed
	sp, next, again := replace()
	if again != nil {
		*err = errors.Join(*err, again)
		return false
	}
	u.feeding.Lock()
	u.mu.Lock()
	u.current, u.visit, u.alive, u.from, u.fed = sp, next, false, after(u.text, spoken), 0
	closed := u.closed
	u.mu.Unlock()
	u.feeding.Unlock()
	if closed {
		next.leave(context.Canceled)
		_ = sp.Close() // nobody waits for it any more
		return false
	}
	if fed := u.feed(); fed != nil {
		*err = fed
		return false
	}
	*err = nil
	return true
}

// after is where in text the words begin that come after the first n.
func after(text string, n int) int {
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

// Close implements pipeline.Speaking.
func (u *utterance) Close() error {
	u.mu.Lock()
	u.closed = true
	if u.late != nil {
		u.late.Stop()
	}
	sp, visit := u.current, u.visit
	u.mu.Unlock()
	err := sp.Close()
	visit.leave(context.Canceled) // unless it is known better
	return err
}
