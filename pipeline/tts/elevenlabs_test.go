package tts

import (
	"net/http"
	"net/url"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

// TestElevenLabsRequest checks the parameters of the connection and of its first message.
func TestElevenLabsRequest(t *testing.T) {
	for _, tt := range []struct {
		style pipeline.Style
		path  string
		query url.Values
		first map[string]any
	}{
		{
			pipeline.Style{Rate: 8000, Language: "fil-PH"},
			"/v1/text-to-speech/hpp4J3VqNfWAUOO0d1Us/stream-input",
			url.Values{
				"model_id": {"eleven_flash_v2_5"}, "output_format": {"ulaw_8000"}, "auto_mode": {"true"}, "sync_alignment": {"true"},
				"inactivity_timeout": {"180"}, "language_code": {"fil"},
			},
			map[string]any{"text": " ", "generation_config": map[string]any{"chunk_length_schedule": []any{50.0}}},
		},
		{
			pipeline.Style{Rate: 16000, Model: "eleven_multilingual_v2", Voice: "v", Language: "de", Options: pipeline.Options{
				Speed: 2, Extra: map[string]any{"stability": 0.5, "enable_logging": false, "auto_mode": false},
			}},
			"/v1/text-to-speech/v/stream-input",
			url.Values{
				"model_id": {"eleven_multilingual_v2"}, "output_format": {"pcm_16000"}, "auto_mode": {"true"}, "sync_alignment": {"true"},
				"inactivity_timeout": {"180"}, "enable_logging": {"false"},
			},
			map[string]any{
				"text": " ", "generation_config": map[string]any{"chunk_length_schedule": []any{50.0}},
				"voice_settings": map[string]any{"stability": 0.5, "speed": 1.2},
			},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := fakeprovider.NewNet()
			var first map[string]any
			var asked *url.URL
			srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil); err == nil {
					asked = r.URL
					_ = conn.ReadJSON(&first)
					_ = conn.Close()
				}
			})}
			go func() { _ = srv.Serve(n) }()
			defer func() { _ = srv.Close() }()
			sp, err := ElevenLabs{URL: "ws://fake", Dial: n.Dial}.Open(t.Context(), tt.style)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			_ = sp.Close()
			if asked.Path != tt.path || !reflect.DeepEqual(asked.Query(), tt.query) || !reflect.DeepEqual(first, tt.first) {
				t.Errorf("requested %s\nand sent %v", asked, first)
			}
		})
	}
}

// TestElevenLabsPool checks that a connection with other voice settings is not reused.
func TestElevenLabsPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, got := overhear(t, func(conn *websocket.Conn, m map[string]any) {
			if m["text"] == "" {
				_ = conn.WriteJSON(map[string]any{"isFinal": true})
			}
		})
		e := ElevenLabs{URL: "ws://fake", Dial: n.Dial, Warm: &Pool{}}
		speeds := map[any]int{}
		for _, speed := range []float64{0.9, 1.1} {
			sp, err := e.Open(t.Context(), pipeline.Style{Rate: 8000, Options: pipeline.Options{Speed: speed}})
			if err != nil {
				t.Fatal(err)
			}
			_ = sp.Close()
			synctest.Wait()
		}
		for _, m := range *got {
			if settings, ok := m["voice_settings"].(map[string]any); ok {
				speeds[settings["speed"]]++
			}
		}
		if speeds[0.9] != 2 || speeds[1.1] != 2 { // each of the two voices has used one connection and has one ready
			t.Errorf("connections by speed: %v", speeds)
		}
		_ = e.Warm.Close()
	})
}
