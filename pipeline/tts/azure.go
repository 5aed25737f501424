package tts

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/wsdial"
)

// Azure uses the text streaming protocol of Azure Speech. The client sends text in pieces; Azure
// returns speech and word times. The messages are those of Microsoft's Speech SDK for JavaScript
// (github.com/microsoft/cognitive-services-speech-sdk-js, SynthesisAdapterBase.ts). The SDK
// requires the WebSocket v2 endpoint for text streams (tests/SpeechSynthesisTests.ts).
type Azure struct {
	Region string // region of the resource, such as "westeurope"; required unless URL is set
	URL    string // empty means the WebSocket v2 endpoint of the region
	Key    media.Secret
	Dial   wsdial.DialFunc
	Warm   *Pool // pool of open connections; nil opens one for each utterance
}

// OptionRules implements pipeline.RuledProvider. It lists no languages, because Azure speaks more
// than azureVoices contains. An agent in a language without a default voice must name a voice.
func (Azure) OptionRules() pipeline.OptionRules {
	return pipeline.OptionRules{
		Takes:    []string{"speed", "temperature", "options"},
		Reserved: []string{"bidirectionalStreamingMode", "voiceName", "language", "rate"},
		Known:    []string{"pitch", "volume", "style", "preferLocales"},
	}
}

// Open implements pipeline.Voice. A style without a voice gets the default voice of its
// language.
func (a Azure) Open(ctx context.Context, s pipeline.Style) (pipeline.Synthesis, error) {
	settings, err := azureContext(s)
	if err != nil {
		return nil, err
	}
	address := cmp.Or(a.URL, azureURL(a.Region))
	if address == "" {
		return nil, errors.New("azure speech: no region")
	}
	p := peer{
		name: "azure speech", dial: a.Dial, onClose: onAzureClose,
		header: http.Header{"Ocp-Apim-Subscription-Key": {string(a.Key)}, "X-Connectionid": {azureID()}},
	}
	sock, err := a.Warm.get(ctx, address, func(ctx context.Context) (*socket, error) {
		sock, failed := p.open(ctx, address, nil)
		if failed != nil {
			return nil, failed
		}
		if failed = sock.write(azureText("speech.config", azureID(), "application/json", azureConfig)); failed != nil {
			sock.close()
			return nil, failed
		}
		return sock, nil
	})
	if err != nil {
		return nil, err
	}
	sp := &azureSynthesis{
		socket: sock, id: azureID(), settings: settings, rate: s.Rate, warm: a.Warm, address: address, complete: make(chan struct{}, 1),
	}
	sp.unhook = context.AfterFunc(ctx, sock.close)
	return sp, nil
}

// azureConfig describes the client. It is sent once per connection.
const azureConfig = `{"context":{"system":{"name":"Parley","version":"1"},"os":{"platform":"Linux","name":"Linux","version":"1"}}}`

// azureURL returns the endpoint of a region, or "" if the region is empty.
func azureURL(region string) string {
	domain := "microsoft.com"
	switch {
	case region == "":
		return ""
	case strings.HasPrefix(region, "china"):
		domain = "azure.cn"
	case strings.HasPrefix(region, "usgov"):
		domain = "azure.us"
	}
	return "wss://" + region + ".tts.speech." + domain + "/cognitiveservices/websocket/v2"
}

// onAzureClose implements peer.onClose. Azure refuses a request with a close code, such as 1007 "Unsupported voice".
func onAzureClose(code int, reason string) (int, string) {
	switch code {
	case websocket.CloseInvalidFramePayloadData, websocket.CloseUnsupportedData:
		return http.StatusBadRequest, reason
	case websocket.ClosePolicyViolation:
		return statusOf(reason), reason
	}
	return 0, ""
}

func azureID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // reading random bytes never fails
	return hex.EncodeToString(b)
}

// azureText returns a text message.
func azureText(path, id, contentType, body string) []byte {
	return []byte("Path: " + path + "\r\nX-RequestId: " + id + "\r\nX-Timestamp: " + time.Now().UTC().Format("2006-01-02T15:04:05.000Z") +
		"\r\nContent-Type: " + contentType + "\r\n\r\n" + body)
}

// azureContext returns the settings of an utterance as JSON.
func azureContext(s pipeline.Style) (string, error) {
	format, ok := map[int]string{
		8000: "raw-8khz-8bit-mono-mulaw", 16000: "raw-16khz-16bit-mono-pcm", 22050: "raw-22050hz-16bit-mono-pcm",
		24000: "raw-24khz-16bit-mono-pcm", 44100: "raw-44100hz-16bit-mono-pcm", 48000: "raw-48khz-16bit-mono-pcm",
	}[s.Rate]
	if !ok {
		return "", fmt.Errorf("azure speech: no output format of %d Hz; accepted: 8000, 16000, 22050, 24000, 44100, 48000", s.Rate)
	}
	voice, locale, err := azureVoice(s)
	if err != nil {
		return "", err
	}
	type object = map[string]any
	input := object{"bidirectionalStreamingMode": true, "voiceName": voice, "language": locale}
	if speed := within(s.Options.Speed, 0.5, 2); speed != 0 {
		input["rate"] = fmt.Sprintf("%+.0f%%", 100*(speed-1))
	}
	if t := s.Options.Temperature; t != nil {
		input["temperature"] = fmt.Sprint(*t)
	}
	b, err := json.Marshal(object{"synthesis": object{
		"audio": object{
			"metadataOptions": object{
				// strings, as in Microsoft's SDK
				"wordBoundaryEnabled": "true", "punctuationBoundaryEnabled": "true", "sentenceBoundaryEnabled": "false",
				"bookmarkEnabled": false, "visemeEnabled": false, "sessionEndEnabled": true,
			},
			"outputFormat": format,
		},
		"language": object{"autoDetection": false},
		"input":    withExtra(s.Options, input),
	}})
	if err != nil {
		return "", fmt.Errorf("azure speech: options: %w", err)
	}
	return string(b), nil
}

// azureSynthesis is one utterance. Close returns the connection to the pool if the whole text was
// spoken, and otherwise closes the connection.
type azureSynthesis struct {
	*socket
	id       string
	settings string
	rate     int
	warm     *Pool
	address  string
	unhook   func() bool
	over     sync.Once
	complete chan struct{} // Flush sends a signal if the text was empty, so that Audio ends

	split   Splitter // only the writing goroutine uses it
	started bool     // only the writing goroutine uses it

	mu    sync.Mutex
	ended bool // the whole text was spoken

	odd  []byte        // first byte of a sample that is split between messages; only the reading goroutine uses it
	last pipeline.Word // newest word; a punctuation mark may still follow it; only the reading goroutine uses it
}

// Write implements pipeline.Synthesis.
func (a *azureSynthesis) Write(text string) error {
	for _, clause := range a.split.Add(text) {
		if err := a.piece(clause + " "); err != nil {
			return err
		}
	}
	return nil
}

func (a *azureSynthesis) piece(text string) error {
	if !a.started {
		a.started = true
		if err := a.write(azureText("synthesis.context", a.id, "application/json", a.settings)); err != nil {
			return err
		}
	}
	return a.write(azureText("text.piece", a.id, "text/plain", text))
}

// Flush implements pipeline.Synthesis.
func (a *azureSynthesis) Flush() error {
	if rest := a.split.End(); rest != "" {
		if err := a.piece(rest); err != nil {
			return err
		}
	}
	if a.started {
		return a.write(azureText("text.end", a.id, "text/plain", ""))
	}
	a.end()
	a.complete <- struct{}{}
	return nil
}

func (a *azureSynthesis) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
}

func (a *azureSynthesis) done() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ended
}

// Audio implements pipeline.Synthesis.
func (a *azureSynthesis) Audio() iter.Seq2[pipeline.Speech, error] {
	return a.speech(a.complete, a.done, a.onMessage)
}

func (a *azureSynthesis) onMessage(r message) (pipeline.Speech, error) {
	m, err := parseAzure(r)
	if err != nil {
		return pipeline.Speech{}, fmt.Errorf("%s: %w", a.name, err)
	}
	var sp pipeline.Speech
	if !strings.EqualFold(m.id, a.id) { // the message answers speech.config or belongs to an earlier utterance
		return sp, nil
	}
	switch m.path {
	case "audio":
		b := m.body
		if a.rate != telephone {
			b = append(a.odd, b...)
			a.odd = append([]byte(nil), b[len(b)&^1:]...)
		}
		sp.PCM = samples(b, a.rate)
	case "audio.metadata":
		if sp.Words, err = a.words(m.body); err != nil {
			return sp, fmt.Errorf("%s: %w", a.name, err)
		}
	case "turn.end":
		if a.last.Text != "" {
			sp.Words = append(sp.Words, a.last)
		}
		a.end()
	}
	return sp, nil
}

// words returns the words that are complete with their punctuation. It keeps the newest word in a.last.
func (a *azureSynthesis) words(body []byte) ([]pipeline.Word, error) {
	var m struct {
		Metadata []struct {
			Type string `json:"Type"`
			Data struct {
				Offset   int64 `json:"Offset"` // start in units of 100 ns
				Duration int64 `json:"Duration"`
				Text     struct {
					Text     string `json:"Text"`
					Boundary string `json:"BoundaryType"`
				} `json:"text"`
			} `json:"Data"`
		} `json:"Metadata"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	const tick = 100 * time.Nanosecond
	var words []pipeline.Word
	for _, x := range m.Metadata {
		text := strings.TrimSpace(x.Data.Text.Text)
		if x.Type != "WordBoundary" || text == "" {
			continue
		}
		start := time.Duration(x.Data.Offset) * tick
		end := start + time.Duration(x.Data.Duration)*tick
		if x.Data.Text.Boundary == "PunctuationBoundary" && a.last.Text != "" {
			a.last.Text += text
			continue
		}
		if a.last.Text != "" {
			words = append(words, a.last)
		}
		a.last = pipeline.Word{Text: text, Start: start, End: end}
	}
	return words, nil
}

// Close implements pipeline.Synthesis. While Audio runs, it may be called only to cancel the utterance.
func (a *azureSynthesis) Close() error {
	a.over.Do(func() {
		if a.unhook() && a.done() && !a.closed() {
			a.warm.put(a.address, a.socket)
			return
		}
		a.close()
	})
	return nil
}

// An azureMessage is a message with headers.
type azureMessage struct {
	path, id string
	body     []byte
}

// parseAzure splits a message into headers and body. A binary message starts with the length of
// the headers in two bytes.
func parseAzure(r message) (azureMessage, error) {
	var head, body string
	if r.kind == websocket.BinaryMessage {
		if len(r.body) < 2 || len(r.body)-2 < int(binary.BigEndian.Uint16(r.body)) {
			return azureMessage{}, errors.New("binary message without headers")
		}
		n := 2 + int(binary.BigEndian.Uint16(r.body))
		head, body = string(r.body[2:n]), string(r.body[n:])
	} else {
		head, body, _ = strings.Cut(string(r.body), "\r\n\r\n")
	}
	m := azureMessage{body: []byte(body)}
	for line := range strings.SplitSeq(head, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "path":
			m.path = strings.ToLower(strings.TrimSpace(value))
		case "x-requestid":
			m.id = strings.TrimSpace(value)
		}
	}
	if m.path == "" {
		return m, errors.New("message without a path")
	}
	return m, nil
}
