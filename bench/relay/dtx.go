package relay

// What a sender with discontinuous transmission does.
const (
	hangover = 10 // packets of silence that it still sends
	header   = 12 // bytes of RTP
)

// Types of G.711's two laws, and how close to zero a sample is that is silent.
const (
	mulaw, alaw = 0, 8
	faint       = 8 // steps
)

// gate leaves out silence. It belongs to one flow.
type gate struct {
	silent int // packets in a row
}

// shuts tells whether a packet is left out. Of the first one after those that
// were, the marker is set (RFC 3551 section 4.1).
func (g *gate) shuts(b []byte) bool {
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

// silent tells whether all samples of a payload are next to nothing.
func silent(kind byte, payload []byte) bool {
	for _, x := range payload {
		switch kind {
		case mulaw:
			x = ^x & 0x7f // its code counts down from silence
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
