package rtcp

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestMOS compares with values that were computed by hand from the formulas of G.107 annex B.
func TestMOS(t *testing.T) {
	for _, row := range []struct {
		codec string
		lost  float64
		delay time.Duration
		want  float64
	}{
		{"PCMU", 0, 0, 4.41},
		{"PCMA", 0, 100 * time.Millisecond, 4.36},
		{"PCMU", 0.01, 0, 4.33},
		{"PCMU", 0.05, 20 * time.Millisecond, 3.95},
		{"G722", 0, 0, 4.41},
		{"G722", 0.05, 20 * time.Millisecond, 3.40},
		{"PCMU", 0, 400 * time.Millisecond, 3.11},
		{"PCMU", 1, time.Second, 1},
		{"PCMU", 7, 0, 1.2},
	} {
		if got := MOS(row.codec, row.lost, row.delay); math.Abs(got-row.want) > 0.06 {
			t.Errorf("%s, %v lost, %v: %.2f, want %.2f", row.codec, row.lost, row.delay, got, row.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		lost, delay := rapid.Float64().Draw(t, "lost"), rapid.Int64().Draw(t, "delay")
		got := MOS("PCMU", lost, time.Duration(delay))
		if !(got >= 1 && got <= 4.5) || MOS("PCMU", lost+0.01, time.Duration(delay)) > got+1e-9 && lost >= 0 {
			t.Fatalf("%v", got)
		}
	})
}
