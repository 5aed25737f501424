// Package optout detects requests not to be called again, by speech or by a key. It is
// pure; times count from the answer of the call.
package optout

import (
	"strings"
	"time"
	"unicode"
)

const (
	// KeyIsolation is the time without other keys, before and after, that a key needs to
	// be an opt-out and not part of a number.
	KeyIsolation = 1500 * time.Millisecond
	// window and maxTranscripts bound the final transcripts in which a request is searched: their age and their
	// number.
	window         = 8 * time.Second
	maxTranscripts = 60
)

// A Detector monitors one call. It belongs to one goroutine.
type Detector struct {
	key     string
	phrases []string
	english *English

	run     string        // keys pressed without a pause between them
	last    time.Duration // time of the last key
	words   []transcript  // final transcripts
	partial string
}

type transcript struct {
	text string
	at   time.Duration
}

// New returns a detector for a key, empty for none, and for phrases in addition to the
// English rules.
func New(e *English, key string, phrases []string) *Detector {
	w := &Detector{key: key, english: e}
	for _, p := range phrases {
		if p = normalize(p); p != "" {
			w.phrases = append(w.phrases, p)
		}
	}
	return w
}

// OnKey handles a pressed key. It reports whether the key may be an opt-out; IsKeyConfirmed
// decides after KeyIsolation.
func (w *Detector) OnKey(k rune, at time.Duration) (may bool) {
	if w.run == "" || at-w.last >= KeyIsolation {
		w.run = ""
	}
	w.run, w.last = w.run+string(k), at
	return w.isOptOutKey()
}

func (w *Detector) isOptOutKey() bool {
	return w.key != "" && w.run != "" && strings.Trim(w.run, w.key) == ""
}

// IsKeyConfirmed reports whether only the opt-out key was pressed.
func (w *Detector) IsKeyConfirmed(now time.Duration) bool {
	return w.isOptOutKey() && now-w.last >= KeyIsolation
}

// OnTranscript handles words of the callee. It returns the words of a request, or false if there is none. agent is
// the agent's recent speech. A request whose words are in it is ignored, because it may be echo.
func (w *Detector) OnTranscript(text string, final bool, at time.Duration, agent string) (string, bool) {
	if !final {
		w.partial = text
		return "", false
	}
	w.partial = ""
	for len(w.words) > 0 && (at-w.words[0].at > window || len(w.words) >= maxTranscripts) {
		w.words = w.words[1:]
	}
	w.words = append(w.words, transcript{text, at})
	return w.find("", agent)
}

// Pending reports, after the end of a call, whether the callee's last key or words were an opt-out that was not yet
// confirmed. key means that it was a key.
func (w *Detector) Pending(agent string) (words string, key, ok bool) {
	if w.isOptOutKey() {
		return "", true, true
	}
	if w.partial == "" {
		return "", false, false
	}
	words, ok = w.find(w.partial, agent)
	return words, false, ok
}

// LastWords returns the last words of the callee.
func (w *Detector) LastWords() string {
	if n := len(w.words); n > 0 {
		return w.words[n-1].text
	}
	return w.partial
}

func (w *Detector) find(more, agent string) (string, bool) {
	var all []string
	for _, s := range w.words {
		all = append(all, s.text)
	}
	text := normalize(strings.Join(append(all, more), " "))
	found, ok := w.english.find(text)
	for _, p := range w.phrases {
		if !ok && strings.Contains(" "+strings.ReplaceAll(text, " .", "")+" ", " "+p+" ") {
			found, ok = p, true
		}
	}
	if !ok || strings.Contains(" "+normalize(agent)+" ", " "+found+" ") {
		return "", false
	}
	return found, true
}

// normalize returns text in lower case, with single spaces between words, without
// apostrophes, and with a dot as a word at the end of sentences.
func normalize(text string) string {
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
