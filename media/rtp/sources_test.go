package rtp

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/latch"
)

// timedSender sends 50 packets per second from one address and counts the packets that it receives.
type timedSender struct {
	*phone
	value byte // value of all samples, in µ-law
	got   int
	last  time.Duration // time since the beginning at which the last packet was received
}

func newTimedSender(t *testing.T, s *Session, ip string, value byte) *timedSender {
	t.Helper()
	return &timedSender{phone: newPhoneAt(t, s, ip), value: value}
}

// span is a part of the test, counted from its beginning, in which a timedSender sends.
type span struct{ from, to time.Duration }

// speak sends during the spans, and counts received packets until the end.
func (k *timedSender) speak(began time.Time, end time.Duration, spans ...span) {
	var wg sync.WaitGroup
	wg.Go(func() {
		b := make([]byte, maxPacket)
		_ = k.conn.SetReadDeadline(began.Add(end))
		for {
			if _, _, err := k.conn.ReadFrom(b); err != nil {
				return
			}
			k.got, k.last = k.got+1, time.Since(began)
		}
	})
	wg.Go(func() {
		tick := time.NewTicker(media.FrameTime)
		defer tick.Stop()
		for range tick.C {
			at := time.Since(began)
			if at >= end {
				return
			}
			k.ts += uint32(frameLen)
			if slices.ContainsFunc(spans, func(s span) bool { return at >= s.from && at < s.to }) {
				k.send(0, bytes.Repeat([]byte{k.value}, frameLen))
			}
		}
	})
	wg.Wait()
}

// Samples of the callee and of an unknown source, in µ-law.
const (
	calleeByte  = 0x20
	unknownByte = 0xa0
)

// TestUnknownSources sends from an unknown address before the remote party begins, or while the remote party is silent.
// It checks that the unknown source receives at most five packets and that none of its samples is played. Audio must
// flow in both directions whenever the remote party sends.
func TestUnknownSources(t *testing.T) {
	at := func(from, to time.Duration) []span { return []span{{from, to}} }
	var all sync.WaitGroup
	defer all.Wait()
	calleeIP, elsewhere := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.9")
	for name, row := range map[string]struct {
		nat      bool // the remote party sends from another address than that in the SDP
		expected latch.ExpectedSources
		callee   []span
		other    []span
		end      time.Duration
	}{
		"before the callee": {false, latch.ExpectedSources{Signaling: []netip.Addr{calleeIP}}, at(1500*ms, 3*time.Second), at(0, 3*time.Second), 3 * time.Second},
		"while the callee is silent": {
			false,
			latch.ExpectedSources{Signaling: []netip.Addr{calleeIP}},
			[]span{{0, 500 * ms}, {3500 * ms, 4500 * ms}},
			at(0, 4500*ms), 4500 * ms,
		},
		"before a callee behind a NAT": {true, latch.ExpectedSources{Signaling: []netip.Addr{calleeIP}}, at(200*ms, 2*time.Second), at(0, 2*time.Second), 2 * time.Second},
		"long before a callee behind a NAT with known networks": {
			true, latch.ExpectedSources{Media: []netip.Prefix{netip.PrefixFrom(calleeIP, 32)}}, at(1500*ms, 3*time.Second), at(0, 3*time.Second), 3 * time.Second,
		},
		"while a callee behind a NAT is silent": {
			true,
			latch.ExpectedSources{Signaling: []netip.Addr{calleeIP}},
			[]span{{0, 500 * ms}, {3500 * ms, 4500 * ms}},
			at(0, 4500*ms), 4500 * ms,
		},
		"while a callee behind a NAT that signals from elsewhere is silent": {
			true,
			latch.ExpectedSources{},
			[]span{{0, 1 * time.Second}, {4 * time.Second, 5 * time.Second}},
			at(1*time.Second, 5*time.Second), 5 * time.Second,
		},
	} {
		s := startSession(t, Params{Mute: true})
		callee, other := newTimedSender(t, s, "127.0.0.1", calleeByte), newTimedSender(t, s, "127.0.0.2", unknownByte)
		all.Go(func() {
			remote := callee.addr()
			if row.nat {
				remote = netip.AddrPortFrom(elsewhere, 4000)
			}
			samples := listen(s)
			s.Start(Params{Remote: remote, Expected: row.expected, Codec: codec.PCMU{}})
			began := time.Now()
			var wg sync.WaitGroup
			wg.Go(func() { callee.speak(began, row.end, row.callee...) })
			wg.Go(func() { other.speak(began, row.end, row.other...) })
			wg.Wait()
			ignored := s.Quality().Ignored
			s.Close()
			good, bad := samples()
			if other.got > 5 || bad > 0 {
				t.Errorf("%s: %d packets went to the unknown source, %d of its samples were played", name, other.got, bad)
			}
			if callee.got < 25 || callee.last < row.end-200*ms || good < 25*frameLen {
				t.Errorf("%s: %d packets went to the callee, the last at %v; %d of its samples were played", name, callee.got, callee.last, good)
			}
			if ignored < 25 {
				t.Errorf("%s: %d packets are counted as ignored", name, ignored)
			}
		})
	}
}

// listen reads a session until it ends. samples then returns how many samples came from the callee and from the
// unknown source.
func listen(s *Session) (samples func() (callee, other int)) {
	sample := func(b byte) int16 {
		pcm := make([]int16, 1)
		codec.PCMU{}.Decode(pcm, []byte{b})
		return pcm[0]
	}
	ours, theirs := sample(calleeByte), sample(unknownByte)
	var callee, other int
	var wg sync.WaitGroup
	wg.Go(func() {
		f := make(media.Frame, frameLen)
		for !errors.Is(s.ReadFrame(f), io.EOF) {
			for _, v := range f {
				switch v {
				case ours:
					callee++
				case theirs:
					other++
				}
			}
		}
	})
	return func() (int, int) {
		wg.Wait()
		return callee, other
	}
}

// TestMediaFromOtherAddress checks that audio flows in both directions if the remote party does not send from the
// address in the SDP.
func TestMediaFromOtherAddress(t *testing.T) {
	var all sync.WaitGroup
	defer all.Wait()
	signaling := netip.MustParseAddr("127.0.0.1")
	for name, row := range map[string]struct {
		sdp      string
		expected latch.ExpectedSources
		from     string
		after    time.Duration // latest time of its first audio
	}{
		"another port":               {"127.0.0.3", latch.ExpectedSources{Signaling: []netip.Addr{signaling}}, "127.0.0.3", 200 * ms},
		"the signaling address":      {"127.0.0.3", latch.ExpectedSources{Signaling: []netip.Addr{signaling}}, "127.0.0.1", 200 * ms},
		"another server":             {"127.0.0.3", latch.ExpectedSources{Signaling: []netip.Addr{signaling}}, "127.0.0.4", 600 * ms},
		"an unknown address":         {"127.0.0.1", latch.ExpectedSources{Signaling: []netip.Addr{signaling}}, "127.0.0.4", 2300 * ms},
		"one of the media networks":  {"127.0.0.1", latch.ExpectedSources{Signaling: []netip.Addr{signaling}, Media: []netip.Prefix{netip.MustParsePrefix("127.0.0.4/30")}}, "127.0.0.4", 200 * ms},
		"outside the media networks": {"127.0.0.1", latch.ExpectedSources{Signaling: []netip.Addr{signaling}, Media: []netip.Prefix{netip.MustParsePrefix("127.0.0.8/30")}}, "127.0.0.4", 0},
	} {
		s := startSession(t, Params{Mute: true})
		k := newTimedSender(t, s, row.from, calleeByte)
		all.Go(func() {
			s.Start(Params{Remote: netip.AddrPortFrom(netip.MustParseAddr(row.sdp), 4000), Expected: row.expected, Codec: codec.PCMU{}})
			began, end := time.Now(), row.after+time.Second
			k.speak(began, end, span{0, end})
			n := s.Stats()
			if row.after == 0 {
				if n.Received > 0 || k.got > 0 {
					t.Errorf("%s: received %d packets, %d sent there", name, n.Received, k.got)
				}
				return
			}
			if n.Received < 35 || k.got < 25 {
				t.Errorf("%s, of %v: received %d packets, %d sent there", name, end, n.Received, k.got)
			}
		})
	}
}
