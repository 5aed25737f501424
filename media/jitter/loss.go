package jitter

// A LossTracker separates lost frames from frames that were never sent, as in
// silence, on hold, or during a digit. Sequence numbers reveal losses, often
// only with the next packet. Its zero value is ready to use.
type LossTracker struct {
	seen    Stats
	ticks   int // known to be lost, in frames not released yet
	waiting int // frames concealed since the last packet
	packet  int // length of the last speech packet, in ticks
}

// Observe records an arriving packet.
func (h *LossTracker) Observe(p *Packet) {
	if p.Kind == Speech {
		h.packet = len(p.Payload)
	}
}

// Update takes the counts after packets have arrived and returns how many
// earlier frames are now known to have been lost.
func (h *LossTracker) Update(n Stats) (concealed int64) {
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
	if late <= 0 { // otherwise more late packets may follow
		h.waiting = 0
	}
	return concealed
}

// Conceal accounts for the next, incomplete frame of b. It reports whether the
// frame is known to be lost.
func (h *LossTracker) Conceal(b *Buffer) bool {
	if b.end < b.next+frameTicks { // nothing after it has arrived
		h.ticks = 0
		h.waiting++
		return false
	}
	known := h.ticks > 0
	h.ticks -= min(h.ticks, b.missing())
	return known
}
