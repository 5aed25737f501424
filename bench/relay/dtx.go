package relay

// Constants of discontinuous transmission (DTX).
const (
	hangover = 10 // number of silent packets that are sent before the gate drops packets
	header   = 12 // bytes of an RTP header
)

// Payload types of G.711, and the largest level of a silent sample.
const (
	mulaw, alaw = 0, 8
	faint       = 8 // quantization steps
)

// gate drops silent packets of one flow.
type gate struct {
	silent int // number of silent packets in a row
}

// drops reports whether to drop packet b. It sets the marker bit of the first packet after
// silence (RFC 3551 section 4.1).
func (g *gate) drops(b []byte) bool {
	if len(b) <= header || b[0]>>6 != 2 {
		return false
	}
	if !silent(b[1]&0x7f, b[header:]) {
		if g.silent > hangover {
			b[1] |= 0x80
		}
		g.silent = 0
		return false
	}
	g.silent++
	return g.silent > hangover
}

// silent reports whether all samples of a payload are near zero.
func silent(kind byte, payload []byte) bool {
	for _, x := range payload {
		switch kind {
		case mulaw:
			x = ^x & 0x7f // the codes of µ-law count down from silence
		case alaw:
			x = (x ^ 0x55) & 0x7f
		default:
			return false
		}
		if x > faint {
			return false
		}
	}
	return true
}
