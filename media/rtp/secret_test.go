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
	"github.com/parley-voice/parley/media/crypt"
)

// level is a feed of one sample, which G.711 leaves as it is.
func level(v int16) media.Feed {
	return media.FeedFunc(func(f media.Frame, _ time.Time) {
		for i := range f {
			f[i] = v
		}
	})
}

// TestEncrypted has two sessions talk under keys of their own, and changes the
// key of one during the call.
func TestEncrypted(t *testing.T) {
	for suite := range 2 {
		tr := newTestTransport(t)
		a, b := newPair(t, tr, codec.PCMU{})
		keys := [3]crypt.Key{crypt.New()[suite], crypt.New()[suite], crypt.New()[suite]}
		start := func(ours, theirs crypt.Key) {
			a.Start(Params{Remote: b.Local(), Codec: codec.PCMU{}, Ours: ours, Theirs: theirs})
			b.Start(Params{Remote: a.Local(), Codec: codec.PCMU{}, Ours: theirs, Theirs: ours})
		}
		start(keys[0], keys[1])
		a.Play(level(1052))
		b.Play(level(-2236))
		var wg sync.WaitGroup
		hear := func(s *Session, want int16) {
			f := make(media.Frame, frameLen)
			for heard := 0; heard < 20; {
				if err := s.ReadFrame(f); err != nil {
					t.Error(err)
					return
				}
				if _, ok := s.Arrived(); ok && f[0] == want {
					heard++
				}
			}
		}
		both := func() {
			wg.Go(func() { hear(a, -2236) })
			wg.Go(func() { hear(b, 1052) })
			wg.Wait()
		}
		both()
		start(keys[2], keys[1]) // only one side's changes
		both()
		if n := a.Stats(); n.Forged > 2 {
			t.Errorf("%+v", n)
		}
	}
}

// TestForgedFlood sends ten thousand packets that nobody sealed, some of them
// from the party's own address: the call goes on, and nothing of them is heard.
func TestForgedFlood(t *testing.T) {
	keys := crypt.New()
	theirs := crypt.New()[0]
	s := startSession(t, Params{Mute: true})
	p, thief := newPhone(t, s), newPhone(t, s)
	s.Start(Params{Remote: p.addr(), Codec: codec.PCMU{}, Ours: keys[0], Theirs: theirs})
	seal, err := crypt.NewSealer(theirs)
	if err != nil {
		t.Fatal(err)
	}
	var heard []int16
	var wg sync.WaitGroup
	wg.Go(func() {
		f := make(media.Frame, frameLen)
		for !errors.Is(s.ReadFrame(f), io.EOF) {
			if _, ok := s.Arrived(); ok {
				heard = append(heard, f...)
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
			from = thief
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
		if i%200 == 199 { // what is not read in time is not counted
			want := int64(i + 1)
			eventually(t, func() bool {
				n := s.Stats()
				return n.Forged+n.Ignored == want && n.Received == sent
			})
		}
	}
	if !p.hears(5*time.Second) || thief.hears(50*ms) {
		t.Error("the call goes elsewhere")
	}
	s.Close()
	wg.Wait()
	want := make([]int16, 1)
	codec.PCMU{}.Decode(want, []byte{0x20})
	if len(heard) == 0 || slices.ContainsFunc(heard, func(v int16) bool { return v != want[0] }) {
		t.Errorf("%d samples heard, and others than were said", len(heard))
	}
}

// TestPlainIsNotHeard says that a session with keys hears and sends nothing
// plain, even where its keys are of no use.
func TestPlainIsNotHeard(t *testing.T) {
	s := startSession(t, Params{Mute: true})
	p := newPhone(t, s)
	s.Start(Params{Remote: p.addr(), Codec: codec.PCMU{}, Ours: crypt.New()[0]}) // theirs is missing
	p.send(0, make([]byte, frameLen))
	eventually(t, func() bool { return s.Stats().Forged == 1 })
	s.Start(Params{Remote: p.addr(), Codec: codec.PCMU{}, Theirs: crypt.New()[0]}) // ours is missing
	unsent := s.Stats().Unsent
	eventually(t, func() bool { return s.Stats().Unsent > unsent+2 })
	if n := s.Stats(); n.Received != 0 {
		t.Errorf("%+v", n)
	}
}

// TestSpray has a stranger send to our port throughout a call: nothing of it
// is heard, and the stranger hears nothing.
func TestSpray(t *testing.T) {
	s := startSession(t, Params{Mute: true})
	p, thief := newPhone(t, s), newPhone(t, s)
	s.Start(Params{Remote: p.addr(), Codec: codec.PCMU{}})
	var heard []int16
	var wg sync.WaitGroup
	wg.Go(func() {
		f := make(media.Frame, frameLen)
		for !errors.Is(s.ReadFrame(f), io.EOF) {
			heard = append(heard, f...)
		}
	})
	said := bytes.Repeat([]byte{0x20}, frameLen)
	injected := bytes.Repeat([]byte{0xa0}, frameLen)
	for n := range int64(60) {
		p.send(0, said)
		p.ts += uint32(frameLen)
		thief.send(0, injected)
		thief.ts += uint32(frameLen)
		eventually(t, func() bool { return s.Stats().Received == n+1 && s.Stats().Ignored == n+1 })
	}
	if thief.hears(50 * ms) {
		t.Error("the stranger hears the call")
	}
	s.Close()
	wg.Wait()
	bad := make([]int16, 1)
	codec.PCMU{}.Decode(bad, injected[:1])
	if len(heard) == 0 || slices.Contains(heard, bad[0]) {
		t.Errorf("of %d samples some are the stranger's", len(heard))
	}
}
