package fakeprovider

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// Limits of Soniox: streams per connection, and the time without text after which it ends a stream with error 408. The
// real time is 8 to 18 s as observed (github.com/livekit/agents/issues/6225).
const (
	sonioxStreams = 5
	sonioxLife    = 8 * time.Second
)

// sonioxText is a message of the client. It configures a stream, contains text, cancels a stream or keeps the
// connection open.
type sonioxText struct {
	Key       string `json:"api_key"`
	Stream    string `json:"stream_id"`
	Model     string `json:"model"`
	Language  string `json:"language"`
	Voice     string `json:"voice"`
	Format    string `json:"audio_format"`
	Rate      int    `json:"sample_rate"`
	Text      string `json:"text"`
	TextEnd   bool   `json:"text_end"`
	Cancel    bool   `json:"cancel"`
	KeepAlive bool   `json:"keep_alive"`
}

// speakSoniox serves Soniox's streaming speech.
func (s *Server) speakSoniox(w http.ResponseWriter, r *http.Request) {
	c := &contexts{wire: sonioxWire{}, life: sonioxLife}
	s.serveContexts(w, r, c, func(ctx context.Context) bool {
		var m sonioxText
		if c.conn.ReadJSON(&m) != nil {
			return false
		}
		c.onSoniox(ctx, m)
		return true
	})
}

func (c *contexts) onSoniox(ctx context.Context, m sonioxText) {
	exists := c.has(m.Stream)
	refuse := func(code int, text string) {
		_ = c.write(object{"stream_id": m.Stream, "error_code": code, "error_message": text, "error_type": "invalid_request"})
		_ = c.write(object{"stream_id": m.Stream, "terminated": true})
	}
	switch {
	case m.KeepAlive:
	case m.Cancel:
		c.cancel(m.Stream)
	case exists && m.Key != "":
		refuse(400, "The stream is configured already.")
	case exists:
		c.add(m.Stream, contextInput{m.Text, m.TextEnd})
	case m.Key == "":
		refuse(400, "No such stream.")
	case m.Model == "" || m.Language == "" || m.Voice == "" || m.Stream == "":
		refuse(400, "Missing required field.")
	case !m.isPCM():
		refuse(400, "want raw PCM of 8000 to 48000 Hz")
	case len(c.open) >= sonioxStreams:
		refuse(429, "Too many streams.")
	default:
		c.begin(ctx, m.Stream, m.Rate, m.Format)
	}
}

// isPCM reports whether the fake provider supports the audio format.
func (m sonioxText) isPCM() bool {
	return strings.HasPrefix(m.Format, "pcm_") && m.Rate >= 8000 && m.Rate <= 48000
}

type sonioxWire struct{}

func (sonioxWire) word(id string, w spokenWord) []object {
	var chars []string
	var starts, ends []float64
	all := strings.Split(w.text+" ", "")
	for i, c := range all {
		d := w.length / time.Duration(len(all))
		chars = append(chars, c)
		starts = append(starts, (w.at + time.Duration(i)*d).Seconds())
		ends = append(ends, (w.at + time.Duration(i+1)*d).Seconds())
	}
	return []object{{"stream_id": id, "audio": w.sound, "audio_end": false, "timestamps": object{
		"characters": chars, "character_start_times_seconds": starts, "character_end_times_seconds": ends,
	}}}
}

func (sonioxWire) ended(id string) object {
	return object{"stream_id": id, "audio_end": true, "terminated": true}
}
func (sonioxWire) canceled(id string) object { return object{"stream_id": id, "terminated": true} }
func (sonioxWire) flushed(string) object     { return nil }

func (sonioxWire) expired(id string) (now, later object) {
	return object{"stream_id": id, "error_code": 408, "error_message": "Request timeout", "error_type": "request_timeout"}, nil
}
