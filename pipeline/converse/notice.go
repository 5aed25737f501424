package converse

import (
	"context"
	"sync"
	"time"

	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/canned"
	"github.com/parley-voice/parley/pipeline/mouth"
	"github.com/parley-voice/parley/pipeline/turn"
)

const (
	noticeTimeout = 10 * time.Second
	longestNotice = 10 * time.Second
)

// noticeKey names one canned line in one voice.
type noticeKey struct {
	engine pipeline.Engine
	lang   string
	rate   int
	line   canned.Line
}

// notices keeps canned lines, spoken once and then ready in an instant, so that
// a voice that broke can still be excused.
type notices struct {
	mu     sync.Mutex
	spoken map[noticeKey][]int16
	making map[noticeKey]bool
}

// noticeCap bounds the lines kept: beyond it, in a process with very many
// voices, the caller of the last ones hears two tones.
const noticeCap = 1024

func (n *notices) get(k noticeKey) []int16 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.spoken[k]
}

// claim is true for whoever is to speak a line that nobody spoke yet; make ends
// the claim.
func (n *notices) claim(k noticeKey) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.spoken == nil {
		n.spoken, n.making = map[noticeKey][]int16{}, map[noticeKey]bool{}
	}
	if n.spoken[k] != nil || n.making[k] || len(n.spoken) >= noticeCap {
		return false
	}
	n.making[k] = true
	return true
}

// make keeps what was spoken; nothing is another call's to try again.
func (n *notices) make(k noticeKey, pcm []int16) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.making, k)
	if len(pcm) > 0 {
		n.spoken[k] = pcm
	}
}

func (s *talk) noticeKey(what canned.Line) noticeKey {
	return noticeKey{s.brief.Engines.TTS, s.brief.Language, s.leg.Rate(), what}
}

// prepare speaks the canned lines that are not there yet.
func (s *talk) prepare(ctx context.Context) {
	for what := range canned.Lines {
		text := what.In(s.brief.Language)
		if key := s.noticeKey(what); text != "" && s.agent.notices.claim(key) {
			s.agent.notices.make(key, s.synthesise(ctx, text))
		}
	}
}

func (s *talk) synthesise(ctx context.Context, text string) []int16 {
	ctx, cancel := context.WithTimeout(ctx, noticeTimeout)
	defer cancel()
	speaking, err := s.voice.Open(ctx, s.style())
	if err != nil {
		return nil
	}
	wrote := make(chan error, 1)
	s.wg.Go(func() { // a voice may speak before it has heard all of the text
		err := speaking.Say(text)
		if err == nil {
			err = speaking.Flush()
		}
		if err != nil {
			_ = speaking.Close() // let the sound end
		}
		wrote <- err
	})
	defer speaking.Close()
	var pcm []int16
	for sp, err := range speaking.Audio() {
		if err != nil {
			return nil
		}
		if pcm = append(pcm, sp.PCM...); mouth.Span(s.leg.Rate(), len(pcm)) > longestNotice {
			return nil // a voice that does not know when to stop
		}
	}
	if <-wrote != nil {
		return nil // half a line is none
	}
	return pcm[mouth.LeadingSilence(pcm):]
}

// notice says a canned line. Where no voice could speak it, two soft tones tell
// the caller that the line is alive.
func (s *talk) notice(ctx context.Context, kind string, what canned.Line) *reply {
	ctx, cancel := context.WithCancel(ctx)
	u := s.utter(kind)
	text := what.In(s.brief.Language)
	pcm := s.agent.notices.get(s.noticeKey(what))
	if pcm == nil {
		text = ""
		rate := s.leg.Rate()
		pcm = append(tone.Sine(rate, rate/5, 440, 0.2), tone.Sine(rate, rate/5, 350, 0.2)...)
	}
	u.Write(text, time.Now())
	u.Add(pipeline.Speech{PCM: pcm, Words: mouth.Evenly(text, mouth.Span(u.Rate, len(pcm)))}, time.Now())
	u.Complete()
	s.wg.Go(func() {
		defer cancel()
		release, ok := s.mouth.Begin(ctx, kind == turn.Filler)
		if !ok {
			return
		}
		defer release()
		_ = s.mouth.Push(ctx, u, pcm, true) // ends with ctx only
	})
	return &reply{Utterance: u, began: time.Now(), cancel: cancel, gate: make(chan struct{}), agreed: make(chan struct{})}
}
