package turns

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/media/recorder"
)

// sounds is the number of worst turns that are stored with audio.
const sounds = 5

// maxAudio is the longest stored audio before the end of a turn. Earlier audio is dropped.
const maxAudio = 8 * time.Second

// rows returns all turns for the result file, the worst ones with audio.
func (r *Report) rows() ([]result.Turn, error) {
	worst := r.worst(sounds)
	var all []result.Turn
	for _, t := range r.Turns {
		row := result.Turn{
			Call: t.Call, Number: t.Number, Scenario: string(t.Scenario), Text: t.Text, Figures: t.figures(), Marks: t.marks(), Heard: t.Words,
		}
		if t.Server != nil {
			row.Phases = t.Phases
		}
		if slices.ContainsFunc(worst, func(w Turn) bool { return w.Call == t.Call && w.Number == t.Number }) {
			from := t.from.Add(-time.Second)
			if begin := t.to.Add(-maxAudio); begin.After(from) {
				from = begin
			}
			left, right := r.calls[t.Call].between(from, t.to.Add(200*time.Millisecond))
			wav, err := result.WAV(left, right, rate)
			if err != nil {
				return nil, err
			}
			row.Sound = wav
		}
		all = append(all, row)
	}
	return all, nil
}

// figures returns the turn's times in ms by name.
func (t Turn) figures() map[string]float64 {
	all := map[string]float64{}
	put := func(name string, v *float64) {
		if v != nil {
			all[name] = *v
		}
	}
	put("wire_ms", t.Wire)
	put("ear_ms", t.Ear)
	put("turn_ms", t.Server)
	put("overhead_ms", t.Own)
	put("ear_overhead_ms", t.OwnEar)
	if t.Into != nil {
		put("stop_ms", t.Into.Stop)
		put("duck_ms", t.Into.Duck)
		put("resume_ms", t.Into.Resume)
	}
	return all
}

// marks returns the turn's faults.
func (t Turn) marks() []string {
	var all []string
	for what, is := range map[string]bool{
		"dead": t.Dead, "cut off": len(t.CutOff) > 0, "stale": t.Stale > 0, "doubled": t.Answer.Doubled > 0,
		"two answers": t.Answers > 1, "merged": t.Merged > 0, t.Ending: t.Ending != "" && t.Ending != "answered",
	} {
		if is {
			all = append(all, what)
		}
	}
	slices.Sort(all)
	return all
}

// Record writes stereo WAVs of the n worst turns to dir: callee on the left, agent on the right.
// A WAV starts one second before the turn and ends 200 ms after it.
func (r *Report) Record(dir string, n int) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	for i, t := range r.worst(n) {
		left, right := r.calls[t.Call].between(t.from.Add(-time.Second), t.to.Add(200*time.Millisecond))
		name := fmt.Sprintf("%02d-%s-%d.wav", i+1, t.Call, t.Number)
		if err := recorder.Write(filepath.Join(dir, name), left, right, rate); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) between(from, to time.Time) (said, heard []int16) {
	return c.callee.Between(c.Lines, from, to)
}
