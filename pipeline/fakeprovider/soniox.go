package fakeprovider

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
)

// soniox is the protocol of Soniox. A word becomes final when the next word is recognized.
type soniox struct {
	plain
	started bool
	model   string
	start   func(rate int, mulaw bool, silence time.Duration) // called with the first message
	turn    int
	told    int // number of final words of the turn that were sent
}

func (x *soniox) read(kind int, b []byte) ([]byte, request) {
	switch {
	case len(b) == 0:
		return nil, leave
	case kind == websocket.BinaryMessage:
		return b, listen
	case x.started:
		return parseControl(kind, b, "finalize", "")
	}
	var m struct {
		Model    string `json:"model"`
		Format   string `json:"audio_format"`
		Rate     int    `json:"sample_rate"`
		Channels int    `json:"num_channels"`
		Endpoint bool   `json:"enable_endpoint_detection"`
		Delay    int    `json:"max_endpoint_delay_ms"`
	}
	if json.Unmarshal(b, &m) != nil || m.Channels != 1 || m.Rate < 8000 || m.Rate > 48000 || m.Format != "mulaw" && m.Format != "pcm_s16le" {
		return nil, nonsense
	}
	x.started, x.model = true, m.Model
	silence := 2 * time.Second // default of Soniox
	if m.Delay > 0 {
		silence = time.Duration(m.Delay) * time.Millisecond
	}
	if !m.Endpoint {
		silence = 0
	}
	x.start(m.Rate, m.Format == "mulaw", silence)
	return nil, listen
}

func (x *soniox) refusal() ([]any, int) {
	if x.model != UnknownModel {
		return nil, 0
	}
	return []any{object{"tokens": []any{}, "error_code": 400, "error_message": "Invalid model specified."}}, websocket.CloseNormalClosure
}

func (x *soniox) partial(u transcript) any { return x.message(u, max(0, len(u.words)-1), "") }

func (x *soniox) final(u transcript) (now, due []any) {
	return nil, []any{x.message(u, len(u.words), "<fin>")}
}

func (x *soniox) endpoint(u transcript) []any { return []any{x.message(u, len(u.words), "<end>")} }

func (*soniox) bye(transcript) []any { return []any{object{"tokens": []any{}, "finished": true}} }

// message returns the words that were not sent as final before, and mark if not empty. final is the number of final
// words in the turn.
func (x *soniox) message(u transcript, final int, mark string) object {
	if u.turn != x.turn {
		x.turn, x.told = u.turn, 0
	}
	tokens, upTo := []object{}, u.upTo
	for i := x.told; i < len(u.words); i++ {
		w := u.words[i]
		tokens = append(tokens, object{
			"text": " " + w.Text, "start_ms": w.Start.Milliseconds(), "end_ms": w.End.Milliseconds(), "confidence": 0.99, "is_final": i < final,
		})
		if i >= final {
			upTo = min(upTo, w.Start)
		}
	}
	x.told = final
	if mark != "" {
		tokens = append(tokens, object{"text": mark, "is_final": true})
	}
	return object{"tokens": tokens, "final_audio_proc_ms": upTo.Milliseconds(), "total_audio_proc_ms": u.upTo.Milliseconds()}
}

// transcribeSoniox serves Soniox. The client's first message contains the audio format.
func (s *Server) transcribeSoniox(w http.ResponseWriter, r *http.Request) {
	x := &soniox{}
	l := &asrSession{recognizer: x, idle: 20 * time.Second}
	x.start = func(rate int, mulaw bool, silence time.Duration) {
		l.rate, l.mulaw, l.silence, l.decoder = rate, mulaw, silence, s.script.newDecoder(rate)
	}
	s.recognize(w, r, l)
}
