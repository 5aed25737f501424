package rtp

import (
	"encoding/hex"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/parley-voice/parley/media/crypt"
	"github.com/parley-voice/parley/media/rtcp"
	"github.com/parley-voice/parley/media/udp"
)

const (
	reportEvery = 5 * time.Second // on average (RFC 3550 section 6.2)
	nameLen     = 16
	believed    = 10 * time.Second // a longer round trip, or jitter, is none: the party says what it likes
)

// A control is the state of the reports, both ways.
type control struct {
	socket *udp.Socket    // for reports, where they do not go by the audio's
	name   string         // canonical, of this session alone (RFC 7022)
	next   time.Time      // when the next report is due; owned by the clock
	sent   int64          // packets as of the last report; owned by the clock
	aimed  netip.AddrPort // owned by the clock
	seen   netip.AddrPort // where the party's reports come from; owned by the clock
	buf    [rtcp.MaxLen + crypt.Overhead]byte
	sealed [rtcp.MaxLen + crypt.Overhead]byte
	opened [maxPacket]byte

	mu       sync.Mutex // held for a moment by the clock and by Quality
	heard    rtcp.Reception
	packets  int64 // sent
	octets   int64
	theirs   rtcp.Block // what the party last told of us
	told     bool
	trip     time.Duration
	lastSR   uint32
	lastSRAt time.Time
}

func (c *control) init(s *udp.Socket) {
	var b [nameLen]byte
	for i := range b {
		b[i] = byte(rand.Uint32()) //nolint:gosec // a name, no secret
	}
	c.socket, c.name = s, hex.EncodeToString(b[:])
}

// see counts a packet of the party.
func (c *control) see(p *packet, timed bool, at time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard.See(p.ssrc, p.seq)
	if timed {
		c.heard.Time(p.ts, at)
	}
}

// say counts a packet of ours with n bytes of payload.
func (c *control) say(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.packets++
	c.octets += int64(n)
}

// isControl tells reports from audio that comes to the same port (RFC 5761
// section 4).
func isControl(b []byte) bool { return len(b) > 1 && b[1] >= 192 && b[1] <= 223 }

// reports hears the socket of the reports.
type reports struct{ *Session }

func (r reports) receive(b []byte, src netip.AddrPort, at time.Time) {
	if p := r.agreed(at); p != nil {
		r.hearReport(p, b, src, at)
	}
}

// hearReport takes a report of the party. It is believed from the host only
// that the audio comes from, and moves no latch.
func (s *Session) hearReport(p *terms, b []byte, src netip.AddrPort, at time.Time) {
	c := &s.control
	if s.receiver.latch.Host() != src.Addr() {
		s.count.ignored.Add(1)
		return
	}
	if p.secret {
		if p.open == nil {
			s.count.forged.Add(1)
			return
		}
		out, err := p.open.RTCP(c.opened[:0], b)
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
	c.seen = src
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Sends {
		c.lastSR, c.lastSRAt = rtcp.Middle(r.Sending.NTP), at
	}
	if r.Hears {
		c.theirs, c.told = r.Block, true
		if trip, ok := r.Block.RoundTrip(rtcp.NTP(at)); ok && trip <= believed {
			c.trip = trip
		}
	}
}

// report sends a report where one is due.
func (s *Session) report(p *terms, due time.Time) {
	c := &s.control
	if c.next.IsZero() { // the first comes sooner
		c.next = due.Add(reportEvery/4 + rand.N(reportEvery/2)) //nolint:gosec // spreads, keeps no secret
		return
	}
	if due.Before(c.next) {
		return
	}
	c.next = due.Add(reportEvery/2 + rand.N(reportEvery)) //nolint:gosec // likewise
	s.tell(p, due, false)
}

// farewell tells the party that nothing comes any more. It is called when the
// clock has let go of the session.
func (s *Session) farewell() {
	if p := s.params.Load(); p != nil && !s.control.next.IsZero() {
		s.tell(p, time.Now(), true)
	}
}

// tell sends a report as of now.
func (s *Session) tell(p *terms, now time.Time, bye bool) {
	c := &s.control
	r := rtcp.Report{SSRC: s.sender.ssrc, Bye: bye}
	c.mu.Lock()
	if r.Sends = c.packets > c.sent; r.Sends {
		c.sent = c.packets
		r.Sending = rtcp.Sending{
			NTP: rtcp.NTP(now), RTP: s.sender.ts + uint32(now.Sub(s.sender.last)*Rate/time.Second), //nolint:gosec // on a circle
			Packets: uint32(c.packets), Octets: uint32(c.octets), //nolint:gosec // they wrap
		}
	}
	if r.Block, r.Hears = c.heard.Block(); r.Hears && !c.lastSRAt.IsZero() {
		r.Block.LastSR, r.Block.Delay = c.lastSR, rtcp.Units(now.Sub(c.lastSRAt))
	}
	c.mu.Unlock()
	b := r.Append(c.buf[:0], c.name)
	if p.secret {
		if p.seal == nil {
			return
		}
		out, err := p.seal.RTCP(c.sealed[:0], b)
		if err != nil {
			return
		}
		b = out
	}
	if s.sendReport(p, b) {
		s.count.reports.Add(1)
	}
}

func (s *Session) sendReport(p *terms, b []byte) bool {
	c := &s.control
	if p.Mux {
		return s.aim() && s.socket.Send(b)
	}
	to := c.seen
	if to.Addr() != s.receiver.latch.Host() {
		to = s.receiver.latch.Above(p.RTCP)
	}
	if to != c.aimed {
		c.socket.Aim(to)
		c.aimed = to
	}
	return to.IsValid() && c.socket.Send(b)
}
