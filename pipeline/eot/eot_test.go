package eot

import "testing"

func TestGuess(t *testing.T) {
	for text, want := range map[string]float64{
		"": 0, "I see.": 0.95, "is it?": 0.95, "i see": 0.7, "well": 0.2, "i think that": 0.2, "first, ": 0.2, "yes": 0.7,
	} {
		if got := (Pause{Text: text}).Guess(); got.P != want || got.Reason == "" {
			t.Errorf("%q: %+v, want %v", text, got, want)
		}
	}
}
