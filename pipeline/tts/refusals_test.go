package tts

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

// TestCloseCodes checks the HTTP status of the error for each close code, and that no error shows the key.
func TestCloseCodes(t *testing.T) {
	for _, tt := range []struct {
		name, reason string
		code, want   int
	}{
		{"azure", "Unsupported voice canary-voice.", websocket.CloseInvalidFramePayloadData, 400},
		{"azure", "Internal", websocket.CloseInternalServerErr, 0},
		{"azure", "The key canary is disabled.", websocket.CloseInternalServerErr, 0},
		{"elevenlabs", "The key canary is disabled.", websocket.CloseTryAgainLater, 0},
		{"deepgram", "The key canary is disabled.", websocket.CloseInternalServerErr, 0},
		{"deepgram", "DATA-0000", websocket.ClosePolicyViolation, 400},
		{"deepgram", "NET-0001", websocket.CloseInternalServerErr, 0},
		{"elevenlabs", "message too big", websocket.CloseMessageTooBig, 400},
		{"elevenlabs", "A voice with the id canary does not exist", websocket.ClosePolicyViolation, 400},
		{"elevenlabs", "This request exceeds your quota of 10000.", websocket.ClosePolicyViolation, 402},
		{"elevenlabs", "We are sorry, something went wrong.", websocket.ClosePolicyViolation, 0},
		{"elevenlabs", "Have not received a new text input within the timeout of 20 seconds.", websocket.ClosePolicyViolation, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := closing(t, tt.code, tt.reason)
			voice := map[string]pipeline.Voice{
				"azure":      Azure{URL: "ws://fake/", Key: "canary", Dial: n.Dial},
				"elevenlabs": ElevenLabs{URL: "ws://fake", Key: "canary", Dial: n.Dial},
				"deepgram":   Deepgram{URL: "ws://fake/", Key: "canary", Dial: n.Dial},
			}[tt.name]
			_, _, err := speak(t.Context(), voice, 8000, "Good morning.")
			var refused *pipeline.RefusedError
			if errors.As(err, &refused); err == nil || (refused != nil) != (tt.want != 0) || refused != nil && refused.Status != tt.want ||
				strings.Contains(err.Error(), "canary") {
				t.Errorf("%s closes with %d %q: %v", tt.name, tt.code, tt.reason, err)
			}
		})
	}
}

// TestNameOfAVoice checks that a voice name such as "quota" in a refusal is not read as a fault of
// the account, which would open the circuit breaker for all agents.
func TestNameOfAVoice(t *testing.T) {
	for _, name := range []string{"quota", "my_api_key", "concurrency"} {
		synctest.Test(t, func(t *testing.T) {
			n := closing(t, websocket.ClosePolicyViolation, "A voice with the id "+name+" does not exist")
			sp, err := ElevenLabs{URL: "ws://fake", Key: "canary", Dial: n.Dial}.Open(t.Context(), pipeline.Style{Rate: 8000, Voice: name})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = sp.Close() }()
			_, _ = sp.Write("Good morning."), sp.Flush() // the provider may have closed the connection already
			for _, broke := range sp.Audio() {
				err = broke
			}
			var refused *pipeline.RefusedError
			if !errors.As(err, &refused) || !refused.IsRequestFault() {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// closing starts a fake provider that closes each connection after the second message.
func closing(t *testing.T, code int, reason string) *fakeprovider.Net {
	t.Helper()
	n := fakeprovider.NewNet()
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		for range 2 {
			if _, _, err = conn.ReadMessage(); err != nil {
				return
			}
		}
		_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason))
		for err == nil {
			_, _, err = conn.ReadMessage() // wait until the client has answered the close
		}
	})}
	go func() { _ = srv.Serve(n) }()
	t.Cleanup(func() { _ = srv.Close() })
	return n
}

// TestLanguages checks that a voice refuses a language that its model does not speak. The error
// states a fault of the request and comes before any connection.
func TestLanguages(t *testing.T) {
	for _, tt := range []struct {
		voice                 pipeline.Voice
		model, name, language string
		accepted              bool
	}{
		{&Cartesia{}, "", "", "kk-KZ", false},
		{&Cartesia{}, "", "", "ru-RU", true},
		{&Cartesia{}, "sonic-2", "", "ru", false},
		{&Cartesia{}, "sonic-turbo", "", "hi-IN", true},
		{&Cartesia{}, "sonic-9", "", "kk", true},
		{ElevenLabs{}, "", "", "kk", false},
		{ElevenLabs{}, "", "", "ru-RU", true},
		{ElevenLabs{}, "eleven_multilingual_v2", "", "hu", false},
		{ElevenLabs{}, "eleven_flash_v2", "", "de", false},
		{ElevenLabs{}, "eleven_flash_v2_5", "", "nb-NO", true},
		{ElevenLabs{}, "eleven_new", "", "kk", true},
		{Soniox{}, "", "", "ky", false},
		{Soniox{}, "", "", "kk-KZ", true},
		{Deepgram{}, "", "", "ru-RU", false},
		{Deepgram{}, "", "", "de-AT", true},
		{Deepgram{}, "", "aura-2-thalia-en", "de", false},
		{Deepgram{}, "aura-2-thalia-en", "", "en-GB", true},
		{Deepgram{}, "", "aura-2-selena-es", "en", true},
		{Deepgram{}, "", "our-voice", "ru", true},
		{Yandex{}, "", "", "ky-KG", false},
		{Yandex{}, "", "saule", "ru", false},
		{Yandex{}, "", "alena", "ru", true},
		{Yandex{}, "", "our_brand", "ky", true},
		{Azure{Region: "x"}, "", "kk-KZ-AigulNeural", "ru", false},
	} {
		ctx := canceled(t)
		_, err := tt.voice.Open(ctx, pipeline.Style{Rate: 8000, Model: tt.model, Voice: tt.name, Language: tt.language})
		var refused *pipeline.RefusedError
		if errors.As(err, &refused); (refused == nil) != tt.accepted || refused != nil && !refused.IsRequestFault() {
			t.Errorf("%T with model %q and voice %q in %s: %v", tt.voice, tt.model, tt.name, tt.language, err)
		}
	}
}

// TestEndlessWords checks that an endless stream of words without audio causes an error.
func TestEndlessWords(t *testing.T) {
	words := strings.TrimSuffix(strings.Repeat(`"w",`, 1000), ",")
	times := strings.TrimSuffix(strings.Repeat("0,", 1000), ",")
	m, err := parseCartesia([]byte(`{"type":"timestamps","word_timestamps":{"words":[` + words + `],"start":[` + times + `],"end":[` + times + `]}}`))
	if err != nil {
		t.Fatal(err)
	}
	u := &cartesiaSynthesis{wake: make(chan struct{}, 1), style: pipeline.Style{Rate: 8000}}
	for range 1000 {
		u.onMessage(m)
	}
	if u.err == nil {
		t.Errorf("%d messages wait", len(u.unread))
	}
	timings := strings.TrimSuffix(strings.Repeat(`{"word":"w"},`, 1000), ",")
	line := `{"result":{"audioChunk":{},"wordTimings":[` + timings + "]}}\n"
	y := &yandexReader{lines: bufio.NewScanner(strings.NewReader(strings.Repeat(line, 100)))}
	y.lines.Buffer(nil, maxYandexLine)
	if _, err := io.ReadAll(y); err == nil {
		t.Errorf("%d words wait", len(y.words))
	}
}
