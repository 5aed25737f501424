package tts

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// YandexURL is the default endpoint of Yandex.
const YandexURL = "https://tts.api.cloud.yandex.net"

const (
	yandexPhrase  = 250     // most characters of one phrase
	maxYandexLine = 4 << 20 // bytes: 30 s of speech at 48 kHz in base64
	// maxYandexWords bounds the words of a clause.
	maxYandexWords = 10_000
)

// Yandex uses the REST gateway of SpeechKit's API v3, which streams the speech of a clause as lines
// of JSON (yandex.cloud/docs/speechkit/tts-v3/api-ref/Synthesizer/utteranceSynthesis, messages in
// github.com/yandex-cloud/cloudapi, yandex/cloud/ai/tts/v3/tts.proto). The gRPC API has the same
// method and messages, but would need a protobuf encoder.
type Yandex struct {
	URL    string // scheme and host; empty means YandexURL
	Key    media.Secret
	Folder string       // folder ID, sent as x-folder-id; empty means the folder of the key's service account
	Client *http.Client // nil means http.DefaultClient; must not have a Timeout
}

// yandexVoices lists the voices of each language, its default voice first (yandex.cloud/docs/speechkit/tts/voices).
var yandexVoices = []struct{ language, voices string }{ //nolint:gochecknoglobals // a table
	{"ru", "alena filipp ermil jane omazh zahar dasha julia lera masha marina alexander kirill anton madi_ru saule_ru zamira_ru " +
		"zhanar_ru yulduz_ru"},
	{"kk", "amira madi saule zhanar"},
	{"uz", "nigora zamira yulduz"},
	{"en", "john"},
	{"de", "lea"},
	{"he", "naomi"},
}

// OptionRules implements pipeline.RuledProvider.
func (Yandex) OptionRules() pipeline.OptionRules {
	r := pipeline.OptionRules{
		Takes:    []string{"speed", "options"},
		Reserved: []string{"text", "textTemplate", "hints", "outputAudioSpec", "unsafeMode", "voice", "speed", "model"},
		Known:    []string{"role", "pitchShift", "volume", "loudnessNormalizationType"},
	}
	for _, v := range yandexVoices {
		r.Languages = append(r.Languages, v.language)
	}
	return r
}

// Open implements pipeline.Voice. A style without a voice gets the default voice of its
// language; Russian is the default language.
func (y Yandex) Open(ctx context.Context, s pipeline.Style) (pipeline.Synthesis, error) {
	voice, err := yandexVoice(s)
	if err != nil {
		return nil, err
	}
	address, err := endpoint(cmp.Or(y.URL, YandexURL), "/tts/v3/utteranceSynthesis")
	if err != nil {
		return nil, fmt.Errorf("yandex speech: %w", err)
	}
	s.Voice = voice
	return newClauseSynthesis(ctx, s.Rate, func(ctx context.Context, clause string) (io.ReadCloser, int, error) {
		return y.speak(ctx, address, s, clause)
	}), nil
}

// yandexVoice returns the voice of a style. It refuses a language that the voice does not
// speak.
func yandexVoice(s pipeline.Style) (string, error) {
	language := baseLanguage(cmp.Or(s.Language, "ru"))
	var spoken []string
	for _, v := range yandexVoices {
		names := strings.Fields(v.voices)
		switch {
		case s.Voice == "" && v.language == language:
			return names[0], nil
		case slices.Contains(names, s.Voice):
			return s.Voice, checkLanguage("yandex speech", "voice "+s.Voice, s.Language, []string{v.language})
		}
		spoken = append(spoken, v.language)
	}
	if s.Voice != "" { // an unknown name is a custom voice, which Yandex calls Brand Voice
		return s.Voice, nil
	}
	return "", checkLanguage("yandex speech", "the provider", s.Language, spoken)
}

func (y Yandex) speak(ctx context.Context, address string, s pipeline.Style, clause string) (io.ReadCloser, int, error) {
	rate := 48000
	if s.Rate == 8000 || s.Rate == 16000 {
		rate = s.Rate
	}
	head := http.Header{"Authorization": {"Api-Key " + string(y.Key)}}
	if y.Folder != "" {
		head.Set("X-Folder-Id", y.Folder)
	}
	client := pipeline.JSONClient{URL: address, Header: head, Client: y.Client}
	resp, err := client.Do(ctx, yandexRequest(s, rate, clause)) //nolint:bodyclose // by the reader
	if err != nil {
		return nil, 0, fmt.Errorf("yandex speech: %w", err)
	}
	r := &yandexReader{Closer: resp.Body, lines: bufio.NewScanner(resp.Body), sent: head}
	r.lines.Buffer(make([]byte, 0, 64<<10), maxYandexLine)
	return r, rate, nil
}

// yandexRequest returns the request for one clause.
func yandexRequest(s pipeline.Style, rate int, clause string) map[string]any {
	type object = map[string]any
	hints := []object{{"voice": s.Voice}}
	if speed := within(s.Options.Speed, 0.1, 3); speed != 0 {
		hints = append(hints, object{"speed": speed})
	}
	extra := object{"loudnessNormalizationType": "LUFS"}
	for _, name := range []string{"role", "pitchShift", "volume"} {
		if v, ok := s.Options.Extra[name]; ok {
			hints = append(hints, object{name: v})
		}
	}
	for name, v := range s.Options.Extra {
		if !slices.Contains([]string{"role", "pitchShift", "volume"}, name) {
			extra[name] = v
		}
	}
	own := object{
		"text": clause, "hints": hints,
		"outputAudioSpec": object{"rawAudio": object{"audioEncoding": "LINEAR16_PCM", "sampleRateHertz": strconv.Itoa(rate)}},
	}
	if s.Model != "" {
		own["model"] = s.Model
	}
	if utf8.RuneCountInString(clause) > yandexPhrase {
		own["unsafeMode"] = true // lets Yandex split the text
	}
	return withExtra(pipeline.Options{Extra: extra}, own)
}

// yandexReader reads the audio in lines of JSON.
type yandexReader struct {
	io.Closer
	lines *bufio.Scanner
	sent  http.Header
	rest  []byte
	words []pipeline.Word
}

// Read implements io.Reader.
func (y *yandexReader) Read(b []byte) (int, error) {
	for len(y.rest) == 0 {
		if !y.lines.Scan() {
			return 0, cmp.Or(y.lines.Err(), io.EOF)
		}
		line := bytes.TrimSpace(y.lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := y.onLine(line); err != nil {
			return 0, fmt.Errorf("yandex speech: %w", err)
		}
	}
	n := copy(b, y.rest)
	y.rest = y.rest[n:]
	return n, nil
}

// Words implements wordTimer.
func (y *yandexReader) Words() []pipeline.Word { return y.words }

func (y *yandexReader) onLine(line []byte) error {
	var m struct {
		Result struct {
			Chunk struct {
				Data []byte `json:"data"` // audio in base64
			} `json:"audioChunk"`
			Words []struct {
				Word   string      `json:"word"`
				Start  json.Number `json:"startMs"` // a string, because JSON carries int64 as a string
				Length json.Number `json:"lengthMs"`
			} `json:"wordTimings"`
		} `json:"result"`
		Error *struct {
			HTTP  int `json:"httpCode"`
			HTTP2 int `json:"http_code"`
			GRPC  int `json:"grpcCode"`
			Code  int `json:"code"` // status code of gRPC
		} `json:"error"`
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	if e := m.Error; e != nil {
		text := pipeline.Redact(pipeline.ErrorMessage(line), y.sent, nil)
		if status := cmp.Or(e.HTTP, e.HTTP2, statusOfGRPC(cmp.Or(e.GRPC, e.Code))); status != 0 {
			return &pipeline.RefusedError{Status: status, Text: text}
		}
		return errors.New(text)
	}
	y.rest = m.Result.Chunk.Data
	for _, w := range m.Result.Words {
		if len(y.words) == maxYandexWords {
			return errors.New("too many words")
		}
		start, length := milliseconds(w.Start), milliseconds(w.Length)
		y.words = append(y.words, pipeline.Word{Text: w.Word, Start: start, End: start + length})
	}
	return nil
}

func milliseconds(n json.Number) time.Duration {
	ms, err := n.Int64()
	if err != nil || ms < 0 || ms > int64(time.Hour/time.Millisecond) {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

// statusOfGRPC returns the HTTP status that gateways use for a gRPC status code, or 0 for codes not listed.
func statusOfGRPC(code int) int {
	return map[int]int{
		3: http.StatusBadRequest, 5: http.StatusNotFound, 7: http.StatusForbidden, 8: http.StatusTooManyRequests,
		14: http.StatusServiceUnavailable, 16: http.StatusUnauthorized,
	}[code]
}
