package rtp

import (
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/mediaclock"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/media/rtcp"
)

// phone is the remote end of a session. The test drives it.
type phone struct {
	t    *testing.T
	conn net.PacketConn
	to   net.Addr
	seq  uint16
	ts   uint32
	at   time.Duration // current time on the test's clock
}

func newPhone(t *testing.T, s *Session) *phone {
	t.Helper()
	return newPhoneAt(t, s, "127.0.0.1")
}

func newPhoneAt(t *testing.T, s *Session, ip string) *phone {
	t.Helper()
	return &phone{t: t, conn: newConn(t, ip), to: net.UDPAddrFromAddrPort(s.Local())}
}

func newConn(t *testing.T, ip string) net.PacketConn {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp4", ip+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (p *phone) addr() netip.AddrPort { return addrOf(p.conn) }

func addrOf(conn net.PacketConn) netip.AddrPort { return conn.LocalAddr().(*net.UDPAddr).AddrPort() }

func (p *phone) send(pt uint8, payload []byte) {
	p.t.Helper()
	b := make([]byte, headerLen, headerLen+len(payload))
	p.seq++
	putHeader(b, packet{pt: pt, seq: p.seq, ts: p.ts, ssrc: 99})
	if _, err := p.conn.WriteTo(append(b, payload...), p.to); err != nil {
		p.t.Fatal(err)
	}
}

func (p *phone) key(code byte) {
	p.ts += 4000
	for i := range 6 {
		end := byte(0)
		if i >= 3 {
			end = 0x80
		}
		p.send(101, []byte{code, end | 10, 1, byte(i)})
	}
}

// receives reports whether a packet arrives within a time.
func (p *phone) receives(within time.Duration) bool {
	_ = p.conn.SetReadDeadline(time.Now().Add(within))
	_, _, err := p.conn.ReadFrom(make([]byte, maxPacket))
	return err == nil
}

func startSession(t *testing.T, p Params) *Session {
	t.Helper()
	s, err := newTestTransport(t).Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if p.Codec == nil {
		p.Codec = codec.PCMU{}
	}
	p.KeyType = 101
	s.Start(p)
	return s
}

func TestKeys(t *testing.T) {
	s := startSession(t, Params{})
	p := newPhone(t, s)
	for i := range 12 {
		p.key(byte(i))
	}
	got := ""
	for len(got) < 12 {
		select {
		case key := <-s.Digits():
			got += string(key)
		case <-time.After(5 * time.Second):
			t.Fatalf("got %q", got)
		}
	}
	if got != "0123456789*#" {
		t.Errorf("got %q", got)
	}
	for range keysQueued + 5 { // the queue is full and nobody reads it
		p.key(1)
	}
	eventually(t, func() bool { return s.Stats().KeysLost == 5 })
}

// eventually waits until done returns true.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	deadline := time.After(5 * time.Second)
	tick := time.NewTicker(mediaclock.Tick)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the condition was not met in time")
		}
	}
}

// TestSymmetricRTP sends from another port than that in the SDP, and checks that media is sent there. A later sender
// with another address gets nothing, and its packets are ignored.
func TestSymmetricRTP(t *testing.T) {
	s := startSession(t, Params{Remote: addrOf(newConn(t, "127.0.0.1"))})
	p := newPhone(t, s)
	for range 10 {
		p.send(0, make([]byte, 160))
		p.ts += 160
	}
	if !p.receives(5 * time.Second) {
		t.Fatal("the phone received nothing")
	}
	before := s.Stats().Received
	attacker := newPhone(t, s)
	for range 50 {
		attacker.send(0, make([]byte, 160))
	}
	eventually(t, func() bool { return s.Stats().Ignored == 50 })
	if attacker.receives(100 * time.Millisecond) {
		t.Error("another source received packets")
	}
	if n := s.Stats().Received; n != before {
		t.Errorf("accepted %d packets of another source, want 0", n-before)
	}
}

func TestInvalidPackets(t *testing.T) {
	s := startSession(t, Params{})
	p := newPhone(t, s)
	for _, b := range [][]byte{{}, {0x80}, {0x80, 200, 0, 1}, make([]byte, 12), make([]byte, 1499), make([]byte, 4000)} {
		if _, err := p.conn.WriteTo(b, p.to); err != nil {
			t.Fatal(err)
		}
	}
	p.send(77, make([]byte, 160))         // not negotiated
	p.send(0, make([]byte, maxPayload+1)) // longer than the packets of any codec
	p.send(0, make([]byte, 160))
	eventually(t, func() bool { return s.Stats().Received == 1 })
	if n := s.Stats(); n.Malformed != 6 || n.Unknown != 1 {
		t.Errorf("%+v", n)
	}
}

func TestMediaTimeouts(t *testing.T) {
	first, later := make(chan struct{}), make(chan struct{})
	s := startSession(t, Params{FirstPacketTimeout: 50 * ms, SilenceTimeout: time.Hour, OnTimeout: func() { close(first) }})
	<-first
	p := newPhone(t, s)
	p.send(0, make([]byte, 160))
	eventually(t, func() bool { return s.Stats().Received == 1 })
	s.Start(Params{Codec: codec.PCMU{}, FirstPacketTimeout: time.Hour, SilenceTimeout: 50 * ms, OnTimeout: func() { close(later) }})
	<-later
	// No media is expected while the call is on hold.
	s.Start(Params{Codec: codec.PCMU{}, OnTimeout: func() { t.Error("expired without a limit") }})
	var ticks atomic.Int64
	s.Play(media.FeedFunc(func(media.Frame, time.Time) { ticks.Add(1) }))
	eventually(t, func() bool { return ticks.Load() > 10 })
}

// TestReportsExtendTimeout checks that a silent peer that sends RTCP times out later. Reports from another host, and
// reports that have stopped, have no effect.
func TestReportsExtendTimeout(t *testing.T) {
	const second = time.Second
	for name, row := range map[string]struct {
		reports time.Duration // time of the last report; one is sent every 5 s
		host    string
		want    time.Duration // expected time of OnTimeout
	}{
		"none":                {0, "127.0.0.1", 15 * second},
		"all the time":        {time.Hour, "127.0.0.1", 120 * second},
		"for a while":         {60 * second, "127.0.0.1", 75 * second},
		"from somewhere else": {time.Hour, "127.0.0.2", 15 * second},
	} {
		s := newManualSession(t)
		p := newPhone(t, s)
		expired := make(chan struct{})
		conn := newConn(t, row.host)
		report := rtcp.Report{SSRC: 99}
		text, local := report.Append(nil, "phone"), s.Local()
		above := net.UDPAddrFromAddrPort(netip.AddrPortFrom(local.Addr(), local.Port()+1))
		s.Start(Params{Remote: p.addr(), Codec: codec.PCMU{}, FirstPacketTimeout: 15 * second, SilenceTimeout: 15 * second, ReportedTimeout: 120 * second, OnTimeout: func() { close(expired) }})
		began := s.opened
		for at := time.Duration(0); at < 200*second && !s.receiver.expired; at += second {
			if at%(5*second) == 0 && at <= row.reports && row.reports > 0 {
				if _, err := conn.WriteTo(text, above); err != nil {
					t.Fatal(err)
				}
				before := s.Stats()
				for n := s.Stats(); n.ReportsReceived+n.Ignored == before.ReportsReceived+before.Ignored; n = s.Stats() {
					s.transport.poll.Tick(began.Add(at))
				}
				if s.receiver.reportedAt > 0 { // received now; the test's clock is ahead of real time
					s.receiver.reportedAt = max(at, 1)
				}
			}
			s.Tick(began.Add(at))
			if s.receiver.expired && (at < row.want || at > row.want+2*second) {
				t.Errorf("%s: expired after %v, want %v", name, at, row.want)
			}
		}
		if !s.receiver.expired {
			t.Errorf("%s: never expired", name)
		}
		<-expired
	}
}

func TestBlockingOnTimeout(t *testing.T) {
	s := newManualSession(t)
	p := newPhone(t, s)
	blocked := make(chan struct{})
	s.Start(Params{Remote: p.addr(), Codec: codec.PCMU{}, FirstPacketTimeout: 50 * ms, OnTimeout: func() { <-blocked }})
	due := s.opened
	for range 10 {
		due = due.Add(media.FrameTime)
		s.Tick(due)
	}
	close(blocked)
	if n := s.Stats().Sent; n != 10 {
		t.Errorf("%d packets sent", n)
	}
}

func TestMute(t *testing.T) {
	remote := newPhone(t, startSession(t, Params{}))
	s := startSession(t, Params{Remote: remote.addr(), Mute: true})
	if remote.receives(100 * ms) {
		t.Error("a muted session sends")
	}
	s.Start(Params{Remote: remote.addr(), Codec: codec.PCMA{}, PayloadType: 8})
	if !remote.receives(5 * time.Second) {
		t.Error("a session that is not muted does not send")
	}
}

// TestNoAllocations checks that sending, receiving and reading a frame do not allocate.
func TestNoAllocations(t *testing.T) {
	for _, c := range codec.All() {
		s, step := newStepSession(t, c)
		for range 200 {
			step()
		}
		if n := testing.AllocsPerRun(500, step); n != 0 {
			t.Errorf("%s: a frame sent, received and read allocates %v times", c.Name(), n)
		}
		if sum := s.Stats(); sum.Received < 500 || sum.Overflow != 0 || sum.Lost != 0 {
			t.Errorf("%s: %+v", c.Name(), sum)
		}
	}
}

// newStepSession returns a session that sends to itself, and a function that advances the session by one frame.
func newStepSession(tb testing.TB, c codec.Codec) (*Session, func()) {
	tb.Helper()
	s := newManualSession(tb)
	tr := s.transport
	s.reading.Store(true)
	s.Start(Params{Remote: s.Local(), Codec: c, PayloadType: c.PayloadType()})
	s.Play(mediatest.Tone(440))
	s.reader.Start(s.Rate(), 0)
	s.reader.DisableDriftRepair() // both sides use the same clock
	f := make(media.Frame, media.FrameLen(s.Rate()))
	var due time.Time
	return s, func() {
		due = due.Add(media.FrameTime)
		s.Tick(due)
		for range 1000 {
			tr.poll.Tick(due)
			if s.in.Peek() != nil {
				break
			}
			runtime.Gosched()
		}
		if s.in.Peek() == nil {
			tb.Fatal("a packet to the session itself did not arrive")
		}
		if err := s.ReadFrame(f); err != nil {
			tb.Error(err)
		}
	}
}

func BenchmarkSessionFrame(b *testing.B) {
	for _, c := range codec.All() {
		b.Run(c.Name(), func(b *testing.B) {
			_, step := newStepSession(b, c)
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
		})
	}
}

func BenchmarkSessionTick(b *testing.B) {
	s, _ := newStepSession(b, codec.PCMU{})
	due := time.Time{}
	b.ReportAllocs()
	for b.Loop() {
		due = due.Add(media.FrameTime)
		s.Tick(due)
	}
}

// TestFeedCalledOncePerFrame checks that a feed is called once for each frame, at times one frame apart, even if the
// feed is replaced often.
func TestFeedCalledOncePerFrame(t *testing.T) {
	s := startSession(t, Params{Remote: netip.MustParseAddrPort("127.0.0.1:9")})
	var calls atomic.Int64
	last := time.Time{}
	s.Play(media.FeedFunc(func(f media.Frame, due time.Time) {
		if len(f) != frameLen {
			t.Errorf("called for %d samples", len(f))
		}
		if !last.IsZero() && due.Sub(last)%media.FrameTime != 0 {
			t.Errorf("dues %v apart", due.Sub(last))
		}
		last = due
		calls.Add(1)
	}))
	eventually(t, func() bool { return calls.Load() > 5 })
	s.Play(nil)
	n := calls.Load()
	sent := s.Stats().Sent
	eventually(t, func() bool { return s.Stats().Sent > sent+5 })
	if more := calls.Load() - n; more > 1 {
		t.Errorf("called %d times after it was replaced", more)
	}
}

// TestKeysDoNotCountAsLost sends digits between speech. All packets share one sequence, and none counts as lost.
func TestKeysDoNotCountAsLost(t *testing.T) {
	s := startSession(t, Params{})
	p := newPhone(t, s)
	read := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		f := make(media.Frame, frameLen)
		for n := 0; s.ReadFrame(f) == nil; n++ {
			if n == 0 {
				close(read)
			}
		}
	})
	defer wg.Wait()
	defer s.Close()
	<-read
	speak := func(n int) {
		for range n {
			p.send(0, make([]byte, frameLen))
			p.ts += uint32(frameLen)
		}
	}
	speak(5)
	p.key(5)
	p.seq++ // this packet is really lost
	p.key(6)
	speak(5)
	sent := int64(5 + 6 + 6 + 5)
	eventually(t, func() bool { return s.Stats().Received == sent && s.in.Peek() == nil })
	eventually(t, func() bool { return s.Stats().Lost > 0 })
	if n := s.Stats(); n.Lost != 1 || n.Duplicate != 0 || n.Overflow != 0 {
		t.Errorf("%+v", n)
	}
}

// TestUnreachable sets targets that the socket cannot reach. For some of them, the kernel would deliver packets to
// the same port of this host, where another process could receive the call.
func TestUnreachable(t *testing.T) {
	for _, addr := range []string{"2001:db8::7", "::", "0.0.0.0", "224.0.0.1", "ff02::1", "255.255.255.255"} {
		t.Run(addr, func(t *testing.T) {
			s := startSession(t, Params{Mute: true})
			local := newPhone(t, s)
			to := netip.MustParseAddr(addr)
			if err := s.CheckRemote(to); err == nil {
				t.Error("CheckRemote: got no error")
			}
			s.Start(Params{Codec: codec.PCMU{}, Remote: netip.AddrPortFrom(to, local.addr().Port())})
			eventually(t, func() bool { return s.Stats().Unsent >= 3 })
			if local.receives(50 * ms) {
				t.Error("a local socket received packets")
			}
			if n := s.Stats().Sent; n != 0 {
				t.Errorf("%d packets sent", n)
			}
			s.Start(Params{Codec: codec.PCMU{}, Remote: local.addr()})
			if !local.receives(5 * time.Second) {
				t.Error("the session does not recover")
			}
		})
	}
}
