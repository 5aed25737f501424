package dtmf

import "time"

// A Method is how a digit was received.
type Method uint8

// Methods.
const (
	Event  Method = iota // RFC 4733
	Info                 // SIP INFO
	InBand               // tones in the audio
)

const (
	// mergeWithin is the greatest interval between reports of one press by two
	// methods. mergeInfoWithin applies if one is SIP INFO, which takes another
	// path and is sometimes sent on release.
	mergeWithin     = 100 * time.Millisecond
	mergeInfoWithin = 500 * time.Millisecond
	recent          = 8 // presses that another method may still report
)

// A Deduplicator drops digits that a second method reports again. Its zero
// value is ready to use.
type Deduplicator struct {
	presses [recent]keyPress
	next    int
	events  bool
}

type keyPress struct {
	key     rune
	at      time.Duration
	methods uint8 // one bit per Method
}

// Accept reports whether a digit received by method at a time is a new press.
// Once RFC 4733 events arrive, other methods are ignored: they repeat the same
// digits.
func (d *Deduplicator) Accept(key rune, method Method, at time.Duration) bool {
	if method != Event && d.events {
		return false
	}
	d.events = d.events || method == Event
	bit := uint8(1) << method
	for i := range d.presses {
		p := &d.presses[i]
		if p.methods == 0 || p.key != key || p.methods&bit != 0 {
			continue
		}
		apart := mergeWithin
		if (p.methods|bit)&(1<<Info) != 0 {
			apart = mergeInfoWithin
		}
		if ago := at - p.at; ago <= apart && ago >= -apart {
			p.methods |= bit
			return false
		}
	}
	d.presses[d.next] = keyPress{key, at, bit}
	d.next = (d.next + 1) % recent
	return true
}
