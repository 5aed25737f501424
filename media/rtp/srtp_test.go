package rtp

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/srtp"
)

// level returns a feed whose samples all have the value v. G.711 must not change v.
func level(v int16) media.Feed {
	return media.FeedFunc(func(f media.Frame, _ time.Time) {
		for i := range f {
			f[i] = v
		}
	})
}

func TestEncrypted(t *testing.T) {
	for suite := range 2 {
		tr := newTestTransport(t)
		a, b := newPair(t, tr, codec.PCMU{})
		keys := [3]srtp.Key{srtp.New()[suite], srtp.New()[suite], srtp.New()[suite]}
		start := func(ours, theirs srtp.Key) {
			a.Start(Params{Remote: b.Local(), Codec: codec.PCMU{}, LocalKey: ours, RemoteKey: theirs})
			b.Start(Params{Remote: a.Local(), Codec: codec.PCMU{}, LocalKey: theirs, RemoteKey: ours})
		}
		start(keys[0], keys[1])
		a.Play(level(1052))
		b.Play(level(-2236))
		var wg sync.WaitGroup
		receive := func(s *Session, want int16) {
			f := make(media.Frame, frameLen)
			for played := 0; played < 20; {
				if err := s.ReadFrame(f); err != nil {
					t.Error(err)
					return
				}
				if _, ok := s.Arrived(); ok && f[0] == want {
					played++
				}
			}
		}
		both := func() {
			wg.Go(func() { receive(a, -2236) })
			wg.Go(func() { receive(b, 1052) })
			wg.Wait()
		}
		both()
		start(keys[2], keys[1]) // only the key of one side changes
		both()
		if n := a.Stats(); n.Forged > 2 {
			t.Errorf("%+v", n)
		}
	}
}

// TestForgedPacketFlood sends ten thousand packets without authentication, some of them from the remote address. It
// checks that the call continues and that none of these packets is played.
func TestForgedPacketFlood(t *testing.T) {
	keys := srtp.New()
	theirs := srtp.New()[0]
	s := startSession(t, Params{Mute: true})
	p, attacker := newPhone(t, s), newPhone(t, s)
	s.Start(Params{Remote: p.addr(), Codec: codec.PCMU{}, LocalKey: keys[0], RemoteKey: theirs})
	seal, err := srtp.NewEncrypter(theirs)
	if err != nil {
		t.Fatal(err)
	}
	var played []int16
	var wg sync.WaitGroup
	wg.Go(func() {
		f := make(media.Frame, frameLen)
		for !errors.Is(s.ReadFrame(f), io.EOF) {
			if _, ok := s.Arrived(); ok {
				played = append(played, f...)
			}
		}
	})
	sealed := func(v byte) {
		b := make([]byte, headerLen, headerLen+frameLen)
		p.seq++
		putHeader(b, packet{seq: p.seq, ts: p.ts, ssrc: 99})
		p.ts += uint32(frameLen)
		out, err := seal.RTP(nil, append(b, bytes.Repeat([]byte{v}, frameLen)...))
		if err != nil {
			t.Error(err)
		}
		if _, err := p.conn.WriteTo(out, p.to); err != nil {
			t.Error(err)
		}
	}
	const flood = 10_000
	sent := int64(0)
	for i := range flood {
		from := p
		if i%2 == 0 {
			from = attacker
		}
		b := make([]byte, headerLen+frameLen+10)
		putHeader(b, packet{seq: p.seq + 1, ts: p.ts, ssrc: 99})
		if _, err := from.conn.WriteTo(b, p.to); err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 {
			sealed(0x20)
			sent++
		}
		if i%200 == 199 { // packets that are not read in time are not counted
			want := int64(i + 1)
			eventually(t, func() bool {
				n := s.Stats()
				return n.Forged+n.Ignored == want && n.Received == sent
			})
		}
	}
	if !p.receives(5*time.Second) || attacker.receives(50*ms) {
		t.Error("the target changed")
	}
	s.Close()
	wg.Wait()
	want := make([]int16, 1)
	codec.PCMU{}.Decode(want, []byte{0x20})
	// On a slow machine, missing frames are concealed: the audio repeats and fades, with rounding errors. Audio that
	// is louder or has the other sign is forged.
	genuine, others := 0, 0
	rounding := max(want[0], -want[0]) / 4
	for _, v := range played {
		switch {
		case v == want[0]:
			genuine++
		case v < min(want[0], 0)-rounding || v > max(want[0], 0)+rounding:
			others++
		}
	}
	if genuine == 0 || others > 0 {
		t.Errorf("of %d samples played %d are genuine and %d are not", len(played), genuine, others)
	}
}

// TestPlainRTPIsRefused checks that a session with keys neither accepts nor sends unencrypted RTP, even if one of its
// keys is missing.
func TestPlainRTPIsRefused(t *testing.T) {
	s := startSession(t, Params{Mute: true})
	p := newPhone(t, s)
	s.Start(Params{Remote: p.addr(), Codec: codec.PCMU{}, LocalKey: srtp.New()[0]}) // the remote key is missing
	p.send(0, make([]byte, frameLen))
	eventually(t, func() bool { return s.Stats().Forged == 1 })
	s.Start(Params{Remote: p.addr(), Codec: codec.PCMU{}, RemoteKey: srtp.New()[0]}) // the local key is missing
	unsent := s.Stats().Unsent
	eventually(t, func() bool { return s.Stats().Unsent > unsent+2 })
	if n := s.Stats(); n.Received != 0 {
		t.Errorf("%+v", n)
	}
}

// TestUnknownSourceFlood sends from an unknown address throughout a call. It checks that nothing from there is
// played, and that nothing is sent there.
func TestUnknownSourceFlood(t *testing.T) {
	s := startSession(t, Params{Mute: true})
	p, attacker := newPhone(t, s), newPhone(t, s)
	s.Start(Params{Remote: p.addr(), Codec: codec.PCMU{}})
	var played []int16
	var wg sync.WaitGroup
	wg.Go(func() {
		f := make(media.Frame, frameLen)
		for !errors.Is(s.ReadFrame(f), io.EOF) {
			played = append(played, f...)
		}
	})
	payload := bytes.Repeat([]byte{0x20}, frameLen)
	injected := bytes.Repeat([]byte{0xa0}, frameLen)
	for n := range int64(60) {
		p.send(0, payload)
		p.ts += uint32(frameLen)
		attacker.send(0, injected)
		attacker.ts += uint32(frameLen)
		eventually(t, func() bool { return s.Stats().Received == n+1 && s.Stats().Ignored == n+1 })
	}
	if attacker.receives(50 * ms) {
		t.Error("the unknown source received packets")
	}
	s.Close()
	wg.Wait()
	bad := make([]int16, 1)
	codec.PCMU{}.Decode(bad, injected[:1])
	if len(played) == 0 || slices.Contains(played, bad[0]) {
		t.Errorf("some of %d samples came from the unknown source", len(played))
	}
}
