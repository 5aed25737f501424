package converse

import (
	"context"
	"slices"
	"time"

	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/canned"
	"github.com/parley-voice/parley/pipeline/mouth"
	"github.com/parley-voice/parley/pipeline/turn"
)

// breath is what lies between a filler and its answer.
const breath = 200 * time.Millisecond

func (s *talk) noticeKey(what canned.Line) canned.Key {
	return canned.Key{Engine: s.brief.Engines.TTS, Language: s.brief.Language, Rate: s.leg.Rate(), Line: what}
}

// notice says a canned line. Where no voice could speak it, two soft tones tell
// the caller that the line is alive.
func (s *talk) notice(ctx context.Context, kind string, what canned.Line) *reply {
	text := what.In(s.brief.Language)
	pcm := s.agent.notices.Get(s.noticeKey(what))
	if pcm == nil {
		text = ""
		rate := s.leg.Rate()
		pcm = append(tone.Sine(rate, rate/5, 440, 0.2), tone.Sine(rate, rate/5, 350, 0.2)...)
	}
	return s.recite(ctx, kind, text, pcm)
}

// recite says what was spoken before.
func (s *talk) recite(ctx context.Context, kind, text string, pcm []int16) *reply {
	ctx, cancel := context.WithCancel(ctx)
	u := s.utter(kind)
	u.Write(text, time.Now())
	u.Add(pipeline.Speech{PCM: pcm, Words: mouth.Evenly(text, mouth.Span(u.Rate, len(pcm)))}, time.Now())
	if kind == turn.Filler { // the answer may follow at once
		pcm = slices.Concat(pcm, make([]int16, int64(u.Rate)*int64(breath)/int64(time.Second)))
	}
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
