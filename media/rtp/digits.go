package rtp

import (
	"encoding/binary"

	"github.com/parley-voice/parley/media/dtmf"
)

// An ear for digits: it tells the first packet of an event from the rest.
type digits struct {
	any      bool
	ssrc, ts uint32
	event    uint8
	duration uint16
}

// hear takes a telephone-event packet and returns a key where a new one was
// pressed. An event is known by its timestamp (RFC 4733 section 2.5.1.2), so
// that neither repeated ends nor the loss of beginning or end matter.
func (d *digits) hear(p *packet) (key rune, pressed bool) {
	if len(p.payload) < 4 {
		return 0, false
	}
	event, duration := p.payload[0], binary.BigEndian.Uint16(p.payload[2:])
	same := d.any && p.ssrc == d.ssrc
	if same && p.ts == d.ts {
		d.duration = max(d.duration, duration)
		return 0, false
	}
	if same && int32(p.ts-d.ts) < 0 { //nolint:gosec // a difference on a circle
		return 0, false // overtaken by a later key
	}
	// A key held for long goes on in a new segment (section 2.5.1.3).
	goesOn := same && event == d.event && !p.marker && p.ts-d.ts == uint32(d.duration)
	*d = digits{any: true, ssrc: p.ssrc, ts: p.ts, event: event, duration: duration}
	if goesOn {
		return 0, false
	}
	return dtmf.Key(event)
}
