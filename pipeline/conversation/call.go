package conversation

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/playout"
)

// call holds the values that all parts of a session use.
type call struct {
	leg     media.Leg
	config  pipeline.SessionConfig
	log     *slog.Logger
	model   pipeline.Model
	voice   pipeline.Voice
	usage   *pipeline.UsageMeter
	wg      sync.WaitGroup
	updates chan update
}

// An update tells the session loop that the first sound of a reply exists, or that the
// reply failed. If do is set, the loop runs it instead.
type update struct {
	of  *playout.Utterance
	err error // nil means that the first sound exists
	do  func(context.Context)
}

// report sends an update to the session loop unless ctx ends first.
func (c *call) report(ctx context.Context, u update) {
	select {
	case c.updates <- u:
	case <-ctx.Done():
	}
}

// later makes the session loop run do after d.
func (c *call) later(ctx context.Context, d time.Duration, do func(context.Context)) {
	c.wg.Go(func() {
		select {
		case <-time.After(d):
			c.report(ctx, update{do: do})
		case <-ctx.Done():
		}
	})
}

// since returns the time from the answer of the call to t. The turn machine counts time this way.
func (c *call) since(t time.Time) time.Duration { return t.Sub(c.config.AnsweredAt) }

func (c *call) style() pipeline.Style {
	tts := c.config.Engines.TTS
	return pipeline.Style{Rate: c.leg.Rate(), Voice: tts.Voice, Model: tts.Model, Language: c.config.Language}
}

// phraseText returns the text of a phrase, in English if the language has none.
func (c *call) phraseText(p phrase) string { return cmp.Or(p.In(c.config.Language), p.In("")) }
