package jitter

// Holes tell frames that were lost from those that were never sent, as in a
// silence, on hold, or while a key is down. What was lost is known by the
// numbers of the packets, often only once the next has come. Their zero value
// is ready.
type Holes struct {
	seen    Stats
	ticks   int // known to be missing, whose frames are yet to come
	waiting int // frames made up since the last packet
	packet  int // length of the last packet of speech, in ticks
}

// See takes a packet that comes.
func (h *Holes) See(p *Packet) {
	if p.Kind == Speech {
		h.packet = len(p.Payload)
	}
}

// Learn takes the counts after packets have come, and returns how many of the
// frames made up before are known to be concealed.
func (h *Holes) Learn(n Stats) (concealed int64) {
	late := n.Late - h.seen.Late
	h.ticks = max(0, h.ticks+int(n.Lost-h.seen.Lost+late)*h.packet)
	if n.Resynced != h.seen.Resynced {
		h.ticks = 0
	}
	h.seen = n
	for h.waiting > 0 && h.ticks > 0 {
		h.waiting--
		h.ticks -= min(h.ticks, FrameLen)
		concealed++
	}
	if late <= 0 { // else more of them may be under way
		h.waiting = 0
	}
	return concealed
}

// Fill takes the next frame of b, which has holes. It says whether it is known
// to be concealed.
func (h *Holes) Fill(b *Buffer) bool {
	if b.far < b.next+frameTicks { // nothing behind it has come
		h.ticks = 0
		h.waiting++
		return false
	}
	known := h.ticks > 0
	h.ticks -= min(h.ticks, b.missing())
	return known
}
