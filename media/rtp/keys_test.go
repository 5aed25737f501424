package rtp

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/dtmf"
	"github.com/parley-voice/parley/media/mediatest"
)

// TestPress checks the packets of a digit. They are 20 ms apart and have the same timestamp. The first has the marker,
// the duration grows, and three are end packets. The next digit follows after 60 ms. The RTP clock of the audio
// continues during the digits.
func TestPress(t *testing.T) {
	s := newManualSession(t)
	p := newPhone(t, s)
	s.Start(Params{Remote: p.addr(), Codec: codec.G722{}, PayloadType: 9, KeyType: 101, Ptime: 40 * ms})
	s.Play(mediatest.Tone(440))
	all := p.run(s, 3) // the third frame is half a packet
	if err := s.Press("7#"); err != nil {
		t.Fatal(err)
	}
	all = append(all, p.run(s, 20)...)
	var got []string
	for i, g := range all {
		if i > 0 && g.seq != all[i-1].seq+1 {
			t.Errorf("packet %d has number %d after %d", i, g.seq, all[i-1].seq)
		}
		text := "a"
		if g.pt == 101 {
			text = string(dtmf.Names[g.payload[0]])
			if g.payload[1]&0x80 != 0 {
				text += "E"
			}
			if d := binary.BigEndian.Uint16(g.payload[2:]); int(d) != frameLen*min(5, int((g.at-40*ms)%(160*ms)/(20*ms))) && len(g.payload) != 4 {
				t.Errorf("packet %d lasts %d", i, d)
			}
		}
		if g.marker {
			text += "!"
		}
		got = append(got, text)
	}
	want := "a! a 7! 7 7 7 7E 7E 7E #! # # # #E #E #E a!"
	if text := strings.Join(got, " "); !strings.HasPrefix(text, want) {
		t.Errorf("sent %s, want %s", text, want)
	}
	first, second := all[2], all[9]
	if first.at != 60*ms || second.at != 60*ms+160*ms || second.ts-first.ts != 8*uint32(frameLen) {
		t.Errorf("digits at %v and %v, %d ticks apart", first.at, second.at, second.ts-first.ts)
	}
	for i, g := range all[2:16] {
		key, n := all[2+i/7*7], i%7
		if g.ts != key.ts || binary.BigEndian.Uint16(g.payload[2:]) != uint16(min(n+1, 5)*frameLen) || g.at != key.at+time.Duration(n)*20*ms {
			t.Errorf("packet %d of key %d: %+v", n, i/7, g)
		}
	}
	if after := all[16]; after.ts-first.ts != 16*uint32(frameLen) {
		t.Errorf("audio resumes %d ticks after the first key", after.ts-first.ts)
	}
}

func TestPressRefused(t *testing.T) {
	s := newManualSession(t)
	if err := s.Press("1"); !errors.Is(err, ErrNoKeys) {
		t.Errorf("before the start: %v", err)
	}
	s.Start(Params{Codec: codec.PCMU{}, KeyType: 96})
	if err := s.Press("12z"); err == nil || !strings.Contains(err.Error(), `'z'`) {
		t.Errorf("invalid key: %v", err)
	}
	if err := s.Press(strings.Repeat("1", 65)); !errors.Is(err, dtmf.ErrFull) {
		t.Errorf("too many: %v", err)
	}
	if err := s.Press(strings.Repeat("1", 64)); err != nil {
		t.Errorf("as many as fit: %v", err)
	}
	s.Close()
	if err := s.Press("1"); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if err := s.ReceiveKey('1'); err != nil { // a digit after the end is ignored without an error
		t.Error(err)
	}
}

func TestKeysUnderLoss(t *testing.T) {
	const keys = "0123456789*#"
	s := newManualSession(t)
	p := newPhone(t, s)
	s.Start(Params{Remote: p.addr(), Codec: codec.PCMU{}, KeyType: 101})
	rng := rand.New(rand.NewPCG(7, 8))
	var d dtmf.EventDecoder
	got, lost := "", 0
	for range 100 {
		if err := s.Press(keys); err != nil {
			t.Fatal(err)
		}
		for _, g := range p.run(s, 8*len(keys)) {
			if rng.IntN(10) == 0 {
				lost++
				continue
			}
			if g.pt != 101 {
				continue
			}
			if key, ok := d.Decode(g.ssrc, g.ts, g.marker, g.payload); ok {
				got += string(key)
			}
		}
	}
	if got != strings.Repeat(keys, 100) {
		t.Errorf("got %d keys of 1200: %q", len(got), got)
	}
	if lost < 500 {
		t.Errorf("%d packets lost", lost)
	}
}

func TestSippCaptures(t *testing.T) {
	const dir = "/usr/share/sip-tester"
	for name, want := range map[string]string{"0": "0", "1": "1", "5": "5", "9": "9", "star": "*", "pound": "#"} {
		b, err := os.ReadFile(filepath.Join(dir, "dtmf_2833_"+name+".pcap"))
		if err != nil {
			t.Skip("no pcap files of sipp")
		}
		var d dtmf.EventDecoder
		got := ""
		for b = b[24:]; len(b) > 16; {
			n := int(binary.LittleEndian.Uint32(b[8:]))
			frame := b[16 : 16+n]
			b = b[16+n:]
			p, ok := parse(&rtp.Header{}, frame[14+20+8:]) // skips the Ethernet, IP and UDP headers
			if !ok {
				t.Fatalf("%s: %x", name, frame)
			}
			if key, ok := d.Decode(p.ssrc, p.ts, p.marker, p.payload); ok {
				got += string(key)
			}
		}
		if got != want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// TestKeysAsTones checks that digits are sent as tones if both sides use tones, and if no event type was negotiated.
func TestKeysAsTones(t *testing.T) {
	for _, row := range []struct {
		codec  codec.Codec
		inBand bool // the sender uses tones
		keys   string
	}{{codec.PCMA{}, true, "1A#"}, {codec.PCMU{}, false, "12#"}, {codec.G722{}, false, "12#"}} {
		name, pt := row.codec.Name(), row.codec.PayloadType()
		a, b := newPair(t, newTestTransport(t), row.codec)
		a.Start(Params{Remote: b.Local(), Codec: row.codec, PayloadType: pt, InBand: row.inBand})
		b.Start(Params{Remote: a.Local(), Codec: row.codec, PayloadType: pt, InBand: true})
		read := make(chan struct{})
		go func() {
			defer close(read)
			f := make(media.Frame, media.FrameLen(b.Rate()))
			for err := error(nil); err == nil; {
				err = b.ReadFrame(f)
			}
		}()
		if err := a.Press(row.keys); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := ""
		for len(got) < 3 {
			select {
			case k := <-b.Digits():
				got += string(k)
			case <-time.After(5 * time.Second):
				t.Fatalf("%s: got %q", name, got)
			}
		}
		if got != row.keys {
			t.Errorf("%s: got %q", name, got)
		}
		b.Close()
		<-read
	}
}

// TestKeyByTwoMethods checks that digits by SIP INFO are accepted until the first RFC 4733 event, and ignored later.
func TestKeyByTwoMethods(t *testing.T) {
	s := startSession(t, Params{})
	p := newPhone(t, s)
	for _, key := range "d5" {
		if err := s.ReceiveKey(key); err != nil {
			t.Fatal(err)
		}
	}
	p.key(5)
	eventually(t, func() bool { return s.Stats().Received >= 1 })
	if err := s.ReceiveKey('5'); err != nil {
		t.Fatal(err)
	}
	if err := s.ReceiveKey('x'); err == nil {
		t.Error("ReceiveKey accepted an invalid key")
	}
	p.key(6)
	if a, b, c := <-s.Digits(), <-s.Digits(), <-s.Digits(); a != 'D' || b != '5' || c != '6' {
		t.Errorf("got %c, %c and %c", a, b, c)
	}
}
