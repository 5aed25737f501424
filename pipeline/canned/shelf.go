package canned

import (
	"context"
	"sync"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/mouth"
)

// A Key names one line in one voice.
type Key struct {
	Engine   pipeline.Engine
	Language string // BCP 47
	Rate     int    // Hz
	Line     Line
}

// A Shelf keeps lines, spoken once and then ready in an instant, so that a voice
// that broke can still be excused. Its zero value is empty.
type Shelf struct {
	mu     sync.Mutex
	spoken map[Key][]int16
	making map[Key]bool
}

// most bounds the lines kept: beyond it, in a process with very many voices, the
// caller of the last ones hears two tones.
const most = 1024

// Get returns a line; nil where it was not spoken yet.
func (s *Shelf) Get(k Key) []int16 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spoken[k]
}

// Claim is true for whoever is to speak a line that nobody spoke yet; Put ends
// the claim.
func (s *Shelf) Claim(k Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spoken == nil {
		s.spoken, s.making = map[Key][]int16{}, map[Key]bool{}
	}
	if s.spoken[k] != nil || s.making[k] || len(s.spoken) >= most {
		return false
	}
	s.making[k] = true
	return true
}

// Put keeps what was spoken; nothing is another call's to try again.
func (s *Shelf) Put(k Key, pcm []int16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.making, k)
	if len(pcm) > 0 {
		s.spoken[k] = pcm
	}
}

// Speak has a voice speak a text whole, within a time and no longer than
// longest, and returns the sound without the silence before it; nil where no
// voice does.
func Speak(ctx context.Context, v pipeline.Voice, style pipeline.Style, text string, within, longest time.Duration) []int16 {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	speaking, err := v.Open(ctx, style)
	if err != nil {
		return nil
	}
	wrote := make(chan error, 1)
	go func() { // a voice may speak before it has heard all of the text
		err := speaking.Say(text)
		if err == nil {
			err = speaking.Flush()
		}
		if err != nil {
			_ = speaking.Close() // let the sound end
		}
		wrote <- err
	}()
	pcm := sound(speaking, style.Rate, longest)
	_ = speaking.Close() // unblocks the writer; what is amiss shows in the sound
	if <-wrote != nil || pcm == nil {
		return nil // half a line is none
	}
	return pcm[mouth.LeadingSilence(pcm):]
}

// sound collects what a voice speaks; nil where it breaks, or does not know when
// to stop.
func sound(speaking pipeline.Speaking, rate int, longest time.Duration) []int16 {
	var pcm []int16
	for sp, err := range speaking.Audio() {
		if err != nil {
			return nil
		}
		if pcm = append(pcm, sp.PCM...); mouth.Span(rate, len(pcm)) > longest {
			return nil
		}
	}
	return pcm
}
