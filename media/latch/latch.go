// Package latch decides which source address of a media session is the remote party, and to which address media is
// sent. It supports symmetric RTP (RFC 4961) behind any NAT, and keeps third parties from taking over the call. It
// reads no clock: time is an argument.
package latch

import (
	"net/netip"
	"slices"
	"time"
)

const (
	lockAfter   = 5                      // packets in sequence after which a source is locked
	relockAfter = 2 * time.Second        // silence of a locked source after which another source may replace it
	retryAfter  = 200 * time.Millisecond // silence of a source that is not locked, after which another may replace it
	lingerFor   = time.Second            // time in which old packets may arrive after SDP changed the address

	// preferFor is how long the expected addresses must be silent before an unknown source is accepted. preferLong
	// applies instead if the SDP address is a signaling address, because a NAT or a separate media server is then
	// unlikely.
	preferFor  = 300 * time.Millisecond
	preferLong = 2 * time.Second
)

// ExpectedSources are the addresses from which media may come, besides the SDP address.
type ExpectedSources struct {
	// Signaling are the remote addresses of SIP signaling.
	Signaling []netip.Addr
	// Media, if not empty, limits media to these networks, the SDP address and Signaling. Unknown sources are then
	// never accepted.
	Media []netip.Prefix
}

// Latch selects the media source and the target, to which media is sent. The first target is the SDP address. Packets
// from behind a NAT have another source address. A source that sent five packets in sequence is locked and becomes the
// target.
//
// A source is expected if its IP address is that of the SDP, of the signaling, or in ExpectedSources.Media. Other
// sources are unknown. An unknown source is accepted only after the expected addresses were silent for a while. It
// never replaces a locked source. An expected source replaces an unknown source at once.
//
// After two seconds of silence, a locked source may be replaced by an expected source or by another port of the same
// IP address. When the replaced source sends again, it is accepted at once.
//
// For one second after SDP changed the address, packets from the old address are accepted, but media is not sent there.
// If the new address is silent for longer, the old address can become the source again: the remote party is then behind
// a NAT and did not move.
type Latch struct {
	expectedSources ExpectedSources
	remote          netip.AddrPort // address in the SDP
	remoteAt        time.Duration  // time at which remote was set
	source          netip.AddrPort // accepted source; invalid before the first packet
	locked          bool
	last            time.Duration  // arrival of the last packet from source
	displaced       netip.AddrPort // locked source that was replaced because it was silent
	ssrc            uint32
	seq             uint16
	inSequence      int // packets from source in sequence

	formerSource netip.AddrPort // source before SDP changed the address
	formerRemote netip.AddrPort // SDP address before the change; invalid if formerSource was not locked
}

// Expect sets the expected addresses from now on.
func (l *Latch) Expect(s ExpectedSources) { l.expectedSources = s }

// SetRemote starts again with the address of an SDP that has just been received. If the SDP returns to the previous
// address, the source that was locked for this address is locked again.
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

// isLingering reports whether a packet from src was sent before SDP changed the address.
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

// AcceptsReports reports whether RTCP from an IP address is accepted.
func (l *Latch) AcceptsReports(ip netip.Addr) bool {
	return ip == l.Host() || !l.source.IsValid() && l.isExpected(netip.AddrPortFrom(ip, 0))
}

// allowsUnknown reports whether the expected addresses have been silent long enough for an unknown source to be
// accepted.
func (l *Latch) allowsUnknown(silent time.Duration) bool {
	switch {
	case len(l.expectedSources.Media) > 0:
		return false
	case l.remote.IsValid() && l.remote.Addr().IsUnspecified():
		return false // hold (RFC 3264 section 8.4): the remote party may still have the same source
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

// Accept records a packet that passed Admits and all later checks.
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

// Source returns the current source. It is invalid before the first packet.
func (l *Latch) Source() netip.AddrPort { return l.source }

// Target returns the address to which media is sent: the SDP address, until another source is locked.
func (l *Latch) Target() netip.AddrPort {
	if l.locked || !l.remote.IsValid() {
		return l.source
	}
	return l.remote
}

// Host returns the remote IP address, if it is known.
func (l *Latch) Host() netip.Addr {
	if l.source.IsValid() {
		return l.source.Addr()
	}
	return l.remote.Addr()
}

// ReportTarget returns the address to which RTCP is sent. This is remote, the RTCP address of the SDP, if remote is
// valid and audio is sent to the SDP address. Otherwise it is the port above that of the audio target.
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
