package turn

import (
	"strings"
	"time"
)

// caller holds what the voice detector, the keypad and the page of a web call report about the caller.
type caller struct {
	sound    bool          // there is a sound that may become a voice
	voiced   bool          // the caller is speaking
	detected bool          // the detector reports a voice, even if the machine takes it for noise
	loud     time.Duration // duration of the voiced sound since the voice began
	lull     bool          // the voice has paused or ended
	onset    time.Duration // when the newest voice began
	lastEnd  time.Duration // time of the last voiced sample
	keys     string        // keys pressed in this turn
	keyAt    time.Duration // time of the last key
	typed    string        // words that the caller typed in this turn
}

func (c *caller) onVoice(e Event) {
	c.sound, c.voiced, c.detected, c.lull = true, true, true, false
	c.loud, c.onset = 0, e.From
}

func (c *caller) onLull(e Event) { c.lull, c.lastEnd, c.sound = true, e.From, false }

func (c *caller) onSilence(e Event) {
	c.sound, c.voiced, c.detected, c.lull = false, false, false, true
	c.lastEnd = e.From
}

func (c *caller) isQuiet() bool { return !c.sound && !c.voiced }

// isSilent reports whether the caller is not speaking now.
func (c *caller) isSilent() bool { return c.lull || !c.voiced }

func (c *caller) onKey(e Event) { c.keys, c.keyAt = c.keys+e.Text, e.At }

func (c *caller) onTyped(e Event) { c.typed = strings.TrimSpace(c.typed + " " + e.Text) }

// hasInput reports whether the caller pressed keys or typed words that are not answered.
func (c *caller) hasInput() bool { return c.keys != "" || c.typed != "" }

func (c *caller) clearInput() { c.keys, c.typed = "", "" }
