package asr

import (
	"errors"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/parley-voice/parley/pipeline"
)

// A yandexEvent is the kind of a StreamingResponse: the number of the field that is set.
type yandexEvent protowire.Number

// Events of a StreamingResponse.
const (
	yandexPartial    yandexEvent = 4
	yandexFinal      yandexEvent = 5
	yandexEOUUpdate  yandexEvent = 6
	yandexRefinement yandexEvent = 7
)

// A yandexMessage is a StreamingResponse.
type yandexMessage struct {
	event  yandexEvent // 0 for kinds that this client does not use
	result pipeline.Result
	time   time.Duration // time in an EouUpdate
}

// yandexOptions returns the first message: StreamingRequest.session_options.
func yandexOptions(s pipeline.Stream) []byte {
	raw := appendVarint(nil, 1, 1)             // field audio_encoding: LINEAR16_PCM
	raw = appendVarint(raw, 2, uint64(s.Rate)) //nolint:gosec // a sample rate
	raw = appendVarint(raw, 3, 1)
	normalization := uint64(2) // value TEXT_NORMALIZATION_DISABLED
	if normalizes(s) {
		normalization = 1
	}
	text := appendVarint(nil, 1, normalization)
	for field, name := range map[protowire.Number]string{2: "profanity_filter", 3: "literature_text"} {
		if on, _ := s.Options.Extra[name].(bool); on {
			text = appendVarint(text, field, 1)
		}
	}
	languages := appendVarint(nil, 1, 1) // value WHITELIST
	for _, tag := range yandexLanguages(s) {
		languages = appendBytes(languages, 2, []byte(tag))
	}
	model := s.Model
	if model == "" {
		model = yandexModel
	}
	recognition := appendBytes(nil, 1, []byte(model))
	recognition = appendBytes(recognition, 2, appendBytes(nil, 1, raw))
	recognition = appendBytes(recognition, 3, text)
	recognition = appendBytes(recognition, 4, languages)
	recognition = appendVarint(recognition, 5, 1) // value REAL_TIME
	options := appendBytes(nil, 1, recognition)
	options = appendBytes(options, 2, appendBytes(nil, 2, nil)) // external_classifier: the client ends utterances
	return appendBytes(nil, 1, options)
}

// yandexLanguages returns the languages of the stream as codes that SpeechKit lists
// (yandex.cloud/en/docs/speechkit/stt/models). It returns "auto" if the stream has none.
func yandexLanguages(s pipeline.Stream) []string {
	var all []string
	listed := Yandex{}.OptionRules().Languages
	for _, tag := range languagesOf(s) {
		code := tag
		for _, other := range listed {
			if baseLanguage(other) == baseLanguage(tag) && (code == tag || strings.EqualFold(other, tag)) {
				code = other
			}
		}
		if !slices.Contains(all, code) {
			all = append(all, code)
		}
	}
	if len(all) == 0 {
		return []string{"auto"}
	}
	return all
}

// yandexChunk returns StreamingRequest.chunk.
func yandexChunk(sound []byte) []byte { return appendBytes(nil, 2, appendBytes(nil, 1, sound)) }

// yandexEOU returns StreamingRequest.eou, which ends the utterance.
func yandexEOU() []byte { return appendBytes(nil, 4, nil) }

func appendVarint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

var errWire = errors.New("malformed protobuf")

// eachField calls fn with the number and the value of each field of a protobuf message. It skips
// fields that are neither varints nor bytes.
func eachField(b []byte, fn func(field protowire.Number, v uint64, body []byte) error) error {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		var v uint64
		var body []byte
		switch kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			body, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(field, kind, b)
		}
		if n < 0 {
			return errWire
		}
		b = b[n:]
		if kind != protowire.VarintType && kind != protowire.BytesType {
			continue
		}
		if err := fn(field, v, body); err != nil {
			return err
		}
	}
	return nil
}

// parseYandex reads a StreamingResponse.
func parseYandex(b []byte) (m yandexMessage, err error) {
	var start time.Duration // audio position at the start of the session; yandexTransport adds this field
	err = eachField(b, func(field protowire.Number, v uint64, body []byte) error {
		if field == yandexStart {
			start = yandexTime(v)
		}
		var broken error
		switch event := yandexEvent(field); event {
		case yandexPartial, yandexFinal:
			m.event = event
			m.result, broken = yandexUpdate(body)
		case yandexRefinement:
			m.event = event
			broken = eachField(body, func(field protowire.Number, _ uint64, body []byte) (err error) {
				if field == 2 { // field normalized_text
					m.result, err = yandexUpdate(body)
				}
				return err
			})
		case yandexEOUUpdate:
			m.event = event
			broken = eachField(body, func(field protowire.Number, v uint64, _ []byte) error {
				if field == 2 { // field time_ms
					m.time = yandexTime(v)
				}
				return nil
			})
		}
		return broken
	})
	m.time += start
	if r := &m.result; r.Text != "" {
		r.Start, r.End = r.Start+start, r.End+start
		for i := range r.Words {
			r.Words[i].Start, r.Words[i].End = r.Words[i].Start+start, r.Words[i].End+start
		}
	}
	return m, err
}

// yandexUpdate returns the first alternative of an AlternativeUpdate.
func yandexUpdate(b []byte) (r pipeline.Result, err error) {
	found := false
	err = eachField(b, func(field protowire.Number, _ uint64, body []byte) error {
		if field != 1 || found {
			return nil
		}
		found = true
		var broken error
		r, broken = yandexAlternative(body)
		return broken
	})
	return r, err
}

func yandexAlternative(b []byte) (r pipeline.Result, err error) {
	err = eachField(b, func(field protowire.Number, v uint64, body []byte) error {
		switch int(field) {
		case 1:
			w, broken := yandexWord(body)
			r.Words = append(r.Words, w)
			return broken
		case 2:
			r.Text = string(body)
		case 3:
			r.Start = yandexTime(v)
		case 4:
			r.End = yandexTime(v)
		}
		return nil
	})
	r.Start, r.End = span(timedWords(r.Words), r.Start, max(r.Start, r.End))
	return r, err
}

func yandexWord(b []byte) (w pipeline.Word, err error) {
	err = eachField(b, func(field protowire.Number, v uint64, body []byte) error {
		switch int(field) {
		case 1:
			w.Text = string(body)
		case 2:
			w.Start = yandexTime(v)
		case 3:
			w.End = yandexTime(v)
		}
		return nil
	})
	w.End = max(w.End, w.Start)
	return w, err
}

// yandexTime converts milliseconds. It returns 0 for more than a year.
func yandexTime(ms uint64) time.Duration {
	const year = 366 * 24 * time.Hour
	if ms > uint64(year/time.Millisecond) {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}
