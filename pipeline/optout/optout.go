// Package optout notices that a party asks not to be called again: by what it says,
// or by a key. It is pure; times count from the answer of the call.
package optout

import (
	"strings"
	"time"
	"unicode"
)

const (
	// Apart is how long a key must be alone, before and after, to be no part of a
	// number that is being pressed.
	Apart = 1500 * time.Millisecond
	// recent is how long words belong to those after them, and most how many do.
	recent = 8 * time.Second
	most   = 60
)

// A Watch listens to one call. It belongs to one goroutine.
type Watch struct {
	key     string
	phrases []string
	english *English

	run     string        // of keys without a pause
	last    time.Duration // when the last of them was pressed
	words   []said        // final ones
	partial string
}

type said struct {
	text string
	at   time.Duration
}

// New makes a watch for a key, empty for none, and for phrases beside those of
// English.
func New(e *English, key string, phrases []string) *Watch {
	w := &Watch{key: key, english: e}
	for _, p := range phrases {
		if p = plain(p); p != "" {
			w.phrases = append(w.phrases, p)
		}
	}
	return w
}

// Key is told of a key that was pressed at a moment. It tells whether it may be
// the one; Alone then says so, Apart later.
func (w *Watch) Key(k rune, at time.Duration) (may bool) {
	if w.run == "" || at-w.last >= Apart {
		w.run = ""
	}
	w.run, w.last = w.run+string(k), at
	return w.asks()
}

func (w *Watch) asks() bool { return w.key != "" && w.run != "" && strings.Trim(w.run, w.key) == "" }

// Alone tells whether the key was pressed, and nothing else with it.
func (w *Watch) Alone(now time.Duration) bool { return w.asks() && now-w.last >= Apart }

// Heard is told what the party said. It returns the words that ask not to be
// called again. What the agent itself says just then, and a line returns, is
// nobody's request.
func (w *Watch) Heard(text string, final bool, at time.Duration, agent string) (string, bool) {
	if !final {
		w.partial = text
		return "", false
	}
	w.partial = ""
	for len(w.words) > 0 && (at-w.words[0].at > recent || len(w.words) >= most) {
		w.words = w.words[1:]
	}
	w.words = append(w.words, said{text, at})
	return w.find("", agent)
}

// Left tells, of a call that is over, whether its last key or words asked not to
// be called again: there was no time to be sure.
func (w *Watch) Left(agent string) (words string, key, ok bool) {
	if w.asks() {
		return "", true, true
	}
	if w.partial == "" {
		return "", false, false
	}
	words, ok = w.find(w.partial, agent)
	return words, false, ok
}

// Said are the party's last words.
func (w *Watch) Said() string {
	if n := len(w.words); n > 0 {
		return w.words[n-1].text
	}
	return w.partial
}

func (w *Watch) find(more, agent string) (string, bool) {
	var all []string
	for _, s := range w.words {
		all = append(all, s.text)
	}
	text := plain(strings.Join(append(all, more), " "))
	found, ok := w.english.find(text)
	for _, p := range w.phrases {
		if !ok && strings.Contains(" "+strings.ReplaceAll(text, " .", "")+" ", " "+p+" ") {
			found, ok = p, true
		}
	}
	if !ok || strings.Contains(" "+plain(agent)+" ", " "+found+" ") {
		return "", false
	}
	return found, true
}

// plain is a text in small letters, a space between two words, apostrophes left
// out, and a dot for the end of a sentence.
func plain(text string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case r == '\'' || r == '’':
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
			b.WriteRune(r)
		case strings.ContainsRune(".!?;:…", r):
			b.WriteString(" . ")
		default:
			b.WriteByte(' ')
		}
	}
	return strings.Trim(strings.Join(strings.Fields(b.String()), " "), " .")
}
