package rtp

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/rtcp"
	"github.com/parley-voice/parley/media/srtp"
)

// TestReports runs two sessions for twelve seconds of virtual time. It checks that each reports what it receives, and
// that each sends BYE.
func TestReports(t *testing.T) {
	keys := [2]srtp.Key{srtp.New()[0], srtp.New()[0]}
	for name, row := range map[string]struct{ mux, encrypted bool }{
		"own port": {}, "multiplexed": {mux: true}, "encrypted": {encrypted: true}, "encrypted and multiplexed": {true, true},
	} {
		a, b := newManualSession(t), newManualSession(t)
		pa := Params{Remote: b.Local(), Codec: codec.PCMU{}, Mux: row.mux}
		pb := Params{Remote: a.Local(), Codec: codec.PCMU{}, Mux: row.mux}
		if row.encrypted {
			pa.LocalKey, pa.RemoteKey = keys[0], keys[1]
			pb.LocalKey, pb.RemoteKey = keys[1], keys[0]
		}
		a.Start(pa)
		b.Start(pb)
		if q := a.Quality(); q.Codec != "PCMU" || q.Received.MOS != 0 || q.Sent.MOS != 0 {
			t.Errorf("%s: %+v before the call", name, q)
		}
		due := time.Now()
		both := func() {
			a.transport.poll.Tick(due)
			b.transport.poll.Tick(due)
		}
		const frames = 600
		for i := range int64(frames) {
			due = due.Add(media.FrameTime)
			a.Tick(due)
			if i%10 != 9 { // a tenth of the packets of b is lost
				b.Tick(due)
			}
			both()
		}
		for name, s := range map[string]*Session{name + ", a": a, name + ", b": b} {
			n := s.Stats()
			if n.ReportsSent < 1 || n.ReportsSent > 5 || n.ReportsReceived < 1 || n.ReportsReceived > 5 || n.Malformed+n.Forged+n.Ignored != 0 {
				t.Errorf("%s: %+v", name, n)
			}
			q := s.Quality()
			if q.Sent.MOS < 4 || q.Received.MOS < 4 || q.Sent.Packets == 0 || q.Received.Packets < frames*8/10 || q.Sent.Lost != 0 {
				t.Errorf("%s: %+v", name, q)
			}
		}
		before := b.Stats().ReportsReceived
		a.Close()
		both()
		if n := b.Stats().ReportsReceived; n != before+1 {
			t.Errorf("%s: %d BYE packets", name, n-before)
		}
		if q := a.Quality(); q.Received.Packets == 0 {
			t.Errorf("%s: %+v after the end", name, q)
		}
	}
}

// TestReportSources sends reports of loss and round-trip time from the remote host and from another host, and checks
// that only the first are used.
func TestReportSources(t *testing.T) {
	s := newManualSession(t)
	p := newPhone(t, s)
	local := s.Local()
	above := net.UDPAddrFromAddrPort(netip.AddrPortFrom(local.Addr(), local.Port()+1))
	rtcpConn := newConn(t, "127.0.0.1")
	s.Start(Params{Remote: p.addr(), RTCP: addrOf(rtcpConn), Codec: codec.PCMU{}})
	due := time.Now().Add(-4 * time.Second)
	for s.Stats().ReportsSent == 0 {
		due = due.Add(media.FrameTime)
		s.Tick(due)
	}
	b := make([]byte, maxPacket)
	_ = rtcpConn.SetReadDeadline(time.Now().Add(5 * time.Second))
	n, _, err := rtcpConn.ReadFrom(b)
	if err != nil {
		t.Fatal(err)
	}
	report, err := rtcp.Parse(b[:n], 0)
	if err != nil || !report.HasSender || report.HasBlock || int64(report.Sender.Packets) == 0 || report.Sender.Octets != 160*report.Sender.Packets {
		t.Fatalf("%+v, %v", report, err)
	}
	answer := rtcp.Report{SSRC: 99, HasBlock: true, Block: rtcp.Block{
		SSRC: report.SSRC, Lost: 10, Highest: 70, Jitter: 80, LastSR: rtcp.CompactNTP(report.Sender.NTP),
		Delay: rtcp.DelayUnits(time.Since(due)) - rtcp.DelayUnits(150*ms),
	}}
	text := answer.Append(nil, "phone")
	send := func(from net.PacketConn, b []byte) {
		t.Helper()
		if _, err = from.WriteTo(b, above); err != nil {
			t.Fatal(err)
		}
		s.transport.poll.Tick(time.Now())
	}
	send(newConn(t, "127.0.0.2"), text)
	send(p.conn, []byte{0x80, 201, 0, 0}) // a packet of four bytes, which a known attack uses
	send(p.conn, nil)
	if q, n := s.Quality(), s.Stats(); q.Sent.Packets != 0 || n.Ignored != 1 || n.Malformed != 2 || n.ReportsReceived != 0 {
		t.Errorf("%+v, %+v", q, n)
	}
	send(p.conn, text)
	q := s.Quality()
	if q.Sent.Lost != 10 || q.Sent.Jitter != 10*ms || q.RoundTrip < 140*ms || q.RoundTrip > time.Second || q.Sent.MOS < 1 || q.Sent.MOS > 4.3 {
		t.Errorf("%+v", q)
	}
	trip := q.RoundTrip
	answer.Block.Delay -= rtcp.DelayUnits(11 * time.Second)
	answer.Block.Jitter = 1 << 31
	send(p.conn, answer.Append(nil, "phone"))
	if q = s.Quality(); s.Stats().ReportsReceived != 2 || q.RoundTrip != trip || q.Sent.Jitter != 10*time.Second {
		t.Errorf("an implausible report was accepted: %+v", q)
	}
	if s.receiver.latch.Source().IsValid() {
		t.Error("a report moved the latch")
	}
}
