package jitter

// LossTracker distinguishes lost frames from frames that were never sent, for example in silence, on hold, or during a
// digit. Sequence numbers show a loss, but often only when the next packet arrives. The zero value is ready to use.
type LossTracker struct {
	seen    Stats
	ticks   int // ticks that are known to be lost, in frames that the reader has not taken yet
	waiting int // frames concealed since the last packet
	packet  int // length of the last packet of speech, in ticks
}

// Observe records a packet that arrives.
func (t *LossTracker) Observe(p *Packet) {
	if p.Kind == Speech {
		t.packet = len(p.Payload)
	}
}

// Update compares n with the previous counts. It returns the number of earlier frames that are now known to be lost.
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
	if late <= 0 { // after a late packet, more may follow
		t.waiting = 0
	}
	return concealed
}

// Conceal records that the next frame of b is incomplete. It reports whether audio of the frame is known to be lost.
func (t *LossTracker) Conceal(b *Buffer) bool {
	if b.end < b.next+frameTicks { // nothing after the frame has arrived
		t.ticks = 0
		t.waiting++
		return false
	}
	known := t.ticks > 0
	t.ticks -= min(t.ticks, b.missing())
	return known
}
