package codec

import (
	"math"
	"testing"

	"github.com/parley-voice/parley/media/tone"
)

func TestResampledCodecs(t *testing.T) {
	for _, c := range All() {
		for _, rate := range []int{8000, 16000} {
			enc, dec := EncoderAt(c, rate), DecoderAt(c, rate)
			n := rate / 50
			src, wire, got := make([]int16, n), make([]byte, 160), make([]int16, n)
			at := 0
			frame := func() {
				for i := range src {
					src[i] = int16(8000 * math.Sin(2*math.Pi*440*float64(at+i)/float64(rate)))
				}
				at += n
				if b := enc.Encode(wire, src); b != 160 {
					t.Fatalf("%s at %d: %d bytes", c.Name(), rate, b)
				}
				if s := dec.Decode(got, wire); s != n {
					t.Fatalf("%s at %d: %d samples", c.Name(), rate, s)
				}
			}
			for range 10 {
				frame()
			}
			var all []int16
			for range 50 {
				frame()
				all = append(all, got...)
			}
			if p := tone.Share(all, rate, 440); p < 0.99 {
				t.Errorf("%s at %d: the tone has %.3f of the power", c.Name(), rate, p)
			}
			if a := testing.AllocsPerRun(50, frame); a != 0 {
				t.Errorf("%s at %d: a frame allocates %v times", c.Name(), rate, a)
			}
		}
	}
}
