package answering

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/spoken"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline/amd"
)

// TestFax: a recording that needs no voice is told for what it is.
func TestFax(t *testing.T) {
	for seed := range uint64(4) {
		k, err := record(t.Context(), fax, spoken.Voice{}, "", rand.New(rand.NewPCG(seed, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if v := k.listen(true).verdict; v.Party != amd.Fax || v.Elapsed > 3*time.Second {
			t.Errorf("seed %d: %+v", seed, v)
		}
	}
}

// TestListen: words of tones stand for a voice, transcripts make the difference.
func TestListen(t *testing.T) {
	words, _ := tone.Say(rate, "after the beep")
	pcm := append(make([]int16, rate), words...)
	end := time.Duration(len(pcm)) * time.Second / rate
	k := &call{class: machineMute, pcm: append(pcm, make([]int16, 5*rate)...), said: []said{{"after the beep", time.Second, end}}}
	if all := k.words(); len(all) != 3 || strings.TrimSpace(all[2].text) != "after the beep" || all[2].to != end+lag {
		t.Errorf("transcripts %+v", all)
	}
	with, without := k.listen(true), k.listen(false)
	if with.verdict.Party != amd.Voicemail || without.verdict.Party != amd.Human {
		t.Errorf("with transcripts %+v, without %+v", with, without)
	}
	var s tally
	s.add(k, with)
	var out strings.Builder
	if err := s.write(&out); err != nil || !strings.Contains(out.String(), "machine, no beep") {
		t.Errorf("%s, %v", out.String(), err)
	}
}
