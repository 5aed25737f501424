package conversation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// SampleRate is the sample rate of samples in Hz. Every voice has it.
const SampleRate = 24000

// maxSample is the longest sample of a voice.
const maxSample = 15 * time.Second

// Sample synthesizes a sentence with a voice or its fallback, and returns at most 15 s of it.
func (a *Agent) Sample(ctx context.Context, e pipeline.Engine, language, text string) ([]int16, error) {
	clients := a.Clients.Current()
	if err := clients.CheckVoice(e); err != nil {
		return nil, err
	}
	meter := &pipeline.UsageMeter{}
	defer a.endTest(meter)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	speech, err := a.Guards.BackgroundVoice(clients, e, meter).Open(ctx, pipeline.Style{Rate: SampleRate, Language: language})
	if err != nil {
		return nil, fmt.Errorf("voice: %w", err)
	}
	defer func() { _ = speech.Close() }() // Audio has returned the error
	if err = errors.Join(speech.Write(text), speech.Flush()); err != nil {
		return nil, fmt.Errorf("voice: %w", err)
	}
	var pcm []int16
	for s, err := range speech.Audio() {
		if err != nil {
			return nil, fmt.Errorf("voice: %w", err)
		}
		if pcm = append(pcm, s.PCM...); len(pcm) >= int(maxSample/time.Second)*SampleRate {
			break
		}
	}
	return pcm, nil
}
