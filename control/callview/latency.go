package callview

import (
	"encoding/json"
	"math"
	"slices"
)

// latencyPhases are the names of the measured phases of a turn.
var latencyPhases = []string{"turn_ms", "llm_ms", "tts_ms", "asr_ms"} //nolint:gochecknoglobals // read-only table

// latency summarizes the latency of a call's turns by phase. A phase that was never measured is null.
func latency(turns []json.RawMessage) map[string]any {
	phases := map[string][]float64{}
	for _, item := range turns {
		var t struct {
			Metrics map[string]any `json:"metrics"`
		}
		if json.Unmarshal(item, &t) != nil {
			continue // skip an unreadable turn
		}
		for _, p := range latencyPhases {
			if ms, ok := t.Metrics[p].(float64); ok {
				phases[p] = append(phases[p], ms)
			}
		}
	}
	out := map[string]any{"turns": len(turns)}
	for _, p := range latencyPhases {
		out[p] = nil
		if all := phases[p]; len(all) > 0 {
			slices.Sort(all)
			out[p] = map[string]float64{"p50": percentile(all, 50), "p95": percentile(all, 95)}
		}
	}
	return out
}

// percentile returns the p-th percentile of the sorted values, by the nearest-rank method.
func percentile(sorted []float64, p float64) float64 {
	i := int(math.Ceil(p/100*float64(len(sorted)))) - 1
	return sorted[max(i, 0)]
}
