package asr

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/pipeline"
)

func TestDeepgramLanguages(t *testing.T) {
	for _, c := range []struct{ model, tags, want string }{
		{"nova-3", "", ""},
		{"nova-3", "ru-RU", "ru"},
		{"nova-3", "de-DE", "de"},
		{"nova-3", "de-CH", "de-CH"},
		{"nova-3", "de-at", "de"},
		{"nova-3", "it-IT", "it"},
		{"nova-3", "en-US", "en-US"},
		{"nova-3", "en-gb", "en-GB"},
		{"nova-3", "en-ZA", "en"},
		{"nova-3", "es", "es"},
		{"nova-3", "es-ES", "es"},
		{"nova-3", "es-MX", "es-419"},
		{"nova-3", "es-419", "es-419"},
		{"nova-3", "pt-BR", "pt-BR"},
		{"nova-3", "pt-AO", "pt-PT"},
		{"nova-3", "fr-CA", "fr-CA"},
		{"nova-3", "fr-FR", "fr"},
		{"nova-3", "nl-BE", "nl-BE"},
		{"nova-3", "nb-NO", "no"},
		{"nova-3", "fil-PH", "tl"},
		{"nova-3", "zh-hans", "zh-Hans"},
		{"nova-3", "kk", "kk"},
		{"nova-3", "kk-KZ", "kk-KZ"},
		{"nova-2", "kk-KZ", "kk"},
		{"nova-3", "kk-KZ ru-RU", "kk-KZ"},
		{"nova-3", "en-US es-MX", "multi"},
		{"nova-3", "ru-RU en", "multi"},
		{"nova-3", "en-US en-GB", "en-US"},
		{"nova-2", "en es", "multi"},
		{"nova-2", "en ru", "en"},
		{"enhanced", "en es", "en"},
	} {
		if got := deepgramLanguage(c.model, strings.Fields(c.tags)); got != c.want {
			t.Errorf("%s with %q: %q, want %q", c.model, c.tags, got, c.want)
		}
	}
}

// streamOf returns a stream whose caller may speak the given languages.
func streamOf(model, languages string, terms ...string) pipeline.Stream {
	s := pipeline.Stream{Rate: 8000, Model: model, Options: pipeline.Options{Languages: strings.Fields(languages), KeyTerms: terms}}
	if len(s.Options.Languages) > 0 {
		s.Language = s.Options.Languages[0]
	}
	return s
}

func TestQueries(t *testing.T) {
	extra := streamOf("", "en-US")
	extra.Options.Extra = map[string]any{
		"smart_format": true, "redact": []any{"pci", "ssn"}, "model": "other", "min_turn_silence": 400.0, "eot_threshold": 0.1,
	}
	for name, c := range map[string]struct {
		got  map[string][]string
		want map[string]string // an empty value means that the parameter is missing
	}{
		"deepgram":                {deepgramQuery(streamOf("", "de-DE", "Parley", "Kiew Süd")), map[string]string{"model": "nova-3", "language": "de", "keyterm": "Parley|Kiew Süd", "keywords": ""}},
		"deepgram nova-2":         {deepgramQuery(streamOf("nova-2-phonecall", "en", "Parley")), map[string]string{"model": "nova-2-phonecall", "keyterm": "", "keywords": "Parley"}},
		"deepgram extra":          {deepgramQuery(extra), map[string]string{"model": "nova-3", "smart_format": "true", "redact": "pci|ssn"}},
		"flux":                    {fluxQuery(streamOf("", "", "Parley")), map[string]string{"model": "flux-general-en", "language_hint": "", "keyterm": "Parley"}},
		"flux English":            {fluxQuery(streamOf("", "en-GB")), map[string]string{"model": "flux-general-en", "language_hint": ""}},
		"flux multi":              {fluxQuery(streamOf("", "ru-RU en-US")), map[string]string{"model": "flux-general-multi", "language_hint": "ru|en"}},
		"flux of the agent":       {fluxQuery(streamOf("flux-general-en", "de")), map[string]string{"model": "flux-general-en", "language_hint": ""}},
		"flux extra":              {fluxQuery(extra), map[string]string{"model": "flux-general-en", "eot_threshold": "0.7"}},
		"assemblyai":              {assemblyOf(streamOf("", "", "Parley")), map[string]string{"speech_model": "universal-3-6-pro", "language_codes": "", "keyterms_prompt": `["Parley"]`, "session_heartbeat": "true"}},
		"assemblyai Spanish":      {assemblyOf(streamOf("", "es-MX en-US")), map[string]string{"speech_model": "universal-3-6-pro", "language_codes": `["es","en"]`}},
		"assemblyai Kazakh":       {assemblyOf(streamOf("", "kk-KZ", "Parley")), map[string]string{"speech_model": "whisper-rt", "language_codes": "", "keyterms_prompt": "", "session_heartbeat": ""}},
		"assemblyai of the agent": {assemblyOf(streamOf("u3-rt-pro", "ru")), map[string]string{"speech_model": "u3-rt-pro", "language_codes": `["ru"]`, "session_heartbeat": "true"}},
		"assemblyai extra":        {assemblyOf(extra), map[string]string{"min_turn_silence": "100", "smart_format": "true"}},
	} {
		for parameter, want := range c.want {
			if got := strings.Join(c.got[parameter], "|"); got != want {
				t.Errorf("%s: %s=%q, want %q", name, parameter, got, want)
			}
		}
	}
}

func assemblyOf(s pipeline.Stream) map[string][]string { return assemblyQuery(s, assemblyModel(s)) }

func TestOpenAISession(t *testing.T) {
	extra := streamOf("gpt-live-transcribe", "")
	extra.Options.Extra = map[string]any{"delay": "low", "model": "other"}
	for _, c := range []struct {
		stream pipeline.Stream
		want   map[string]any
	}{
		{streamOf("gpt-live-transcribe", ""), map[string]any{"model": "gpt-live-transcribe"}},
		{streamOf("gpt-live-transcribe", "kk-KZ ru-RU", "Parley"), map[string]any{"model": "gpt-live-transcribe", "languages": []any{"kk", "ru"}, "keywords": []any{"Parley"}}},
		{streamOf("gpt-4o-transcribe", "de-DE", "Parley", "Kiew"), map[string]any{"model": "gpt-4o-transcribe", "language": "de", "prompt": "Parley, Kiew"}},
		{streamOf("gpt-4o-transcribe", "de en"), map[string]any{"model": "gpt-4o-transcribe"}},
		{streamOf("gpt-realtime-whisper", "de", "Parley"), map[string]any{"model": "gpt-realtime-whisper", "language": "de"}},
		{extra, map[string]any{"model": "gpt-live-transcribe", "delay": "low"}},
	} {
		text, err := openAISession(c.stream)
		if err != nil {
			t.Fatal(err)
		}
		var m struct {
			Session struct {
				Audio struct {
					Input map[string]any `json:"input"`
				} `json:"audio"`
			} `json:"session"`
		}
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		if got := m.Session.Audio.Input["transcription"]; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}

// TestErrorFrames checks the status of errors that providers send within the connection.
func TestErrorFrames(t *testing.T) {
	turns, items := assemblyTurns{last: -1}, openAIItems{}
	for frame, c := range map[string]struct {
		parse  func([]byte) (update, error)
		status int
		text   string
	}{
		`{"type":"Error","error_code":3006,"error":"bad input"}`:                             {turns.parse, http.StatusBadRequest, "bad input"},
		`{"type":"Error","error_code":3009,"error":"concurrency"}`:                           {turns.parse, http.StatusTooManyRequests, "concurrency"},
		`{"type":"Error","error_code":4001,"error":"auth"}`:                                  {turns.parse, http.StatusUnauthorized, "auth"},
		`{"type":"Error","error_code":4002,"error":"funds"}`:                                 {turns.parse, http.StatusPaymentRequired, "funds"},
		`{"type":"Error","error_code":4029,"error":"rate"}`:                                  {turns.parse, http.StatusTooManyRequests, "rate"},
		`{"type":"Error","error_code":3005,"error":"server"}`:                                {turns.parse, http.StatusServiceUnavailable, "server"},
		`{"type":"Error","error":"new"}`:                                                     {turns.parse, http.StatusInternalServerError, "new"},
		`{"type":"Error","code":"INTERNAL_SERVER_ERROR","description":"oops"}`:               {parseFlux, http.StatusInternalServerError, "INTERNAL_SERVER_ERROR: oops"},
		`{"type":"Error","code":"UNPARSABLE_CLIENT_MESSAGE","description":"what"}`:           {parseFlux, http.StatusBadRequest, "UNPARSABLE_CLIENT_MESSAGE: what"},
		`{"type":"Error","variant":"DATA-0000","description":"cannot decode"}`:               {parseDeepgram, http.StatusBadRequest, "DATA-0000: cannot decode"},
		`{"type":"Error","description":"NET-0001: no audio"}`:                                {parseDeepgram, http.StatusInternalServerError, "NET-0001: no audio"},
		`{"type":"error","error":{"type":"invalid_request_error","message":"x"}}`:            {items.parse, http.StatusBadRequest, "x"},
		`{"type":"error","error":{"type":"server_error","message":"y"}}`:                     {items.parse, http.StatusInternalServerError, "y"},
		`{"type":"error","error":{"type":"invalid_request_error","code":"invalid_api_key"}}`: {items.parse, http.StatusUnauthorized, "invalid_api_key: "},
		`{"type":"error","error":{"code":"insufficient_quota","message":"z"}}`:               {items.parse, http.StatusTooManyRequests, "insufficient_quota: z"},
		`{"type":"error","error":{"type":"invalid_request_error","code":"session_expired"}}`: {items.parse, http.StatusServiceUnavailable, "session_expired: "},
	} {
		_, err := c.parse([]byte(frame))
		refused, ok := err.(*pipeline.RefusedError) //nolint:errorlint // it is not wrapped
		if !ok || refused.Status != c.status || refused.Text != c.text {
			t.Errorf("%s: %v, want %d %q", frame, err, c.status, c.text)
		}
	}
}

// TestRules checks that each recognizer has option rules, and that no parameter is both reserved and known.
func TestRules(t *testing.T) {
	for _, s := range setups() {
		r := s.open(nil)
		if m, ok := r.(ofModel); ok {
			r = m.Recognizer
		}
		ruled, ok := r.(pipeline.RuledProvider)
		if !ok {
			t.Errorf("%s has no option rules", s.name)
			continue
		}
		rules := ruled.OptionRules()
		if slices.Contains(rules.Takes, "keyterms") == s.noTerms {
			t.Errorf("%s takes %v", s.name, rules.Takes)
		}
		for _, name := range rules.Known {
			if slices.Contains(rules.Reserved, name) {
				t.Errorf("%s: %s is both reserved and known", s.name, name)
			}
		}
	}
}

// TestRefusalText checks that the text of a refusal is bounded and contains no key.
func TestRefusalText(t *testing.T) {
	s := &stream{protocol: protocol{name: "x"}, sent: http.Header{"Authorization": {"Bearer canary"}}}
	err := s.refusal(&pipeline.RefusedError{Status: http.StatusBadRequest, Text: "key canary\x00 is wrong " + strings.Repeat("й", 500)})
	var refused *pipeline.RefusedError
	if !errors.As(err, &refused) || strings.Contains(err.Error(), "canary") || utf8.RuneCountInString(refused.Text) != 200 {
		t.Errorf("%v", err)
	}
}

func TestTail(t *testing.T) {
	x := tail{size: 4}
	for i := range 100 {
		x.add([]byte{byte(i), byte(i)})
		if b := x.newest(); len(b) != min(4, 2*i+2) || b[len(b)-1] != byte(i) || len(b) == 4 && b[0] != byte(i-1) {
			t.Fatalf("after %d: %v", i, b)
		}
		if len(x.b) >= 8 {
			t.Fatalf("keeps %d bytes", len(x.b))
		}
	}
	if x.clear(); len(x.newest()) != 0 {
		t.Errorf("%v after clear", x.newest())
	}
}

// TestCloseReason checks that the error for a WebSocket close that is no refusal contains no key.
func TestCloseReason(t *testing.T) {
	for name, status := range map[string]func(int) int{"none": nil, "deepgram": deepgramCloseStatus, "azure": azureCloseStatus} {
		s := &stream{protocol: protocol{name: "x", closeStatus: status}, sent: http.Header{"Authorization": {"Bearer canary"}}}
		err := s.endReason(&websocket.CloseError{Code: websocket.CloseTryAgainLater, Text: "key canary is busy"})
		if strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "is busy") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEndlessTranscript checks that a transcript above the size limit causes an error.
func TestEndlessTranscript(t *testing.T) {
	items, err := openAIItems{}, error(nil)
	part := `{"type":"conversation.item.input_audio_transcription.delta","item_id":"a","delta":"` + strings.Repeat("a ", 10_000) + `"}`
	for range 100 {
		if _, broke := items.parse([]byte(part)); broke != nil {
			err = broke
		}
	}
	if err == nil {
		t.Errorf("%d bytes are kept", len(items["a"]))
	}
}
