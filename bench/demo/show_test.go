package demo

import "testing"

func TestReadable(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "",
		"you open at nine":          "you open at nine",
		"do you have the ody~~ssey": "do you have the odyssey",
		"g~great thank you":         "great thank you",
		"hello ~":                   "hello ",
		"~yes~, 2 copies~":          "yes, 2 copies",
		"Ünal~~l":                   "Ünal",
	} {
		if got := readable(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
