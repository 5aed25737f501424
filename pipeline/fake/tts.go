package fake

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/tone"
)

// speaking is one utterance of a voice, word by word.
type speaking struct {
	script Script
	rate   int
	fault  Fault
	mulaw  bool
	spoken int           // words
	made   time.Duration // of speech
	send   func(word spokenWord) error
	garble func()
	cut    func() // prepares the connection's end
}

// A spokenWord is one word of speech, with the pause or the silence before it.
type spokenWord struct {
	text  string
	sound []byte
	// lead is the silence before the word, length the word itself, at where its
	// sound begins in the utterance.
	lead, length, at time.Duration
}

// say speaks text. It returns false where the connection is to be cut.
func (v *speaking) say(ctx context.Context, text string) bool {
	for word := range strings.FieldsSeq(text) {
		if v.fault == HalfOpen && v.spoken > 1 {
			<-ctx.Done() // the server's end
			return false
		}
		if v.fault == Stall || v.fault == Freeze && v.spoken > 1 {
			continue
		}
		if v.spoken == 0 && !wait(ctx, v.script.firstSpeech(v.fault)) {
			return false
		}
		if v.fault == Garble {
			v.garble()
			return false
		}
		if v.fault.cuts() && v.spoken == 2 {
			v.cut()
			return false
		}
		if v.send(v.word(word)) != nil {
			return false
		}
		v.spoken++
	}
	return true
}

// firstSpeech is how long the first speech takes.
func (s Script) firstSpeech(f Fault) time.Duration {
	if f == Slow {
		return s.FirstByte + s.late()
	}
	return s.FirstByte
}

// mumbles says whether the end of the utterance is never told.
func (v *speaking) mumbles() bool { return v.fault == Stall || v.fault == Freeze }

func (v *speaking) word(text string) spokenWord {
	w := spokenWord{text: text, lead: 60 * time.Millisecond}
	if v.spoken == 0 {
		w.lead = v.script.LeadingSilence
	}
	pcm := make([]int16, w.lead*time.Duration(v.rate)/time.Second)
	sound, _ := tone.Say(v.rate, text)
	w.length = time.Duration(len(sound)) * time.Second / time.Duration(v.rate)
	w.at = v.made + w.lead
	v.made += w.lead + w.length
	w.sound = v.encode(append(pcm, sound...))
	return w
}

func (v *speaking) encode(pcm []int16) []byte {
	if v.mulaw {
		b := make([]byte, len(pcm))
		codec.PCMU{}.Encode(b, pcm)
		return b
	}
	return littleEndian(pcm)
}

func littleEndian(pcm []int16) []byte {
	b := make([]byte, 0, 2*len(pcm))
	for _, x := range pcm {
		b = append(b, byte(x), byte(uint16(x)>>8)) //nolint:gosec // little-endian
	}
	return b
}

// voice takes a voice's WebSocket, where the script lets it.
func (s *Server) voice(w http.ResponseWriter, r *http.Request) (v *speaking, conn *websocket.Conn, done func()) {
	f := s.fault(TTS)
	if f.refuses() && refused(w, r, f) {
		return nil, nil, nil
	}
	conn, done, err := accept(w, r)
	if err != nil {
		return nil, nil, nil // told by Upgrade
	}
	return &speaking{
		script: s.script, fault: f, cut: func() { f.end(conn.NetConn()) },
		garble: func() { _ = conn.WriteMessage(websocket.TextMessage, []byte("{garbled")) },
	}, conn, done
}

// speak plays ElevenLabs' streaming speech: text comes in pieces, speech goes
// out word by word with the times of its characters.
func (s *Server) speak(w http.ResponseWriter, r *http.Request) {
	format, hz, _ := strings.Cut(r.URL.Query().Get("output_format"), "_")
	rate, err := strconv.Atoi(hz)
	if err != nil || rate < 8000 || rate > 48000 {
		http.Error(w, "output_format: want ulaw_8000 or pcm_RATE", http.StatusBadRequest)
		return
	}
	v, conn, done := s.voice(w, r)
	if v == nil {
		return
	}
	defer done()
	v.rate, v.mulaw = rate, format == "ulaw"
	v.send = func(w spokenWord) error { return conn.WriteJSON(elevenMessage(w)) }
	for {
		var m struct {
			Text *string `json:"text"`
		}
		if conn.ReadJSON(&m) != nil || m.Text == nil {
			return
		}
		if *m.Text == "" {
			if v.mumbles() {
				continue // until the client has had enough
			}
			_ = conn.WriteJSON(object{"isFinal": true})
			return
		}
		if !v.say(r.Context(), *m.Text) {
			return
		}
	}
}

// elevenMessage is one word of speech. Its times count from its own beginning.
func elevenMessage(w spokenWord) object {
	var chars []string
	var starts, durations []int64
	all := strings.Split(w.text+" ", "")
	for i, c := range all {
		d := w.length / time.Duration(len(all))
		chars = append(chars, c)
		starts = append(starts, (w.lead + time.Duration(i)*d).Milliseconds())
		durations = append(durations, d.Milliseconds())
	}
	return object{"audio": w.sound, "isFinal": nil, "alignment": object{
		"chars": chars, "charStartTimesMs": starts, "charDurationsMs": durations,
	}}
}

// mostFlushes is how many Deepgram takes in a minute.
const mostFlushes = 20

// tooMany tells whether the last of flushes is one more than Deepgram takes.
func tooMany(flushes []time.Time) bool {
	n := len(flushes)
	return n > mostFlushes && flushes[n-1].Sub(flushes[n-1-mostFlushes]) < time.Minute
}

// speakDeepgram plays Deepgram's streaming speech: what is said is spoken when
// it is flushed.
func (s *Server) speakDeepgram(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	rate, err := strconv.Atoi(q.Get("sample_rate"))
	if err != nil || rate < 8000 || rate > 48000 || q.Get("container") != "none" {
		http.Error(w, "want sample_rate of 8000 to 48000 and container=none", http.StatusBadRequest)
		return
	}
	v, conn, done := s.voice(w, r)
	if v == nil {
		return
	}
	defer done()
	v.rate, v.mulaw = rate, q.Get("encoding") == "mulaw"
	v.send = func(w spokenWord) error { return conn.WriteMessage(websocket.BinaryMessage, w.sound) }
	_ = conn.WriteJSON(object{"type": "Metadata", "request_id": "x"})
	text := ""
	var flushes []time.Time
	for {
		var m struct{ Type, Text string }
		if conn.ReadJSON(&m) != nil || m.Type == "Close" {
			return
		}
		switch m.Type {
		case "Speak":
			text += m.Text
		case "Flush":
			if flushes = append(flushes, time.Now()); tooMany(flushes) {
				_ = conn.WriteJSON(object{"type": "Warning", "description": "too many flushes", "code": "flush_limit"})
				continue
			}
			if !v.say(r.Context(), text) {
				return
			}
			if text = ""; !v.mumbles() {
				_ = conn.WriteJSON(object{"type": "Flushed", "sequence_id": 0})
			}
		case "Clear":
			text = ""
			_ = conn.WriteJSON(object{"type": "Cleared", "sequence_id": 0})
		}
	}
}

// cartesia plays Cartesia's streaming speech: many utterances share a socket,
// each a context with a goroutine of its own.
func (s *Server) cartesia(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Cartesia-Version") == "" && r.URL.Query().Get("cartesia_version") == "" {
		http.Error(w, "want cartesia_version", http.StatusBadRequest)
		return
	}
	v, conn, done := s.voice(w, r)
	if v == nil {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	c := &cartesia{speaking: v, conn: conn, contexts: map[string]chan cartesiaAsk{}}
	defer c.wg.Wait()
	defer cancel()
	defer done()
	for {
		var m cartesiaAsk
		if conn.ReadJSON(&m) != nil {
			return
		}
		c.take(ctx, m)
	}
}

// cartesiaAsk is what the client sends.
type cartesiaAsk struct {
	Context    string `json:"context_id"`
	Transcript string `json:"transcript"`
	Continue   bool   `json:"continue"`
	Cancel     bool   `json:"cancel"`
	Format     struct {
		Encoding string `json:"encoding"`
		Rate     int    `json:"sample_rate"`
	} `json:"output_format"`
}

type cartesia struct {
	*speaking
	conn     *websocket.Conn
	contexts map[string]chan cartesiaAsk
	wg       sync.WaitGroup
	mu       sync.Mutex // of writing
}

func (c *cartesia) write(m any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn.WriteJSON(m)
}

// take passes a message on to its context.
func (c *cartesia) take(ctx context.Context, m cartesiaAsk) {
	asks, ok := c.contexts[m.Context]
	if m.Cancel {
		if ok {
			close(asks)
			delete(c.contexts, m.Context)
		}
		return
	}
	if !ok {
		if m.Format.Rate < 8000 {
			_ = c.write(object{"type": "error", "done": true, "title": "sample_rate", "message": "want 8000 or more", "context_id": m.Context})
			return
		}
		asks = make(chan cartesiaAsk, 1024)
		c.contexts[m.Context] = asks
		v := *c.speaking
		v.rate, v.mulaw = m.Format.Rate, m.Format.Encoding == "pcm_mulaw"
		v.send = func(w spokenWord) error { return c.sendWord(m.Context, w) }
		c.wg.Go(func() { c.speak(ctx, &v, m.Context, asks) })
	}
	select {
	case asks <- m:
	default: // more than any test says
	}
}

func (c *cartesia) sendWord(id string, w spokenWord) error {
	err := c.write(object{"type": "timestamps", "context_id": id, "done": false, "word_timestamps": object{
		"words": []string{w.text}, "start": []float64{w.at.Seconds()}, "end": []float64{(w.at + w.length).Seconds()},
	}})
	if err == nil {
		err = c.write(object{"type": "chunk", "context_id": id, "done": false, "data": w.sound, "step_time": 1})
	}
	return err
}

// contextLife is how long after its last speech a context may be given more.
const contextLife = time.Second

// speak speaks one context until it is done, cancelled or, some time after its
// last speech, forgotten.
func (c *cartesia) speak(ctx context.Context, v *speaking, id string, asks chan cartesiaAsk) {
	forgotten := time.NewTimer(time.Hour)
	defer forgotten.Stop()
	dead := false
	for {
		select {
		case m, ok := <-asks:
			switch {
			case !ok:
				return
			case dead:
				_ = c.write(object{"type": "error", "done": true, "status_code": 400, "title": "context", "message": "has expired", "context_id": id})
				continue
			case !v.say(ctx, m.Transcript):
				_ = c.conn.Close() // that is the fault
				return
			case !m.Continue && !v.mumbles():
				_ = c.write(object{"type": "done", "done": true, "context_id": id})
				return
			}
			forgotten.Reset(contextLife)
		case <-forgotten.C:
			dead = !v.mumbles()
		case <-ctx.Done():
			return
		}
	}
}
