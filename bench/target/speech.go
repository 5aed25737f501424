package target

import (
	"context"
	"fmt"
	"os"

	"github.com/parley-voice/parley/bench/audiogen"
	"github.com/parley-voice/parley/bench/corpus"
	"github.com/parley-voice/parley/media/tone"
)

// Speech selects what the caller's speech consists of. The zero value means tone words, which
// Parley's fake providers recognize.
type Speech struct {
	Seed uint64 // seed of the caller's lines
	// Voices means English speech of espeak-ng.
	Voices bool
	// Files are the names of WAVs to play one after another.
	Files []string
}

type line struct {
	text string
	pcm  []int16
}

// Sentences returns all lines of a number of calls, for a recognizer of speech.
func (s Speech) Sentences(ctx context.Context, calls, count int) ([]audiogen.Sentence, error) {
	var all []audiogen.Sentence
	for n := range calls {
		lines, err := s.lines(ctx, n, count)
		if err != nil {
			return nil, err
		}
		for _, l := range lines {
			all = append(all, audiogen.Sentence{Text: l.text, PCM: l.pcm})
		}
	}
	return all, nil
}

// lines returns the lines of the n-th call.
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
			l.pcm, err = audiogen.Say(ctx, audiogen.Voices()[n%3], l.text, rate) // the English voices
		default:
			l.text = speaker.Plain().Text()
			l.pcm, _ = tone.Encode(rate, l.text)
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
	pcm, err := audiogen.Parse(b, rate)
	if err == nil && len(pcm) < rate/10 {
		err = fmt.Errorf("%d samples of audio: want at least 0.1 s", len(pcm))
	}
	if err != nil {
		return line{}, fmt.Errorf("%s: %w", name, err)
	}
	return line{name, pcm}, nil
}
