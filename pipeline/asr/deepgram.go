package asr

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/wire"
)

// DeepgramURL is where Deepgram listens.
const DeepgramURL = "wss://api.deepgram.com/v1/listen"

// Deepgram recognizes speech by Deepgram's streaming API, version 1
// (developers.deepgram.com/reference/speech-to-text/listen-streaming).
type Deepgram struct {
	URL  string // empty: DeepgramURL
	Key  media.Secret
	Dial wire.Dial
}

// Recognize implements pipeline.Recognizer.
func (d Deepgram) Recognize(ctx context.Context, s pipeline.Stream) (pipeline.Recognition, error) {
	return opened(open(ctx, protocol{
		name: "deepgram", alive: `{"type":"KeepAlive"}`, finalize: `{"type":"Finalize"}`, bye: `{"type":"CloseStream"}`,
		chunk: media.FrameTime, quiet: 1, parse: parseDeepgram,
	}, s.Rate, cmp.Or(d.URL, DeepgramURL), deepgramQuery(s), http.Header{"Authorization": {"Token " + string(d.Key)}}, d.Dial))
}

// opened keeps a nil stream from becoming a recognition that is not nil.
func opened(s *stream, err error) (pipeline.Recognition, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

func deepgramQuery(s pipeline.Stream) url.Values {
	q := url.Values{
		"encoding": {"mulaw"}, "sample_rate": {strconv.Itoa(s.Rate)}, "channels": {"1"},
		"interim_results": {"true"}, "endpointing": {"false"}, "punctuate": {"true"},
		"no_delay": {"true"}, "model": {cmp.Or(s.Model, "nova-3")},
	}
	if s.Rate != telephone {
		q.Set("encoding", "linear16")
	}
	if s.Language != "" {
		q.Set("language", s.Language)
	}
	return q
}

// timedWord is a word as Deepgram tells it; its times are in seconds.
type timedWord struct {
	Word       string  `json:"word"`
	Punctuated string  `json:"punctuated_word"`
	Start      float64 `json:"start"`
	End        float64 `json:"end"`
}

// deepgramMessage is what Deepgram sends, as far as it matters here.
type deepgramMessage struct {
	Type         string  `json:"type"`
	IsFinal      bool    `json:"is_final"`
	FromFinalize bool    `json:"from_finalize"`
	Start        float64 `json:"start"`
	Duration     float64 `json:"duration"`
	Description  string  `json:"description"`
	Channel      struct {
		Alternatives []struct {
			Transcript string      `json:"transcript"`
			Confidence float64     `json:"confidence"`
			Words      []timedWord `json:"words"`
		} `json:"alternatives"`
	} `json:"channel"`
}

// parseDeepgram returns what a message says.
func parseDeepgram(b []byte) (heard, error) {
	var m struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return heard{}, fmt.Errorf("not JSON: %w", err)
	}
	if m.Type != "Results" && m.Type != "Error" {
		return heard{none: true}, nil // Metadata, SpeechStarted and what is yet to come
	}
	var d deepgramMessage
	if err := json.Unmarshal(b, &d); err != nil {
		return heard{}, fmt.Errorf("%s: %w", m.Type, err)
	}
	if d.Type == "Error" {
		return heard{}, fmt.Errorf("%s", pipeline.Clean(d.Description))
	}
	h := heard{answer: d.FromFinalize, Result: pipeline.Result{
		Final: d.IsFinal, Start: seconds(d.Start), End: seconds(d.Start + d.Duration),
	}}
	if len(d.Channel.Alternatives) > 0 {
		best := d.Channel.Alternatives[0]
		h.Text, h.Confidence, h.Words = best.Transcript, best.Confidence, words(best.Words)
	}
	if h.Final && !h.answer { // an interim one may still grow words
		h.upTo = h.End
	}
	return h, nil
}

func words(all []timedWord) []pipeline.Word {
	out := make([]pipeline.Word, 0, len(all))
	for _, w := range all {
		out = append(out, pipeline.Word{Text: cmp.Or(w.Punctuated, w.Word), Start: seconds(w.Start), End: seconds(w.End)})
	}
	return out
}

// span is where timed words begin and end.
func span(words []pipeline.Word, start, end time.Duration) (from, to time.Duration) {
	if n := len(words); n > 0 {
		return words[0].Start, words[n-1].End
	}
	return start, end
}
