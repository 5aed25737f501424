package tts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/clause"
	"github.com/parley-voice/parley/pipeline/wire"
)

// Deepgram's defaults.
const (
	DeepgramURL   = "wss://api.deepgram.com/v1/speak"
	DeepgramVoice = "aura-2-thalia-en"
)

const (
	// flushAfter is how much text is gathered for the Flush after the first
	// clause's, and twice as much for each that follows, up to flushMost: there
	// may be mostFlushes on a connection in flushWindow, and no more is spoken then
	// (developers.deepgram.com/docs/tts-ws-flush).
	flushAfter  = 120  // bytes
	flushMost   = 1000 // bytes
	mostFlushes = 20
	flushWindow = time.Minute
	// spareFlushes are what is left of them for the next utterance.
	spareFlushes = 6
)

// Deepgram speaks by Deepgram's streaming text-to-speech
// (developers.deepgram.com/docs/tts-websocket). It tells no times of words.
type Deepgram struct {
	URL  string // empty: DeepgramURL
	Key  media.Secret
	Dial wire.Dial
	Warm *Warm // nil: each utterance connects
}

// Open implements pipeline.Voice. A style's Voice, else its Model, is
// Deepgram's model, which holds the voice.
func (d Deepgram) Open(ctx context.Context, s pipeline.Style) (pipeline.Speaking, error) {
	q := url.Values{
		"model": {cmp.Or(s.Voice, s.Model, DeepgramVoice)}, "encoding": {"mulaw"},
		"sample_rate": {strconv.Itoa(s.Rate)}, "container": {"none"},
	}
	if s.Rate != telephone {
		q.Set("encoding", "linear16")
	}
	base := cmp.Or(d.URL, DeepgramURL)
	address := base + "?" + q.Encode()
	sock, err := d.Warm.get(ctx, address, func(ctx context.Context) (*socket, error) {
		conn, err := wire.Open(ctx, "deepgram speech", base, q, http.Header{"Authorization": {"Token " + string(d.Key)}}, d.Dial)
		if err != nil {
			return nil, err
		}
		return newSocket("deepgram speech", conn), nil
	})
	if err != nil {
		return nil, err
	}
	sp := &deepgramSpeaking{socket: sock, rate: s.Rate, warm: d.Warm, address: address, flushed: make(chan struct{}, 1)}
	sp.unhook = context.AfterFunc(ctx, sock.close)
	return sp, nil
}

// deepgramSpeaking is one utterance. A connection that spoke the whole of it is
// used again; one that is cut off is not.
type deepgramSpeaking struct {
	*socket
	rate    int
	warm    *Warm
	address string
	unhook  func() bool
	over    sync.Once
	flushed chan struct{} // the text is complete

	split  clause.Splitter // the speaker's
	said   string          // since the last Flush. The speaker's
	enough int             // bytes of said that are flushed; 0 for the first clause. The speaker's

	mu       sync.Mutex
	open     []string // texts that were flushed and not spoken to their end
	complete bool     // the text is

	made, from time.Duration // of speech; and where the oldest of open begins. The listener's
	odd        []byte        // half a sample
}

// Say implements pipeline.Speaking.
func (d *deepgramSpeaking) Say(text string) error {
	for _, clause := range d.split.Add(text) {
		if err := d.speak(clause + " "); err != nil {
			return err
		}
	}
	return nil
}

func (d *deepgramSpeaking) speak(text string) error {
	if err := d.send(map[string]string{"type": "Speak", "text": text}); err != nil {
		return err
	}
	if d.said += text; len(d.said) < d.enough || d.recent(time.Now()) >= mostFlushes-1 { // the last is for the end
		return nil
	}
	d.enough = min(max(2*d.enough, flushAfter), flushMost)
	return d.flush()
}

func (d *deepgramSpeaking) flush() error {
	d.flushes = append(d.flushes, time.Now())
	d.mu.Lock()
	d.open = append(d.open, d.said)
	d.mu.Unlock()
	d.said = ""
	return d.send(map[string]string{"type": "Flush"})
}

// Flush implements pipeline.Speaking.
func (d *deepgramSpeaking) Flush() error {
	if rest := d.split.End(); rest != "" {
		d.said += rest
		if err := d.send(map[string]string{"type": "Speak", "text": rest}); err != nil {
			return err
		}
	}
	var err error
	if d.said != "" {
		err = d.flush()
	}
	d.mu.Lock()
	d.complete = true
	d.mu.Unlock()
	d.flushed <- struct{}{}
	return err
}

// done tells whether all of the text was spoken.
func (d *deepgramSpeaking) done() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.complete && len(d.open) == 0
}

// Audio implements pipeline.Speaking.
func (d *deepgramSpeaking) Audio() iter.Seq2[pipeline.Speech, error] {
	return func(yield func(pipeline.Speech, error) bool) {
		for !d.done() {
			select {
			case <-d.flushed:
			case r, ok := <-d.in:
				if !ok {
					if !d.closed() {
						yield(pipeline.Speech{}, d.err)
					}
					return
				}
				sp, err := d.take(r)
				if err != nil {
					yield(pipeline.Speech{}, fmt.Errorf("deepgram speech: %w", err))
					return
				}
				if (len(sp.PCM) > 0 || len(sp.Words) > 0) && !yield(sp, nil) {
					return
				}
			}
		}
	}
}

// take reads one message: speech, or the end of what was flushed, whose words
// are then timed by their length.
func (d *deepgramSpeaking) take(r received) (pipeline.Speech, error) {
	if r.kind == websocket.BinaryMessage {
		b := r.body
		if d.rate != telephone {
			b = append(d.odd, b...)
			d.odd = append([]byte(nil), b[len(b)&^1:]...)
		}
		sp := pipeline.Speech{PCM: samples(b, d.rate)}
		d.made += time.Duration(len(sp.PCM)) * time.Second / time.Duration(d.rate)
		return sp, nil
	}
	m, err := parseDeepgram(r.body)
	if err != nil {
		return pipeline.Speech{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case len(d.open) == 0:
		return pipeline.Speech{}, nil
	case m.Type == "Warning": // what is open is not spoken
		return pipeline.Speech{}, fmt.Errorf("warning: %s", pipeline.Clean(m.Description))
	case m.Type != "Flushed": // Metadata, Cleared and what is yet to come
		return pipeline.Speech{}, nil
	}
	sp := pipeline.Speech{Words: spread(d.open[0], d.from, d.made-d.from)}
	d.open, d.from = d.open[1:], d.made
	return sp, nil
}

// deepgramMessage is what Deepgram sends beside sound, as far as it matters here.
type deepgramMessage struct {
	Type        string `json:"type"`
	Description string `json:"description"`
}

func parseDeepgram(b []byte) (deepgramMessage, error) {
	var m deepgramMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("not JSON: %w", err)
	}
	if m.Type == "Error" {
		return m, errors.New(pipeline.Clean(m.Description))
	}
	return m, nil
}

// Close implements pipeline.Speaking. What is not yet spoken is cut with the
// connection, and so is one that was flushed almost as often as it may be. It must not run beside Audio unless to end it.
func (d *deepgramSpeaking) Close() error {
	d.over.Do(func() {
		if d.unhook() && d.done() && !d.closed() && d.recent(time.Now()) <= mostFlushes-spareFlushes {
			d.warm.put(d.address, d.socket)
			return
		}
		d.close()
	})
	return nil
}
