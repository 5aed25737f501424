package codec

import (
	"encoding/binary"
	"math"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func samples(tb testing.TB, name string) []int16 {
	tb.Helper()
	b := file(tb, name)
	pcm := make([]int16, len(b)/2)
	for i := range pcm {
		pcm[i] = int16(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return pcm
}

func file(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// TestG722AgainstReference compares the output bit by bit with another implementation. testdata/README.md names the
// source of the files.
func TestG722AgainstReference(t *testing.T) {
	wire := file(t, "mixed.g722")
	pcm := make([]int16, 2*len(wire))
	dec := G722{}.NewDecoder()
	for i := 0; i < len(wire); i += 160 {
		dec.Decode(pcm[2*i:], wire[i:min(i+160, len(wire))])
	}
	if at := firstDifference(pcm, samples(t, "mixed.decoded.s16")); at >= 0 {
		t.Errorf("decoded sample %d differs", at)
	}
	ours := make([]byte, len(wire))
	src := samples(t, "mixed.s16")
	enc := G722{}.NewEncoder()
	n := 0
	for frame := range slices.Chunk(src, 320) {
		n += enc.Encode(ours[n:], frame)
	}
	if at := firstDifference(ours[:n], wire[:n]); at >= 0 || n != len(src)/2 {
		t.Errorf("encoded byte %d of %d differs", at, n)
	}
}

func firstDifference[T comparable](a, b []T) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	if len(a) != len(b) {
		return min(len(a), len(b))
	}
	return -1
}

// snr returns the signal-to-noise ratio of got in dB. delay is the delay of the two mirror filters in samples.
func snr(want, got []int16, delay int) float64 {
	var signal, noise float64
	for i := delay; i < len(got); i++ {
		w := float64(want[i-delay])
		d := w - float64(got[i])
		signal += w * w
		noise += d * d
	}
	return 10 * math.Log10(signal/max(noise, 1))
}

func TestG722RoundTrip(t *testing.T) {
	const delay = 22
	for _, hz := range []float64{100, 440, 1000, 3000, 5000, 6500} {
		src := make([]int16, 16000)
		for i := range src {
			src[i] = int16(10000 * math.Sin(2*math.Pi*hz*float64(i)/g722Rate))
		}
		wire, got := make([]byte, len(src)/2), make([]int16, len(src))
		enc, dec := G722{}.NewEncoder(), G722{}.NewDecoder()
		if n := enc.Encode(wire, src); n != len(wire) {
			t.Fatalf("%d bytes", n)
		}
		if n := dec.Decode(got, wire); n != len(got) {
			t.Fatalf("%d samples", n)
		}
		floor := 25.0
		if hz > 4000 {
			floor = 12 // the upper band has only two bits per sample
		}
		if s := snr(src[1600:], got[1600:], delay); s < floor {
			t.Errorf("%v Hz: %.1f dB", hz, s)
		}
	}
}

// TestG722AnyBytes decodes arbitrary bytes. It checks that nothing overflows and that the stream may be split
// anywhere.
func TestG722AnyBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wire := rapid.SliceOfN(rapid.Byte(), 1, 2000).Draw(t, "wire")
		cut := rapid.IntRange(0, len(wire)).Draw(t, "cut")
		one, two := make([]int16, 2*len(wire)), make([]int16, 2*len(wire))
		a, b := G722{}.NewDecoder(), G722{}.NewDecoder()
		a.Decode(one, wire)
		b.Decode(two, wire[:cut])
		b.Decode(two[2*cut:], wire[cut:])
		if at := firstDifference(one, two); at >= 0 {
			t.Fatalf("sample %d depends on where the stream is cut", at)
		}
		pcm := make([]int16, 2*len(wire))
		for i := range pcm {
			pcm[i] = int16(int(wire[i/2])*257 - 32768)
		}
		out := make([]byte, len(wire))
		if n := (G722{}.NewEncoder()).Encode(out[:cut], pcm); n != cut {
			t.Fatalf("%d bytes into %d", n, cut)
		}
	})
}

func TestG722NoAllocations(t *testing.T) {
	enc, dec := G722{}.NewEncoder(), G722{}.NewDecoder()
	pcm, wire := samples(t, "mixed.s16")[:320], make([]byte, 160)
	if n := testing.AllocsPerRun(100, func() { enc.Encode(wire, pcm); dec.Decode(pcm, wire) }); n != 0 {
		t.Errorf("a frame allocates %v times", n)
	}
}

func BenchmarkG722(b *testing.B) {
	enc, dec := G722{}.NewEncoder(), G722{}.NewDecoder()
	src, pcm, wire := samples(b, "mixed.s16"), make([]int16, 320), make([]byte, 160)
	at := 0
	next := func() []int16 {
		at = (at + 320) % (len(src) - 320)
		return src[at : at+320]
	}
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			enc.Encode(wire, next())
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			dec.Decode(pcm, wire)
		}
	})
}
