package opus_test

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/jitter"
	"github.com/parley-voice/parley/media/opus"
	"github.com/parley-voice/parley/media/receiver"
	"github.com/parley-voice/parley/media/tone"
)

// packets reads a file of testdata: the words "when do you open have you the odyssey" as tones, encoded by libopus
// 1.3 at 32 kbit/s. Two bytes before each packet hold its length.
func packets(tb testing.TB, name string) (all [][]byte) {
	tb.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	for len(b) > 2 {
		n := 2 + int(binary.BigEndian.Uint16(b))
		all, b = append(all, b[2:n]), b[n:]
	}
	return all
}

type payloadDecoder struct{ *opus.Decoder }

func (d payloadDecoder) DecodeAs(dst []int16, payload []byte, _ uint8) { d.Decode(dst, payload) }

// decodeText plays packets through a reader. arrival returns the arrival time of packet n, or false if the packet is
// lost.
func decodeText(t *testing.T, all [][]byte, arrival func(n int, at time.Duration) (time.Duration, bool)) (string, receiver.Counts) {
	t.Helper()
	d, err := opus.New()
	if err != nil {
		t.Fatal(err)
	}
	r := receiver.NewWithStore(d)
	r.Start(opus.Rate, 0)
	type flight struct {
		at time.Duration
		p  jitter.Packet
	}
	var flights []flight
	stamp := uint32(1<<32 - 4000) // wraps around during the test
	for n, b := range all {
		at := time.Duration(stamp+4000) * time.Second / jitter.ClockRate
		if when, ok := arrival(n, at); ok {
			flights = append(flights, flight{when, jitter.Packet{At: when, Payload: b, Timestamp: stamp, SSRC: 1, Seq: uint16(65530 + n)}})
		}
		stamp += uint32(opus.Ticks(b))
	}
	var ring jitter.Ring
	decoder := tone.NewDecoder(opus.Rate)
	var words []string
	f := make(media.Frame, media.FrameLen(opus.Rate))
	for now := time.Duration(0); now < 8*time.Second; now += 5 * time.Millisecond {
		for i := range flights {
			if fl := &flights[i]; fl.at <= now && fl.p.Payload != nil {
				if !ring.Push(&fl.p) {
					t.Fatal("the ring is full")
				}
				fl.p.Payload = nil
			}
		}
		r.Drain(&ring)
		for r.Next(f, now, payloadDecoder{d}) {
			for _, w := range decoder.Decode(f) {
				words = append(words, w.Text)
			}
		}
	}
	return strings.Join(words, " "), r.Counts()
}

const words = "when do you open have you the odyssey"

func TestOpus(t *testing.T) {
	inOrder := func(_ int, at time.Duration) (time.Duration, bool) { return at, true }
	for _, name := range []string{"words.opus", "words60.opus"} {
		if got, n := decodeText(t, packets(t, name), inOrder); got != words || n.Lost+n.Late+n.Resynced != 0 {
			t.Errorf("%s: %q %+v", name, got, n)
		}
	}
	// Packets arrive delayed and in another order.
	rng := rand.New(rand.NewPCG(1, 2))
	jittered := func(n int, at time.Duration) (time.Duration, bool) {
		return at + time.Duration(rng.IntN(15))*time.Millisecond + time.Duration(n%7/6)*25*time.Millisecond, true
	}
	if got, n := decodeText(t, packets(t, "words.opus"), jittered); got != words || n.Lost != 0 {
		t.Errorf("jittered: %q %+v", got, n)
	}
	lossy := func(n int, at time.Duration) (time.Duration, bool) { return at, n%20 != 10 }
	if got, n := decodeText(t, packets(t, "words.opus"), lossy); n.Lost == 0 || n.Concealed != n.Lost || len(strings.Fields(got)) < 7 {
		t.Errorf("one of twenty lost: %q %+v", got, n)
	}
}

func TestTicks(t *testing.T) {
	for _, tt := range []struct {
		packet []byte
		want   int
	}{
		{nil, 0},
		{[]byte{0 << 3}, 80},
		{[]byte{1 << 3}, 160},
		{[]byte{2 << 3}, 320},
		{[]byte{3 << 3}, 480}, // SILK mode
		{[]byte{12 << 3}, 80},
		{[]byte{15 << 3}, 160}, // hybrid mode
		{[]byte{16 << 3}, 20},
		{[]byte{31 << 3}, 160}, // CELT mode
		{[]byte{31<<3 | 1}, 320},
		{[]byte{31<<3 | 2}, 320},
		{[]byte{31<<3 | 3, 3}, 480},
		{[]byte{31<<3 | 3}, 0},
		{[]byte{31<<3 | 3, 0}, 0},
		{[]byte{31<<3 | 3, 6}, 0}, // invalid: truncated, empty, 120 ms
	} {
		if got := opus.Ticks(tt.packet); got != tt.want {
			t.Errorf("%x: %d ticks, want %d", tt.packet, got, tt.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, p := range packets(f, "words.opus")[:20] {
		f.Add(p)
	}
	f.Add([]byte{0xff, 0x3f, 0xff})
	d, err := opus.New()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > jitter.MaxPayload {
			return
		}
		p := jitter.Packet{Payload: b}
		d.Store(&p)
		dst := make([]int16, 2*len(p.Payload))
		if n := d.Decode(dst, p.Payload); n != len(dst) {
			t.Errorf("%d of %d samples", n, len(dst))
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	all := packets(b, "words.opus")
	d, err := opus.New()
	if err != nil {
		b.Fatal(err)
	}
	dst := make([]int16, opus.Rate/50)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p := jitter.Packet{Payload: all[i%len(all)]}
		d.Store(&p)
		d.Decode(dst, p.Payload)
	}
}
