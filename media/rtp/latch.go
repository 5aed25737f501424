package rtp

import (
	"net/netip"
	"time"
)

const (
	lockAfter   = 5                      // packets in sequence
	relockAfter = 2 * time.Second        // of silence from the locked source
	retryAfter  = 200 * time.Millisecond // of silence from a source not yet locked
)

// A latch decides whose packets are the party's. The address of the SDP is
// taken at once. Behind a NAT the party sends from elsewhere, so the first
// other source is taken too, and becomes where we send to once it has sent
// lockAfter packets in sequence. From then on nobody else is heard, until the
// source has been silent for relockAfter.
type latch struct {
	told   netip.AddrPort // by SDP
	source netip.AddrPort // taken; invalid before the first packet
	locked bool
	last   time.Duration // arrival of the source's last packet
	ssrc   uint32
	seq    uint16
	run    int // packets in sequence
}

// tell begins anew with the address that SDP told.
func (l *latch) tell(told netip.AddrPort) { *l = latch{told: told} }

// admits says whether a packet from src may be the party's.
func (l *latch) admits(src netip.AddrPort, at time.Duration) bool {
	if src == l.source || !l.source.IsValid() {
		return true
	}
	if l.locked {
		return at-l.last >= relockAfter
	}
	return at-l.last >= retryAfter || src == l.told
}

// accept takes a packet that admits let pass and that is the party's as far as
// can be told.
func (l *latch) accept(src netip.AddrPort, p *packet, at time.Duration) {
	if src != l.source {
		l.source, l.run, l.locked = src, 0, false
	}
	l.last = at
	if l.run > 0 && p.ssrc == l.ssrc && p.seq == l.seq+1 {
		l.run++
	} else if !l.locked {
		l.run = 1
	}
	l.ssrc, l.seq = p.ssrc, p.seq
	l.locked = l.locked || l.run >= lockAfter
}

// target is where to send to: the address of the SDP until another is locked.
func (l *latch) target() netip.AddrPort {
	if l.locked || !l.told.IsValid() {
		return l.source
	}
	return l.told
}

// host is where the party is, as far as is known.
func (l *latch) host() netip.Addr {
	if l.source.IsValid() {
		return l.source.Addr()
	}
	return l.told.Addr()
}

// above is where reports go: as SDP told, or the port above that of the audio
// where it told nothing, or the audio comes from elsewhere.
func (l *latch) above(told netip.AddrPort) netip.AddrPort {
	to := l.target()
	if told.IsValid() && to == l.told {
		return told
	}
	if !to.IsValid() || to.Port() == 0xffff {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(to.Addr(), to.Port()+1)
}
