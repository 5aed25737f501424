package amd

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/audiogen"
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
