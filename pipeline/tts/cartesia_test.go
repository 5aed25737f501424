package tts

import (
	"encoding/json"
	"testing"

	"github.com/parley-voice/parley/pipeline"
)

func TestCartesiaRequest(t *testing.T) {
	for _, tt := range []struct {
		style pipeline.Style
		want  string
	}{
		{
			pipeline.Style{Rate: 8000},
			`{"add_timestamps":true,"context_id":"u1","continue":true,"max_buffer_delay_ms":0,"model_id":"sonic-3.5",` +
				`"output_format":{"container":"raw","encoding":"pcm_mulaw","sample_rate":8000},"transcript":"Hello. ",` +
				`"use_normalized_timestamps":false,` +
				`"voice":{"id":"f786b574-daa5-4673-aa0c-cbe3e8534c02","mode":"id"}}`,
		},
		{
			pipeline.Style{Rate: 16000, Model: "sonic-3", Voice: "v", Language: "nb-NO", Options: pipeline.Options{
				Speed: 2, Extra: map[string]any{"emotion": "calm", "max_buffer_delay_ms": 100, "model_id": "other"},
			}},
			`{"add_timestamps":true,"context_id":"u1","continue":true,"generation_config":{"emotion":"calm","speed":1.5},` +
				`"language":"no","max_buffer_delay_ms":100,"model_id":"sonic-3",` +
				`"output_format":{"container":"raw","encoding":"pcm_s16le","sample_rate":16000},"transcript":"Hello. ",` +
				`"use_normalized_timestamps":false,` +
				`"voice":{"id":"v","mode":"id"}}`,
		},
	} {
		if got, err := json.Marshal(cartesiaRequest(tt.style, "u1", "Hello. ", true)); err != nil || string(got) != tt.want {
			t.Errorf("sent %s, %v\nwant %s", got, err, tt.want)
		}
	}
}
