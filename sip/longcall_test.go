package sip

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/rtp/rtptest"
	"github.com/parley-voice/parley/sip/dialog"
	"github.com/parley-voice/parley/sip/siptest"
)

// A simNet connects simulated sockets, so that virtual time passes while
// goroutines wait for one.
type simNet struct {
	mu    sync.Mutex
	conns map[string]*simConn
}

type datagram struct {
	data []byte
	from net.Addr
}

type simConn struct {
	network *simNet
	addr    *net.UDPAddr
	in      chan datagram
	done    chan struct{}
	close   sync.Once
}

// open implements UA.OpenSockets. Its TCP listener accepts nothing.
func (e *simNet) open(addr string) (net.PacketConn, net.Listener, error) {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, nil, err
	}
	c := &simConn{network: e, addr: net.UDPAddrFromAddrPort(at), in: make(chan datagram, 100), done: make(chan struct{})}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.conns[addr] = c
	return c, simListener{c}, nil
}

func (c *simConn) ReadFrom(b []byte) (int, net.Addr, error) {
	select {
	case d := <-c.in:
		return copy(b, d.data), d.from, nil
	case <-c.done:
		return 0, nil, net.ErrClosed
	}
}

func (c *simConn) WriteTo(b []byte, to net.Addr) (int, error) {
	c.network.mu.Lock()
	peer := c.network.conns[to.String()]
	c.network.mu.Unlock()
	if peer != nil {
		select {
		case peer.in <- datagram{append([]byte(nil), b...), c.addr}:
		default: // like a full socket buffer
		}
	}
	return len(b), nil
}

func (c *simConn) Close() error                     { c.close.Do(func() { close(c.done) }); return nil }
func (c *simConn) LocalAddr() net.Addr              { return c.addr }
func (c *simConn) SetDeadline(time.Time) error      { return nil }
func (c *simConn) SetReadDeadline(time.Time) error  { return nil }
func (c *simConn) SetWriteDeadline(time.Time) error { return nil }

type simListener struct{ conn *simConn }

func (l simListener) Accept() (net.Conn, error) { <-l.conn.done; return nil, net.ErrClosed }
func (l simListener) Close() error              { return l.conn.Close() }
func (l simListener) Addr() net.Addr {
	return &net.TCPAddr{IP: l.conn.addr.IP, Port: l.conn.addr.Port}
}

// sendDrifting sends a tone with a clock that is off by ppm, with bursts of loss,
// until ctx ends. It returns the number of lost packets.
func sendDrifting(ctx context.Context, t *testing.T, from *net.UDPConn, to netip.AddrPort, ppm float64) (lost int) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	period := time.Duration(float64(media.FrameTime) * (1 - ppm/1e6))
	encoder := codec.PCMU{}.NewEncoder()
	pcm, packet := make([]int16, 160), make([]byte, 12+160)
	packet[0] = 0x80
	bad := 0
	for n, due := 0, time.Now(); ctx.Err() == nil; n, due = n+1, due.Add(period) {
		<-time.After(time.Until(due))
		if bad == 0 && random.IntN(300) == 0 { // a burst about every 6 s
			bad = 1 + random.IntN(8)
		}
		if bad > 0 {
			bad--
			lost++
			continue
		}
		for i := range pcm {
			pcm[i] = int16(8000 * math.Sin(2*math.Pi*440*float64(n*160+i)/8000))
		}
		binary.BigEndian.PutUint16(packet[2:], uint16(n))
		binary.BigEndian.PutUint32(packet[4:], uint32(n*160))
		encoder.Encode(packet[12:], pcm)
		if _, err := from.WriteToUDPAddrPort(packet, to); err != nil {
			t.Error(err)
		}
	}
	return lost
}

// TestLongCall holds a call for 30 minutes of virtual time with a clock that is
// off by 200 ppm either way, burst losses, and a refresh every 5 minutes.
func TestLongCall(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	for _, ppm := range []float64{200, -200} {
		t.Run(fmt.Sprintf("%+.0f ppm", ppm), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { longCall(t, ppm) })
		})
	}
}

func longCall(t *testing.T, ppm float64) {
	t.Helper()
	const lasts = 30 * time.Minute
	ctx := t.Context()
	var work sync.WaitGroup
	transport, _ := rtptest.New(t, "127.0.0.1")
	source, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	network := &simNet{conns: map[string]*simConn{}}
	audio := make(chan netip.AddrPort, 1)
	carrier := &siptest.Carrier{Listen: "127.0.0.1:5062", Media: transport, OpenSockets: network.open, Answer: func(in siptest.Invite) siptest.Script {
		audio <- in.Audio
		return siptest.Script{
			Status: 200, NoMedia: true, Session: dialog.SessionExpires{Length: 10 * time.Minute, Refresher: dialog.UAC},
			SDP: []byte(sdpWithPort(source.LocalAddr().(*net.UDPAddr).Port)), //nolint:forcetypeassert // a UDP socket
		}
	}}
	ua := &UA{Listen: "127.0.0.1:5060", Media: transport, OpenSockets: network.open}
	if err = carrier.Start(); err != nil {
		t.Fatal(err)
	}
	if err = ua.Start(); err != nil {
		t.Fatal(err)
	}
	call, err := ua.Dial(ctx, media.Target{ID: "long", To: "12025550123", From: "+12025550100", Trunk: media.Trunk{Proxy: "sip:127.0.0.1:5062;transport=udp"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	sending, stop := context.WithTimeout(ctx, lasts)
	var lost int
	work.Go(func() { lost = sendDrifting(sending, t, source, <-audio, ppm) })
	frames, began := 0, time.Now()
	frame := make(media.Frame, media.FrameLen(call.Rate()))
	for time.Since(began) < lasts {
		if err := call.ReadFrame(frame); err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			break
		}
		frames++
	}
	if cause := call.Cause(); cause != "" {
		t.Errorf("the call ended after %v: %s", time.Since(began), cause)
	}
	if want := int(lasts / media.FrameTime); frames < want-10 || frames > want+10 {
		t.Errorf("got %d frames in %v, want %d", frames, lasts, want)
	}
	refreshes := 0
	for _, line := range lines(call.(media.SignalingTracer).Ladder(ctx)) { //nolint:forcetypeassert // the leg of package sip/leg
		if line == ">UPDATE" {
			refreshes++
		}
	}
	if refreshes < 5 {
		t.Errorf("%d refreshes", refreshes)
	}
	stop()
	_ = call.Hangup(media.LocalHangup)
	if err := errors.Join(ua.Close(ctx), carrier.Close()); err != nil {
		t.Error(err)
	}
	work.Wait()
	_ = source.Close()
	t.Logf("%d frames, %d packets lost, %d refreshes", frames, lost, refreshes)
}
