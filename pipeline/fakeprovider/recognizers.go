package fakeprovider

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/media/tone"
)

type object = map[string]any

// parseControl returns the audio or the request in a message.
func parseControl(kind int, b []byte, finishes, leaves string) ([]byte, request) {
	if kind == websocket.BinaryMessage {
		return b, listen
	}
	var m struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(b, &m) != nil {
		return nil, nonsense
	}
	switch m.Type {
	case finishes:
		return nil, finish
	case leaves:
		return nil, leave
	default:
		return nil, listen
	}
}

// deepgram is the protocol of Deepgram, version 1.
type deepgram struct{}

func (deepgram) hello() any { return nil }

func (deepgram) read(kind int, b []byte) ([]byte, request) {
	return parseControl(kind, b, "Finalize", "CloseStream")
}

func (d deepgram) partial(u transcript) any {
	if len(u.words) == 0 {
		u.end = u.upTo // reports silence
	}
	return d.results(u, false)
}

func (d deepgram) final(u transcript) (now, due []any) { return nil, []any{d.results(u, true)} }

func (deepgram) results(u transcript, final bool) object {
	return object{
		"type": "Results", "is_final": final, "speech_final": false, "from_finalize": final,
		"start": u.start.Seconds(), "duration": (u.end - u.start).Seconds(), "channel_index": []int{0, 1},
		"channel": object{"alternatives": []any{object{
			"transcript": u.texts, "confidence": 0.99, "words": secondsWords(u),
		}}},
	}
}

func secondsWords(u transcript) []object {
	words := []object{}
	for _, w := range u.words {
		words = append(words, object{"word": w.Text, "start": w.Start.Seconds(), "end": w.End.Seconds(), "confidence": 0.99})
	}
	return words
}

// flux is the protocol of Deepgram's Flux. It does not end turns by itself.
type flux struct{}

func (flux) hello() any { return object{"type": "Connected", "sequence_id": 0} }

func (flux) read(kind int, b []byte) ([]byte, request) {
	return parseControl(kind, b, "ForceEndTurn", "CloseStream")
}

func (f flux) partial(u transcript) any { return f.info(u, "Update", 0.1) }

func (f flux) final(u transcript) (now, due []any) {
	if len(u.words) == 0 {
		return nil, nil // no turn is in progress
	}
	m := f.info(u, "EndOfTurn", 0.8)
	m["trigger"] = "manual"
	return nil, []any{m}
}

func (flux) info(u transcript, event string, p float64) object {
	return object{
		"type": "TurnInfo", "event": event, "turn_index": u.turn, "transcript": u.texts,
		"words": secondsWords(u), "end_of_turn_confidence": p,
		"audio_window_start": u.start.Seconds(), "audio_window_end": u.upTo.Seconds(),
	}
}

// assembly is the protocol of AssemblyAI, version 3.
type assembly struct{}

func (assembly) hello() any { return object{"type": "Begin", "id": "x", "expires_at": 0} }

func (assembly) read(kind int, b []byte) ([]byte, request) {
	if kind == websocket.BinaryMessage && len(b) < 8000/20 { // 50 ms of µ-law at 8 kHz
		return nil, nonsense
	}
	return parseControl(kind, b, "ForceEndpoint", "Terminate")
}

func (a assembly) partial(u transcript) any {
	if len(u.words) == 0 {
		return nil
	}
	return a.message(u, false)
}

func (a assembly) final(u transcript) (now, due []any) {
	if len(u.words) == 0 {
		return nil, nil
	}
	return nil, []any{a.message(u, true)}
}

func (assembly) message(u transcript, end bool) object {
	words := []object{}
	for i, w := range u.words {
		words = append(words, object{
			"text": w.Text, "start": w.Start.Milliseconds(), "end": w.End.Milliseconds(), "confidence": 0.99,
			"word_is_final": end || i < len(u.words)-1,
		})
	}
	transcript := ""
	if end {
		transcript = u.texts
	}
	return object{
		"type": "Turn", "turn_order": u.turn, "turn_is_formatted": false, "end_of_turn": end,
		"transcript": transcript, "end_of_turn_confidence": 0.7, "words": words,
	}
}

// transcription is the protocol of OpenAI's realtime transcription.
type transcription struct {
	sound int    // bytes since the last commit
	mulaw func() // called if the client announces µ-law instead of PCM
}

func (*transcription) hello() any { return object{"type": "session.created", "session": object{}} }

func (t *transcription) read(_ int, b []byte) ([]byte, request) {
	var m struct {
		Type    string `json:"type"`
		Audio   string `json:"audio"`
		Session struct {
			Audio struct {
				Input struct {
					Format struct {
						Type string `json:"type"`
					} `json:"format"`
				} `json:"input"`
			} `json:"audio"`
		} `json:"session"`
	}
	if json.Unmarshal(b, &m) != nil {
		return nil, nonsense
	}
	switch m.Type {
	case "input_audio_buffer.append":
		sound, err := base64.StdEncoding.DecodeString(m.Audio)
		if err != nil {
			return nil, nonsense
		}
		t.sound += len(sound)
		return sound, listen
	case "input_audio_buffer.commit":
		return nil, finish
	case "session.update":
		if m.Session.Audio.Input.Format.Type == "audio/pcmu" {
			t.mulaw()
		}
	}
	return nil, listen
}

func (*transcription) partial(transcript) any { return nil }

func (t *transcription) final(u transcript) (now, due []any) {
	if t.sound < 800 { // 100 ms of µ-law at 8 kHz
		return []any{object{"type": "error", "error": object{
			"type": "invalid_request_error", "code": "input_audio_buffer_commit_empty", "message": "buffer too small",
		}}}, nil
	}
	t.sound = 0
	item, head := fmt.Sprintf("item_%d", u.turn), "conversation.item.input_audio_transcription."
	due = []any{object{"type": head + "completed", "item_id": item, "content_index": 0, "transcript": u.texts}}
	if u.texts != "" {
		due = append([]any{object{"type": head + "delta", "item_id": item, "content_index": 0, "delta": u.texts}}, due...)
	}
	return []any{object{"type": "input_audio_buffer.committed", "item_id": item}}, due
}

// transcribe serves OpenAI's realtime transcription, whose first message contains the
// audio format.
func (s *Server) transcribe(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("intent") != "transcription" {
		http.Error(w, "intent: want transcription", http.StatusBadRequest)
		return
	}
	t := &transcription{}
	l := &asrSession{recognizer: t, rate: 24000}
	t.mulaw = func() { l.rate, l.mulaw, l.decoder = 8000, true, tone.NewDecoder(8000) }
	s.recognize(w, r, l)
}
