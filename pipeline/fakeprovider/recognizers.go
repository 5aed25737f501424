package fakeprovider

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"
)

type object = map[string]any

// parseControl returns the audio or the request in a message. finishes and leaves are the types of the messages that
// stand for the requests finish and leave.
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
type deepgram struct {
	plain
	model        string
	utteranceEnd time.Duration // silence after which UtteranceEnd is sent; 0 means never
	vadEvents    bool
	ended        time.Duration // end of the last word for which UtteranceEnd was sent
	started      int           // number of turns that have begun
}

// newDeepgram returns a recognizer with the settings in the query. As at Deepgram, 10 ms of silence end a turn unless
// the parameter endpointing has another value.
func newDeepgram(q url.Values, l *asrSession) recognizer {
	l.silence = 10 * time.Millisecond
	if ms, err := strconv.Atoi(q.Get("endpointing")); err == nil {
		l.silence = time.Duration(ms) * time.Millisecond
	} else if q.Get("endpointing") == "false" {
		l.silence = 0
	}
	ms, _ := strconv.Atoi(q.Get("utterance_end_ms")) // 0 if the query has none
	return &deepgram{
		model: q.Get("model"), utteranceEnd: time.Duration(ms) * time.Millisecond, vadEvents: q.Get("vad_events") == "true",
	}
}

// refusesModel refuses a request for UnknownModel before the handshake, like Deepgram. It passes other requests to
// next.
func refusesModel(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("model") == UnknownModel {
			const text = "No such model/language/tier combination found."
			w.Header().Set("Dg-Error", text)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(object{"err_code": "INVALID_QUERY_PARAMETER", "err_msg": text, "request_id": "fake"})
			return
		}
		next(w, r)
	}
}

func (*deepgram) read(kind int, b []byte) ([]byte, request) {
	return parseControl(kind, b, "Finalize", "CloseStream")
}

func (d *deepgram) partial(u transcript) any {
	if len(u.words) == 0 {
		u.end = u.upTo // an interim result without words covers all audio so far
	}
	return d.results(u, false)
}

func (d *deepgram) final(u transcript) (now, due []any) {
	m := d.results(u, true)
	m["from_finalize"] = true
	return nil, []any{m}
}

func (d *deepgram) endpoint(u transcript) []any {
	m := d.results(u, true)
	m["speech_final"] = true
	return []any{m}
}

func (d *deepgram) extra(u transcript) []any {
	var all []any
	if d.vadEvents && len(u.words) > 0 && d.started <= u.turn {
		d.started = u.turn + 1
		all = append(all, object{"type": "SpeechStarted", "channel": []int{0}, "timestamp": u.start.Seconds()})
	}
	if d.utteranceEnd > 0 && u.last > d.ended && u.upTo-u.last >= d.utteranceEnd {
		d.ended = u.last
		all = append(all, object{"type": "UtteranceEnd", "channel": []int{0}, "last_word_end": u.last.Seconds()})
	}
	return all
}

func (d *deepgram) bye(u transcript) []any {
	return []any{d.results(u, true), object{
		"type": "Metadata", "transaction_key": "deprecated", "request_id": "fake", "sha256": "", "created": "2026-01-01T00:00:00Z",
		"duration": u.upTo.Seconds(), "channels": 1,
	}}
}

func (d *deepgram) results(u transcript, final bool) object {
	return object{
		"type": "Results", "is_final": final, "speech_final": false, "from_finalize": false,
		"metadata": object{
			"request_id": "fake", "model_uuid": "fake", "model_info": object{"name": d.model, "version": "fake", "arch": "fake"},
		},
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

// eagerSilence is the silence after which Flux reports that a turn has probably ended. It is longer than a word: the
// time since the last word includes a word in progress.
const eagerSilence = 500 * time.Millisecond

// flux is the protocol of Deepgram's Flux. Unlike Flux, it ignores the words: a silence of eot_timeout_ms ends a turn.
type flux struct {
	plain
	session  *asrSession
	started  int // number of turns that have begun
	sequence int
	answers  []any   // responses to Configure that were not sent yet
	eager    float64 // end-of-turn confidence in EagerEndOfTurn; 0 means that it is never sent
	paused   int     // words in the turn at its EagerEndOfTurn; 0 means that none was sent
}

// newFlux returns a recognizer with the settings in the query.
func newFlux(q url.Values, l *asrSession) recognizer {
	ms, err := strconv.Atoi(q.Get("eot_timeout_ms"))
	if err != nil {
		ms = 5000 // default of Flux
	}
	l.silence = time.Duration(ms) * time.Millisecond
	eager, _ := strconv.ParseFloat(q.Get("eager_eot_threshold"), 64) // 0 if the query has none
	return &flux{session: l, eager: eager}
}

func (*flux) hello() any { return object{"type": "Connected", "request_id": "fake", "sequence_id": 0} }

func (f *flux) read(kind int, b []byte) ([]byte, request) {
	if kind == websocket.TextMessage {
		f.configure(b)
	}
	return parseControl(kind, b, "ForceEndTurn", "CloseStream")
}

// configure applies a Configure message. Only eot_timeout_ms has an effect.
func (f *flux) configure(b []byte) {
	var m struct {
		Type       string `json:"type"`
		Thresholds object `json:"thresholds"`
		Keyterms   []any  `json:"keyterms"`
	}
	if json.Unmarshal(b, &m) != nil || m.Type != "Configure" {
		return
	}
	if ms, ok := m.Thresholds["eot_timeout_ms"].(float64); ok {
		f.session.silence = time.Duration(ms) * time.Millisecond
	}
	f.sequence++
	f.answers = append(f.answers, object{
		"type": "ConfigureSuccess", "request_id": "fake", "sequence_id": f.sequence, "thresholds": m.Thresholds, "keyterms": m.Keyterms,
	})
}

func (f *flux) extra(u transcript) []any {
	all := f.answers
	f.answers = nil
	if len(u.words) == 0 {
		f.paused = 0
	} else if f.eager > 0 && f.paused == 0 && u.upTo-u.last >= eagerSilence {
		f.paused = len(u.words)
		all = append(all, f.info(u, "EagerEndOfTurn", f.eager))
	}
	return all
}

func (f *flux) partial(u transcript) any {
	if len(u.words) > 0 && f.started <= u.turn {
		f.started = u.turn + 1
		return f.info(u, "StartOfTurn", 0.1)
	}
	if f.paused > 0 && len(u.words) > f.paused {
		f.paused = 0
		return f.info(u, "TurnResumed", 0.1)
	}
	return f.info(u, "Update", 0.1)
}

func (f *flux) final(u transcript) (now, due []any) {
	if len(u.words) == 0 {
		return nil, nil // no turn is in progress
	}
	m := f.info(u, "EndOfTurn", 0.8)
	m["trigger"] = "manual"
	return nil, []any{m}
}

func (f *flux) endpoint(u transcript) []any {
	m := f.info(u, "EndOfTurn", 0.8)
	m["trigger"] = "timeout"
	return []any{m}
}

func (f *flux) info(u transcript, event string, p float64) object {
	f.sequence++
	return object{
		"type": "TurnInfo", "event": event, "request_id": "fake", "sequence_id": f.sequence, "turn_index": u.turn,
		"transcript": u.texts, "words": secondsWords(u), "end_of_turn_confidence": p,
		"audio_window_start": u.start.Seconds(), "audio_window_end": u.upTo.Seconds(),
	}
}

// assembly is the protocol of AssemblyAI, version 3.
type assembly struct {
	model     string
	heartbeat bool
	formats   bool          // send the end of each turn again with formatted text
	beaten    time.Duration // audio position at the last Heartbeat
}

// newAssembly returns a recognizer with the settings in the query. A silence of max_turn_silence ends a turn.
func newAssembly(q url.Values, l *asrSession) recognizer {
	ms, err := strconv.Atoi(q.Get("max_turn_silence"))
	if err != nil {
		ms = 1000 // default of AssemblyAI
	}
	l.silence = time.Duration(ms) * time.Millisecond
	return &assembly{
		model: q.Get("speech_model"), heartbeat: q.Get("session_heartbeat") == "true", formats: q.Get("format_turns") == "true",
	}
}

func (*assembly) hello() any {
	return object{"type": "Begin", "id": "x", "expires_at": time.Now().Add(3 * time.Hour).Unix()}
}

func (a *assembly) refusal() ([]any, int) {
	if a.model != UnknownModel {
		return nil, 0
	}
	return []any{object{"type": "Error", "error_code": 3006, "error": "Invalid speech_model"}}, 3006
}

func (*assembly) read(kind int, b []byte) ([]byte, request) {
	if kind == websocket.BinaryMessage && len(b) < 8000/20 { // 50 ms of µ-law at 8 kHz
		return nil, nonsense
	}
	return parseControl(kind, b, "ForceEndpoint", "Terminate")
}

func (a *assembly) partial(u transcript) any {
	if len(u.words) == 0 {
		return nil
	}
	return a.message(u, false)
}

func (a *assembly) final(u transcript) (now, due []any) {
	if len(u.words) == 0 {
		return nil, nil
	}
	return nil, a.endpoint(u)
}

func (a *assembly) endpoint(u transcript) []any {
	all := []any{a.message(u, true)}
	if a.formats {
		m := a.message(u, true)
		_, n := utf8.DecodeRuneInString(u.texts)
		m["turn_is_formatted"], m["transcript"] = true, strings.ToUpper(u.texts[:n])+u.texts[n:]+"."
		all = append(all, m)
	}
	return all
}

func (a *assembly) extra(u transcript) []any {
	if !a.heartbeat || u.upTo-a.beaten < time.Second {
		return nil
	}
	a.beaten = u.upTo
	ms := u.upTo.Milliseconds()
	return []any{object{
		"type": "Heartbeat", "total_audio_received_ms": ms, "total_duration_ms": ms, "realtime_factor": 1, "max_speech_probability": 0,
	}}
}

func (*assembly) bye(u transcript) []any {
	return []any{object{
		"type": "Termination", "audio_duration_seconds": u.upTo.Seconds(), "session_duration_seconds": u.upTo.Seconds(),
	}}
}

func (*assembly) message(u transcript, end bool) object {
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
	plain
	sound int    // bytes of audio since the last commit
	model string // empty until the client names the model
	item  int    // number of the current item
	told  int    // number of words of the current item that were sent as deltas
	mulaw func() // called if the client's session.update selects µ-law instead of PCM
}

const transcriptionEvent = "conversation.item.input_audio_transcription."

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
					Transcription struct {
						Model string `json:"model"`
					} `json:"transcription"`
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
		t.model = m.Session.Audio.Input.Transcription.Model
		if m.Session.Audio.Input.Format.Type == "audio/pcmu" {
			t.mulaw()
		}
	}
	return nil, listen
}

func (t *transcription) refusal() ([]any, int) {
	if t.model != UnknownModel {
		return nil, 0
	}
	return []any{object{"type": "error", "error": object{
		"type": "invalid_request_error", "code": "invalid_model", "message": "Unknown model.",
	}}}, websocket.CloseNormalClosure
}

// partial returns the new words of the current item. Only models with "live" in the name send them.
func (t *transcription) partial(u transcript) any {
	if !strings.Contains(t.model, "live") {
		return nil
	}
	if m := t.delta(u); m != nil {
		return m
	}
	return nil
}

// delta returns the words of the current item that were not sent yet, or nil.
func (t *transcription) delta(u transcript) object {
	if u.turn != t.item {
		t.item, t.told = u.turn, 0
	}
	if t.told >= len(u.words) {
		return nil
	}
	var text strings.Builder
	for i, w := range u.words {
		if i >= t.told {
			text.WriteString(" " + w.Text)
		}
	}
	t.told = len(u.words)
	return object{
		"type": transcriptionEvent + "delta", "item_id": fmt.Sprintf("item_%d", u.turn), "content_index": 0, "delta": text.String(),
	}
}

func (t *transcription) final(u transcript) (now, due []any) {
	if t.sound < 800 { // 100 ms of µ-law at 8 kHz
		return []any{object{"type": "error", "error": object{
			"type": "invalid_request_error", "code": "input_audio_buffer_commit_empty", "message": "buffer too small",
		}}}, nil
	}
	t.sound = 0
	item := fmt.Sprintf("item_%d", u.turn)
	if m := t.delta(u); m != nil {
		due = append(due, m)
	}
	due = append(due, object{"type": transcriptionEvent + "completed", "item_id": item, "content_index": 0, "transcript": u.texts})
	return []any{object{"type": "input_audio_buffer.committed", "item_id": item}}, due
}

// transcribe serves OpenAI's realtime transcription. The client's first message contains the audio format.
func (s *Server) transcribe(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("intent") != "transcription" {
		http.Error(w, "intent: want transcription", http.StatusBadRequest)
		return
	}
	t := &transcription{}
	l := &asrSession{recognizer: t, rate: 24000}
	t.mulaw = func() { l.rate, l.mulaw, l.decoder = 8000, true, s.script.newDecoder(8000) }
	s.recognize(w, r, l)
}
