package fakeprovider

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

// A ttsSession is one utterance of a voice, sent word by word.
type ttsSession struct {
	script   Script
	rate     int
	fault    Fault
	mulaw    bool
	words    int           // words
	duration time.Duration // speech so far
	send     func(word spokenWord) error
	garble   func()
	cut      func() // prepares the end of the connection
}

// A spokenWord is one word of speech with the silence before it.
type spokenWord struct {
	text  string
	sound []byte
	// lead is the silence before the word, length its duration, and at its start within
	// the utterance.
	lead, length, at time.Duration
}

// say speaks text. It returns false if the connection is to be closed.
func (v *ttsSession) say(ctx context.Context, text string) bool {
	for word := range strings.FieldsSeq(text) {
		if v.fault == HalfOpen && v.words > 1 {
			<-ctx.Done() // until the server closes
			return false
		}
		if v.fault == Stall || v.fault == Freeze && v.words > 1 {
			continue
		}
		if v.words == 0 && !wait(ctx, v.script.firstByte(v.fault)) {
			return false
		}
		if v.fault == Garble {
			v.garble()
			return false
		}
		if v.fault.cuts() && v.words == 2 {
			v.cut()
			return false
		}
		if v.send(v.word(word)) != nil {
			return false
		}
		v.words++
	}
	return true
}

// firstByte returns the delay of the first speech.
func (s Script) firstByte(f Fault) time.Duration {
	if f == Slow {
		return s.FirstByte + s.lateBy()
	}
	return s.FirstByte
}

// neverEnds reports whether the end of the utterance is never sent.
func (v *ttsSession) neverEnds() bool { return v.fault == Stall || v.fault == Freeze }

func (v *ttsSession) word(text string) spokenWord {
	w := spokenWord{text: text, lead: 60 * time.Millisecond}
	if v.words == 0 {
		w.lead = v.script.LeadingSilence
	}
	pcm := make([]int16, w.lead*time.Duration(v.rate)/time.Second)
	sound, _ := tone.Encode(v.rate, text)
	w.length = time.Duration(len(sound)) * time.Second / time.Duration(v.rate)
	w.at = v.duration + w.lead
	v.duration += w.lead + w.length
	w.sound = v.encode(append(pcm, sound...))
	return w
}

func (v *ttsSession) encode(pcm []int16) []byte {
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

// voice accepts a voice's WebSocket, unless the script prevents it.
func (s *Server) voice(w http.ResponseWriter, r *http.Request) (v *ttsSession, conn *websocket.Conn, done func()) {
	f := s.fault(TTS)
	if f.refuses() && refuse(w, r, f) {
		return nil, nil, nil
	}
	conn, done, err := accept(w, r)
	if err != nil {
		return nil, nil, nil // Upgrade has responded
	}
	return &ttsSession{
		script: s.script, fault: f, cut: func() { f.end(conn.NetConn()) },
		garble: func() { _ = conn.WriteMessage(websocket.TextMessage, []byte("{garbled")) },
	}, conn, done
}

// speak serves ElevenLabs' streaming speech: text arrives in pieces, speech is sent word
// by word with the times of its characters.
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
			if v.neverEnds() {
				continue // until the client gives up
			}
			_ = conn.WriteJSON(object{"isFinal": true})
			return
		}
		if !v.say(r.Context(), *m.Text) {
			return
		}
	}
}

// elevenMessage returns one word of speech. Its times count from its own start.
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

// maxFlushes is Deepgram's limit per minute.
const maxFlushes = 20

// tooMany reports whether the last flush exceeds Deepgram's limit.
func tooMany(flushes []time.Time) bool {
	n := len(flushes)
	return n > maxFlushes && flushes[n-1].Sub(flushes[n-1-maxFlushes]) < time.Minute
}

// speakDeepgram serves Deepgram's streaming speech: text is spoken when it is flushed.
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
			if text = ""; !v.neverEnds() {
				_ = conn.WriteJSON(object{"type": "Flushed", "sequence_id": 0})
			}
		case "Clear":
			text = ""
			_ = conn.WriteJSON(object{"type": "Cleared", "sequence_id": 0})
		}
	}
}

// cartesia serves Cartesia's streaming speech: utterances share a socket, each as a
// context with its own goroutine.
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
	c := &cartesia{ttsSession: v, conn: conn, contexts: map[string]chan cartesiaRequest{}}
	defer c.wg.Wait()
	defer cancel()
	defer done()
	for {
		var m cartesiaRequest
		if conn.ReadJSON(&m) != nil {
			return
		}
		c.take(ctx, m)
	}
}

// cartesiaRequest is a message of the client.
type cartesiaRequest struct {
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
	*ttsSession
	conn     *websocket.Conn
	contexts map[string]chan cartesiaRequest
	wg       sync.WaitGroup
	mu       sync.Mutex // guards writing
}

func (c *cartesia) write(m any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn.WriteJSON(m)
}

// take passes a message to its context.
func (c *cartesia) take(ctx context.Context, m cartesiaRequest) {
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
		asks = make(chan cartesiaRequest, 1024)
		c.contexts[m.Context] = asks
		v := *c.ttsSession
		v.rate, v.mulaw = m.Format.Rate, m.Format.Encoding == "pcm_mulaw"
		v.send = func(w spokenWord) error { return c.sendWord(m.Context, w) }
		c.wg.Go(func() { c.speak(ctx, &v, m.Context, asks) })
	}
	select {
	case asks <- m:
	default: // more than any test sends
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

// contextLife is the time after its last speech in which a context accepts text.
const contextLife = time.Second

// speak speaks one context until it is done, canceled or expired.
func (c *cartesia) speak(ctx context.Context, v *ttsSession, id string, asks chan cartesiaRequest) {
	expired := time.NewTimer(time.Hour)
	defer expired.Stop()
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
				_ = c.conn.Close() // the fault requires it
				return
			case !m.Continue && !v.neverEnds():
				_ = c.write(object{"type": "done", "done": true, "context_id": id})
				return
			}
			expired.Reset(contextLife)
		case <-expired.C:
			dead = !v.neverEnds()
		case <-ctx.Done():
			return
		}
	}
}
