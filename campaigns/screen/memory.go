package screen

import (
	"slices"
	"sync"
)

// remembered is of how many lists the last screen is.
const remembered = 64

// An Age says how a list is screened that is looked at.
type Age uint8

// Ages. What was found before may be old.
const (
	Anew Age = iota // as lists are now
	Kept            // as it was found before, where it was
)

// A Memory has the last screens of lists, by import. It is safe for concurrent use.
type Memory struct {
	mu  sync.Mutex
	all map[string]Found
}

// Found is what a screen found, and the stamp of what it was made of.
type Found struct {
	Stamp   string
	Screen  Screen
	Matches []Match // the first of them
}

// Of returns what was found of a list the last time.
func (m *Memory) Of(importID string) (f Found, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok = m.all[importID]
	return f, ok
}

// Keep remembers what was found in the place of what was before.
func (m *Memory) Keep(importID string, f Found) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[string]Found{}
	}
	if _, there := m.all[importID]; !there && len(m.all) >= remembered {
		for other := range m.all { // whichever it is
			delete(m.all, other)
			break
		}
	}
	f.Matches = slices.Clone(f.Matches[:min(len(f.Matches), Shown)])
	m.all[importID] = f
}
