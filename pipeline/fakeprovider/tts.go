package fakeprovider

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/tone"
)

// A ttsSession is one utterance of a voice, sent word by word.
type ttsSession struct {
	server   *Server
	script   Script
	rate     int
	fault    Fault
	encoding string        // contains "mulaw" or "f32"; anything else means 16-bit PCM
	words    int           // words spoken so far
	duration time.Duration // duration of the speech so far
	send     func(word spokenWord) error
	garble   func()
	cut      func() // prepares the end of the connection
}

// A spokenWord is one word of speech with the silence before it.
type spokenWord struct {
	text  string
	sound []byte
	// lead is the silence before the word. length is the duration of the word. at is the start of the word within
	// the utterance.
	lead, length, at time.Duration
}

// say speaks text. If it returns false, the caller must close the connection.
func (v *ttsSession) say(ctx context.Context, text string) bool {
	if strings.TrimSpace(text) != "" {
		v.server.receive(Received{Characters: utf8.RuneCountInString(text)})
	}
	for word := range strings.FieldsSeq(text) {
		if v.fault == HalfOpen && v.words > 1 {
			<-ctx.Done() // block until Close
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

func (s Script) firstByte(f Fault) time.Duration {
	if f == Slow {
		return s.FirstByte + s.lateBy()
	}
	return s.FirstByte
}

// neverEnds reports whether the provider never sends the end of the utterance.
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
	if strings.Contains(v.encoding, "f32") {
		b := make([]byte, 0, 4*len(pcm))
		for _, x := range pcm {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)/(1<<15)))
		}
		return b
	}
	if strings.Contains(v.encoding, "mulaw") {
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

// voice upgrades a request for a voice to a WebSocket. It returns nil if the fault or the handshake prevents that; it
// has then responded.
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
		server: s, script: s.script, fault: f, cut: func() { f.end(conn.NetConn()) },
		garble: func() { _ = conn.WriteMessage(websocket.TextMessage, []byte("{garbled")) },
	}, conn, done
}

// maxFlushes is Deepgram's limit per minute.
const maxFlushes = 20

// tooMany reports whether the last flush exceeds Deepgram's limit.
func tooMany(flushes []time.Time) bool {
	n := len(flushes)
	return n > maxFlushes && flushes[n-1].Sub(flushes[n-1-maxFlushes]) < time.Minute
}

// speakDeepgram serves Deepgram's streaming speech. It speaks text after a Flush message.
func (s *Server) speakDeepgram(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	encoding, container := cmp.Or(q.Get("encoding"), "linear16"), cmp.Or(q.Get("container"), "none")
	rate, accepted := pcmRate(cmp.Or(q.Get("sample_rate"), "24000"))
	if !accepted || container != "none" || encoding != "linear16" && encoding != "mulaw" {
		w.WriteHeader(http.StatusBadRequest)
		const want = "want linear16 or mulaw of 8000 to 48000 Hz without a container"
		_ = json.NewEncoder(w).Encode(object{"err_code": "INVALID_QUERY_PARAMETER", "err_msg": want, "request_id": "x"})
		return
	}
	v, conn, done := s.voice(w, r)
	if v == nil {
		return
	}
	defer done()
	v.rate, v.encoding = rate, encoding
	v.send = func(w spokenWord) error { return conn.WriteMessage(websocket.BinaryMessage, w.sound) }
	_ = conn.WriteJSON(object{"type": "Metadata", "request_id": "x"})
	text := ""
	var flushes []time.Time
	for {
		var m struct{ Type, Text string }
		if conn.ReadJSON(&m) != nil {
			return
		}
		switch m.Type {
		case "Close":
			sendClose(conn, websocket.CloseNormalClosure, "")
			return
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
