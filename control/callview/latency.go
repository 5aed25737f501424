package callview

import (
	"encoding/json"
	"math"
	"slices"
)

// Latency summarizes the latency of a call's turns by phase. A phase that was never measured is null.
type Latency struct {
	Turns  int          `json:"turns"`
	TurnMS *Percentiles `json:"turn_ms"`
	LLMMS  *Percentiles `json:"llm_ms"`
	TTSMS  *Percentiles `json:"tts_ms"`
	ASRMS  *Percentiles `json:"asr_ms"`
}

// Percentiles are the median and the 95th percentile of a phase, in milliseconds.
type Percentiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
}

// A Turn describes an item of GET /v1/calls/{id}/turns. The JSON itself is that of pipeline.Turn.
type Turn struct {
	Turn        int         `json:"turn"`
	Metrics     TurnMetrics `json:"metrics"`
	Ending      string      `json:"ending"`
	Reason      string      `json:"reason"`
	Interrupted bool        `json:"interrupted,omitempty"`
	MergedFrom  int         `json:"merged_from,omitempty"`
}

// TurnMetrics are the phases of a turn that occurred, in milliseconds, and what its answer used.
type TurnMetrics struct {
	JitterMS     float64            `json:"jitter_ms,omitempty"`
	VADMS        float64            `json:"vad_ms,omitempty"`
	ASRMS        float64            `json:"asr_ms,omitempty"`
	ClassifierMS float64            `json:"classifier_ms,omitempty"`
	EOUWaitMS    float64            `json:"eou_wait_ms,omitempty"`
	LLMMS        float64            `json:"llm_ms,omitempty"`
	ToolMS       float64            `json:"tool_ms,omitempty"`
	TTSMS        float64            `json:"tts_ms,omitempty"`
	OutMS        float64            `json:"out_ms,omitempty"`
	TurnMS       float64            `json:"turn_ms,omitempty"`
	TokensIn     int                `json:"llm_tokens_in,omitempty"`
	TokensOut    int                `json:"llm_tokens_out,omitempty"`
	Characters   int                `json:"tts_chars,omitempty"`
	Estimated    bool               `json:"estimated,omitempty"`
	Raw          map[string]float64 `json:"raw"`
}

func latency(turns []json.RawMessage) Latency {
	phases := map[string][]float64{"turn_ms": nil, "llm_ms": nil, "tts_ms": nil, "asr_ms": nil}
	for _, item := range turns {
		var t struct {
			Metrics map[string]any `json:"metrics"`
		}
		if json.Unmarshal(item, &t) != nil {
			continue // skip an unreadable turn
		}
		for p := range phases {
			if ms, ok := t.Metrics[p].(float64); ok {
				phases[p] = append(phases[p], ms)
			}
		}
	}
	of := func(p string) *Percentiles {
		all := phases[p]
		if len(all) == 0 {
			return nil
		}
		slices.Sort(all)
		return &Percentiles{percentile(all, 50), percentile(all, 95)}
	}
	return Latency{Turns: len(turns), TurnMS: of("turn_ms"), LLMMS: of("llm_ms"), TTSMS: of("tts_ms"), ASRMS: of("asr_ms")}
}

// percentile returns the p-th percentile of the sorted values, by the nearest-rank method.
func percentile(sorted []float64, p float64) float64 {
	i := int(math.Ceil(p/100*float64(len(sorted)))) - 1
	return sorted[max(i, 0)]
}
