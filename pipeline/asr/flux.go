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

// OptionRules implements pipeline.RuledProvider.
func (Flux) OptionRules() pipeline.OptionRules {
	return pipeline.OptionRules{
		Takes: []string{"keyterms", "languages", "options"},
		Reserved: []string{
			"eager_eot_threshold", "encoding", "eot_threshold", "keyterm", "language_hint", "model", "sample_rate",
		},
		Known:     []string{"eot_timeout_ms", "mip_opt_out", "numerals", "profanity_filter", "redact", "tag"},
		Languages: []string{"en", "es", "fr", "de", "hi", "ru", "pt", "ja", "it", "nl"},
	}
}

// Recognize implements pipeline.Recognizer.
func (f Flux) Recognize(ctx context.Context, s pipeline.Stream) (pipeline.Recognition, error) {
	return asRecognition(open(ctx, protocol{
		name: "flux", finalize: `{"type":"ForceEndTurn"}`, bye: `{"type":"CloseStream"}`,
		chunk:     80 * time.Millisecond, // Flux recommends this chunk size
		maxSilent: 1, parse: parseFlux, closeStatus: deepgramCloseStatus,
	}, s.Rate, cmp.Or(f.URL, FluxURL), fluxQuery(s), http.Header{"Authorization": {"Token " + string(f.Key)}}, f.Dial))
}

// fluxQuery returns the query parameters. Language hints have no region
// (developers.deepgram.com/docs/flux/language-prompting). The English model accepts no hints.
func fluxQuery(s pipeline.Stream) url.Values {
	q := url.Values{
		"encoding": {"mulaw"}, "sample_rate": {strconv.Itoa(s.Rate)},
		"eager_eot_threshold": {"0.4"}, "eot_threshold": {"0.7"},
	}
	if s.Rate != telephone {
		q.Set("encoding", "linear16")
	}
	hints := baseLanguages(languagesOf(s))
	model := "flux-general-multi"
	if len(hints) == 0 || len(hints) == 1 && hints[0] == "en" {
		model = "flux-general-en"
	}
	model = cmp.Or(s.Model, model)
	q.Set("model", model)
	if strings.Contains(model, "multi") && len(hints) > 0 {
		q["language_hint"] = hints
	}
	if len(s.Options.KeyTerms) > 0 {
		q["keyterm"] = s.Options.KeyTerms
	}
	addParameters(q, s.Options.Extra, Flux{}.OptionRules())
	return q
}

// fluxMessage holds the fields of a message that this client uses. Times are in seconds.
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

func parseFlux(b []byte) (update, error) {
	var m fluxMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return update{}, fmt.Errorf("not JSON: %w", err)
	}
	switch m.Type {
	case "Error":
		return update{}, deepgramError(m.Code, m.Description)
	case "TurnInfo":
	default: // Connected, ConfigureSuccess and unknown types need no action
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
	default: // StartOfTurn, Update and TurnResumed hold interim text
		if m.Transcript == "" {
			h.empty, h.upTo = true, seconds(m.WindowEnd)
		}
	}
	return h, nil
}

// timedWords returns the words, or nil if the provider reports no word times.
func timedWords(words []pipeline.Word) []pipeline.Word {
	if n := len(words); n > 0 && words[n-1].End == 0 {
		return nil
	}
	return words
}

// clampProbability limits a reported probability to 0 to 1.
func clampProbability(p float64) float64 { return min(max(p, 0), 1) }
