package screen

import (
	"strconv"
	"testing"
)

// TestMemory: a screen is remembered for what it was made of, and not for ever.
func TestMemory(t *testing.T) {
	var m Memory
	m.Keep("a", "", Screen{}, nil)
	if _, _, ok := m.Of("a", ""); ok {
		t.Error("without a stamp it is remembered")
	}
	m.Keep("a", "1", Screen{Matched: 60}, make([]Match, 60))
	if x, all, ok := m.Of("a", "1"); !ok || x.Matched != 60 || len(all) != Shown {
		t.Errorf("%+v, %d, %v", x, len(all), ok)
	}
	m.Keep("a", "2", Screen{Matched: 1}, make([]Match, 1))
	if _, _, ok := m.Of("a", "1"); ok {
		t.Error("the one before is remembered")
	}
	for n := range 3 * remembered {
		m.Keep(strconv.Itoa(n), "1", Screen{}, nil)
		if _, _, ok := m.Of(strconv.Itoa(n), "1"); !ok {
			t.Errorf("%d is forgotten at once", n)
		}
	}
	if len(m.all) != remembered {
		t.Errorf("%d are remembered", len(m.all))
	}
}
