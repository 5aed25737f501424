package dtmf

import "time"

// A Way is how a key came.
type Way uint8

// Ways.
const (
	Event  Way = iota // RFC 4733
	Info              // SIP INFO
	InBand            // tones in the audio
)

const (
	// together is how far apart a key may come by two ways, and beside is how
	// far where one is SIP INFO: that goes another path, and some send it when
	// the key is let go.
	together = 100 * time.Millisecond
	beside   = 500 * time.Millisecond
	recent   = 8 // keys that may still come by another way
)

// A Funnel tells the keys that were pressed from those that came once more by
// another way. Its zero value is ready.
type Funnel struct {
	heard  [recent]hearing
	next   int
	events bool
}

type hearing struct {
	key  rune
	at   time.Duration
	ways uint8 // bits
}

// Hear takes a key that came by way, pressed at at, and says whether it counts.
// Once an event has come nothing else counts: it would be the same keys.
func (f *Funnel) Hear(key rune, way Way, at time.Duration) bool {
	if way != Event && f.events {
		return false
	}
	f.events = f.events || way == Event
	bit := uint8(1) << way
	for i := range f.heard {
		h := &f.heard[i]
		if h.ways == 0 || h.key != key || h.ways&bit != 0 {
			continue
		}
		apart := together
		if (h.ways|bit)&(1<<Info) != 0 {
			apart = beside
		}
		if d := at - h.at; d <= apart && d >= -apart {
			h.ways |= bit
			return false
		}
	}
	f.heard[f.next] = hearing{key, at, bit}
	f.next = (f.next + 1) % recent
	return true
}
