package asr

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/text/language"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/wsdial"
)

// Azure transcribes with Azure Speech, over the WebSocket protocol of Microsoft's Speech
// SDK (github.com/microsoft/cognitive-services-speech-sdk-js, src/common.speech).
//
// The protocol divides the audio into turns and has no message for Finalize. Finalize ends the current turn with an
// empty audio message. The service answers with the last phrase and turn.end. The next turn then begins on the same
// connection with a new request ID. Audio that comes before turn.end waits for the next turn.
type Azure struct {
	// Region is the region of the resource, such as "westeurope". It is required unless URL is set.
	Region string
	URL    string
	Key    media.Secret
	Dial   wsdial.DialFunc
}

// OptionRules implements pipeline.RuledProvider. Recognize sends the parameters in Options.Extra as
// fields of phraseDetection in the message speech.context.
func (Azure) OptionRules() pipeline.OptionRules {
	return pipeline.OptionRules{
		Takes:    []string{"keyterms", "languages", "options"},
		Reserved: []string{"customModels", "language", "mode"},
		Known:    []string{"conversation", "enrichment", "initialSilenceTimeout", "trailingSilenceTimeout", "voiceOnsetSensitivity"},
	}
}

// Recognize implements pipeline.Recognizer. The model of the stream is the ID of a custom Azure
// endpoint, if not empty.
func (a Azure) Recognize(ctx context.Context, s pipeline.Stream) (pipeline.Recognition, error) {
	address := a.URL
	if address == "" {
		if a.Region == "" {
			return nil, errors.New("azure: want a region or a URL")
		}
		address = "wss://" + a.Region + ".stt.speech.microsoft.com/stt/speech/universal/v2"
	}
	speech, err := json.Marshal(azureContext(s))
	if err != nil {
		return nil, fmt.Errorf("azure: %w", err)
	}
	head := http.Header{"Ocp-Apim-Subscription-Key": {string(a.Key)}, "X-Connectionid": {azureID()}}
	conn, err := wsdial.Open(ctx, "azure", address, azureQuery(s), head, a.Dial)
	if err != nil {
		return nil, err
	}
	turns := &azureTransport{socket: socket{conn}, rate: s.Rate, context: string(speech)}
	turns.recent.size = turns.bytes(maxReplay)
	return start(protocol{
		name: "azure", hello: azureHello, finalize: azureFinalize, chunk: 60 * time.Millisecond, maxSilent: 2,
		parse: parseAzure, closeStatus: azureCloseStatus,
	}, s.Rate, turns, head), nil
}

// azureLanguages returns the languages of the stream, each with the region that Azure requires. It
// returns en-US if the stream has none.
func azureLanguages(s pipeline.Stream) []string {
	var all []string
	for _, tag := range languagesOf(s) {
		if t, err := language.Parse(tag); err == nil {
			base, _ := t.Base()
			region, _ := t.Region() // a tag without a region gets its most likely one
			tag = base.String() + "-" + region.String()
		}
		all = append(all, tag)
	}
	if len(all) == 0 {
		return []string{"en-US"}
	}
	return all
}

func azureQuery(s pipeline.Stream) url.Values {
	q := url.Values{"format": {"detailed"}}
	languages := azureLanguages(s)
	switch {
	case s.Model != "":
		q.Set("cid", s.Model)
	case len(languages) > 1:
		q.Set("lidEnabled", "true")
	default:
		q.Set("language", languages[0])
	}
	return q
}

// azureContext returns the body of the message speech.context. If the stream has several languages,
// Azure detects the language of each phrase.
func azureContext(s pipeline.Stream) map[string]any {
	type object = map[string]any
	detection := object{"mode": "Conversation"}
	addFields(detection, s.Options.Extra, Azure{}.OptionRules())
	output := object{"format": "Detailed", "detailed": object{"options": []string{"WordTimings"}}}
	m := object{"phraseDetection": detection, "phraseOutput": output}
	if languages := azureLanguages(s); len(languages) > 1 {
		m["languageId"] = object{
			"languages": languages, "mode": "DetectContinuous", "onSuccess": object{"action": "Recognize"},
			"onUnknown": object{"action": "None"}, "priority": "PrioritizeLatency",
		}
		output["interimResults"] = object{"resultType": "Auto"}
		output["phraseResults"] = object{"resultType": "Always"}
	} else {
		detection["language"] = languages[0]
	}
	var items []object
	for _, term := range s.Options.KeyTerms {
		items = append(items, object{"text": term})
	}
	if len(items) > 0 {
		m["dgi"] = object{"groups": []object{{"type": "Generic", "items": items}}, "bias": 1.0}
	}
	return m
}

// azureCloseStatus implements protocol.closeStatus. Azure closes with 1007 after invalid parameters,
// with 1002 and 1003 after invalid messages.
func azureCloseStatus(code int) int {
	switch code {
	case websocket.CloseInvalidFramePayloadData, websocket.CloseProtocolError, websocket.CloseUnsupportedData:
		return http.StatusBadRequest
	case websocket.ClosePolicyViolation:
		return http.StatusUnauthorized
	}
	return 0
}

// azureMessage holds the fields of a message that this client uses. Times are in units of 100 ns.
type azureMessage struct {
	Status   string `json:"RecognitionStatus"`
	Text     string `json:"Text"` // only of a hypothesis
	Display  string `json:"DisplayText"`
	Offset   int64  `json:"Offset"`
	Duration int64  `json:"Duration"`
	NBest    []struct {
		Confidence float64 `json:"Confidence"`
		Display    string  `json:"Display"`
		Words      []struct {
			Word     string `json:"Word"`
			Offset   int64  `json:"Offset"`
			Duration int64  `json:"Duration"`
		} `json:"Words"`
	} `json:"NBest"`
}

// ticks converts a time of Azure, in 100 ns, to a duration of at most a year.
func ticks(n int64) time.Duration {
	const year = int64(366*24*time.Hour) / 100
	return time.Duration(min(max(n, 0), year)) * 100
}

// parseAzure parses a message that azureTransport.receive returned.
func parseAzure(b []byte) (update, error) {
	head, body, err := parseAzureHeaders(b)
	if err != nil {
		return update{}, err
	}
	base, end := azureTime(head["x-turn-start"]), azureTime(head["x-turn-end"])
	switch head["path"] {
	case "turn.end":
		if end == 0 { // the service has ended the turn by itself
			return update{empty: true}, nil
		}
		return update{answer: true, Result: pipeline.Result{Final: true, Start: end, End: end}}, nil
	case "speech.hypothesis", "speech.phrase":
	default: // turn.start, speech.startDetected, speech.endDetected and unknown paths need no action
		return update{empty: true}, nil
	}
	var m azureMessage
	if err := json.Unmarshal(body, &m); err != nil {
		return update{}, fmt.Errorf("not JSON: %w", err)
	}
	h := update{Result: pipeline.Result{Text: m.Text, Start: base + ticks(m.Offset), End: base + ticks(m.Offset) + ticks(m.Duration)}}
	if head["path"] == "speech.hypothesis" {
		h.empty = h.Text == ""
		return h, nil
	}
	if status := azureStatus(m.Status); status != 0 {
		return update{}, &pipeline.RefusedError{Status: status, Text: m.Status}
	}
	h.Final, h.Text = true, m.Display
	if len(m.NBest) > 0 {
		best := m.NBest[0]
		h.Text, h.Confidence = cmp.Or(best.Display, m.Display), best.Confidence
		for _, w := range best.Words {
			h.Words = append(h.Words, pipeline.Word{Text: w.Word, Start: base + ticks(w.Offset), End: base + ticks(w.Offset) + ticks(w.Duration)})
		}
	}
	h.empty = h.Text == "" // NoMatch, InitialSilenceTimeout and others have no text
	return h, nil
}

// azureStatus returns the HTTP status for a failed RecognitionStatus, or 0 for any other.
func azureStatus(status string) int {
	switch status {
	case "Error":
		return http.StatusInternalServerError
	case "TooManyRequests":
		return http.StatusTooManyRequests
	case "BadRequest":
		return http.StatusBadRequest
	case "Forbidden":
		return http.StatusForbidden
	}
	return 0
}
