package fakeprovider

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/parley-voice/parley/pipeline/grpcstream"
)

// yandex is the protocol of Yandex SpeechKit, version 3, in which the client ends utterances (external_classifier).
type yandex struct {
	plain
	model      string
	normalized bool
	start      func(rate int) // called with the first message
	upTo       func() time.Duration
	started    bool
	finals     int
}

const maxYandexSession = 5 * time.Minute

// transcribeYandex serves Yandex SpeechKit over HTTP/2.
func (s *Server) transcribeYandex(w http.ResponseWriter, r *http.Request) {
	y := &yandex{}
	l := &asrSession{recognizer: y, script: s.script, fault: s.fault(ASR)}
	y.start = func(rate int) { l.rate, l.decoder = rate, s.script.newDecoder(rate) }
	y.upTo = l.upTo
	if l.fault.refuses() && refuse(w, r, l.fault) {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	w.Header().Set("Content-Type", "application/grpc")
	out := writer{
		write: func(m any) error {
			b, ok := m.([]byte)
			if text, garbled := m.(string); garbled {
				b, ok = []byte(text), true
			}
			if !ok {
				return nil
			}
			if _, err := w.Write(grpcstream.AppendMessage(nil, b)); err != nil {
				return err
			}
			return http.NewResponseController(w).Flush()
		},
		close: func(code int) {
			status, text := "0", ""
			if code != websocket.CloseNormalClosure {
				status, text = "3", "No such model, or an invalid message."
			}
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", status)
			w.Header().Set(http.TrailerPrefix+"Grpc-Message", text)
		},
	}
	ended := false
	written := s.run(ctx, cancel, l, out, func() (int, []byte, error) {
		b, err := grpcstream.ReadMessage(r.Body)
		ended = errors.Is(err, io.EOF)
		return websocket.BinaryMessage, b, err
	})
	cancel()
	<-written                      // the writer no longer uses w
	if ended && !l.fault.stops() { // the client has sent its last message
		out.close(websocket.CloseNormalClosure)
	}
	if l.fault.cuts() {
		panic(http.ErrAbortHandler) //nolint:forbidigo // net/http documents it as the way to abort a response
	}
}

func (y *yandex) read(_ int, b []byte) (sound []byte, do request) {
	if b == nil {
		return nil, leave
	}
	field, body := firstField(b)
	switch {
	case field == 1 && !y.started:
		return nil, y.configure(body)
	case field == 2 && y.started && y.upTo() > maxYandexSession:
		return nil, nonsense
	case field == 2 && y.started:
		_, sound = firstField(body)
		return sound, listen
	case field == 4 && y.started:
		return nil, finish
	}
	return nil, nonsense
}

// configure checks and applies the session options.
func (y *yandex) configure(options []byte) request {
	recognition := findField(options, 1)
	y.model = string(findField(recognition, 1))
	raw := findField(findField(recognition, 2), 1)
	rate := findVarint(raw, 2)
	external, classifier := firstField(findField(options, 2))
	if findVarint(raw, 1) != 1 || findVarint(raw, 3) != 1 || rate < 8000 || rate > 48000 || external != 2 || classifier == nil {
		return nonsense
	}
	y.normalized = findVarint(findField(recognition, 3), 1) == 1
	y.started = true
	y.start(int(rate))
	return listen
}

func (y *yandex) refusal() ([]any, int) {
	if y.model != UnknownModel {
		return nil, 0
	}
	return nil, websocket.ClosePolicyViolation
}

func (y *yandex) partial(u transcript) any { return y.response(u, 4, update(u)) }

func (y *yandex) final(u transcript) (now, due []any) {
	if len(u.words) > 0 {
		due = append(due, y.response(u, 5, update(u)))
		if y.normalized {
			refined := appendVarint(nil, 1, uint64(y.finals)) //nolint:gosec // not negative
			due = append(due, y.response(u, 7, appendField(refined, 2, update(u))))
		}
		y.finals++
	}
	return nil, append(due, y.response(u, 6, appendVarint(nil, 2, millis(u.upTo))))
}

// response returns a StreamingResponse with an event.
func (y *yandex) response(u transcript, event protowire.Number, body []byte) []byte {
	cursors := appendVarint(appendVarint(nil, 1, millis(u.upTo)), 3, millis(u.upTo))
	b := appendField(nil, 1, appendField(nil, 1, []byte("fake")))
	b = appendField(b, 2, cursors)
	return appendField(b, event, body)
}

// update returns an AlternativeUpdate.
func update(u transcript) []byte {
	var b []byte
	for _, w := range u.words {
		word := appendField(nil, 1, []byte(w.Text))
		word = appendVarint(appendVarint(word, 2, millis(w.Start)), 3, millis(w.End))
		b = appendField(b, 1, word)
	}
	b = appendField(b, 2, []byte(u.texts))
	b = appendVarint(appendVarint(b, 3, millis(u.start)), 4, millis(u.end))
	return appendField(nil, 1, b)
}

func millis(d time.Duration) uint64 { return uint64(max(0, d.Milliseconds())) }

func appendVarint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendField(b []byte, field protowire.Number, body []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), body)
}

// firstField returns the number and the bytes of the first field of a protobuf message, or 0 and nil.
func firstField(b []byte) (protowire.Number, []byte) {
	field, kind, n := protowire.ConsumeTag(b)
	if n < 0 || kind != protowire.BytesType {
		return 0, nil
	}
	body, m := protowire.ConsumeBytes(b[n:])
	if m < 0 {
		return 0, nil
	}
	return field, body
}

func findField(b []byte, want protowire.Number) []byte {
	body, _ := find(b, want)
	return body
}

func findVarint(b []byte, want protowire.Number) uint64 {
	_, v := find(b, want)
	return v
}

func find(b []byte, want protowire.Number) (body []byte, v uint64) {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, 0
		}
		size := protowire.ConsumeFieldValue(field, kind, b[n:])
		if size < 0 {
			return nil, 0
		}
		if field == want && kind == protowire.BytesType {
			body, _ = protowire.ConsumeBytes(b[n:])
			return body, 0
		}
		if field == want && kind == protowire.VarintType {
			v, _ = protowire.ConsumeVarint(b[n:])
			return nil, v
		}
		b = b[n+size:]
	}
	return nil, 0
}
