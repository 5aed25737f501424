package fakeprovider

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// elevenFormat parses the output_format of a request. It responds with an error to an unsupported format, such as MP3,
// the vendor's default.
func elevenFormat(w http.ResponseWriter, r *http.Request) (rate int, encoding string, accepted bool) {
	format := cmp.Or(r.URL.Query().Get("output_format"), "mp3_44100_128")
	kind, hz, _ := strings.Cut(format, "_")
	rate, accepted = pcmRate(hz)
	if accepted = accepted && (kind == "pcm" || kind == "ulaw"); !accepted {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(object{"detail": object{
			"status": "unsupported_output_format", "message": "want output_format ulaw_8000 or pcm_RATE; " + format + " cannot be made here",
		}})
		return 0, "", false
	}
	return rate, strings.Replace(kind, "ulaw", "mulaw", 1), true
}

// speak serves ElevenLabs' streaming speech. Text arrives in pieces; speech is sent word by word with character times.
func (s *Server) speak(w http.ResponseWriter, r *http.Request) {
	rate, encoding, accepted := elevenFormat(w, r)
	if !accepted {
		return
	}
	v, conn, done := s.voice(w, r)
	if v == nil {
		return
	}
	defer done()
	v.rate, v.encoding = rate, encoding
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
				continue // wait until the client gives up
			}
			_ = conn.WriteJSON(object{"isFinal": true})
			sendClose(conn, websocket.CloseNormalClosure, "")
			return
		}
		if !v.say(r.Context(), *m.Text) {
			return
		}
	}
}

// synthesize serves ElevenLabs' speech for a whole text.
func (s *Server) synthesize(w http.ResponseWriter, r *http.Request) {
	rate, encoding, accepted := elevenFormat(w, r)
	if !accepted {
		return
	}
	f := s.fault(TTS)
	if refuse(w, r, f) {
		return
	}
	var ask struct {
		Text string `json:"text"`
	}
	if json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&ask) != nil {
		http.Error(w, `{"detail":{"status":"invalid_request","message":"want JSON with text"}}`, http.StatusBadRequest)
		return
	}
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "application/octet-stream")
	v := &ttsSession{
		server: s, script: s.script, fault: f, rate: rate, encoding: encoding, cut: func() { f.cut(w) },
		garble: func() { _, _ = w.Write([]byte("{garbled")) },
		send: func(word spokenWord) error {
			_, _ = w.Write(word.sound)
			return out.Flush()
		},
	}
	if v.say(r.Context(), ask.Text) && v.neverEnds() {
		<-r.Context().Done()
	}
}

// elevenMessage returns the message with one word. Character times count from the start of the message.
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
	alignment := object{"chars": chars, "charStartTimesMs": starts, "charDurationsMs": durations}
	return object{"audio": w.sound, "isFinal": nil, "alignment": alignment, "normalizedAlignment": alignment}
}

// maxElevenContexts is the vendor's limit of contexts per connection.
const maxElevenContexts = 5

// speakContexts serves ElevenLabs' speech with several contexts on a connection.
func (s *Server) speakContexts(w http.ResponseWriter, r *http.Request) {
	rate, encoding, accepted := elevenFormat(w, r)
	if !accepted {
		return
	}
	c := &contexts{wire: elevenWire{}}
	s.serveContexts(w, r, c, func(ctx context.Context) bool {
		var m elevenRequest
		if c.conn.ReadJSON(&m) != nil || m.CloseSocket {
			sendClose(c.conn, websocket.CloseNormalClosure, "")
			return false
		}
		exists := c.has(m.Context)
		switch {
		case m.CloseContext:
			if exists {
				c.add(m.Context, contextInput{m.Text, true})
			}
		case exists:
			c.add(m.Context, contextInput{text: m.Text})
		case m.Text == "": // an empty message keeps a connection without contexts open
		case len(c.open) >= maxElevenContexts:
			const text = "Maximum simultaneous contexts per WebSocket connection exceeded (5)."
			_ = c.write(object{"error": "max_active_conversations", "code": 1008, "message": text})
			sendClose(c.conn, websocket.ClosePolicyViolation, text)
			return false
		default:
			c.begin(ctx, m.Context, rate, encoding)
			c.add(m.Context, contextInput{text: m.Text})
		}
		return true
	})
}

type elevenRequest struct {
	Context      string `json:"context_id"`
	Text         string `json:"text"`
	CloseContext bool   `json:"close_context"`
	CloseSocket  bool   `json:"close_socket"`
}

type elevenWire struct{}

func (elevenWire) word(id string, w spokenWord) []object {
	m := elevenMessage(w)
	m["contextId"], m["isFinal"] = id, false
	return []object{m}
}

func (elevenWire) ended(id string) object { return object{"isFinal": true, "contextId": id} }
func (elevenWire) flushed(string) object  { return nil }
func (elevenWire) canceled(string) object { return nil }

func (elevenWire) expired(string) (now, later object) { return nil, nil }
