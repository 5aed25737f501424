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
func (t *LossTracker) Observe(p *Packet) {
	if p.Kind == Speech {
		t.packet = len(p.Payload)
	}
}

// Update takes the counts after packets have arrived and returns how many
// earlier frames are now known to have been lost.
func (t *LossTracker) Update(n Stats) (concealed int64) {
	late := n.Late - t.seen.Late
	t.ticks = max(0, t.ticks+int(n.Lost-t.seen.Lost+late)*t.packet)
	if n.Resynced != t.seen.Resynced {
		t.ticks = 0
	}
	t.seen = n
	for t.waiting > 0 && t.ticks > 0 {
		t.waiting--
		t.ticks -= min(t.ticks, FrameLen)
		concealed++
	}
	if late <= 0 { // otherwise more late packets may follow
		t.waiting = 0
	}
	return concealed
}

// Conceal accounts for the next, incomplete frame of b. It reports whether the
// frame is known to be lost.
func (t *LossTracker) Conceal(b *Buffer) bool {
	if b.end < b.next+frameTicks { // nothing after it has arrived
		t.ticks = 0
		t.waiting++
		return false
	}
	known := t.ticks > 0
	t.ticks -= min(t.ticks, b.missing())
	return known
}
