package provider

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

type answer struct {
	deltas []pipeline.Delta
	err    error
}

func (m answer) Reply(context.Context, pipeline.Prompt) iter.Seq2[pipeline.Delta, error] {
	return func(yield func(pipeline.Delta, error) bool) {
		for _, d := range m.deltas {
			if !yield(d, nil) {
				return
			}
		}
		if m.err != nil {
			yield(pipeline.Delta{}, m.err)
		}
	}
}

// TestTokens checks that tokens are counted as the model reports them, and estimated if the answer ends before the
// report.
func TestTokens(t *testing.T) {
	text := pipeline.Delta{Text: strings.Repeat("x", 40)}
	cost := pipeline.Delta{Usage: &pipeline.Usage{PromptTokens: 7, CompletionTokens: 5}}
	prompt := pipeline.Prompt{
		Instructions: strings.Repeat("i", 100), Tools: []pipeline.Tool{{Name: "a", Description: "b", Parameters: []byte("{}")}},
		Messages: []pipeline.Message{{Text: strings.Repeat("m", 90)}, {Calls: []pipeline.ToolCall{{Name: "abcd", Arguments: []byte("{}")}}}},
	}
	for name, tt := range map[string]struct {
		answer
		take int // deltas before the cancellation; 0 for no cancellation
		want int
	}{
		"told":                     {answer{deltas: []pipeline.Delta{text, cost}}, 0, 12},
		"broken off":               {answer{deltas: []pipeline.Delta{text, text, cost}}, 1, 60},
		"broken off before a word": {answer{deltas: []pipeline.Delta{{}, text, cost}}, 1, 50},
		"no report":                {answer{deltas: []pipeline.Delta{text, text}}, 0, 70},
		"broke":                    {answer{deltas: []pipeline.Delta{text}, err: errors.New("x")}, 0, 60},
		"refused":                  {answer{err: errors.New("x")}, 0, 0},
	} {
		var meter pipeline.UsageMeter
		m := new(Guards).Model(&Clients{Models: map[string]pipeline.Model{"x": tt.answer}}, pipeline.Engine{Provider: "x", Model: "m"}, &meter)
		n := 0
		for _, err := range m.Reply(t.Context(), prompt) {
			if err != nil && tt.err == nil {
				t.Errorf("%s: %v", name, err)
			}
			if n++; n == tt.take {
				break
			}
		}
		if got := meter.Tokens(); got != tt.want {
			t.Errorf("%s: %d tokens, want %d", name, got, tt.want)
		}
	}
}

// TestUsage checks that each provider of a chain is charged for what it received.
func TestUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var meter pipeline.UsageMeter
		g, stub := &Guards{}, &providerStub{}
		e := pipeline.Engine{Provider: "down", Model: "m", Fallback: &pipeline.Engine{Provider: "up"}}
		down := &providerStub{err: errors.New("down")}
		rec, err := g.Recognizer(&Clients{Recognizers: map[string]pipeline.Recognizer{"down": down, "up": sinkStub{}}}, e, &meter).Recognize(t.Context(), pipeline.Stream{Rate: telephone})
		if err != nil {
			t.Fatal(err)
		}
		for range 150 {
			_ = rec.WriteFrame(make(media.Frame, 160))
		}
		_ = rec.Close()
		sp, err := g.Voice(&Clients{Voices: map[string]pipeline.Voice{"down": down, "up": stub}}, e, &meter).Open(t.Context(), pipeline.Style{Rate: telephone})
		if err != nil {
			t.Fatal(err)
		}
		_ = errors.Join(sp.Write("Сәлем, "), sp.Write("hi"), sp.Flush())
		_ = sp.Close()
		want := []pipeline.EngineUsage{
			{Serves: "asr", Provider: "up", Requests: 1, Seconds: 3},
			{Serves: "tts", Provider: "up", Requests: 1, Characters: 9},
		}
		if got := meter.Total(); !slices.Equal(got, want) {
			t.Errorf("%+v", got)
		}
	})
}

// sinkStub is a recognizer that accepts all audio.
type sinkStub struct{ quiet }

func (sinkStub) Recognize(context.Context, pipeline.Stream) (pipeline.Recognition, error) {
	return sinkStub{}, nil
}
func (sinkStub) WriteFrame(media.Frame) error { return nil }
