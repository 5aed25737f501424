package acoustic

import (
	"math/rand/v2"
	"testing"

	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/tone"
)

// TestFind checks that Find finds audio that went through µ-law, is softer and has noise, and
// that it does not find other words.
func TestFind(t *testing.T) {
	said, _ := tone.Encode(8000, "the order number is seven")
	other, _ := tone.Encode(8000, "please call me tomorrow")
	rnd := rand.New(rand.NewPCG(1, 2))
	line := make([]int16, 3*8000)
	const late = 700
	for i, x := range said {
		line[late+i] = x / 10
	}
	for i := range line {
		line[i] += int16(20 * rnd.NormFloat64())
	}
	b := make([]byte, len(line))
	codec.PCMU{}.Encode(b, line)
	codec.PCMU{}.Decode(line, b)
	if at, l := Find(line, said[:1600]); at != late || l < 0.95 {
		t.Errorf("got position %d, similarity %.2f; want %d", at, l, late)
	}
	if at, l := Find(line, other[:1600]); l > 0.7 {
		t.Errorf("other words: got position %d, similarity %.2f; want none", at, l)
	}
	for _, c := range [][2][]int16{{line, nil}, {line, make([]int16, 80)}, {said[:10], said[:20]}} {
		if at, l := Find(c[0], c[1]); at != 0 || l != 0 {
			t.Errorf("got position %d, similarity %.2f; want none", at, l)
		}
	}
}
