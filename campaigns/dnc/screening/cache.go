package screening

import (
	"slices"
	"sync"
)

// cacheSize bounds the cached screenings.
const cacheSize = 64

// A Freshness selects whether a screening may come from the cache.
type Freshness uint8

// Values of Freshness.
const (
	Fresh  Freshness = iota // screen with the current lists
	Cached                  // return the cached screening, even if it is stale
)

// A Cache has the last screenings by import. It is safe for concurrent use.
type Cache struct {
	mu  sync.Mutex
	all map[string]CacheEntry
}

// A CacheEntry is a screening, and a stamp that identifies its input.
type CacheEntry struct {
	Stamp   string
	Screen  Screen
	Matches []Match // the first matches, at most MaxItems
}

// Get returns the last screening of an import.
func (m *Cache) Get(importID string) (f CacheEntry, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok = m.all[importID]
	return f, ok
}

// Put stores a screening. A full cache drops an arbitrary entry.
func (m *Cache) Put(importID string, f CacheEntry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[string]CacheEntry{}
	}
	if _, exists := m.all[importID]; !exists && len(m.all) >= cacheSize {
		for other := range m.all {
			delete(m.all, other)
			break
		}
	}
	f.Matches = slices.Clone(f.Matches[:min(len(f.Matches), MaxItems)])
	m.all[importID] = f
}
