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

// listening is one connection of a recognizer. Its reader owns it; a writer
// sends what is due.
type listening struct {
	script Script
	mulaw  bool
	hearer *tone.Hearer
	words  []tone.Word // since the last final result
	from   time.Duration
	due    chan result
}

// A result waits to be sent.
type result struct {
	at time.Time
	m  map[string]any
}

// listenASR plays Deepgram's streaming recognition, version 1.
func (s *Server) listenASR(w http.ResponseWriter, r *http.Request) {
	f := s.fault(ASR)
	if f == Refuse && refused(w, r, f) {
		return
	}
	rate, err := strconv.Atoi(r.URL.Query().Get("sample_rate"))
	if err != nil || rate < 8000 || rate > 48000 {
		http.Error(w, "sample_rate: want 8000 to 48000", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	conn, done, err := accept(w, r.WithContext(ctx))
	if err != nil {
		return // told by Upgrade
	}
	defer done()
	l := &listening{
		script: s.script, mulaw: r.URL.Query().Get("encoding") == "mulaw",
		hearer: tone.NewHearer(rate), due: make(chan result, 256),
	}
	s.wg.Go(func() {
		defer cancel()
		l.send(ctx, conn, f)
	})
	for {
		kind, b, err := conn.ReadMessage()
		if err != nil || !l.take(kind, b) || f == Drop && len(l.words) > 1 {
			return
		}
	}
}

// take is given one message of the client. It returns false at the end.
func (l *listening) take(kind int, b []byte) bool {
	if kind == websocket.BinaryMessage {
		l.hear(b)
		return true
	}
	var m struct{ Type string }
	if json.Unmarshal(b, &m) != nil {
		return false
	}
	if m.Type == "Finalize" {
		l.result(l.script.FinalLag, true)
		l.words = nil
	}
	return m.Type != "CloseStream"
}

func (l *listening) hear(b []byte) {
	pcm := make([]int16, len(b))
	if l.mulaw {
		codec.PCMU{}.Decode(pcm, b)
	} else {
		pcm = pcm[:len(b)/2]
		for i := range pcm {
			pcm[i] = int16(uint16(b[2*i]) | uint16(b[2*i+1])<<8) //nolint:gosec // two's complement
		}
	}
	words := l.hearer.Hear(pcm)
	if len(words) > 0 {
		l.words = append(l.words, words...)
		l.result(l.script.PartialLag, false)
	}
}

// result schedules a result of the words so far.
func (l *listening) result(lag time.Duration, final bool) {
	var texts []string
	words := []map[string]any{}
	start, end := l.from, l.from
	for i, w := range l.words {
		if i == 0 {
			start = w.Start
		}
		end = w.End
		texts = append(texts, w.Text)
		words = append(words, map[string]any{
			"word": w.Text, "start": w.Start.Seconds(), "end": w.End.Seconds(), "confidence": 0.99,
		})
	}
	l.from = end
	m := map[string]any{
		"type": "Results", "is_final": final, "speech_final": false, "from_finalize": final,
		"start": start.Seconds(), "duration": (end - start).Seconds(), "channel_index": []int{0, 1},
		"channel": map[string]any{"alternatives": []any{map[string]any{
			"transcript": strings.Join(texts, " "), "confidence": 0.99, "words": words,
		}}},
	}
	select {
	case l.due <- result{time.Now().Add(lag), m}:
	default: // nobody reads: the connection is about to end
	}
}

// send writes results when they are due, in order.
func (l *listening) send(ctx context.Context, conn *websocket.Conn, f Fault) {
	for {
		select {
		case r := <-l.due:
			if f == Stall || !wait(ctx, time.Until(r.at)) {
				continue
			}
			if f == Garble {
				_ = conn.WriteMessage(websocket.TextMessage, []byte("{garbled"))
				return
			}
			if conn.WriteJSON(r.m) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
