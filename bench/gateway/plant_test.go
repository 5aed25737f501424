package gateway

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/media/tone"
)

// script is a feed. A letter is a frame of speech, a dot a frame of silence.
type script struct{ text string }

func (s *script) FillFrame(f media.Frame, _ time.Time) {
	clear(f)
	if s.text == "" {
		return
	}
	if c := s.text[0]; c != '.' {
		copy(f, tone.Sine(8000, len(f), 300+100*float64(c-'a'), 0.5))
	}
	s.text = s.text[1:]
}

// heard returns n frames of a feed in the notation of script.
func heard(feed media.Feed, n int) string {
	var b strings.Builder
	f := make(media.Frame, 160)
	for range n {
		feed.FillFrame(f, time.Time{})
		best, most := byte('.'), 0.0
		for c := byte('a'); c < 'k'; c++ {
			if p := tone.Power(f, 8000, 300+100*float64(c-'a')); p > most {
				best, most = c, p
			}
		}
		if tone.Level(f) < -50 {
			best = '.'
		}
		b.WriteByte(best)
	}
	return b.String()
}

func TestLateFeed(t *testing.T) {
	l := &lateFeed{feed: &script{text: "abc.de"}}
	for i := range l.held {
		l.held[i] = make(media.Frame, 160)
	}
	if got := heard(l, 12); got != "...abc.de..." {
		t.Errorf("got %s", got)
	}
}

func TestAgainFeed(t *testing.T) {
	silence := strings.Repeat(".", rest+1)
	for _, c := range []struct {
		lag, part  int
		says, want string
	}{
		{0, longest, "abc" + silence + "....", "abc" + silence[1:] + "abc.."},
		{1, 320, "abc" + silence + "...de" + silence + "......", "abc" + silence + "...de" + silence[1:] + "bc."},
	} {
		a := &againFeed{
			feed: &script{text: c.says}, lag: c.lag, part: c.part,
			answer: make([]int16, 0, longest), before: make([]int16, 0, longest), space: make([]int16, 0, longest),
		}
		if got := heard(a, len(c.says)); !strings.HasPrefix(got, c.want) {
			t.Errorf("said  %s\nheard %s\nwant  %s", c.says, got, c.want)
		}
	}
}

func TestPlants(t *testing.T) {
	if err := Plant("deaf").check(); err == nil || !strings.Contains(err.Error(), "stale") {
		t.Error(err)
	}
	leg := mediatest.NewLeg(8000)
	if _, err := Late.wrap(leg); err == nil {
		t.Error("leg other than SIP: got no error")
	}
	if l, err := Wrong.wrap(leg); err != nil || l != media.Leg(leg) {
		t.Errorf("got %v, %v", l, err)
	}
	for plant, want := range map[Plant]string{Wrong: `"turn_ms":360`, Healthy: `"turn_ms": 400`} {
		b, err := plant.alterTurn([]byte(`{"turn": 1, "metrics": {"turn_ms": 400}}`))
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: got %s, %v", plant, b, err)
		}
	}
	if !slices.Contains(Plants(), Doubled) {
		t.Error(Plants())
	}
}
