package conversation

import (
	"context"
	"sync"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/playout"
	"github.com/parley-voice/parley/pipeline/pronounce"
)

// A phraseKey names a phrase in one voice.
type phraseKey struct {
	Engine   pipeline.Engine
	Language string // BCP 47
	Rate     int    // Hz
	phrase   phrase
}

// A slot is a phraseKey in a form that can be the key of a map.
type slot struct {
	engine   string
	language string
	rate     int
	phrase   phrase
}

func (k phraseKey) slot() slot { return slot{k.Engine.Key(), k.Language, k.Rate, k.phrase} }

// A phraseCache keeps the audio of phrases, so that the agent can apologize at once when its voice fails. The zero
// value is empty.
type phraseCache struct {
	mu     sync.Mutex
	spoken map[slot][]int16
	order  []slot // keys of the spoken phrases, oldest first
	making map[slot]bool
}

// maxPhrases bounds the cache. Beyond it the oldest phrase is dropped.
const maxPhrases = 1024

// Get returns a phrase; nil if it is not in the cache.
func (s *phraseCache) Get(k phraseKey) []int16 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spoken[k.slot()]
}

// Claim reports whether the calling goroutine must synthesize the phrase and then call Put. It reports false if the
// phrase is in the cache or another goroutine has claimed it.
func (s *phraseCache) Claim(k phraseKey) bool {
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

// Put stores a phrase and ends the claim. If pcm is empty, it stores nothing, and the phrase can be claimed again.
func (s *phraseCache) Put(k phraseKey, pcm []int16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := k.slot()
	delete(s.making, at)
	if len(pcm) == 0 {
		return
	}
	s.spoken[at], s.order = pcm, append(s.order, at)
	if len(s.order) > maxPhrases {
		delete(s.spoken, s.order[0])
		s.order = s.order[1:]
	}
}

const (
	lineTimeout = 10 * time.Second
	longestLine = 10 * time.Second
)

// Prepare synthesizes and stores the first preparedPhrases phrases that are not in the cache.
func (s *phraseCache) Prepare(ctx context.Context, v pipeline.Voice, style pipeline.Style, engine pipeline.Engine) {
	for what := range preparedPhrases {
		text, key := what.In(style.Language), phraseKey{Engine: engine, Language: style.Language, Rate: style.Rate, phrase: what}
		if text != "" && s.Claim(key) {
			s.Put(key, speakWhole(ctx, v, style, text, lineTimeout, longestLine))
		}
	}
}

// speakWhole returns text as speech without the leading silence. It returns nil if the voice
// fails, needs longer than within, or speaks longer than longest.
func speakWhole(ctx context.Context, v pipeline.Voice, style pipeline.Style, text string, within, longest time.Duration) []int16 {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	speaking, err := v.Open(ctx, style)
	if err != nil {
		return nil
	}
	wrote := make(chan error, 1)
	go func() { // a voice may start to speak before it has all of the text
		err := speaking.Write(text)
		if err == nil {
			err = speaking.Flush()
		}
		if err != nil {
			_ = speaking.Close() // ends the audio, so that collectSpeech returns
		}
		wrote <- err
	}()
	pcm := collectSpeech(speaking, style.Rate, longest)
	_ = speaking.Close() // unblocks the writer
	if <-wrote != nil || pcm == nil {
		return nil // a part of the phrase is of no use
	}
	return pcm[playout.LeadingSilence(pcm):]
}

const (
	messageTimeout = 30 * time.Second // time limit for speaking the message
	longestMessage = time.Minute
)

// speakMessage returns a voicemail message as speech; nil if the voice fails.
func speakMessage(ctx context.Context, v pipeline.Voice, style pipeline.Style, text string, pronunciation map[string]string) []int16 {
	words := pronounce.New(pronunciation)
	said := words.Write(text) + words.End()
	return speakWhole(ctx, v, style, said, messageTimeout, longestMessage)
}

// collectSpeech returns all speech of a voice; nil if it fails or is longer than longest.
func collectSpeech(speaking pipeline.Synthesis, rate int, longest time.Duration) []int16 {
	var pcm []int16
	for sp, err := range speaking.Audio() {
		if err != nil {
			return nil
		}
		if pcm = append(pcm, sp.PCM...); playout.SamplesDuration(rate, len(pcm)) > longest {
			return nil
		}
	}
	return pcm
}
