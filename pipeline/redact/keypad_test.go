package redact

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestKeys(t *testing.T) {
	for pressed, want := range map[string]string{"": "", "5": "5", "42#": "42#", "*#": "*#", "123": "3 keys", "4111#": "5 keys", "4111111111111111#": "17 keys"} {
		if got := Keys(pressed); got != want {
			t.Errorf("%q is stored as %q, want %q", pressed, got, want)
		}
	}
	if got := Mask("42#*1"); got != "00#*0" {
		t.Errorf("masked %q", got)
	}
}

func TestHide(t *testing.T) {
	var p PressedKeys
	if got := p.Redact("call 911 or 4111111111111111"); got != "call 911 or 4111111111111111" {
		t.Errorf("nothing was pressed: %q", got)
	}
	p.Add("4111111111111111#")
	p.Add("1230#")
	for text, want := range map[string]string{
		"got 4111111111111111, thank you":      "got [16 digits], thank you",
		"got 4111 1111-1111.1111.":             "got [16 digits].",
		`{"card":"4111111111111111","n":2}`:    `{"card":"[16 digits]","n":2}`,
		"and 123":                              "and [3 digits]",
		"we open at 9 tomorrow, until 18:30":   "we open at 9 tomorrow, until 18:30",
		"order 987654":                         "order 987654",
		"ending in 1111":                       "ending in [4 digits]",
		"it is 12 euros 30":                    "it is 12 euros 30",
		"x4111111111111111y 00411111111111111": "x[16 digits]y [17 digits]",
	} {
		if got := p.Redact(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// TestNothingIsLeft checks that no run of more than two digits of a pressed number
// remains, however it is written.
func TestNothingIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		card := rapid.StringMatching(`[0-9]{3,19}`).Draw(t, "card")
		var p PressedKeys
		cut := rapid.IntRange(0, len(card)).Draw(t, "cut")
		p.Add(card[:cut])
		p.Add(card[cut:] + "#")
		said := rapid.String().Draw(t, "before") + card + rapid.String().Draw(t, "after")
		got := p.Redact(said)
		if strings.Contains(got, card) {
			t.Fatalf("%q became %q", said, got)
		}
		if zeros := p.Mask(said); len(zeros) != len(said) || strings.Trim(card, "0") != "" && strings.Contains(zeros, card) {
			t.Fatalf("%q became %q", said, zeros)
		}
	})
}
