package screening

import (
	"strconv"
	"testing"
)

// TestCache checks that the cache returns the last screening and stays bounded.
func TestCache(t *testing.T) {
	var m Cache
	if _, ok := m.Get("a"); ok {
		t.Error("an empty cache returns a screening")
	}
	m.Put("a", CacheEntry{"1", Screen{Matched: 60}, make([]Match, 60)})
	if f, ok := m.Get("a"); !ok || f.Stamp != "1" || f.Screen.Matched != 60 || len(f.Matches) != MaxItems {
		t.Errorf("%+v, %v", f, ok)
	}
	m.Put("a", CacheEntry{"2", Screen{Matched: 1}, make([]Match, 1)})
	if f, _ := m.Get("a"); f.Stamp != "2" || f.Screen.Matched != 1 {
		t.Errorf("the previous screening is still cached: %+v", f)
	}
	for n := range 3 * cacheSize {
		m.Put(strconv.Itoa(n), CacheEntry{Stamp: "1"})
		if _, ok := m.Get(strconv.Itoa(n)); !ok {
			t.Errorf("screening %d is not cached", n)
		}
	}
	if len(m.all) != cacheSize {
		t.Errorf("%d screenings are cached, want %d", len(m.all), cacheSize)
	}
}
