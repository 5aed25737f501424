package dtmf

import "time"

// Method is the way in which a digit was received.
type Method uint8

// Values of Method.
const (
	Event  Method = iota // RTP event, RFC 4733
	Info                 // SIP INFO
	InBand               // tones in the audio
)

const (
	// If two methods report the same digit within mergeWithin, it is one press. For SIP INFO the limit is
	// mergeInfoWithin, because INFO takes another path and is sometimes sent when the key is released.
	mergeWithin     = 100 * time.Millisecond
	mergeInfoWithin = 500 * time.Millisecond
	recent          = 8 // presses that are remembered because another method may still report them
)

// Deduplicator drops digits that a second method reports again. The zero value is ready to use.
type Deduplicator struct {
	presses [recent]keyPress
	next    int
	events  bool
}

type keyPress struct {
	key     rune
	at      time.Duration
	methods uint8 // methods that have reported the press; one bit for each Method
}

// Accept reports whether a digit that method received at a time is a new press. After the first RFC 4733 event, it
// rejects all other methods, because they repeat the same digits.
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
