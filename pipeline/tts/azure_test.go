package tts

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

func TestAzureVoice(t *testing.T) {
	for _, tt := range []struct{ voice, language, want, locale string }{
		{"", "", "en-US-JennyNeural", "en-US"},
		{"", "kk", "kk-KZ-AigulNeural", "kk-KZ"},
		{"", "ru-RU", "ru-RU-SvetlanaNeural", "ru-RU"},
		{"", "en-GB", "en-GB-SoniaNeural", "en-GB"},
		{"", "en-NZ", "en-US-JennyNeural", "en-US"},
		{"", "no-NO", "nb-NO-PernilleNeural", "nb-NO"},
		{"", "cy", "", ""},
		{"kk-KZ-DauletNeural", "kk-KZ", "kk-KZ-DauletNeural", "kk-KZ"},
		{"kk-KZ-DauletNeural", "ru", "", ""},
		{"en-US-AvaMultilingualNeural", "kk", "en-US-AvaMultilingualNeural", "kk"},
		{"en-US-Ava:DragonHDLatestNeural", "de", "en-US-Ava:DragonHDLatestNeural", "de"},
		{"OurVoiceNeural", "", "OurVoiceNeural", "en-US"},
	} {
		voice, locale, err := azureVoice(pipeline.Style{Voice: tt.voice, Language: tt.language})
		var refused *pipeline.RefusedError
		if voice != tt.want || locale != tt.locale || (tt.want == "") != (errors.As(err, &refused) && refused.IsRequestFault()) {
			t.Errorf("voice %q in %q: %q, %q, %v", tt.voice, tt.language, voice, locale, err)
		}
	}
	for _, v := range azureVoices {
		if azureLocale.FindStringSubmatch(v) == nil {
			t.Errorf("%s has no locale", v)
		}
	}
}

func TestAzureSettings(t *testing.T) {
	warm := 0.7
	got, err := azureContext(pipeline.Style{Rate: 16000, Language: "kk-KZ", Options: pipeline.Options{
		Speed: 1.2, Temperature: &warm, Extra: map[string]any{"style": "chat", "voiceName": "other"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Synthesis struct {
			Audio struct{ OutputFormat string }
			Input map[string]any
		}
	}
	if err := json.Unmarshal([]byte(got), &m); err != nil {
		t.Fatal(err)
	}
	in := m.Synthesis.Input
	if m.Synthesis.Audio.OutputFormat != "raw-16khz-16bit-mono-pcm" || in["rate"] != "+20%" || in["temperature"] != "0.7" ||
		in["style"] != "chat" || in["voiceName"] != "kk-KZ-AigulNeural" || in["language"] != "kk-KZ" {
		t.Errorf("settings %s", got)
	}
	if _, err := azureContext(pipeline.Style{Rate: 11025}); err == nil {
		t.Error("11025 Hz is accepted")
	}
	for region, want := range map[string]string{
		"westeurope": "wss://westeurope.tts.speech.microsoft.com/cognitiveservices/websocket/v2",
		"chinaeast2": "wss://chinaeast2.tts.speech.azure.cn/cognitiveservices/websocket/v2", "": "",
	} {
		if got := azureURL(region); got != want {
			t.Errorf("%q: %s", region, got)
		}
	}
}

// TestCloseCodes checks that a connection closed for the request's fault blames the
// request, with the reason but without the key.
func TestCloseCodes(t *testing.T) {
	for _, tt := range []struct {
		name, reason string
		code, want   int
	}{
		{"azure", "Unsupported voice canary-voice.", websocket.CloseInvalidFramePayloadData, 400},
		{"azure", "Internal", websocket.CloseInternalServerErr, 0},
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

// closing starts a peer that closes each connection after the second message.
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
			if _, _, err := conn.ReadMessage(); err != nil {
				return
			}
		}
		_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason))
		for err == nil {
			_, _, err = conn.ReadMessage() // until the client has answered
		}
	})}
	go func() { _ = srv.Serve(n) }()
	t.Cleanup(func() { _ = srv.Close() })
	return n
}
