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

// AssemblyAIURL is where AssemblyAI listens.
const AssemblyAIURL = "wss://streaming.assemblyai.com/v3/ws"

// AssemblyAI recognizes speech by AssemblyAI's streaming API, version 3
// (assemblyai.com/docs/streaming/message-sequence).
type AssemblyAI struct {
	URL  string // empty: AssemblyAIURL
	Key  media.Secret
	Dial wire.Dial
}

// Recognize implements pipeline.Recognizer.
func (a AssemblyAI) Recognize(ctx context.Context, s pipeline.Stream) (pipeline.Recognition, error) {
	turns := assemblyTurns{last: -1}
	return opened(open(ctx, protocol{
		name: "assemblyai", finalize: `{"type":"ForceEndpoint"}`, bye: `{"type":"Terminate"}`,
		chunk: 60 * time.Millisecond, whole: true, // less than 50 ms is refused
		quiet: 2, // it says nothing where nothing was said
		parse: turns.parse,
	}, s.Rate, cmp.Or(a.URL, AssemblyAIURL), assemblyQuery(s), http.Header{"Authorization": {string(a.Key)}}, a.Dial))
}

func assemblyQuery(s pipeline.Stream) url.Values {
	q := url.Values{
		"sample_rate": {strconv.Itoa(s.Rate)}, "encoding": {"pcm_mulaw"},
		"min_turn_silence": {"100"}, "max_turn_silence": {"1000"},
	}
	if s.Rate != telephone {
		q.Set("encoding", "pcm_s16le")
	}
	model := "universal-streaming-english"
	if lang, _, _ := strings.Cut(s.Language, "-"); lang != "" && lang != "en" {
		model = "universal-streaming-multilingual"
	}
	q.Set("speech_model", cmp.Or(s.Model, model))
	return q
}

// assemblyMessage is what AssemblyAI sends, as far as it matters here. The
// words' times are in milliseconds.
type assemblyMessage struct {
	Type       string  `json:"type"`
	Order      int     `json:"turn_order"`
	Transcript string  `json:"transcript"`
	EndOfTurn  bool    `json:"end_of_turn"`
	Confidence float64 `json:"end_of_turn_confidence"`
	Error      string  `json:"error"`
	Words      []struct {
		Text  string  `json:"text"`
		Start float64 `json:"start"`
		End   float64 `json:"end"`
	} `json:"words"`
}

// assemblyTurns reads turns, of which last is the one that ended last: it may
// come a second time with other punctuation.
type assemblyTurns struct{ last int }

// parse returns what a message says.
func (t *assemblyTurns) parse(b []byte) (heard, error) {
	var m assemblyMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return heard{}, fmt.Errorf("not JSON: %w", err)
	}
	switch {
	case m.Type == "Error" || m.Error != "":
		return heard{}, fmt.Errorf("%s", pipeline.Clean(m.Error))
	case m.Type != "Turn" || m.Order <= t.last: // Begin, SpeechStarted, Termination and what is yet to come
		return heard{none: true}, nil
	}
	h := heard{Result: pipeline.Result{Text: m.Transcript, Final: m.EndOfTurn}, answer: m.EndOfTurn}
	var texts []string
	for _, w := range m.Words {
		texts = append(texts, w.Text)
		h.Words = append(h.Words, pipeline.Word{Text: w.Text, Start: millis(w.Start), End: millis(w.End)})
	}
	if all := strings.Join(texts, " "); !m.EndOfTurn && len(all) > len(h.Text) {
		h.Text = all // the transcript holds only the words that will not change
	}
	h.Start, h.End = span(timed(h.Words), 0, 0)
	if m.EndOfTurn {
		t.last, h.EndOfTurn = m.Order, chance(m.Confidence)
	} else if h.Text == "" {
		h.none = true
	}
	return h, nil
}
