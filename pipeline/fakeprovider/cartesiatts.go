package fakeprovider

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// cartesiaLife is the time for which a Cartesia context accepts text after its last speech.
const cartesiaLife = time.Second

// cartesia serves Cartesia's streaming speech.
func (s *Server) cartesia(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Cartesia-Version") == "" && r.URL.Query().Get("cartesia_version") == "" {
		http.Error(w, `{"error_code":"version_missing","title":"Bad request","message":"want Cartesia-Version"}`, http.StatusBadRequest)
		return
	}
	c := &contexts{wire: cartesiaWire{}, life: cartesiaLife}
	s.serveContexts(w, r, c, func(ctx context.Context) bool {
		var m cartesiaRequest
		if c.conn.ReadJSON(&m) != nil {
			return false
		}
		c.onCartesia(ctx, m)
		return true
	})
}

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

func (c *contexts) onCartesia(ctx context.Context, m cartesiaRequest) {
	exists := c.has(m.Context)
	switch {
	case m.Cancel:
		c.cancel(m.Context)
		return
	case !exists && (m.Format.Rate < 8000 || m.Format.Rate > 48000 || !strings.HasPrefix(m.Format.Encoding, "pcm_")):
		_ = c.write(cartesiaError(m.Context, "invalid_output_format", "want pcm_mulaw, pcm_s16le or pcm_f32le of 8000 to 48000 Hz"))
		return
	case !exists:
		c.begin(ctx, m.Context, m.Format.Rate, m.Format.Encoding)
	}
	c.add(m.Context, contextInput{m.Transcript, !m.Continue})
}

func cartesiaError(id, code, text string) object {
	return object{
		"type": "error", "done": true, "status_code": 400, "error_code": code, "title": "Invalid request", "message": text,
		"request_id": "x", "context_id": id,
	}
}

type cartesiaWire struct{}

func (cartesiaWire) word(id string, w spokenWord) []object {
	return []object{
		{"type": "timestamps", "context_id": id, "status_code": 206, "done": false, "word_timestamps": object{
			"words": []string{w.text}, "start": []float64{w.at.Seconds()}, "end": []float64{(w.at + w.length).Seconds()},
		}},
		{"type": "chunk", "context_id": id, "status_code": 206, "done": false, "data": w.sound, "step_time": 1},
	}
}

func (cartesiaWire) flushed(id string) object {
	return object{"type": "flush_done", "context_id": id, "status_code": 206, "done": false, "flush_done": true, "flush_id": 1}
}

func (cartesiaWire) ended(id string) object {
	return object{"type": "done", "done": true, "status_code": 200, "context_id": id}
}

func (cartesiaWire) canceled(string) object { return nil }

func (cartesiaWire) expired(id string) (now, later object) {
	return nil, cartesiaError(id, "context_expired", "The context has expired.")
}
