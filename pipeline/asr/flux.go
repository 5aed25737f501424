package asr

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/wire"
)

// FluxURL is where Deepgram's Flux listens.
const FluxURL = "wss://api.deepgram.com/v2/listen"

// Flux recognizes speech by Deepgram's streaming API, version 2, which also
// looks for the end of the caller's turn (developers.deepgram.com/docs/flux).
type Flux struct {
	URL  string // empty: FluxURL
	Key  media.Secret
	Dial wire.Dial
}

// Recognize implements pipeline.Recognizer.
func (f Flux) Recognize(ctx context.Context, s pipeline.Stream) (pipeline.Recognition, error) {
	return opened(open(ctx, protocol{
		name: "flux", finalize: `{"type":"ForceEndTurn"}`, bye: `{"type":"CloseStream"}`,
		chunk: 80 * time.Millisecond, // as the provider recommends
		quiet: 1, parse: parseFlux,
	}, s.Rate, cmp.Or(f.URL, FluxURL), fluxQuery(s), http.Header{"Authorization": {"Token " + string(f.Key)}}, f.Dial))
}

func fluxQuery(s pipeline.Stream) url.Values {
	q := url.Values{
		"encoding": {"mulaw"}, "sample_rate": {strconv.Itoa(s.Rate)},
		"eager_eot_threshold": {"0.4"}, "eot_threshold": {"0.7"},
	}
	if s.Rate != telephone {
		q.Set("encoding", "linear16")
	}
	model := "flux-general-en"
	if lang, _, _ := strings.Cut(s.Language, "-"); lang != "" && lang != "en" {
		model = "flux-general-multi"
		q.Set("language_hint", lang)
	}
	q.Set("model", cmp.Or(s.Model, model))
	return q
}

// fluxMessage is what Flux sends, as far as it matters here. The words' times,
// like those of the window, are in seconds.
type fluxMessage struct {
	Type        string      `json:"type"`
	Event       string      `json:"event"`
	Transcript  string      `json:"transcript"`
	Words       []timedWord `json:"words"`
	Confidence  float64     `json:"end_of_turn_confidence"`
	WindowStart float64     `json:"audio_window_start"`
	WindowEnd   float64     `json:"audio_window_end"`
	Code        string      `json:"code"`
	Description string      `json:"description"`
}

// parseFlux returns what a message says.
func parseFlux(b []byte) (heard, error) {
	var m fluxMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return heard{}, fmt.Errorf("not JSON: %w", err)
	}
	switch m.Type {
	case "Error":
		return heard{}, fmt.Errorf("%s: %s", pipeline.Clean(m.Code), pipeline.Clean(m.Description))
	case "TurnInfo":
	default: // Connected, ConfigureSuccess and what is yet to come
		return heard{none: true}, nil
	}
	h := heard{Result: pipeline.Result{Text: m.Transcript, Words: words(m.Words)}}
	h.Start, h.End = span(timed(h.Words), seconds(m.WindowStart), seconds(m.WindowEnd))
	switch m.Event {
	case "EndOfTurn":
		h.Final, h.answer, h.EndOfTurn = true, true, chance(m.Confidence)
		h.End = max(h.End, seconds(m.WindowEnd))
	case "EagerEndOfTurn":
		h.EndOfTurn = chance(m.Confidence)
	default: // StartOfTurn, Update, TurnResumed
		if m.Transcript == "" {
			h.none, h.upTo = true, seconds(m.WindowEnd)
		}
	}
	return h, nil
}

// timed leaves out words whose times the provider does not tell.
func timed(words []pipeline.Word) []pipeline.Word {
	if n := len(words); n > 0 && words[n-1].End == 0 {
		return nil
	}
	return words
}

// chance bounds what a provider says is a probability.
func chance(p float64) float64 { return min(max(p, 0), 1) }
