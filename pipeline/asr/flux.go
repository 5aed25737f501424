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
	"github.com/parley-voice/parley/pipeline/wsdial"
)

// FluxURL is the default endpoint.
const FluxURL = "wss://api.deepgram.com/v2/listen"

// Flux transcribes with Deepgram's streaming API, version 2, which also detects the end of
// the caller's turn (developers.deepgram.com/docs/flux).
type Flux struct {
	URL  string // empty means FluxURL
	Key  media.Secret
	Dial wsdial.DialFunc
}

// Recognize implements pipeline.Recognizer.
func (f Flux) Recognize(ctx context.Context, s pipeline.Stream) (pipeline.Recognition, error) {
	return asRecognition(open(ctx, protocol{
		name: "flux", finalize: `{"type":"ForceEndTurn"}`, bye: `{"type":"CloseStream"}`,
		chunk:     80 * time.Millisecond, // recommended by the provider
		maxSilent: 1, parse: parseFlux,
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

// fluxMessage holds the used fields of a message. Times are in seconds.
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

// parseFlux reads a message.
func parseFlux(b []byte) (update, error) {
	var m fluxMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return update{}, fmt.Errorf("not JSON: %w", err)
	}
	switch m.Type {
	case "Error":
		return update{}, fmt.Errorf("%s: %s", pipeline.Clean(m.Code), pipeline.Clean(m.Description))
	case "TurnInfo":
	default: // Connected, ConfigureSuccess and unknown types
		return update{empty: true}, nil
	}
	h := update{Result: pipeline.Result{Text: m.Transcript, Words: words(m.Words)}}
	h.Start, h.End = span(timedWords(h.Words), seconds(m.WindowStart), seconds(m.WindowEnd))
	switch m.Event {
	case "EndOfTurn":
		h.Final, h.answer, h.EndOfTurn = true, true, clampProbability(m.Confidence)
		h.End = max(h.End, seconds(m.WindowEnd))
	case "EagerEndOfTurn":
		h.EndOfTurn = clampProbability(m.Confidence)
	default: // StartOfTurn, Update, TurnResumed
		if m.Transcript == "" {
			h.empty, h.upTo = true, seconds(m.WindowEnd)
		}
	}
	return h, nil
}

// timedWords returns nil if the provider reports no word times.
func timedWords(words []pipeline.Word) []pipeline.Word {
	if n := len(words); n > 0 && words[n-1].End == 0 {
		return nil
	}
	return words
}

// clampProbability limits a reported probability to 0 to 1.
func clampProbability(p float64) float64 { return min(max(p, 0), 1) }
