// Package latch decides whose packets a media session takes for the party's,
// and where it sends to: symmetric RTP (RFC 4961), behind any NAT, without
// letting a stranger take the call. It is pure: time is an argument.
package latch

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

// A Latch decides whose packets are the party's. The address of the SDP is
// taken at once. Behind a NAT the party sends from elsewhere, so the first
// other source is taken too, and becomes where we send to once it has sent
// five packets in sequence. From then on nobody else is heard, until the
// source has been silent for two seconds, save who sends from the address of
// the SDP: that is the party, however late it begins.
//
// Where SDP tells another address, packets from where the party was are still
// under way. They are heard, but make it no target for a second. If
// the new address keeps silent for longer, the party is behind a NAT and did
// not move at all.
type Latch struct {
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

// Tell begins anew with the address that SDP told at at. Where the party was
// told to be there before, and had sent from elsewhere, it is there again.
func (l *Latch) Tell(told netip.AddrPort, at time.Duration) {
	before := *l
	*l = Latch{told: told, since: at, former: before.former, stood: before.stood}
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
func (l *Latch) lingers(src netip.AddrPort, at time.Duration) bool {
	return src == l.former && src != l.told && l.told.IsValid() && l.source != l.told && src != l.source && at-l.since < lingering
}

// Admits says whether a packet from src may be the party's.
func (l *Latch) Admits(src netip.AddrPort, at time.Duration) bool {
	if src == l.source || src == l.told || !l.source.IsValid() {
		return true
	}
	if l.locked {
		return at-l.last >= relockAfter
	}
	return at-l.last >= retryAfter
}

// Accept takes a packet that Admits let pass and that is the party's as far as
// can be told.
func (l *Latch) Accept(src netip.AddrPort, ssrc uint32, seq uint16, at time.Duration) {
	if l.lingers(src, at) {
		return
	}
	if src != l.source {
		l.source, l.run, l.locked = src, 0, false
	}
	l.last = at
	if l.run > 0 && ssrc == l.ssrc && seq == l.seq+1 {
		l.run++
	} else if !l.locked {
		l.run = 1
	}
	l.ssrc, l.seq = ssrc, seq
	l.locked = l.locked || l.run >= lockAfter
}

// Source is where the party was last heard from; not valid before.
func (l *Latch) Source() netip.AddrPort { return l.source }

// Target is where to send to: the address of the SDP until another is locked.
func (l *Latch) Target() netip.AddrPort {
	if l.locked || !l.told.IsValid() {
		return l.source
	}
	return l.told
}

// Host is where the party is, as far as is known.
func (l *Latch) Host() netip.Addr {
	if l.source.IsValid() {
		return l.source.Addr()
	}
	return l.told.Addr()
}

// Above is where reports go: as SDP told, or the port above that of the audio
// where it told nothing, or the audio comes from elsewhere.
func (l *Latch) Above(told netip.AddrPort) netip.AddrPort {
	to := l.Target()
	if told.IsValid() && to == l.told {
		return told
	}
	if !to.IsValid() || to.Port() == 0xffff {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(to.Addr(), to.Port()+1)
}
