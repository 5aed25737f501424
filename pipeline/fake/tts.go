package fake

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/tone"
)

// speaking is one utterance of the voice.
type speaking struct {
	script Script
	conn   *websocket.Conn
	rate   int
	fault  Fault
	spoken int
}

// speak plays ElevenLabs' streaming speech: text comes in pieces, speech goes
// out word by word with the times of its characters.
func (s *Server) speak(w http.ResponseWriter, r *http.Request) {
	f := s.fault(TTS)
	if f == Refuse && refused(w, r, f) {
		return
	}
	format := r.URL.Query().Get("output_format")
	_, hz, _ := strings.Cut(format, "_")
	rate, err := strconv.Atoi(hz)
	if err != nil || rate < 8000 || rate > 48000 {
		http.Error(w, "output_format: want ulaw_8000 or pcm_RATE", http.StatusBadRequest)
		return
	}
	conn, done, err := accept(w, r)
	if err != nil {
		return // told by Upgrade
	}
	defer done()
	v := &speaking{script: s.script, conn: conn, rate: rate, fault: f}
	for {
		var m struct {
			Text *string `json:"text"`
		}
		if conn.ReadJSON(&m) != nil || m.Text == nil {
			return
		}
		if *m.Text == "" {
			if f == Stall {
				continue // until the client has had enough
			}
			_ = conn.WriteJSON(map[string]any{"isFinal": true})
			return
		}
		if !v.say(r.Context(), *m.Text) {
			return
		}
	}
}

func (v *speaking) say(ctx context.Context, text string) bool {
	for word := range strings.FieldsSeq(text) {
		if v.fault == Stall {
			continue
		}
		if v.spoken == 0 && !wait(ctx, v.script.FirstByte) {
			return false
		}
		if v.fault == Garble {
			_ = v.conn.WriteMessage(websocket.TextMessage, []byte("{garbled"))
			return false
		}
		if v.fault == Drop && v.spoken == 2 {
			return false
		}
		if v.conn.WriteJSON(v.message(word)) != nil {
			return false
		}
		v.spoken++
	}
	return true
}

// message is one word of speech, with the pause or the silence before it.
func (v *speaking) message(word string) map[string]any {
	lead := 60 * time.Millisecond
	if v.spoken == 0 {
		lead = v.script.LeadingSilence
	}
	pcm := make([]int16, lead*time.Duration(v.rate)/time.Second)
	sound, _ := tone.Say(v.rate, word)
	pcm = append(pcm, sound...)
	length := time.Duration(len(sound)) * time.Second / time.Duration(v.rate)
	var chars []string
	var starts, durations []int64
	all := strings.Split(word+" ", "")
	for i, c := range all {
		d := length / time.Duration(len(all))
		chars = append(chars, c)
		starts = append(starts, (lead + time.Duration(i)*d).Milliseconds())
		durations = append(durations, d.Milliseconds())
	}
	return map[string]any{"audio": v.encode(pcm), "isFinal": nil, "alignment": map[string]any{
		"chars": chars, "charStartTimesMs": starts, "charDurationsMs": durations,
	}}
}

func (v *speaking) encode(pcm []int16) []byte {
	if v.rate == 8000 {
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

// speech plays OpenAI's speech API: 24 kHz PCM.
func (s *Server) speech(w http.ResponseWriter, r *http.Request) {
	f := s.fault(TTS)
	if refused(w, r, f) {
		return
	}
	var ask struct {
		Input  string `json:"input"`
		Format string `json:"response_format"`
	}
	if json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&ask) != nil || ask.Format != "pcm" {
		http.Error(w, `{"error":{"message":"want JSON with response_format pcm"}}`, http.StatusBadRequest)
		return
	}
	if !wait(r.Context(), s.script.FirstByte) {
		return
	}
	pcm, _ := tone.Say(24000, ask.Input)
	b := littleEndian(append(pcm, make([]int16, 24000/16)...))
	w.Header().Set("Content-Type", "application/octet-stream")
	if f == Drop {
		_, _ = w.Write(b[:len(b)/2])
		cut(w)
		return
	}
	_, _ = w.Write(b)
}
