package screen

import (
	"slices"
	"sync"
)

// remembered is of how many lists the last screen is.
const remembered = 64

// A Memory has the last screens of lists, by import. It is safe for concurrent use.
type Memory struct {
	mu  sync.Mutex
	all map[string]found
}

// found is what a screen found, and the stamp of what it was made of.
type found struct {
	stamp   string
	screen  Screen
	matches []Match // the first of them
}

// Of returns the screen of a list and its first matches, if it was made of the same.
func (m *Memory) Of(importID, stamp string) (Screen, []Match, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	x, ok := m.all[importID]
	return x.screen, x.matches, ok && stamp != "" && x.stamp == stamp
}

// Keep remembers a screen in the place of the one before; one without a stamp it does
// not.
func (m *Memory) Keep(importID, stamp string, x Screen, matches []Match) {
	if stamp == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[string]found{}
	}
	if _, there := m.all[importID]; !there && len(m.all) >= remembered {
		for other := range m.all { // whichever it is
			delete(m.all, other)
			break
		}
	}
	m.all[importID] = found{stamp, x, slices.Clone(matches[:min(len(matches), Shown)])}
}
