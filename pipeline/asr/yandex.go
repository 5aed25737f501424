package asr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/grpcstream"
)

// YandexURL is the default endpoint.
const YandexURL = "https://stt.api.cloud.yandex.net:443"

const (
	yandexMethod = "/speechkit.stt.v3.Recognizer/RecognizeStreaming"
	yandexModel  = "general"
)

// Yandex transcribes with Yandex SpeechKit, version 3 (github.com/yandex-cloud/cloudapi, yandex/cloud/ai/stt/v3). If
// the stream has several languages, SpeechKit detects the language of each sentence. SpeechKit accepts no key terms.
type Yandex struct {
	URL    string       // scheme, host and port; empty means YandexURL
	Key    media.Secret // API key of a service account
	Folder string       // folder ID; empty means the folder of the service account
	Client *http.Client // nil means http.DefaultClient; must speak HTTP/2 and have no Timeout
}

// OptionRules implements pipeline.RuledProvider. Recognize ignores unknown parameters, because the
// messages have no fields for them.
func (Yandex) OptionRules() pipeline.OptionRules {
	return pipeline.OptionRules{
		Takes:    []string{"languages", "options"},
		Reserved: []string{"audio_format", "language_restriction", "model"},
		Known:    []string{"literature_text", "profanity_filter", "text_normalization"},
		Languages: []string{
			"de-DE", "en-US", "es-ES", "fi-FI", "fr-FR", "he-HE", "it-IT", "kk-KZ", "nl-NL", "pl-PL", "pt-PT", "pt-BR", "ru-RU", "sv-SE",
			"tr-TR", "uz-UZ",
		},
	}
}

// Recognize implements pipeline.Recognizer. It does not wait for SpeechKit's response, so a refusal
// comes through the recognition.
func (y Yandex) Recognize(ctx context.Context, s pipeline.Stream) (pipeline.Recognition, error) {
	head := y.header()
	conn := &yandexTransport{rate: s.Rate, options: yandexOptions(s), open: func(ctx context.Context) (*grpcstream.Stream, error) {
		return y.open(ctx, head)
	}}
	call, err := conn.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("yandex: %w", err)
	}
	conn.recent.size = 2 * int(yandexReplay*time.Duration(s.Rate)/time.Second)
	conn.life, conn.cancel = context.WithCancel(context.WithoutCancel(ctx))
	conn.call.Store(call)
	answers := yandexAnswers{normalized: normalizes(s)}
	return start(protocol{
		name: "yandex", hello: yandexHello, finalize: yandexFinalize, bye: yandexBye,
		chunk: 60 * time.Millisecond, linear: true, maxSilent: 1, parse: answers.parse,
	}, s.Rate, conn, head), nil
}

// Probe implements pipeline.Prober.
func (y Yandex) Probe(ctx context.Context, s pipeline.Stream) error {
	call, err := y.open(ctx, y.header())
	if err != nil {
		return fmt.Errorf("yandex: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = call.Close() }) // Close never fails
	defer func() {
		stop()
		_ = call.Close() // Close never fails
	}()
	if call.Send(yandexOptions(s), writeLimit) == nil { // if Send fails, Receive returns the reason
		_ = call.Send(yandexChunk(make([]byte, 2*s.Rate/10)), writeLimit) // if Send fails, Receive returns the reason
	}
	call.CloseSend()
	for {
		switch _, err = call.Receive(); {
		case err == nil:
		case errors.Is(err, io.EOF):
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("yandex: %w", ctx.Err())
		default:
			return fmt.Errorf("yandex: %w", err)
		}
	}
}

func (y Yandex) header() http.Header {
	head := http.Header{"Authorization": {"Api-Key " + string(y.Key)}}
	if y.Folder != "" {
		head.Set("X-Folder-Id", y.Folder)
	}
	return head
}

func (y Yandex) open(ctx context.Context, head http.Header) (*grpcstream.Stream, error) {
	url := strings.TrimSuffix(cmp.Or(y.URL, YandexURL), "/") + yandexMethod
	return grpcstream.Open(ctx, cmp.Or(y.Client, http.DefaultClient), url, head)
}

// normalizes reports whether SpeechKit writes numbers and dates in digits. It can do so only if the
// stream has exactly one language (yandex.cloud/en/docs/speechkit/stt/normalization).
func normalizes(s pipeline.Stream) bool {
	on, given := s.Options.Extra["text_normalization"].(bool)
	return len(languagesOf(s)) == 1 && (on || !given)
}

// yandexAnswers matches the provider's messages with Finalizes.
type yandexAnswers struct {
	// normalized means that a refinement follows each final text and replaces it.
	normalized bool
	raw        *pipeline.Result // final text whose refinement has not come yet
	ended      time.Duration    // audio position of a Finalize that SpeechKit answered before the refinement; 0 for none
	last       time.Duration    // end of the last final text
}

func (y *yandexAnswers) parse(b []byte) (update, error) {
	m, err := parseYandex(b)
	if err != nil {
		return update{}, fmt.Errorf("not a message of SpeechKit: %w", err)
	}
	switch m.event {
	case yandexPartial:
		return update{Result: m.result, empty: m.result.Text == ""}, nil
	case yandexFinal:
		m.result.Final = true
		y.last = max(y.last, m.result.End)
		if y.normalized && m.result.Text != "" {
			held := m.result
			y.raw = &held
			m.result.Final = false
		}
		return update{Result: m.result, empty: m.result.Text == ""}, nil
	case yandexRefinement:
		if y.raw == nil {
			return update{empty: true}, nil
		}
		return y.refine(m.result), nil
	case yandexEOUUpdate:
		end := max(m.time, y.last)
		if y.raw != nil { // the answer follows with the refinement
			y.ended = end
			return update{empty: true}, nil
		}
		return update{answer: true, Result: pipeline.Result{Final: true, Start: end, End: end}}, nil
	default:
		return update{alive: true}, nil // status messages come at fixed intervals
	}
}

// refine returns the refinement r in place of the final text.
func (y *yandexAnswers) refine(r pipeline.Result) update {
	raw := *y.raw
	h := update{Result: raw}
	h.Final, h.Text = true, cmp.Or(r.Text, raw.Text)
	if len(r.Words) > 0 {
		h.Words = r.Words
	}
	if y.ended > 0 {
		h.answer, h.End = true, max(h.End, y.ended)
	}
	y.raw, y.ended = nil, 0
	return h
}
