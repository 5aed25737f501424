package dtmf

import "encoding/binary"

// overtaken is by how much a packet may be older than the last key, in ticks of
// an RTP clock of 8 kHz: a second.
const overtaken = 8000

// Events tell the first packet of a key from the rest (RFC 4733). Their zero
// value is ready.
type Events struct {
	// Rate is that of the RTP clock in Hz; 0 means 8000.
	Rate uint32

	any      bool
	ssrc, ts uint32
	event    uint8
	duration uint16
}

// Hear takes a telephone-event packet of the stream ssrc, and returns a key where a new one was
// pressed. An event is known by its timestamp (RFC 4733 section 2.5.1.2), so
// that neither repeated ends nor the loss of beginning or end matter.
func (d *Events) Hear(ssrc, ts uint32, marker bool, payload []byte) (key rune, pressed bool) {
	if len(payload) < 4 {
		return 0, false
	}
	event, duration := payload[0], binary.BigEndian.Uint16(payload[2:])
	same := d.any && ssrc == d.ssrc
	if same && ts == d.ts {
		d.duration = max(d.duration, duration)
		return 0, false
	}
	// Overtaken by a later key; one from longer ago is of a clock that was set
	// back, as some senders' are.
	if back := d.ts - ts; same && back < overtaken*max(1, d.Rate/8000) {
		return 0, false
	}
	// A key held for long goes on in a new segment (section 2.5.1.3).
	goesOn := same && event == d.event && !marker && ts-d.ts == uint32(d.duration)
	*d = Events{Rate: d.Rate, any: true, ssrc: ssrc, ts: ts, event: event, duration: duration}
	if goesOn {
		return 0, false
	}
	return Key(event)
}
