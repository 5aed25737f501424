package tts

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

func TestSonioxConfig(t *testing.T) {
	got, err := Soniox{Key: "k"}.config(pipeline.Style{Rate: 16000, Options: pipeline.Options{
		Speed: 0.5, Extra: map[string]any{"reduce_silence": true, "model": "other"},
	}}, sonioxLanguage("nb-NO"))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"api_key":"k","audio_format":"pcm_s16le","language":"no","model":"tts-rt-v2","reduce_silence":true,` +
		`"return_timestamps":true,"sample_rate":16000,"speed":0.7,"voice":"Emma"}`
	if b, err := json.Marshal(got); err != nil || string(b) != want {
		t.Errorf("sent %s, %v\nwant %s", b, err, want)
	}
	if _, err := (Soniox{}).config(pipeline.Style{Rate: 22050}, ""); err == nil {
		t.Error("22050 Hz is accepted")
	}
}

// TestSonioxStreams checks that no words are lost and that word times continue in two cases: the
// text pauses, or the answer takes longer than a stream may last.
func TestSonioxStreams(t *testing.T) {
	for _, tt := range []struct {
		name            string
		gap             time.Duration
		pieces, streams int
	}{{"pauses", 12 * time.Second, 4, 4}, {"a long answer", 2 * time.Second, 100, 3}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open("soniox", fakeprovider.Typical())
				defer s.close()
				sp, err := s.Open(t.Context(), pipeline.Style{Rate: 8000})
				if err != nil {
					t.Fatal(err)
				}
				wrote := make(chan error, 1)
				go func() {
					var err error
					for range tt.pieces {
						err = errors.Join(err, sp.Write("this is it now. "))
						<-time.After(tt.gap)
					}
					wrote <- errors.Join(err, sp.Flush())
				}()
				words, samples := 0, 0
				var last time.Duration
				for got, err := range sp.Audio() {
					if err != nil {
						t.Fatal(err)
					}
					samples += len(got.PCM)
					for _, w := range got.Words {
						if words++; w.Start < last {
							t.Errorf("%v starts before %v", w, last)
						}
						last = w.Start
					}
				}
				if err := errors.Join(<-wrote, sp.Close()); err != nil || words != 4*tt.pieces {
					t.Errorf("%d words: %v", words, err)
				}
				if n := sp.(*sonioxSynthesis).streams; n != tt.streams {
					t.Errorf("%d streams, want %d", n, tt.streams)
				}
				if end := time.Duration(samples) * time.Second / 8000; last > end || last < end-time.Second {
					t.Errorf("the last word starts at %v of %v", last, end)
				}
			})
		})
	}
}

// TestSonioxErrors checks that an error of the current stream keeps its status and omits the key,
// and that an error of an earlier stream is ignored.
func TestSonioxErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _ := overhear(t, func(conn *websocket.Conn, m map[string]any) {
			if m["text"] == nil {
				return
			}
			_ = conn.WriteJSON(map[string]any{"stream_id": "7", "error_code": 500, "error_message": "earlier"})
			_ = conn.WriteJSON(map[string]any{"stream_id": m["stream_id"], "error_code": 400, "error_message": "no voice for canary"})
		})
		_, _, err := speak(t.Context(), Soniox{URL: "ws://fake/", Key: "canary", Dial: n.Dial}, 8000, "Good morning.")
		var refused *pipeline.RefusedError
		if !errors.As(err, &refused) || refused.Status != 400 || strings.Contains(err.Error(), "canary") {
			t.Errorf("refused with %v", err)
		}
	})
}

// TestKeepAlive checks that idle connections are kept open as the provider requires.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, got := overhear(t, func(conn *websocket.Conn, m map[string]any) {
			if m["text_end"] == true {
				_ = conn.WriteJSON(map[string]any{"stream_id": m["stream_id"], "terminated": true})
			}
		})
		warm := &Pool{}
		if _, _, err := speak(t.Context(), Soniox{URL: "ws://fake/", Dial: n.Dial, Warm: warm}, 8000, "Good morning."); err != nil {
			t.Fatal(err)
		}
		<-time.After(25 * time.Second)
		if !slices.ContainsFunc(*got, func(m map[string]any) bool { return m["keep_alive"] == true }) {
			t.Errorf("sent %v", *got)
		}
		_ = warm.Close()
	})
}
