package corpus

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/media/tone"
)

func TestGrammar(t *testing.T) {
	if err := Check(); err != nil {
		t.Error(err)
	}
}

func take(seed, stream uint64, n int) []Turn {
	s := New(seed, stream)
	var all []Turn
	for range n {
		all = append(all, s.Paused())
	}
	return all
}

func TestSameSeedSameTurns(t *testing.T) {
	if !reflect.DeepEqual(take(Development, 1, 50), take(Development, 1, 50)) {
		t.Error("equal seeds gave different turns")
	}
	if reflect.DeepEqual(take(Development, 1, 50), take(HeldOut, 1, 50)) || reflect.DeepEqual(take(Development, 1, 50), take(Development, 2, 50)) {
		t.Error("different seeds or streams gave equal turns")
	}
}

// TestPauses checks that both kinds of pauses are equally frequent and only at marked places,
// that their lengths are uniformly distributed, and that no speaker repeats a turn.
func TestPauses(t *testing.T) {
	two := 0
	count, sum := map[Kind]int{}, time.Duration(0)
	short, long, texts := LongestPause, ShortestPause, map[string]bool{}
	for _, turn := range take(Development, 0, 800) {
		if texts[turn.Text()] {
			t.Errorf("%q was said twice", turn.Text())
		}
		texts[turn.Text()] = true
		if len(turn) < 2 || len(turn) > 3 {
			t.Fatalf("got %d parts in %v", len(turn), turn)
		}
		if len(turn) == 3 {
			two++
		}
		for i, p := range turn {
			if i == len(turn)-1 {
				if p.Pause != 0 || p.Kind != "" {
					t.Errorf("got a pause after the end of %v", turn)
				}
				continue
			}
			if p.Kind != turn.Kind() {
				t.Errorf("got two kinds of pauses in %v", turn)
			}
			count[p.Kind]++
			sum += p.Pause
			short, long = min(short, p.Pause), max(long, p.Pause)
		}
		if strings.ContainsAny(turn.Text(), "/|{}.,?!") {
			t.Errorf("got marks in %q", turn.Text())
		}
	}
	if two < 60 || two > 240 {
		t.Errorf("got %d of 800 turns with two pauses", two)
	}
	n := count[MidClause] + count[Complete]
	if share := float64(count[MidClause]) / float64(n); share < 0.47 || share > 0.53 {
		t.Errorf("got %.2f of %d pauses mid-clause", share, n)
	}
	if mean := sum / time.Duration(n); mean < 1050*time.Millisecond || mean > 1150*time.Millisecond {
		t.Errorf("got a mean pause of %v", mean)
	}
	if short < ShortestPause || short > 210*time.Millisecond || long > LongestPause || long < 1990*time.Millisecond {
		t.Errorf("got pauses from %v to %v", short, long)
	}
}

func TestCompleteClausesDoNotEndInFunctionWords(t *testing.T) {
	for _, text := range templates() {
		before, _, _ := strings.Cut(text, " "+completeMark)
		f := strings.Fields(before)
		for w := range strings.FieldsSeq("a an the to for with of my and or but is") {
			if f[len(f)-1] == w {
				t.Errorf("%q ends with %q: not a complete clause", before, w)
			}
		}
	}
}

func TestCough(t *testing.T) {
	s := New(Development, 3)
	for range 50 {
		d := s.Between(ShortestCough, LongestCough)
		pcm := s.Cough(8000, d)
		if len(pcm) != int(d*8000/time.Second) {
			t.Fatalf("got %d samples for %v", len(pcm), d)
		}
		if l := tone.Level(pcm[80 : 80+len(pcm)/4]); l < -18 || l > -9 {
			t.Errorf("got a cough that starts at %.1f dBFS", l)
		}
		if words := tone.NewDecoder(8000).Decode(append(pcm, make([]int16, 800)...)); len(words) > 0 {
			t.Errorf("cough was decoded as %q", words[0].Text)
		}
	}
}
