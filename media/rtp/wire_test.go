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
	"github.com/parley-voice/parley/media/pace"
)

// A phone is the far end of a session, by hand.
type phone struct {
	t    *testing.T
	conn net.PacketConn
	to   net.Addr
	seq  uint16
	ts   uint32
	at   time.Duration // of the clock that the test is
}

func newPhone(t *testing.T, s *Session) *phone {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &phone{t: t, conn: conn, to: net.UDPAddrFromAddrPort(s.Local())}
}

func (p *phone) addr() netip.AddrPort { return p.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

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

// hears waits for a packet.
func (p *phone) hears(within time.Duration) bool {
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
			t.Fatalf("heard %q", got)
		}
	}
	if got != "0123456789*#" {
		t.Errorf("heard %q", got)
	}
	for range keysQueued + 5 { // nobody takes these
		p.key(1)
	}
	eventually(t, func() bool { return s.Stats().KeysLost == 5 })
}

// eventually waits for what the clock does.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	deadline := time.After(5 * time.Second)
	tick := time.NewTicker(pace.Tick)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("it did not happen")
		}
	}
}

// TestSymmetric sends from a port that SDP did not tell, and is sent to there.
// A thief that sends later gets nothing and is not heard.
func TestSymmetric(t *testing.T) {
	told, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = told.Close() }()
	s := startSession(t, Params{Remote: told.LocalAddr().(*net.UDPAddr).AddrPort()})
	p := newPhone(t, s)
	for range 10 {
		p.send(0, make([]byte, 160))
		p.ts += 160
	}
	if !p.hears(5 * time.Second) {
		t.Fatal("the phone hears nothing")
	}
	before := s.Stats().Received
	thief := newPhone(t, s)
	for range 50 {
		thief.send(0, make([]byte, 160))
	}
	eventually(t, func() bool { return s.Stats().Ignored == 50 })
	if thief.hears(100 * time.Millisecond) {
		t.Error("the thief hears the call")
	}
	if n := s.Stats().Received; n != before {
		t.Errorf("%d packets of the thief were taken", n-before)
	}
}

func TestNoise(t *testing.T) {
	s := startSession(t, Params{})
	p := newPhone(t, s)
	for _, b := range [][]byte{{}, {0x80}, {0x80, 200, 0, 1}, make([]byte, 12), make([]byte, 1499), make([]byte, 4000)} {
		if _, err := p.conn.WriteTo(b, p.to); err != nil {
			t.Fatal(err)
		}
	}
	p.send(77, make([]byte, 160))         // no type agreed on
	p.send(0, make([]byte, maxPayload+1)) // longer than any codec sends
	p.send(0, make([]byte, 160))
	eventually(t, func() bool { return s.Stats().Received == 1 })
	if n := s.Stats(); n.Malformed != 6 || n.Unknown != 1 {
		t.Errorf("%+v", n)
	}
}

func TestExpired(t *testing.T) {
	first, later := make(chan struct{}), make(chan struct{})
	s := startSession(t, Params{FirstWithin: 50 * ms, Within: time.Hour, Expired: func() { close(first) }})
	<-first
	p := newPhone(t, s)
	p.send(0, make([]byte, 160))
	eventually(t, func() bool { return s.Stats().Received == 1 })
	s.Start(Params{Codec: codec.PCMU{}, FirstWithin: time.Hour, Within: 50 * ms, Expired: func() { close(later) }})
	<-later
	// On hold nobody need send.
	s.Start(Params{Codec: codec.PCMU{}, Expired: func() { t.Error("expired without a limit") }})
	var ticks atomic.Int64
	s.Play(media.FeedFunc(func(media.Frame, time.Time) { ticks.Add(1) }))
	eventually(t, func() bool { return ticks.Load() > 10 })
}

// TestExpiredBlocks holds that the clock goes on while Expired does not return.
func TestExpiredBlocks(t *testing.T) {
	s := newHandSession(t)
	p := newPhone(t, s)
	held := make(chan struct{})
	s.Start(Params{Remote: p.addr(), Codec: codec.PCMU{}, FirstWithin: 50 * ms, Expired: func() { <-held }})
	due := s.opened
	for range 10 {
		due = due.Add(media.FrameTime)
		s.Tick(due)
	}
	close(held)
	if n := s.Stats().Sent; n != 10 {
		t.Errorf("%d packets sent", n)
	}
}

func TestMute(t *testing.T) {
	far := newPhone(t, startSession(t, Params{}))
	s := startSession(t, Params{Remote: far.addr(), Mute: true})
	if far.hears(100 * ms) {
		t.Error("a muted session sends")
	}
	s.Start(Params{Remote: far.addr(), Codec: codec.PCMA{}, PayloadType: 8})
	if !far.hears(5 * time.Second) {
		t.Error("a session that is not muted does not send")
	}
}

// TestNoAllocations sends, receives and reads frames by hand, without a clock.
func TestNoAllocations(t *testing.T) {
	for _, c := range codec.All() {
		s, step := byHand(t, c)
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

// byHand is a session that sends to itself, and a function that moves it by
// one frame. It has no clock: the test is the clock.
func byHand(tb testing.TB, c codec.Codec) (*Session, func()) {
	tb.Helper()
	s := newHandSession(tb)
	tr := s.transport
	s.read.Store(true)
	s.Start(Params{Remote: s.Local(), Codec: c, PayloadType: c.PayloadType()})
	s.Play(&sine{hz: 440})
	s.reader.Begin(s.Rate(), 0)
	s.reader.Steady() // a clock as fast as this one is no drift
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
			tb.Fatal("a packet to ourselves did not come")
		}
		if err := s.ReadFrame(f); err != nil {
			tb.Error(err)
		}
	}
}

func BenchmarkSessionFrame(b *testing.B) {
	for _, c := range codec.All() {
		b.Run(c.Name(), func(b *testing.B) {
			_, step := byHand(b, c)
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
		})
	}
}

func BenchmarkSessionTick(b *testing.B) {
	s, _ := byHand(b, codec.PCMU{})
	due := time.Time{}
	b.ReportAllocs()
	for b.Loop() {
		due = due.Add(media.FrameTime)
		s.Tick(due)
	}
}

// TestFeedAlone holds that a feed is asked once a frame, with dues a frame
// apart, however often it is replaced.
func TestFeedAlone(t *testing.T) {
	s := startSession(t, Params{Remote: netip.MustParseAddrPort("127.0.0.1:9")})
	var asked atomic.Int64
	last := time.Time{}
	s.Play(media.FeedFunc(func(f media.Frame, due time.Time) {
		if len(f) != frameLen {
			t.Errorf("asked for %d samples", len(f))
		}
		if !last.IsZero() && due.Sub(last)%media.FrameTime != 0 {
			t.Errorf("dues %v apart", due.Sub(last))
		}
		last = due
		asked.Add(1)
	}))
	eventually(t, func() bool { return asked.Load() > 5 })
	s.Play(nil)
	n := asked.Load()
	sent := s.Stats().Sent
	eventually(t, func() bool { return s.Stats().Sent > sent+5 })
	if more := asked.Load() - n; more > 1 {
		t.Errorf("asked %d times after it was replaced", more)
	}
}

// TestKeysAreNotLost presses keys between words: their packets have numbers of
// the same sequence, and none is missing.
func TestKeysAreNotLost(t *testing.T) {
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
	p.seq++ // one is lost indeed
	p.key(6)
	speak(5)
	sent := int64(5 + 6 + 6 + 5)
	eventually(t, func() bool { return s.Stats().Received == sent && s.in.Peek() == nil })
	eventually(t, func() bool { return s.Stats().Lost > 0 })
	if n := s.Stats(); n.Lost != 1 || n.Duplicate != 0 || n.Overflow != 0 {
		t.Errorf("%+v", n)
	}
}

// TestUnreachable sends to addresses that a socket of ours cannot send to. The
// kernel would deliver some of them to this host, at the port told: nobody
// here may hear the call.
func TestUnreachable(t *testing.T) {
	for _, addr := range []string{"2001:db8::7", "::", "0.0.0.0", "224.0.0.1", "ff02::1", "255.255.255.255"} {
		t.Run(addr, func(t *testing.T) {
			s := startSession(t, Params{Mute: true})
			stranger := newPhone(t, s)
			to := netip.MustParseAddr(addr)
			if err := s.Reaches(to); err == nil {
				t.Error("it is thought to be in reach")
			}
			s.Start(Params{Codec: codec.PCMU{}, Remote: netip.AddrPortFrom(to, stranger.addr().Port())})
			eventually(t, func() bool { return s.Stats().Unsent >= 3 })
			if stranger.hears(50 * ms) {
				t.Error("a stranger hears the call")
			}
			if n := s.Stats().Sent; n != 0 {
				t.Errorf("%d packets sent", n)
			}
			s.Start(Params{Codec: codec.PCMU{}, Remote: stranger.addr()})
			if !stranger.hears(5 * time.Second) {
				t.Error("the session does not recover")
			}
		})
	}
}
