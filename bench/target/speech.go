package target

import (
	"context"
	"fmt"
	"os"

	"github.com/parley-voice/parley/bench/corpus"
	"github.com/parley-voice/parley/bench/spoken"
	"github.com/parley-voice/parley/media/tone"
)

// Speech is how the caller speaks. Its zero value speaks in tone words, which a
// recognizer of Parley's fakes understands.
type Speech struct {
	Seed uint64 // what is said follows from it
	// Voices has espeak-ng speak, in English.
	Voices bool
	// Files are WAVs to say instead, in turn.
	Files []string
}

// A line is what is said.
type line struct {
	text string
	pcm  []int16
}

// lines are those of the n-th call.
func (s Speech) lines(ctx context.Context, n, count int) ([]line, error) {
	var all []line
	speaker := corpus.New(s.Seed, uint64(n)) //nolint:gosec // the number of a call
	for i := range count {
		var l line
		var err error
		switch {
		case len(s.Files) > 0:
			l, err = file(s.Files[(n*count+i)%len(s.Files)])
		case s.Voices:
			l.text = speaker.Plain().Text()
			l.pcm, err = spoken.Say(ctx, spoken.Voices()[n%3], l.text, rate) // the English ones
		default:
			l.text = speaker.Plain().Text()
			l.pcm, _ = tone.Say(rate, l.text)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// file reads a line from a WAV.
func file(name string) (line, error) {
	b, err := os.ReadFile(name) //nolint:gosec // the user's own
	if err != nil {
		return line{}, err
	}
	pcm, err := spoken.Parse(b, rate)
	if err == nil && len(pcm) < rate/10 {
		err = fmt.Errorf("%d samples of sound: want a tenth of a second or more", len(pcm))
	}
	if err != nil {
		return line{}, fmt.Errorf("%s: %w", name, err)
	}
	return line{name, pcm}, nil
}
