package sip

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestUnknownMediaSource floods the media port of a call from an unknown source, from
// before the answer on. The callee is behind a NAT: its description has an
// unreachable address, so the source of its signaling identifies it.
func TestUnknownMediaSource(t *testing.T) {
	attacker := listenUDP(t, "127.0.0.2:0")
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	received := make(chan bool, 1)
	l := newEnv(t, func(siptest.Invite) siptest.Script {
		return siptest.Script{
			Status: 200,
			MediaRelay: func(_, theirs netip.AddrPort) (netip.AddrPort, netip.AddrPort, error) {
				wg.Go(func() { flood(ctx, attacker, theirs) })
				return netip.MustParseAddrPort("127.0.0.9:4000"), theirs, nil
			},
			Talk: func(ctx context.Context, leg media.Leg) {
				leg.Play(mediatest.Tone(1000))
				received <- waitTone(ctx, leg, 600)
				<-ctx.Done()
			},
		}
	})
	leg := l.call(t, l.target())
	defer func() { _ = leg.Hangup(media.LocalHangup) }()
	leg.Play(mediatest.Tone(600))
	if !waitTone(shortContext(t), leg, 1000) || !<-received {
		t.Error("audio does not pass in both directions")
	}
	_ = attacker.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	n := 0
	for b := make([]byte, 2048); ; n++ {
		if _, _, err := attacker.ReadFrom(b); err != nil {
			break
		}
	}
	if q := leg.Quality(); n > 5 || q.Ignored == 0 {
		t.Errorf("%d packets went to the unknown source; %d of its packets were counted", n, q.Ignored)
	}
}

func flood(ctx context.Context, from net.PacketConn, to netip.AddrPort) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	b := make([]byte, 12+160)
	b[0], b[11] = 0x80, 7
	for seq := byte(0); ; seq++ {
		select {
		case <-tick.C:
			b[3] = seq
			_, _ = from.WriteTo(b, net.UDPAddrFromAddrPort(to)) // lost packets have no effect on the test
		case <-ctx.Done():
			return
		}
	}
}

// TestTrunkMediaSettings checks that a trunk's media networks and time limits are applied.
func TestTrunkMediaSettings(t *testing.T) {
	mediaServer := listenUDP(t, "127.0.0.2:0")
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := newEnv(t, func(siptest.Invite) siptest.Script {
		return siptest.Script{
			Status: 200, NoMedia: true,
			MediaRelay: func(ours, theirs netip.AddrPort) (netip.AddrPort, netip.AddrPort, error) {
				wg.Go(func() { flood(ctx, mediaServer, theirs) })
				return ours, theirs, nil
			},
		}
	})
	for _, row := range []struct {
		network  string
		accepted bool
	}{{"127.0.0.2/32", true}, {"127.0.0.3/32", false}} {
		to := l.target()
		to.Trunk.MediaSources = []netip.Prefix{netip.MustParsePrefix(row.network)}
		to.Trunk.FirstMedia, to.Trunk.MediaGap = 500*time.Millisecond, time.Minute
		leg := l.call(t, to)
		if row.accepted {
			for leg.Quality().Received.Packets < 20 && leg.Cause() == "" {
				<-time.After(media.FrameTime)
			}
		} else {
			_ = drain(leg)
		}
		if c := leg.Cause(); (c == "") != row.accepted || c != "" && c != media.MediaTimeout {
			t.Errorf("media of %s: the leg ended with %q", row.network, c)
		}
		_ = leg.Hangup(media.LocalHangup)
	}
}
