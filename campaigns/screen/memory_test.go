package screen

import (
	"strconv"
	"testing"
)

// TestMemory: what was found last is remembered, and not of everything for ever.
func TestMemory(t *testing.T) {
	var m Memory
	if _, ok := m.Of("a"); ok {
		t.Error("what was never found is remembered")
	}
	m.Keep("a", Found{"1", Screen{Matched: 60}, make([]Match, 60)})
	if f, ok := m.Of("a"); !ok || f.Stamp != "1" || f.Screen.Matched != 60 || len(f.Matches) != Shown {
		t.Errorf("%+v, %v", f, ok)
	}
	m.Keep("a", Found{"2", Screen{Matched: 1}, make([]Match, 1)})
	if f, _ := m.Of("a"); f.Stamp != "2" || f.Screen.Matched != 1 {
		t.Errorf("the one before is remembered: %+v", f)
	}
	for n := range 3 * remembered {
		m.Keep(strconv.Itoa(n), Found{Stamp: "1"})
		if _, ok := m.Of(strconv.Itoa(n)); !ok {
			t.Errorf("%d is forgotten at once", n)
		}
	}
	if len(m.all) != remembered {
		t.Errorf("%d are remembered", len(m.all))
	}
}
