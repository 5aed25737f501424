package rtp

import (
	"net/netip"
	"time"
)

const (
	lockAfter   = 5                      // packets in sequence
	relockAfter = 2 * time.Second        // of silence from the locked source
	retryAfter  = 200 * time.Millisecond // of silence from a source not yet locked
	lingering   = time.Second            // that a source may still send after SDP told another address
)

// A latch decides whose packets are the party's. The address of the SDP is
// taken at once. Behind a NAT the party sends from elsewhere, so the first
// other source is taken too, and becomes where we send to once it has sent
// lockAfter packets in sequence. From then on nobody else is heard, until the
// source has been silent for relockAfter, save who sends from the address of
// the SDP: that is the party, however late it begins.
//
// Where SDP tells another address, packets from where the party was are still
// under way. They are heard, but make it no target while lingering lasts. If
// the new address keeps silent for longer, the party is behind a NAT and did
// not move at all.
type latch struct {
	told   netip.AddrPort // by SDP
	since  time.Duration  // when it was told
	source netip.AddrPort // taken; invalid before the first packet
	locked bool
	last   time.Duration // arrival of the source's last packet
	ssrc   uint32
	seq    uint16
	run    int // packets in sequence

	former netip.AddrPort // the source before the address was told
	stood  netip.AddrPort // told then, where former was locked in its place
}

// tell begins anew with the address that SDP told at at. Where the party was
// told to be there before, and had sent from elsewhere, it is there again.
func (l *latch) tell(told netip.AddrPort, at time.Duration) {
	before := *l
	*l = latch{told: told, since: at, former: before.former, stood: before.stood}
	if before.source.IsValid() {
		l.former, l.stood = before.source, netip.AddrPort{}
		if before.locked {
			l.stood = before.told
		}
	}
	if told.IsValid() && told == l.stood && told != l.former {
		l.source, l.locked, l.last = l.former, true, at
	}
}

// lingers says whether a packet from src is one that was under way while the
// party moved.
func (l *latch) lingers(src netip.AddrPort, at time.Duration) bool {
	return src == l.former && src != l.told && l.told.IsValid() && l.source != l.told && src != l.source && at-l.since < lingering
}

// admits says whether a packet from src may be the party's.
func (l *latch) admits(src netip.AddrPort, at time.Duration) bool {
	if src == l.source || src == l.told || !l.source.IsValid() {
		return true
	}
	if l.locked {
		return at-l.last >= relockAfter
	}
	return at-l.last >= retryAfter
}

// accept takes a packet that admits let pass and that is the party's as far as
// can be told.
func (l *latch) accept(src netip.AddrPort, p *packet, at time.Duration) {
	if l.lingers(src, at) {
		return
	}
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
