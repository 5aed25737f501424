package conversation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/pipetest"
)

type sentence struct {
	words    []string
	from, to time.Duration
}

// slowly lets a caller say sentences of the given lengths in words, with a gap after each. The
// recognizer delays final results by lag and partial results by partial.
func slowly(t *testing.T, name string, partial, lag time.Duration, lengths []int, gap time.Duration) ([]sentence, pipeline.Outcome) {
	t.Helper()
	n := fakeprovider.NewNet()
	script := fakeprovider.Typical()
	script.PartialLag, script.FinalLag = partial, lag
	fakes := fakeprovider.Serve(n, script)
	defer func() { _ = fakes.Close() }()
	s := pipetest.New(fakeprovider.Typical())
	s.Clients.Recognizers["slow"] = recognizers(n.Dial)[name]
	e := pipetest.FakeEngines()
	e.ASR = pipeline.Engine{Provider: "slow"}
	c := talkOn(t, s, pipeline.SessionConfig{Engines: e})
	c.pass(2 * time.Second)
	var all []sentence
	for i, length := range lengths {
		var x sentence
		for j := range length {
			x.words = append(x.words, fmt.Sprintf("%c%d", 'k'+i, j))
		}
		x.from = time.Since(c.began)
		c.say(strings.Join(x.words, " "))
		x.to = time.Since(c.began)
		all = append(all, x)
		c.pass(gap)
	}
	c.pass(6 * time.Second)
	_ = c.Hangup(media.RemoteHangup)
	return all, c.wait()
}

// unjust returns a description of the first fault of an outcome. It returns "" if the agent answered each sentence or
// apologized for it, and no word is in the transcript twice.
func unjust(said []sentence, o pipeline.Outcome) string {
	told, answered, apologised := map[string]int{}, map[string]int{}, map[string]bool{}
	var sorry []time.Duration
	left := time.Hour
	for i, l := range o.Lines {
		switch {
		case l.Role == pipeline.RoleCaller:
			for w := range strings.FieldsSeq(l.Text) {
				if told[w]++; i+1 == len(o.Lines) {
					continue
				}
				if strings.HasPrefix(o.Lines[i+1].Text, "you") {
					answered[w]++
				}
				apologised[w] = apologised[w] || strings.HasPrefix(o.Lines[i+1].Text, "Sorry") // an apology counts for the whole turn
			}
		case strings.HasPrefix(l.Text, "Sorry"):
			sorry = append(sorry, l.Start)
		}
		left = l.End
	}
	if o.Reason == pipeline.CallerHungUp {
		left = time.Hour
	}
	for i, s := range said {
		next := time.Hour
		if i+1 < len(said) {
			next = said[i+1].to
		}
		excuse := func(until time.Duration) bool {
			return slices.ContainsFunc(sorry, func(at time.Duration) bool { return at >= s.from && at < until })
		}
		// Late words form one turn with the words that the caller says next.
		excused := excuse(next+3*time.Second) || s.to >= left
		for _, w := range s.words {
			switch {
			case told[w] > 1:
				return w + " is in the history twice"
			case answered[w] == 0 && !excused && !apologised[w]:
				return w + " is not answered"
			case answered[w] > 0 && excuse(next):
				return w + " is apologised for and answered"
			}
		}
	}
	return ""
}

// TestLateRecognizer checks that the agent answers each sentence or apologizes for it, however late the recognizer
// sends the text.
func TestLateRecognizer(t *testing.T) {
	names := []string{"deepgram", "flux", "assemblyai", "openai"}
	for _, lag := range []int{150, 700, 1000, 1500, 1800, 2200, 2700, 4000} {
		for _, name := range names {
			synctest.Test(t, func(t *testing.T) {
				said, o := slowly(t, name, time.Duration(lag)*time.Millisecond, time.Duration(lag)*time.Millisecond, []int{2, 1, 6}, 7*time.Second)
				if wrong := unjust(said, o); wrong != "" {
					t.Errorf("%s, %d ms late: %s: %q", name, lag, wrong, lines(o))
				}
				if lag <= 1500 && strings.Contains(strings.Join(lines(o), " "), "Sorry") {
					t.Errorf("%s, %d ms late: %q", name, lag, lines(o))
				}
			})
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.SampledFrom(names).Draw(r, "name")
		lag := time.Duration(rapid.IntRange(0, 200).Draw(r, "lag")) * 20 * time.Millisecond
		partial := time.Duration(rapid.IntRange(0, 200).Draw(r, "partial")) * 20 * time.Millisecond
		lengths := rapid.SliceOfN(rapid.IntRange(1, 12), 1, 3).Draw(r, "lengths")
		gap := time.Duration(rapid.IntRange(200, 450).Draw(r, "gap")) * 20 * time.Millisecond
		var said []sentence
		var o pipeline.Outcome
		synctest.Test(t, func(t *testing.T) { said, o = slowly(t, name, min(partial, lag), lag, lengths, gap) })
		if wrong := unjust(said, o); wrong != "" {
			r.Fatalf("%s: %+v: %q", wrong, said, lines(o))
		}
	})
}
