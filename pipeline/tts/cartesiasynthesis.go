package tts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// cartesiaIdle is the age of a context's last message after which text goes to a new context.
// Cartesia closes an idle context after 1 s.
const cartesiaIdle = 700 * time.Millisecond

// cartesiaSynthesis is one utterance. It uses one Cartesia context after another: a context
// expires if text comes too slowly.
type cartesiaSynthesis struct {
	socket *sharedSocket
	peer   peer
	name   string
	style  pipeline.Style
	unhook func() bool
	once   sync.Once
	wake   chan struct{} // signals a change of the fields below
	split  Splitter      // only the writing goroutine uses it
	parts  int           // number of earlier contexts; only the writing goroutine uses it

	mu       sync.Mutex
	id       string        // name of the current context
	sent     time.Time     // when text was last sent to the context; zero if none was
	last     bool          // the text is complete
	received time.Time     // when the last message arrived
	expired  bool          // Cartesia ended the current context before the text was complete
	from     time.Duration // start of the current context within the utterance
	duration time.Duration // duration of the speech so far
	unread   []pipeline.Speech
	bytes    int
	done     bool
	closed   bool
	err      error
}

// Write implements pipeline.Synthesis. It sends whole clauses, because Cartesia speaks each piece
// without waiting for the next one. Each ends with a space, because Cartesia joins the pieces.
func (u *cartesiaSynthesis) Write(text string) error {
	for _, c := range u.split.Add(text) {
		if err := u.send(c+" ", true); err != nil {
			return err
		}
	}
	return nil
}

// Flush implements pipeline.Synthesis.
func (u *cartesiaSynthesis) Flush() error { return u.send(u.split.End(), false) }

func (u *cartesiaSynthesis) send(text string, more bool) error {
	id, err := u.context(text, !more)
	if err != nil || id == "" {
		return err
	}
	return u.socket.send(cartesiaRequest(u.style, id, text, more))
}

// cartesiaRequest returns the message that speaks text in a context.
func cartesiaRequest(s pipeline.Style, id, text string, more bool) map[string]any {
	encoding := "pcm_mulaw"
	if s.Rate != telephone {
		encoding = "pcm_s16le"
	}
	type object = map[string]any
	config, extra := object{}, object{"max_buffer_delay_ms": 0}
	for name, v := range s.Options.Extra {
		if name == "emotion" || name == "volume" {
			config[name] = v
		} else {
			extra[name] = v
		}
	}
	if speed := within(s.Options.Speed, 0.6, 1.5); speed != 0 {
		config["speed"] = speed
	}
	m := withExtra(pipeline.Options{Extra: extra}, object{
		"model_id": cmp.Or(s.Model, CartesiaModel), "transcript": text, "context_id": id,
		"voice":         object{"mode": "id", "id": cmp.Or(s.Voice, CartesiaVoice)},
		"output_format": object{"container": "raw", "encoding": encoding, "sample_rate": s.Rate},
		"continue":      more, "add_timestamps": true, "use_normalized_timestamps": false,
	})
	if language := cartesiaLanguage(s.Language); language != "" {
		m["language"] = language
	}
	if len(config) > 0 {
		m["generation_config"] = config
	}
	return m
}

// context returns the ID of the context for text. It begins a new context if the current one may
// have expired. It returns "" if no text is left to speak.
func (u *cartesiaSynthesis) context(text string, last bool) (string, error) {
	u.mu.Lock()
	now := time.Now()
	old, err := u.id, u.err
	gone := u.expired || u.received.After(u.sent) && now.Sub(u.received) >= cartesiaIdle
	switch {
	case u.closed || err != nil:
		u.mu.Unlock()
		return "", cmp.Or(err, context.Canceled)
	case text == "" && (gone || u.sent.IsZero()):
		u.done = true
		u.notify()
		u.mu.Unlock()
		return "", nil
	case !gone:
		u.sent, u.last = now, last
		u.mu.Unlock()
		return old, nil
	}
	u.mu.Unlock()
	u.parts++
	id := fmt.Sprintf("%s.%d", u.name, u.parts)
	if err := u.socket.move(u, old, id); err != nil {
		return "", err
	}
	u.mu.Lock()
	u.id, u.expired, u.from, u.sent, u.last = id, false, u.duration, now, last
	closed := u.closed
	u.mu.Unlock()
	if closed { // the utterance was closed in the meantime
		u.socket.remove(id, time.Time{})
		return "", context.Canceled
	}
	return id, nil
}

// pendingSince returns the time since which speech is due, or the zero time if none is due. The caller holds mu.
func (u *cartesiaSynthesis) pendingSince() time.Time {
	if u.done || u.err != nil || u.sent.IsZero() || u.received.After(u.sent) && !u.last {
		return time.Time{}
	}
	return u.sent
}

func (u *cartesiaSynthesis) onMessage(m cartesiaMessage) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.received = time.Now()
	switch m.Type {
	case "error":
		u.err = m.refusal(u.peer)
	case "done":
		u.done, u.expired = u.last, !u.last
	default:
		sp := pipeline.Speech{PCM: samples(m.Data, u.style.Rate)}
		u.duration += time.Duration(len(sp.PCM)) * time.Second / time.Duration(u.style.Rate)
		for i, w := range m.Words.Words {
			sp.Words = append(sp.Words, pipeline.Word{Text: w, Start: u.from + seconds(m.Words.Start[i]), End: u.from + seconds(m.Words.End[i])})
		}
		if len(sp.PCM) > 0 || len(sp.Words) > 0 {
			u.unread = append(u.unread, sp)
		}
		if u.bytes += len(m.Data) + wordSize*len(sp.Words); u.bytes > maxUnread {
			u.err = errors.New("cartesia: too much unread speech")
		}
	}
	u.notify()
}

// notify wakes Audio. Audio checks the whole state, so one pending signal is enough.
func (u *cartesiaSynthesis) notify() {
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

func (u *cartesiaSynthesis) fail(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err == nil {
		u.err = err
	}
	u.notify()
}

// Audio implements pipeline.Synthesis.
func (u *cartesiaSynthesis) Audio() iter.Seq2[pipeline.Speech, error] {
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

// Close implements pipeline.Synthesis.
func (u *cartesiaSynthesis) Close() error {
	u.unhook()
	u.end()
	return nil
}

// end removes the utterance from the socket. It cancels a context whose text is not fully spoken.
func (u *cartesiaSynthesis) end() {
	u.once.Do(func() {
		u.mu.Lock()
		u.closed = true
		cancel := !u.done && !u.expired && u.err == nil && !u.sent.IsZero()
		id, due := u.id, u.pendingSince()
		u.notify()
		u.mu.Unlock()
		if cancel && u.socket.send(map[string]any{"context_id": id, "cancel": true}) != nil {
			u.socket.close()
		}
		u.socket.remove(id, due)
	})
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
