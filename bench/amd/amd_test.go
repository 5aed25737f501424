package amd

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/audiogen"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline/amd"
)

// TestFax checks that a fax is detected from its tones alone.
func TestFax(t *testing.T) {
	for seed := range uint64(4) {
		k, err := record(t.Context(), fax, audiogen.Voice{}, "", rand.New(rand.NewPCG(seed, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if v := k.listen(true).verdict; v.Party != amd.Fax || v.Elapsed > 3*time.Second {
			t.Errorf("seed %d: got %+v", seed, v)
		}
	}
}

// TestListen checks that transcripts improve the verdict. The test uses tone words instead of a voice.
func TestListen(t *testing.T) {
	words, _ := tone.Encode(rate, "after the beep")
	pcm := append(make([]int16, rate), words...)
	end := time.Duration(len(pcm)) * time.Second / rate
	k := &call{class: machineMute, pcm: append(pcm, make([]int16, 5*rate)...), said: []sentence{{"after the beep", time.Second, end}}}
	if all := k.words(); len(all) != 3 || strings.TrimSpace(all[2].text) != "after the beep" || all[2].to != end+lag {
		t.Errorf("got transcripts %+v", all)
	}
	with, without := k.listen(true), k.listen(false)
	if with.verdict.Party != amd.Voicemail || without.verdict.Party != amd.Human {
		t.Errorf("with transcripts got %+v, without %+v", with, without)
	}
	var s tally
	s.add(k, with)
	var out strings.Builder
	if err := s.write(&out); err != nil || !strings.Contains(out.String(), "machine, no beep") {
		t.Errorf("got %s, %v", out.String(), err)
	}
}

// simulate returns a call without audio: the script at 330 ms a word, with pauses of 300 ms between sentences.
func simulate(c class, script string) *call {
	k := &call{class: c}
	now := 750 * time.Millisecond
	for text := range strings.SplitSeq(script, "|") {
		end := now + time.Duration(len(strings.Fields(text)))*330*time.Millisecond
		k.said = append(k.said, sentence{text, now, end})
		now = end + 300*time.Millisecond
	}
	return k
}

// detect returns the events of a simulated call and the time at which each was detected.
func (c *call) detect() []amd.Event {
	events := []amd.Event{{Kind: amd.Timer}}
	for _, s := range c.said {
		events = append(events, amd.Event{Kind: amd.Voice, At: s.from + 60*time.Millisecond, From: s.from},
			amd.Event{Kind: amd.Silence, At: s.to + 180*time.Millisecond, From: s.to})
	}
	for _, w := range c.words() {
		events = append(events, amd.Event{Kind: amd.Transcript, At: w.to, Text: w.text})
	}
	for at := time.Duration(0); at < 20*time.Second; at += media.FrameTime {
		events = append(events, amd.Event{Kind: amd.Timer, At: at})
	}
	slices.SortStableFunc(events, func(a, b amd.Event) int { return cmp.Compare(a.At, b.At) })
	return events
}

// TestBounds checks the verdicts on all scripts without audio: when machines are detected, and that no person is taken
// for a machine, not even for a moment long enough to hang up.
func TestBounds(t *testing.T) {
	var verdicts []time.Duration
	for _, language := range []string{"en", "de", "es", "fr", "ru", "kk"} {
		for _, c := range []class{humanShort, humanLong, machineMute} {
			for _, script := range scripts(c, language) {
				var m amd.Machine
				k := simulate(c, script)
				effect := false
				for _, e := range k.detect() {
					for _, a := range m.Step(e) {
						effect = effect || a.Do == amd.Decide && takesEffect(a.Verdict)
					}
				}
				v := m.Verdict()
				if c.human() && (v.Party != amd.Human || effect) || !c.human() && (v.Party != amd.Voicemail || !effect) {
					t.Errorf("%v, %q: got %+v, in effect: %v", c, script, v, effect)
				}
				if !c.human() {
					verdicts = append(verdicts, v.Elapsed)
				}
			}
		}
	}
	slices.Sort(verdicts)
	if p50, p95 := verdicts[len(verdicts)/2], verdicts[len(verdicts)*95/100]; p50 > 2*time.Second || p95 > 4*time.Second {
		t.Errorf("got verdicts after %v (p50) and %v (p95), want at most 2 and 4 s", p50, p95)
	} else {
		t.Logf("verdicts after %v (p50) and %v (p95)", p50, p95)
	}
}
