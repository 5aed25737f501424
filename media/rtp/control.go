package rtp

import (
	"encoding/hex"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/parley-voice/parley/media/rtcp"
	"github.com/parley-voice/parley/media/srtp"
)

const (
	reportEvery  = 5 * time.Second // average interval of reports (RFC 3550 section 6.2)
	nameLen      = 16
	maxPlausible = 10 * time.Second // larger values from the remote party are ignored or capped
)

type control struct {
	socket       *udpSocket     // socket for RTCP; nil if RTCP shares the socket of RTP
	name         string         // CNAME of the session (RFC 7022)
	next         time.Time      // time of the next report; only the clock uses it
	sentBefore   int64          // packets sent until the last report; only the clock uses it
	target       netip.AddrPort // target that is set on the socket; only the clock uses it
	reportSource netip.AddrPort // source of remote reports; only the clock uses it
	buf          [rtcp.MaxLen + srtp.Overhead]byte
	sealed       [rtcp.MaxLen + srtp.Overhead]byte
	opened       [maxPacket]byte

	mu        sync.Mutex // held only briefly, by the clock and by Quality
	received  rtcp.ReceiverStats
	packets   int64 // packets sent
	octets    int64
	remote    rtcp.Block // last remote report about our stream
	hasRemote bool
	roundTrip time.Duration
	lastSR    uint32
	lastSRAt  time.Time
}

func (c *control) init(s *udpSocket) {
	var b [nameLen]byte
	for i := range b {
		b[i] = byte(rand.Uint32()) //nolint:gosec // not a secret
	}
	c.socket, c.name = s, hex.EncodeToString(b[:])
}

func (c *control) countReceived(p *packet, timed bool, at time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received.ObserveSeq(p.ssrc, p.seq)
	if timed {
		c.received.ObserveTime(p.ts, at)
	}
}

// countSent counts a sent packet with n bytes of payload.
func (c *control) countSent(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.packets++
	c.octets += int64(n)
}

// isControl reports whether b is an RTCP packet on the port of RTP (RFC 5761 section 4).
func isControl(b []byte) bool { return len(b) > 1 && b[1] >= 192 && b[1] <= 223 }

type reports struct{ *Session }

func (r reports) receive(b []byte, src netip.AddrPort, at time.Time) {
	if p := r.currentParams(at); p != nil {
		r.receiveReport(p, b, src, at)
	}
}

// receiveReport handles an RTCP packet. The packet must come from the host that sends the audio; before the first audio
// packet, any expected host is accepted. The packet does not affect the latch.
func (s *Session) receiveReport(p *activeParams, b []byte, src netip.AddrPort, at time.Time) {
	c := &s.control
	if !s.receiver.latch.AcceptsReports(src.Addr()) {
		s.count.ignored.Add(1)
		return
	}
	if p.encrypted {
		if p.decrypter == nil {
			s.count.forged.Add(1)
			return
		}
		out, err := p.decrypter.RTCP(c.opened[:0], b)
		if err != nil {
			s.count.forged.Add(1)
			return
		}
		b = out
	}
	r, err := rtcp.Parse(b, s.sender.ssrc)
	if err != nil {
		s.count.malformed.Add(1)
		return
	}
	s.count.reported.Add(1)
	c.reportSource, s.receiver.reportedAt = src, at.Sub(s.opened)
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.HasSender {
		c.lastSR, c.lastSRAt = rtcp.CompactNTP(r.Sender.NTP), at
	}
	if r.HasBlock {
		c.remote, c.hasRemote = r.Block, true
		if trip, ok := r.Block.RoundTrip(rtcp.NTP(at)); ok && trip <= maxPlausible {
			c.roundTrip = trip
		}
	}
}

func (s *Session) reportIfDue(p *activeParams, due time.Time) {
	c := &s.control
	if c.next.IsZero() { // the first report is sent earlier than the others
		c.next = due.Add(reportEvery/4 + rand.N(reportEvery/2)) //nolint:gosec // not a secret
		return
	}
	if due.Before(c.next) {
		return
	}
	c.next = due.Add(reportEvery/2 + rand.N(reportEvery)) //nolint:gosec // likewise
	s.sendReport(p, due, false)
}

// sendBye sends an RTCP BYE after the clock has released the session.
func (s *Session) sendBye() {
	if p := s.params.Load(); p != nil && !s.control.next.IsZero() {
		s.sendReport(p, time.Now(), true)
	}
}

func (s *Session) sendReport(p *activeParams, now time.Time, bye bool) {
	c := &s.control
	r := rtcp.Report{SSRC: s.sender.ssrc, Bye: bye}
	c.mu.Lock()
	if r.HasSender = c.packets > c.sentBefore; r.HasSender {
		c.sentBefore = c.packets
		r.Sender = rtcp.SenderInfo{
			NTP: rtcp.NTP(now), RTP: s.sender.ts + uint32(now.Sub(s.sender.last)*Rate/time.Second), //nolint:gosec // wraps
			Packets: uint32(c.packets), Octets: uint32(c.octets), //nolint:gosec // wraps
		}
	}
	if r.Block, r.HasBlock = c.received.Block(); r.HasBlock && !c.lastSRAt.IsZero() {
		r.Block.LastSR, r.Block.Delay = c.lastSR, rtcp.DelayUnits(now.Sub(c.lastSRAt))
	}
	c.mu.Unlock()
	b := r.Append(c.buf[:0], c.name)
	if p.encrypted {
		if p.encrypter == nil {
			return
		}
		out, err := p.encrypter.RTCP(c.sealed[:0], b)
		if err != nil {
			return
		}
		b = out
	}
	if s.writeReport(p, b) {
		s.count.reports.Add(1)
	}
}

func (s *Session) writeReport(p *activeParams, b []byte) bool {
	c := &s.control
	if p.Mux {
		return s.setTarget() && s.socket.Send(b)
	}
	to := c.reportSource
	if to.Addr() != s.receiver.latch.Host() {
		to = s.receiver.latch.ReportTarget(p.RTCP)
	}
	if to != c.target {
		c.socket.SetTarget(to)
		c.target = to
	}
	return to.IsValid() && c.socket.Send(b)
}
