package vad

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parley-voice/parley/media"
)

// picture plays frames, one per letter: # is a voice, - a voice that ends within the frame, ~ a
// soft voice, s a less soft one, m sound overlapped by concealment, ? a concealed frame, 0
// silence, anything else noise (dBFS).
func picture(frames string, noise float64) *LevelHistory {
	var t LevelHistory
	rnd := rand.New(rand.NewPCG(5, 6))
	f := make(media.Frame, 160)
	for _, x := range frames {
		voice := map[rune][2]float64{'#': {-12, -12}, '-': {-12, -120}, '~': {-32, -32}, 's': {-20, -20}, 'm': {-20, -120}, '?': {-14, -16}}[x]
		for i := range f {
			v := math.Pow(10, noise/20) * rnd.NormFloat64()
			if db := voice[i/80]; db < 0 {
				v += math.Sqrt2 * math.Pow(10, db/20) * math.Sin(1.5*float64(i))
			}
			f[i] = int16(32767 * max(-1, min(v, 1)))
		}
		if x == '0' {
			t.Frame(nil, false)
			continue
		}
		t.Frame(f, x == '?')
	}
	return &t
}

func TestFaded(t *testing.T) {
	for name, c := range map[string]struct {
		frames     string
		noise      float64
		back       int
		last, lost int
	}{
		"as the detector says":          {"########.........", -90, 9, 9, 0},
		"the detector is late":          {"########..............", -27, 9, 14, 0},
		"the detector is early":         {"########........", -27, 9, 8, 0},
		"in the middle of a frame":      {"#######-..............", -27, 9, 14, 0},
		"a soft end":                    {"#######~~.......", -90, 9, 7, 0},
		"a soft end under noise":        {"#######~~...........", -27, 9, 13, 0},
		"a pause":                       {"########....", -27, 4, 4, 0},
		"a pause, the detector is late": {"########.......", -27, 4, 7, 0},
		"the next frame lost":           {"########?.........", -90, 9, 10, 1},
		"the next two lost, noise":      {"########??.........", -27, 9, 11, 2},
		"lost after its end":            {"#######-?.........", -90, 9, 10, 0},
		"concealment overlaps the next": {"########?m.........", -90, 9, 11, 1},
		"soft, then one lost":           {"#######~~?.........", -90, 9, 10, 1},
		"a soft end after a hole":       {"########....~~........", -44, 8, 8, 0},
		"sank, then ended":              {"########sss..........", -45, 9, 9, 0},
		"hardly louder than the noise":  {"########............", -20, 9, 9, 0},
		"silence":                       {"########000000000", -27, 9, 9, 0},
		"sank into noise":               {"#######~~~~.........", -34, 9, 9, 0},
		"the frame before the last":     {"######?-.........", -90, 9, 9, 0},
		"lost, then its end":            {"######??#.........", -90, 9, 9, 0},
		"the sender fell silent":        {"########??????????????", -90, 9, 14, 0},
		"no frames received":            {"??????????????????", -90, 9, 9, 0},
		"noise as loud as the voice":    {"########.........", -10, 9, 9, 0},
		"only noise":                    {".................", -27, 9, 9, 0},
		"fewer frames than asked for":   {"###", -90, 9, 2, 0},
	} {
		tr := picture(strings.Repeat(".", 60)+c.frames, c.noise)
		if strings.Trim(c.frames, "?") == "" || len(c.frames) < 5 {
			tr = picture(c.frames, c.noise)
		}
		if last, lost := tr.LastVoiced(c.back); last != c.last || lost != c.lost {
			t.Errorf("%s: %d frames ago, and %d lost; want %d, %d", name, last, lost, c.last, c.lost)
		}
	}
	if last, lost := (&LevelHistory{}).LastVoiced(9); last != 0 || lost != 0 {
		t.Errorf("of nothing: %d, %d", last, lost)
	}
}

func TestTrailAllocatesNothing(t *testing.T) {
	tr := picture("########.........", -27)
	f := make(media.Frame, 160)
	if n := testing.AllocsPerRun(100, func() { tr.Frame(f, false); tr.LastVoiced(9) }); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}
