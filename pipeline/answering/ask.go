package answering

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/amd"
)

const (
	askTime           = 3 * time.Second  // time limit of a model's opinion
	composeTime       = 10 * time.Second // time limit of a message
	opinionConfidence = 0.9              // confidence of a model's opinion, 0 to 1
	maxMessage        = 1500             // maximum number of bytes of a message
)

// Opinion asks a model who speaks in text. name is the provider's name of the model. The result is an event for
// Monitor.Step. Its Confidence is 0 if the model does not decide or fails.
func Opinion(ctx context.Context, m pipeline.Model, name, text string) amd.Event {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	reply, err := collect(ctx, m, pipeline.Prompt{
		Model: name, MaxTokens: 5,
		Instructions: "A phone call was answered, and the transcript of what was said first follows. Who answered? Reply with one word: " +
			"human, voicemail (a greeting that asks for a message), ivr (a menu or an announcement), " +
			"screening (an assistant that asks who calls), or unknown.",
		Messages: []pipeline.Message{{Role: pipeline.RoleCaller, Text: text}},
	}, 100)
	e := amd.Event{Kind: amd.Opinion}
	if err != nil {
		return e
	}
	for _, p := range []amd.Party{amd.Voicemail, amd.IVR, amd.Screening, amd.Human} {
		if strings.Contains(strings.ToLower(reply), word(p)) {
			e.Party, e.Confidence = p, opinionConfidence
			break
		}
	}
	return e
}

// word returns the model's word for a party.
func word(p amd.Party) string {
	if p == amd.Screening {
		return "screening"
	}
	return p.AnsweredBy()
}

// Compose asks a model to write the voicemail message.
func Compose(ctx context.Context, m pipeline.Model, name, instructions string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, composeTime)
	defer cancel()
	return collect(ctx, m, pipeline.Prompt{
		Model: name, Instructions: instructions,
		Messages: []pipeline.Message{{
			Role: pipeline.RoleNote, Text: "an answering machine took the call and records from now on; say the message to leave, and nothing else",
		}},
	}, maxMessage)
}

// collect returns the text of an answer. It stops reading after most bytes, or if the model ends at its token limit.
func collect(ctx context.Context, m pipeline.Model, p pipeline.Prompt, most int) (string, error) {
	var text strings.Builder
	for d, err := range m.Reply(ctx, p) {
		if errors.Is(err, pipeline.ErrLength) && text.Len() > 0 {
			break
		}
		if err != nil {
			return "", err
		}
		if text.WriteString(d.Text); text.Len() > most {
			break
		}
	}
	return strings.TrimSpace(text.String()), nil
}
