package control

import "testing"

func TestDidYouMean(t *testing.T) {
	names := []string{"allowed_destinations", "caller_numbers", "carrier", "name", "proxy", "realm", "register", "limits", "subgroups", "tts"}
	for word, want := range map[string]string{
		"carier": "did you mean carrier?", "Carrier": "did you mean carrier?", "limit": "did you mean limits?",
		"destinations": "did you mean allowed_destinations?", "reg": "", "coffee": "", "": "", "ttx": "did you mean tts?",
		"number": "did you mean caller_numbers?",
	} {
		if got := DidYouMean(word, names); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
	for _, d := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"kitten", "sitting", 3}, {"abc", "abc", 0}, {"abc", "acb", 2}} {
		if got := editDistance(d.a, d.b); got != d.want {
			t.Errorf("%q and %q are %d apart, want %d", d.a, d.b, got, d.want)
		}
	}
	for value, want := range map[string]bool{"change-me": true, "sip:Change-Me.example.com": true, "changeme": false, "": false} {
		if HasPlaceholder(value) != want {
			t.Errorf("%q: not %t", value, want)
		}
	}
}
