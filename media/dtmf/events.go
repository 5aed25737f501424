package dtmf

import "encoding/binary"

// reorderTicks limits how much older than the last digit a reordered packet may be: one second at 8 kHz.
const reorderTicks = 8000

// EventDecoder decodes telephone-event packets (RFC 4733) into one digit per event. The zero value is ready to use.
type EventDecoder struct {
	// Rate is the rate of the RTP clock in Hz; 0 means 8000.
	Rate uint32

	started  bool
	ssrc, ts uint32
	event    uint8
	duration uint16
}

// Decode processes a telephone-event packet of the stream ssrc. If it is a new press, Decode returns the digit. All
// packets of an event have the same timestamp (RFC 4733 section 2.5.1.2), so repeated end packets, or the loss of the
// first or last packets, do no harm.
func (d *EventDecoder) Decode(ssrc, ts uint32, marker bool, payload []byte) (key rune, pressed bool) {
	if len(payload) < 4 {
		return 0, false
	}
	event, duration := payload[0], binary.BigEndian.Uint16(payload[2:])
	same := d.started && ssrc == d.ssrc
	if same && ts == d.ts {
		d.duration = max(d.duration, duration)
		return 0, false
	}
	// A packet that is a little older than the last digit was reordered. A much older timestamp means that the sender
	// has set its clock back.
	if back := d.ts - ts; same && back < reorderTicks*max(1, d.Rate/8000) {
		return 0, false
	}
	// A long press continues in a new segment (RFC 4733 section 2.5.1.3).
	continues := same && event == d.event && !marker && ts-d.ts == uint32(d.duration)
	*d = EventDecoder{Rate: d.Rate, started: true, ssrc: ssrc, ts: ts, event: event, duration: duration}
	if continues {
		return 0, false
	}
	return Key(event)
}
