package trunks

import "testing"

func TestAttest(t *testing.T) {
	trunk := func(id string, attest map[string]string) Trunk {
		return Trunk{ID: id, Settings: Settings{Attest: attest}}
	}
	const n = "+12025550100"
	for name, row := range map[string]struct {
		trunks []Trunk
		shown  []callerNumber
		want   string
	}{
		"one trunk":                 {[]Trunk{trunk("a", map[string]string{n: "A"})}, []callerNumber{{"a", n}}, "A"},
		"written without a plus":    {[]Trunk{trunk("a", map[string]string{"12025550100": "B"})}, []callerNumber{{"a", n}}, "B"},
		"no level":                  {[]Trunk{trunk("a", nil)}, []callerNumber{{"a", n}}, ""},
		"level of an unused number": {[]Trunk{trunk("a", map[string]string{n: "A"})}, nil, ""},
		"another number":            {[]Trunk{trunk("a", map[string]string{"+12025550199": "A"})}, []callerNumber{{"a", n}}, ""},
		"two trunks with different levels": {
			[]Trunk{trunk("a", map[string]string{n: "A"}), trunk("b", map[string]string{n: "C"})},
			[]callerNumber{{"a", n}, {"b", n}},
			"C",
		},
		"the same in reverse order": {
			[]Trunk{trunk("a", map[string]string{n: "A"}), trunk("b", map[string]string{n: "C"})},
			[]callerNumber{{"b", n}, {"a", n}},
			"C",
		},
		"one without a level":       {[]Trunk{trunk("a", map[string]string{n: "A"}), trunk("b", nil)}, []callerNumber{{"b", n}, {"a", n}}, ""},
		"one without a level, last": {[]Trunk{trunk("a", map[string]string{n: "A"}), trunk("b", nil)}, []callerNumber{{"a", n}, {"b", n}}, ""},
		"one that may not use it":   {[]Trunk{trunk("a", map[string]string{n: "A"}), trunk("b", map[string]string{n: "C"})}, []callerNumber{{"a", n}}, "A"},
	} {
		if got := attestLevels(row.trunks, row.shown)["12025550100"]; got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}
