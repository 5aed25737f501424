package dtmf

import "encoding/binary"

// reorderTicks is the greatest age of a reordered packet against the last
// digit: one second at 8 kHz.
const reorderTicks = 8000

// An EventDecoder decodes telephone-event packets (RFC 4733), one digit per
// event. Its zero value is ready to use.
type EventDecoder struct {
	// Rate is the RTP clock rate in Hz; 0 means 8000.
	Rate uint32

	started  bool
	ssrc, ts uint32
	event    uint8
	duration uint16
}

// Decode takes a telephone-event packet of stream ssrc and returns a digit if
// a new one was pressed. The timestamp identifies an event (RFC 4733 section
// 2.5.1.2), so repeated ends and the loss of its first or last packets do not
// matter.
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
	// Reordered: older than the last digit. An even older timestamp comes from
	// a clock that was set back, as some senders do.
	if back := d.ts - ts; same && back < reorderTicks*max(1, d.Rate/8000) {
		return 0, false
	}
	// A long press continues in a new segment (section 2.5.1.3).
	continues := same && event == d.event && !marker && ts-d.ts == uint32(d.duration)
	*d = EventDecoder{Rate: d.Rate, started: true, ssrc: ssrc, ts: ts, event: event, duration: duration}
	if continues {
		return 0, false
	}
	return Key(event)
}
