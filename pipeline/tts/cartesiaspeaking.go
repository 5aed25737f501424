package tts

import (
	"cmp"
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

// cartesiaIdle is how long after the last speech of a context no more text is
// sent to it: Cartesia lets go of it after 1 s.
const cartesiaIdle = 700 * time.Millisecond

// cartesiaSpeaking is one utterance: a context of Cartesia's, and further ones
// where the text is so slow that the context is gone before the rest of it.
type cartesiaSpeaking struct {
	line   *line
	name   string
	style  pipeline.Style
	unhook func() bool
	once   sync.Once
	wake   chan struct{}   // there is news
	split  clause.Splitter // the speaker's
	parts  int             // contexts that were left. The speaker's

	mu     sync.Mutex
	id     string        // of the context
	asked  time.Time     // when text was sent to it last; zero before
	last   bool          // it has all of the text
	heard  time.Time     // when something came of it
	gone   bool          // it ended before the text did
	from   time.Duration // where it begins in the utterance
	made   time.Duration // of speech
	unread []pipeline.Speech
	bytes  int
	done   bool
	closed bool
	err    error
}

// Say implements pipeline.Speaking. Whole clauses are sent, each with a space
// behind it: Cartesia speaks what it gets at once, and joins pieces as they are.
func (u *cartesiaSpeaking) Say(text string) error {
	for _, c := range u.split.Add(text) {
		if err := u.send(c+" ", true); err != nil {
			return err
		}
	}
	return nil
}

// Flush implements pipeline.Speaking.
func (u *cartesiaSpeaking) Flush() error { return u.send(u.split.End(), false) }

func (u *cartesiaSpeaking) send(text string, more bool) error {
	id, err := u.context(text, !more)
	if err != nil || id == "" {
		return err
	}
	encoding := "pcm_mulaw"
	if u.style.Rate != telephone {
		encoding = "pcm_s16le"
	}
	type object = map[string]any
	m := object{
		"model_id": cmp.Or(u.style.Model, CartesiaModel), "transcript": text, "context_id": id,
		"voice":         object{"mode": "id", "id": cmp.Or(u.style.Voice, CartesiaVoice)},
		"output_format": object{"container": "raw", "encoding": encoding, "sample_rate": u.style.Rate},
		"continue":      more, "add_timestamps": true, "max_buffer_delay_ms": 0,
	}
	if lang, _, _ := strings.Cut(u.style.Language, "-"); lang != "" {
		m["language"] = lang
	}
	return u.line.send(m)
}

// context returns the context that text is for, a new one where the old may be
// gone; empty where there is no more to say.
func (u *cartesiaSpeaking) context(text string, last bool) (string, error) {
	u.mu.Lock()
	now := time.Now()
	old, err := u.id, u.err
	gone := u.gone || u.heard.After(u.asked) && now.Sub(u.heard) >= cartesiaIdle
	switch {
	case u.closed || err != nil:
		u.mu.Unlock()
		return "", cmp.Or(err, context.Canceled)
	case text == "" && (gone || u.asked.IsZero()):
		u.done = true
		u.news()
		u.mu.Unlock()
		return "", nil
	case !gone:
		u.asked, u.last = now, last
		u.mu.Unlock()
		return old, nil
	}
	u.mu.Unlock()
	u.parts++
	id := fmt.Sprintf("%s.%d", u.name, u.parts)
	if err := u.line.move(u, old, id); err != nil {
		return "", err
	}
	u.mu.Lock()
	u.id, u.gone, u.from, u.asked, u.last = id, false, u.made, now, last
	closed := u.closed
	u.mu.Unlock()
	if closed { // in between
		u.line.leave(id, time.Time{})
		return "", context.Canceled
	}
	return id, nil
}

// due is since when something is to come; zero for nothing. The caller holds mu.
func (u *cartesiaSpeaking) due() time.Time {
	if u.done || u.err != nil || u.asked.IsZero() || u.heard.After(u.asked) && !u.last {
		return time.Time{}
	}
	return u.asked
}

// take notes what came of the utterance.
func (u *cartesiaSpeaking) take(m cartesiaMessage) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.heard = time.Now()
	switch m.Type {
	case "error":
		u.err = m.refusal()
	case "done":
		u.done, u.gone = u.last, !u.last
	default:
		sp := pipeline.Speech{PCM: samples(m.Data, u.style.Rate)}
		u.made += time.Duration(len(sp.PCM)) * time.Second / time.Duration(u.style.Rate)
		for i, w := range m.Words.Words {
			sp.Words = append(sp.Words, pipeline.Word{Text: w, Start: u.from + seconds(m.Words.Start[i]), End: u.from + seconds(m.Words.End[i])})
		}
		u.unread = append(u.unread, sp)
		if u.bytes += len(m.Data); u.bytes > mostUnheard {
			u.err = errors.New("cartesia: speech comes much faster than it is heard")
		}
	}
	u.news()
}

// news wakes the listener, who looks at all there is: one sign is enough.
func (u *cartesiaSpeaking) news() {
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

func (u *cartesiaSpeaking) fail(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err == nil {
		u.err = err
	}
	u.news()
}

// Audio implements pipeline.Speaking.
func (u *cartesiaSpeaking) Audio() iter.Seq2[pipeline.Speech, error] {
	return func(yield func(pipeline.Speech, error) bool) {
		for {
			u.mu.Lock()
			unread, done, closed, err := u.unread, u.done, u.closed, u.err
			u.unread, u.bytes = nil, 0
			u.mu.Unlock()
			if closed {
				return
			}
			for _, sp := range unread {
				if (len(sp.PCM) > 0 || len(sp.Words) > 0) && !yield(sp, nil) {
					return
				}
			}
			switch {
			case done:
				return
			case err != nil:
				yield(pipeline.Speech{}, err)
				return
			case len(unread) == 0:
				<-u.wake
			}
		}
	}
}

// Close implements pipeline.Speaking.
func (u *cartesiaSpeaking) Close() error {
	u.unhook()
	u.end()
	return nil
}

// end leaves the socket to the others. What is not yet spoken is cancelled.
func (u *cartesiaSpeaking) end() {
	u.once.Do(func() {
		u.mu.Lock()
		u.closed = true
		cancel := !u.done && !u.gone && u.err == nil && !u.asked.IsZero()
		id, due := u.id, u.due()
		u.news()
		u.mu.Unlock()
		if cancel && u.line.send(map[string]any{"context_id": id, "cancel": true}) != nil {
			u.line.close()
		}
		u.line.leave(id, due)
	})
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
