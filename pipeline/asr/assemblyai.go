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

// AssemblyAIURL is the default endpoint.
const AssemblyAIURL = "wss://streaming.assemblyai.com/v3/ws"

// AssemblyAI transcribes with the streaming API, version 3
// (assemblyai.com/docs/streaming/message-sequence).
type AssemblyAI struct {
	URL  string // empty means AssemblyAIURL
	Key  media.Secret
	Dial wsdial.DialFunc
}

// Recognize implements pipeline.Recognizer.
func (a AssemblyAI) Recognize(ctx context.Context, s pipeline.Stream) (pipeline.Recognition, error) {
	turns := assemblyTurns{last: -1}
	return asRecognition(open(ctx, protocol{
		name: "assemblyai", finalize: `{"type":"ForceEndpoint"}`, bye: `{"type":"Terminate"}`,
		chunk: 60 * time.Millisecond, fullChunks: true, // chunks below 50 ms are rejected
		maxSilent: 2, // it sends nothing for silence
		parse:     turns.parse,
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

// assemblyMessage holds the used fields of a message. Word times are in milliseconds.
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

// assemblyTurns parses turns. last is the last finished one, which may be repeated with
// other punctuation.
type assemblyTurns struct{ last int }

// parse reads a message.
func (t *assemblyTurns) parse(b []byte) (update, error) {
	var m assemblyMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return update{}, fmt.Errorf("not JSON: %w", err)
	}
	switch {
	case m.Type == "Error" || m.Error != "":
		return update{}, fmt.Errorf("%s", pipeline.Clean(m.Error))
	case m.Type != "Turn" || m.Order <= t.last: // Begin, SpeechStarted, Termination and unknown types
		return update{empty: true}, nil
	}
	h := update{Result: pipeline.Result{Text: m.Transcript, Final: m.EndOfTurn}, answer: m.EndOfTurn}
	var texts []string
	for _, w := range m.Words {
		texts = append(texts, w.Text)
		h.Words = append(h.Words, pipeline.Word{Text: w.Text, Start: millis(w.Start), End: millis(w.End)})
	}
	if all := strings.Join(texts, " "); !m.EndOfTurn && len(all) > len(h.Text) {
		h.Text = all // the transcript contains only final words
	}
	h.Start, h.End = span(timedWords(h.Words), 0, 0)
	if m.EndOfTurn {
		t.last, h.EndOfTurn = m.Order, clampProbability(m.Confidence)
	} else if h.Text == "" {
		h.empty = true
	}
	return h, nil
}
