package asr

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// TestSonioxTokens checks the transcript of a caller who mixes Kazakh and Russian in a sentence.
func TestSonioxTokens(t *testing.T) {
	x := sonioxTokens{}
	for _, c := range []struct {
		frame string
		want  string
		words int
		final bool
		upTo  time.Duration // end of the result
	}{
		{`{"tokens":[],"total_audio_proc_ms":120}`, "", 0, false, 0},
		{`{"tokens":[{"text":"Мен","start_ms":100,"end_ms":300},{"text":" за","start_ms":400,"end_ms":500},{"text":"каз","start_ms":500,"end_ms":700}]}`, "Мен заказ", 2, false, 700 * ms},
		{`{"tokens":[{"text":"Мен","start_ms":100,"end_ms":300,"is_final":true,"language":"kk"},{"text":" заказ","start_ms":400,"end_ms":700}]}`, "Мен заказ", 2, false, 700 * ms},
		{`{"tokens":[{"text":" заказ","start_ms":400,"end_ms":700,"is_final":true,"language":"ru"},{"text":" бердім","start_ms":800,"end_ms":1200,"is_final":true},{"text":".","start_ms":1200,"end_ms":1200,"is_final":true},{"text":"<fin>","is_final":true}],"final_audio_proc_ms":1500}`, "Мен заказ бердім.", 3, true, 1500 * ms},
		{`{"tokens":[{"text":"<fin>","is_final":true}],"final_audio_proc_ms":4000}`, "", 0, true, 4 * time.Second},
		{`{"tokens":[{"text":"Алло","start_ms":5000,"end_ms":5400,"is_final":true},{"text":" hello","translation_status":"translation","is_final":true},{"text":"<end>","is_final":true}]}`, "Алло", 1, true, 5400 * ms},
		{`{"tokens":[],"finished":true}`, "", 0, false, 0},
	} {
		h, err := x.parse([]byte(c.frame))
		if err != nil || h.Text != c.want || len(h.Words) != c.words || h.Final != c.final || h.End != c.upTo || h.Start > h.End {
			t.Errorf("%s: %+v, %v", c.frame, h, err)
		}
	}
}

func TestSonioxErrors(t *testing.T) {
	x := sonioxTokens{}
	for frame, want := range map[string]pipeline.RefusedError{
		`{"tokens":[],"error_code":400,"error_message":"Invalid model specified."}`: {Status: http.StatusBadRequest, Text: "Invalid model specified."},
		`{"error_code":"401","error_message":"key"}`:                                {Status: http.StatusUnauthorized, Text: "key"},
		`{"error_code":402,"error_message":"funds"}`:                                {Status: http.StatusPaymentRequired, Text: "funds"},
		`{"error_code":503,"error_message":"Cannot continue request"}`:              {Status: http.StatusServiceUnavailable, Text: "Cannot continue request"},
		`{"error_message":"odd"}`:                                                   {Status: http.StatusInternalServerError, Text: "odd"},
		`{"error_code":[],"error_message":"odd"}`:                                   {Status: http.StatusInternalServerError, Text: "odd"},
	} {
		_, err := x.parse([]byte(frame))
		var refused *pipeline.RefusedError
		if !errors.As(err, &refused) || *refused != want {
			t.Errorf("%s: %v", frame, err)
		}
	}
}

func TestSonioxStart(t *testing.T) {
	wide := streamOf("", "")
	wide.Rate = 16000
	extra := streamOf("stt-rt-v4", "en-US")
	extra.Options.Extra = map[string]any{"api_key": "x", "max_endpoint_delay_ms": 1000}
	for _, c := range []struct {
		stream pipeline.Stream
		want   string
	}{
		{streamOf("", "kk-KZ ru-RU kk", "Parley"), `{"model":"stt-rt-v5","audio_format":"mulaw","sample_rate":8000,"num_channels":1,"enable_endpoint_detection":true,"language_hints":["kk","ru"],"context":{"terms":["Parley"]}}`},
		{wide, `{"model":"stt-rt-v5","audio_format":"pcm_s16le","sample_rate":16000,"num_channels":1,"enable_endpoint_detection":true}`},
		{extra, `{"model":"stt-rt-v4","audio_format":"mulaw","sample_rate":8000,"num_channels":1,"enable_endpoint_detection":true,"language_hints":["en"],"max_endpoint_delay_ms":1000}`},
	} {
		text, err := sonioxStart(c.stream)
		var got, want any
		if err = errors.Join(err, json.Unmarshal([]byte(text), &got), json.Unmarshal([]byte(c.want), &want)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s, %v\nwant %s", text, err, c.want)
		}
	}
}
