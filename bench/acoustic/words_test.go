package acoustic

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-voice/parley/media/tone"
)

func hear(pcm []int16, words []string) []Word {
	return Words(pcm, rate, func(s string) string {
		if slices.Contains(words, s) {
			return s
		}
		return ""
	}, func(start string) string {
		for _, w := range words {
			if start != "" && strings.HasPrefix(w, start) {
				return w
			}
		}
		return ""
	})
}

func TestWords(t *testing.T) {
	meant := strings.Fields("alpha bravo charlie delta")
	pcm, said := tone.Encode(rate, strings.Join(meant, " "))
	sample := func(i int, share float64) int {
		w := said[i]
		return int(w.Start.Seconds()*rate + share*(w.End-w.Start).Seconds()*rate)
	}
	twice := slices.Concat(pcm, make([]int16, 800), pcm)
	stranger, _ := tone.Encode(rate, "zulu")
	replay := slices.Concat(pcm[:sample(2, .5)], make([]int16, 2000), pcm[sample(2, 0):])
	for name, c := range map[string]struct {
		pcm   []int16
		want  Comparison
		claim string
		off   int
	}{
		"all":                    {pcm, Comparison{Heard: 4}, "alpha bravo charlie delta", 0},
		"none":                   {make([]int16, rate), Comparison{Lost: 4}, "alpha", 1},
		"twice":                  {twice, Comparison{Heard: 4, Doubled: 4}, "alpha bravo charlie delta", 0},
		"cut early":              {pcm[:sample(2, .3)], Comparison{Heard: 2, Cut: 1, Lost: 1}, "alpha bravo", 0},
		"cut late":               {pcm[:sample(2, .8)], Comparison{Heard: 2, Cut: 1, Lost: 1}, "alpha bravo charlie", 0},
		"cut late, denied":       {pcm[:sample(2, .8)], Comparison{Heard: 2, Cut: 1, Lost: 1}, "alpha bravo", 1},
		"cut, then spoken whole": {replay, Comparison{Heard: 4}, "alpha bravo charlie delta", 0},
		"claims too much":        {pcm[:sample(1, 1)], Comparison{Heard: 2, Lost: 2}, "alpha bravo charlie delta", 2},
		"with a stranger":        {slices.Concat(pcm, make([]int16, 800), stranger), Comparison{Heard: 4}, "alpha bravo charlie delta", 0},
	} {
		heard := hear(c.pcm, meant)
		if got := Compare(meant, heard); got != c.want {
			t.Errorf("%s: got %+v, want %+v of %v", name, got, c.want, heard)
		}
		if got := Differ(strings.Fields(c.claim), heard); got != c.off {
			t.Errorf("%s: got %d words off, want %d of %v", name, got, c.off, heard)
		}
	}
}
