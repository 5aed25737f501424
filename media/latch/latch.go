// Package latch decides which source of a media session is the remote party,
// and where to send: symmetric RTP (RFC 4961) behind any NAT, without letting
// a third party take over the call. Time is an argument.
package latch

import (
	"net/netip"
	"slices"
	"time"
)

const (
	lockAfter   = 5                      // packets in sequence
	relockAfter = 2 * time.Second        // silence of the locked source before another may replace it
	retryAfter  = 200 * time.Millisecond // silence of an unlocked source
	lingerFor   = time.Second            // old packets may arrive after SDP changed the address

	// preferFor is how long the expected addresses must be silent before an
	// unknown source is accepted. preferLong applies if SDP names the signaling
	// address, which suggests neither NAT nor a separate media server.
	preferFor  = 300 * time.Millisecond
	preferLong = 2 * time.Second
)

// ExpectedSources are expected addresses in addition to the SDP address.
type ExpectedSources struct {
	// Signaling are the remote addresses of the signaling.
	Signaling []netip.Addr
	// Media, if not empty, limits media to these networks, the SDP address and
	// Signaling: unknown sources are never accepted.
	Media []netip.Prefix
}

// A Latch selects the media source. The SDP address is accepted at once.
// Behind a NAT packets have another source, which is accepted too and becomes
// the target after five packets in sequence. An expected source has an IP
// address of the SDP, of the signaling, or of ExpectedSources.Media; any other
// is an unknown source.
//
// An unknown source is accepted only after the expected addresses were silent for a
// while, and never replaces a locked source. An expected source replaces an
// unknown one at once.
//
// A locked source is replaced after two seconds of silence, by an expected
// source or another port of the same IP address. It is accepted again as soon
// as it sends.
//
// After SDP changed the address, packets from the old one are accepted but do
// not become the target for a second. If the new address stays silent for
// longer, the remote party is behind a NAT and did not move.
type Latch struct {
	expectedSources ExpectedSources
	remote          netip.AddrPort // from SDP
	remoteAt        time.Duration  // when it was set
	source          netip.AddrPort // accepted; invalid before the first packet
	locked          bool
	last            time.Duration  // arrival of the source's last packet
	displaced       netip.AddrPort // former locked source, silent when it was replaced
	ssrc            uint32
	seq             uint16
	inSequence      int // packets in sequence

	formerSource netip.AddrPort // the source before SDP changed the address
	formerRemote netip.AddrPort // the SDP address at that time, if formerSource was locked instead
}

// Expect sets the expected addresses from now on.
func (l *Latch) Expect(s ExpectedSources) { l.expectedSources = s }

// SetRemote starts over with the SDP address received at at. If SDP returns to
// the previous address, the source locked then is locked again.
func (l *Latch) SetRemote(remote netip.AddrPort, at time.Duration) {
	before := *l
	*l = Latch{
		expectedSources: before.expectedSources, remote: remote, remoteAt: at,
		formerSource: before.formerSource, formerRemote: before.formerRemote,
	}
	if before.source.IsValid() {
		l.formerSource, l.formerRemote = before.source, netip.AddrPort{}
		if before.locked {
			l.formerRemote = before.remote
		}
	}
	if remote.IsValid() && remote == l.formerRemote && remote != l.formerSource {
		l.source, l.locked, l.last = l.formerSource, true, at
	}
}

// isLingering reports whether a packet from src was sent before the address
// changed.
func (l *Latch) isLingering(src netip.AddrPort, at time.Duration) bool {
	return src == l.formerSource && src != l.remote && l.remote.IsValid() &&
		l.source != l.remote && src != l.source && at-l.remoteAt < lingerFor
}

func (l *Latch) isExpected(src netip.AddrPort) bool {
	ip := src.Addr()
	if ip == l.remote.Addr() || slices.Contains(l.expectedSources.Signaling, ip) {
		return true
	}
	for _, p := range l.expectedSources.Media {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// AcceptsReports reports whether RTCP from ip is accepted.
func (l *Latch) AcceptsReports(ip netip.Addr) bool {
	return ip == l.Host() || !l.source.IsValid() && l.isExpected(netip.AddrPortFrom(ip, 0))
}

// allowsUnknown reports whether the expected addresses were silent long
// enough to accept an unknown source.
func (l *Latch) allowsUnknown(silent time.Duration) bool {
	switch {
	case len(l.expectedSources.Media) > 0:
		return false
	case l.remote.IsValid() && l.remote.Addr().IsUnspecified():
		return false // on hold (RFC 3264 section 8.4): the source may not have changed
	case !l.remote.IsValid():
		return true
	case slices.Contains(l.expectedSources.Signaling, l.remote.Addr()):
		return silent >= preferLong
	}
	return silent >= preferFor
}

// Admits reports whether a packet from src may belong to the call.
func (l *Latch) Admits(src netip.AddrPort, at time.Duration) bool {
	if src == l.source || src == l.remote || src == l.displaced {
		return true
	}
	expected := l.isExpected(src)
	if !l.source.IsValid() {
		return expected || src == l.formerSource || l.allowsUnknown(at-l.remoteAt)
	}
	sourceExpected := l.isExpected(l.source)
	switch silent := at - l.last; {
	case expected && !sourceExpected:
		return true
	case l.locked:
		return silent >= relockAfter && (expected || src.Addr() == l.source.Addr())
	case sourceExpected && !expected:
		return l.allowsUnknown(silent)
	default:
		return silent >= retryAfter
	}
}

// Accept records a packet that passed Admits and all further checks.
func (l *Latch) Accept(src netip.AddrPort, ssrc uint32, seq uint16, at time.Duration) {
	if l.isLingering(src, at) {
		return
	}
	if src != l.source {
		l.replace(src)
	}
	l.last = at
	if l.inSequence > 0 && ssrc == l.ssrc && seq == l.seq+1 {
		l.inSequence++
	} else if !l.locked {
		l.inSequence = 1
	}
	l.ssrc, l.seq = ssrc, seq
	l.locked = l.locked || l.inSequence >= lockAfter
}

func (l *Latch) replace(src netip.AddrPort) {
	switch {
	case src == l.displaced:
		l.displaced = netip.AddrPort{}
	case l.locked && src != l.remote && l.isExpected(l.source) == l.isExpected(src):
		l.displaced = l.source
	}
	l.source, l.inSequence, l.locked = src, 0, false
}

// Source returns the current source; invalid before the first packet.
func (l *Latch) Source() netip.AddrPort { return l.source }

// Target returns where to send: the SDP address until another is locked.
func (l *Latch) Target() netip.AddrPort {
	if l.locked || !l.remote.IsValid() {
		return l.source
	}
	return l.remote
}

// Host returns the remote IP address as far as known.
func (l *Latch) Host() netip.Addr {
	if l.source.IsValid() {
		return l.source.Addr()
	}
	return l.remote.Addr()
}

// ReportTarget returns where to send RTCP: the SDP address, or the port above
// the audio if SDP has none or the audio has another source.
func (l *Latch) ReportTarget(remote netip.AddrPort) netip.AddrPort {
	to := l.Target()
	if remote.IsValid() && to == l.remote {
		return remote
	}
	if !to.IsValid() || to.Port() == 0xffff {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(to.Addr(), to.Port()+1)
}
