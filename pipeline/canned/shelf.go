package canned

import (
	"context"
	"sync"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/mouth"
	"github.com/parley-voice/parley/pipeline/pronounce"
)

// A Key names one line in one voice.
type Key struct {
	Engine   pipeline.Engine
	Language string // BCP 47
	Rate     int    // Hz
	Line     Line
}

// A slot is a key by its values: the engines of two calls are not the same ones.
type slot struct {
	first, second pipeline.Engine
	language      string
	rate          int
	line          Line
}

func (k Key) slot() slot {
	s := slot{first: k.Engine, language: k.Language, rate: k.Rate, line: k.Line}
	if f := k.Engine.Fallback; f != nil {
		s.second = *f
	}
	s.first.Fallback, s.second.Fallback = nil, nil
	return s
}

// A Shelf keeps lines, spoken once and then ready in an instant, so that a voice
// that broke can still be excused. Its zero value is empty.
type Shelf struct {
	mu     sync.Mutex
	spoken map[slot][]int16
	order  []slot // of spoken, the oldest first
	making map[slot]bool
}

// most bounds the lines kept: in a process with very many voices the oldest is
// let go and spoken anew when it is missed.
const most = 1024

// Get returns a line; nil where it was not spoken yet.
func (s *Shelf) Get(k Key) []int16 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spoken[k.slot()]
}

// Claim is true for whoever is to speak a line that nobody spoke yet; Put ends
// the claim.
func (s *Shelf) Claim(k Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spoken == nil {
		s.spoken, s.making = map[slot][]int16{}, map[slot]bool{}
	}
	at := k.slot()
	if s.spoken[at] != nil || s.making[at] {
		return false
	}
	s.making[at] = true
	return true
}

// Put keeps what was spoken; nothing is another call's to try again.
func (s *Shelf) Put(k Key, pcm []int16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := k.slot()
	delete(s.making, at)
	if len(pcm) == 0 {
		return
	}
	s.spoken[at], s.order = pcm, append(s.order, at)
	if len(s.order) > most {
		delete(s.spoken, s.order[0])
		s.order = s.order[1:]
	}
}

const (
	lineTimeout = 10 * time.Second
	longestLine = 10 * time.Second
)

// Prepare has the lines spoken that must be at hand and are not there yet.
func (s *Shelf) Prepare(ctx context.Context, v pipeline.Voice, style pipeline.Style, engine pipeline.Engine) {
	for what := range Lines {
		text, key := what.In(style.Language), Key{Engine: engine, Language: style.Language, Rate: style.Rate, Line: what}
		if text != "" && s.Claim(key) {
			s.Put(key, Speak(ctx, v, style, text, lineTimeout, longestLine))
		}
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

const (
	messageTimeout = 30 * time.Second // for the voice to speak it
	longestMessage = time.Minute      // on a machine
)

// Message has a voice speak a message for a machine, nil where no voice does.
func Message(ctx context.Context, v pipeline.Voice, style pipeline.Style, text string, pronunciation map[string]string) []int16 {
	words := pronounce.New(pronunciation)
	said := words.Say(text) + words.End()
	return Speak(ctx, v, style, said, messageTimeout, longestMessage)
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
