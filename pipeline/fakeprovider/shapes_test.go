package fakeprovider

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

// post returns the status and the body of the response to a request.
func post(t *testing.T, s *Server, path, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addr()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// TestWholeAnswers checks, for each model protocol, a text and a tool call in one JSON document.
func TestWholeAnswers(t *testing.T) {
	script := Script{Call: func([]Message) (name, arguments string) { return "look_up", `{"order":"42"}` }}
	s, err := Start(t.Context(), "127.0.0.1:0", script)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for _, c := range []struct{ path, body, text, call string }{
		{
			"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`,
			`"content":"you said hi"`, `"finish_reason":"tool_calls"`,
		},
		{"/v1/responses", `{"model":"m","input":"hi"}`, `"text":"you said hi"`, `"arguments":"{\"order\":\"42\"}"`},
		{
			"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`,
			`"text":"you said hi"`, `"input":{"order":"42"}`,
		},
		{
			"/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
			`"text":"hi"`, `"args":{"order":"42"}`,
		},
	} {
		status, got := post(t, s, c.path, c.body)
		if status != http.StatusOK || !strings.Contains(got, c.text) || !strings.Contains(got, c.call) || strings.Contains(got, "data:") {
			t.Errorf("%s: %d, %s; want %s and %s", c.path, status, got, c.text, c.call)
		}
	}
	if _, got := post(t, s, "/v1/responses", `{"model":"m","input":"hi","stream":true}`); !strings.Contains(got, "event: response.in_progress\n") {
		t.Errorf("events: %s", got)
	}
}

// TestSpeechOfWholeTexts checks ElevenLabs' speech over plain HTTP.
func TestSpeechOfWholeTexts(t *testing.T) {
	s, err := Start(t.Context(), "127.0.0.1:0", Script{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	const path, text = "/v1/text-to-speech/v", `{"text":"one"}`
	_, pcm := post(t, s, path+"?output_format=pcm_16000", text)
	_, stream := post(t, s, path+"/stream?output_format=ulaw_8000", text)
	if len(pcm) == 0 || len(pcm) != 4*len(stream) {
		t.Errorf("%d bytes of PCM at 16 kHz, %d of µ-law at 8 kHz", len(pcm), len(stream))
	}
	if status, got := post(t, s, path, text); status != http.StatusBadRequest || !strings.Contains(got, "cannot be made") {
		t.Errorf("without a format: %d, %s", status, got)
	}
}

// TestSSML checks that Azure speaks the text within SSML, and that settings without a voice are accepted.
func TestSSML(t *testing.T) {
	conn := connect(t, "/tts/cognitiveservices/websocket/v1")
	const head = "X-RequestId:1\r\nPath:"
	send(t, conn, head+"synthesis.context\r\n\r\n"+`{"synthesis":{"audio":{"outputFormat":"raw-8khz-8bit-mono-mulaw"}}}`,
		head+"ssml\r\n\r\n<speak version='1.0'><voice name='v'>one <prosody>two</prosody></voice></speak>")
	var words []string
	for {
		kind, b, err := conn.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		head, body, _ := strings.Cut(string(b), "\r\n\r\n")
		if path := azureHeader(head, "Path"); path == "turn.end" {
			break
		} else if kind == websocket.TextMessage && path == "audio.metadata" {
			_, word, _ := strings.Cut(body, `"Text":"`)
			word, _, _ = strings.Cut(word, `"`)
			words = append(words, word)
		}
	}
	if want := []string{"one", "two"}; !slices.Equal(words, want) {
		t.Errorf("%q; want %q", words, want)
	}
	if got := textOfSSML("<speak>one<"); got != "" {
		t.Errorf("malformed: %q", got)
	}
}

// TestConfigure checks that Configure changes the silence after which Flux ends a turn.
func TestConfigure(t *testing.T) {
	conn := connect(t, "/v2/listen?encoding=linear16&sample_rate=8000&eot_timeout_ms=5000")
	send(t, conn, `{"type":"Configure","thresholds":{"eot_timeout_ms":500}}`)
	until(t, conn, func(m map[string]any) bool { return m["type"] == "ConfigureSuccess" && m["sequence_id"] == 1.0 })
	for pcm := sentencePCM(8000); len(pcm) >= 800; pcm = pcm[800:] {
		if err := conn.WriteMessage(websocket.BinaryMessage, littleEndian(pcm[:800])); err != nil {
			t.Fatal(err)
		}
	}
	until(t, conn, func(m map[string]any) bool { return m["event"] == "EndOfTurn" && m["trigger"] == "timeout" })
}

// TestFormattedTurns checks that AssemblyAI sends the end of a turn again with formatted text.
func TestFormattedTurns(t *testing.T) {
	conn := connect(t, "/v3/ws?encoding=pcm_s16le&sample_rate=8000&format_turns=true&max_turn_silence=500")
	for pcm := sentencePCM(8000); len(pcm) >= 800; pcm = pcm[800:] {
		if err := conn.WriteMessage(websocket.BinaryMessage, littleEndian(pcm[:800])); err != nil {
			t.Fatal(err)
		}
	}
	var ends []any
	until(t, conn, func(m map[string]any) bool {
		if m["end_of_turn"] == true {
			ends = append(ends, m["transcript"])
		}
		return m["turn_is_formatted"] == true
	})
	if want := []any{"hello there friend", "Hello there friend."}; !slices.Equal(ends, want) {
		t.Errorf("%q; want %q", ends, want)
	}
}

// TestSegmentation checks that Azure ends a phrase after the silence that the query specifies.
func TestSegmentation(t *testing.T) {
	conn := connect(t, "/stt/speech/universal/v2?segmentationSilenceTimeoutMs=500")
	const head = "X-RequestId:1\r\nPath:"
	send(t, conn, head+"speech.config\r\n\r\n{}", head+"speech.context\r\n\r\n{}")
	audio := func(kind string, b []byte) {
		head := head + "audio\r\nContent-Type:audio/" + kind + "\r\n"
		all := append([]byte{0, byte(len(head))}, head...)
		if err := conn.WriteMessage(websocket.BinaryMessage, append(all, b...)); err != nil {
			t.Fatal(err)
		}
	}
	audio("x-wav", sentenceWAV()[:wavHead])
	for pcm := sentencePCM(sdkRate); len(pcm) >= 1600; pcm = pcm[1600:] {
		audio("x-raw", littleEndian(pcm[:1600]))
	}
	for {
		_, b, err := conn.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "Path:speech.phrase") && strings.Contains(string(b), "hello there friend") {
			return
		}
	}
}

// TestResumedTurn checks that a caller can continue a turn after EagerEndOfTurn.
func TestResumedTurn(t *testing.T) {
	conn := connect(t, "/v2/listen?encoding=linear16&sample_rate=8000&eager_eot_threshold=0.4")
	for range 2 {
		for pcm := sentencePCM(8000)[:10400]; len(pcm) >= 800; pcm = pcm[800:] {
			if err := conn.WriteMessage(websocket.BinaryMessage, littleEndian(pcm[:800])); err != nil {
				t.Fatal(err)
			}
		}
	}
	var events []any
	until(t, conn, func(m map[string]any) bool {
		if e := m["event"]; e == "EagerEndOfTurn" || e == "TurnResumed" {
			events = append(events, e)
		}
		return len(events) == 3
	})
	if want := []any{"EagerEndOfTurn", "TurnResumed", "EagerEndOfTurn"}; !slices.Equal(events, want) {
		t.Errorf("%v; want %v", events, want)
	}
}
