package tts

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

func TestYandexRequest(t *testing.T) {
	for _, tt := range []struct {
		style pipeline.Style
		want  string
	}{
		{
			pipeline.Style{Language: "kk-KZ"},
			`{"hints":[{"voice":"amira"}],"loudnessNormalizationType":"LUFS",` +
				`"outputAudioSpec":{"rawAudio":{"audioEncoding":"LINEAR16_PCM","sampleRateHertz":"8000"}},"text":"Sälem."}`,
		},
		{
			pipeline.Style{Voice: "jane", Model: "m", Options: pipeline.Options{
				Speed: 1.3, Extra: map[string]any{"role": "good", "loudnessNormalizationType": "MAX_PEAK", "text": "other"},
			}},
			`{"hints":[{"voice":"jane"},{"speed":1.3},{"role":"good"}],"loudnessNormalizationType":"MAX_PEAK","model":"m",` +
				`"outputAudioSpec":{"rawAudio":{"audioEncoding":"LINEAR16_PCM","sampleRateHertz":"8000"}},"text":"Sälem."}`,
		},
	} {
		var err error
		if tt.style.Voice, err = yandexVoice(tt.style); err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(yandexRequest(tt.style, 8000, "Sälem.")); err != nil || string(got) != tt.want {
			t.Errorf("sent %s, %v\nwant %s", got, err, tt.want)
		}
	}
	if long := yandexRequest(pipeline.Style{}, 8000, strings.Repeat("ә", 251)); long["unsafeMode"] != true {
		t.Error("a phrase of 251 characters is sent as a safe one")
	}
}

// TestYandexErrors checks the HTTP statuses of errors within the stream.
func TestYandexErrors(t *testing.T) {
	for line, want := range map[string]int{
		`{"error":{"grpcCode":3,"httpCode":400,"message":"no such voice"}}`: 400,
		`{"error":{"code":8,"message":"limit"}}`:                            429,
		`{"error":{"code":13,"message":"internal"}}`:                        0,
	} {
		_, err := io.ReadAll(&yandexReader{lines: bufio.NewScanner(strings.NewReader(line + "\n"))})
		var refused *pipeline.RefusedError
		if errors.As(err, &refused); err == nil || (refused != nil) != (want != 0) || refused != nil && refused.Status != want {
			t.Errorf("%s: %v, want %d", line, err, want)
		}
	}
}

// TestRetime checks that provider times are used only if the provider reports every word.
func TestRetime(t *testing.T) {
	timed := []pipeline.Word{{Text: "half", End: time.Second}, {Text: "past", Start: time.Second, End: 2 * time.Second}}
	words := spreadWords("half past.", 0, 10*time.Second)
	retime(words, timed, time.Minute)
	if words[1] != (pipeline.Word{Text: "past.", Start: time.Minute + time.Second, End: time.Minute + 2*time.Second}) {
		t.Errorf("words %v", words)
	}
	words = spreadWords("3:30", 0, 10*time.Second)
	retime(words, timed, time.Minute)
	if words[0].End != 10*time.Second {
		t.Errorf("a number that is spelled out: %v", words)
	}
}
