package asr

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

// response returns a StreamingResponse with an event and a text whose words take 400 ms each.
func response(event yandexEvent, text string) []byte {
	var b []byte
	for i, w := range strings.Fields(text) {
		word := appendBytes(nil, 1, []byte(w))
		word = appendVarint(appendVarint(word, 2, uint64(400*i)), 3, uint64(400*i+300))
		b = appendBytes(b, 1, word)
	}
	b = appendBytes(nil, 1, appendBytes(b, 2, []byte(text)))
	if event == yandexRefinement {
		b = appendBytes(appendVarint(nil, 1, 0), 2, b)
	}
	return appendBytes(appendBytes(nil, 2, appendVarint(nil, 1, 5000)), protowire.Number(event), b)
}

func eouUpdate(ms uint64) []byte { return appendBytes(nil, 6, appendVarint(nil, 2, ms)) }

// TestYandexAnswers checks final texts, refinements and ends of the utterance in every order that SpeechKit uses.
func TestYandexAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		normalized bool
		messages   [][]byte
		want       string // texts of the results; a ! marks a final result, a ? an answer to Finalize
	}{
		"raw":              {false, [][]byte{response(4, "два"), response(5, "два три"), eouUpdate(900)}, "два|два три!|!?"},
		"raw, nothing":     {false, [][]byte{response(4, ""), eouUpdate(900)}, "!?"},
		"refined":          {true, [][]byte{response(5, "два три"), response(7, "2 3"), eouUpdate(900)}, "два три|2 3!|!?"},
		"refined late":     {true, [][]byte{response(5, "два три"), eouUpdate(900), response(7, "2 3")}, "два три|2 3!?"},
		"refined, nothing": {true, [][]byte{response(5, ""), eouUpdate(900)}, "!?"},
		"two finals":       {false, [][]byte{response(5, "два"), response(5, "три"), eouUpdate(900)}, "два!|три!|!?"},
		"refinement alone": {true, [][]byte{response(7, "2"), eouUpdate(900)}, "!?"},
		"status":           {false, [][]byte{appendBytes(nil, 8, appendVarint(nil, 1, 1))}, ""},
	} {
		y := yandexAnswers{normalized: c.normalized}
		var got []string
		for _, m := range c.messages {
			h, err := y.parse(m)
			if err != nil {
				t.Fatal(err)
			}
			if h.empty || h.alive {
				continue
			}
			text := h.Text
			if h.Final {
				text += "!"
			}
			if h.answer {
				if text += "?"; h.End < 900*ms {
					t.Errorf("%s: answered up to %v", name, h.End)
				}
			}
			got = append(got, text)
		}
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("%s: %q, want %q", name, s, c.want)
		}
	}
}

func TestYandexOptions(t *testing.T) {
	extra := streamOf("general:rc", "ru-RU")
	extra.Rate = 16000
	extra.Options.Extra = map[string]any{"literature_text": true, "profanity_filter": false}
	raw := streamOf("", "ru")
	raw.Options.Extra = map[string]any{"text_normalization": false}
	for name, c := range map[string]struct {
		stream        pipeline.Stream
		model         string
		rate          uint64
		normalization string // numeric fields of TextNormalizationOptions
		languages     string
	}{
		"default":   {pipeline.Stream{Rate: 8000}, "general", 8000, "1:2", "auto"},
		"mixed":     {streamOf("", "kk ru-RU en-GB"), "general", 8000, "1:2", "kk-KZ ru-RU en-US"},
		"extra":     {extra, "general:rc", 16000, "1:1 3:1", "ru-RU"},
		"raw":       {raw, "general", 8000, "1:2", "ru-RU"},
		"Brazilian": {streamOf("", "pt-BR"), "general", 8000, "1:1", "pt-BR"},
		"other":     {streamOf("", "ja-JP"), "general", 8000, "1:1", "ja-JP"},
	} {
		options := fieldOf(t, fieldOf(t, yandexOptions(c.stream), 1), 1)
		audio := fieldOf(t, fieldOf(t, options, 2), 1)
		if model := string(fieldOf(t, options, 1)); model != c.model {
			t.Errorf("%s: model %s", name, model)
		}
		if got := numbers(t, audio); got != "1:1 2:"+digits(c.rate)+" 3:1" {
			t.Errorf("%s: audio %s", name, got)
		}
		if got := numbers(t, fieldOf(t, options, 3)); got != c.normalization {
			t.Errorf("%s: normalization %s, want %s", name, got, c.normalization)
		}
		var languages []string
		if err := eachField(fieldOf(t, options, 4), func(f protowire.Number, _ uint64, b []byte) error {
			if f == 2 {
				languages = append(languages, string(b))
			}
			return nil
		}); err != nil || strings.Join(languages, " ") != c.languages {
			t.Errorf("%s: languages %v, %v", name, languages, err)
		}
		if classifier := fieldOf(t, fieldOf(t, yandexOptions(c.stream), 1), 2); !slices.Equal(classifier, []byte{2<<3 | 2, 0}) {
			t.Errorf("%s: classifier %x", name, classifier)
		}
	}
}

func fieldOf(t *testing.T, b []byte, want protowire.Number) (found []byte) {
	t.Helper()
	if err := eachField(b, func(f protowire.Number, _ uint64, body []byte) error {
		if f == want {
			found = body
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

// numbers returns the numeric fields in their order.
func numbers(t *testing.T, b []byte) string {
	t.Helper()
	var all []string
	if err := eachField(b, func(f protowire.Number, v uint64, body []byte) error {
		if body == nil {
			all = append(all, digits(uint64(f))+":"+digits(v))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func digits(n uint64) string { return strconv.FormatUint(n, 10) }

// TestYandexSessions checks that a call longer than a session of SpeechKit loses no text, both if the
// caller speaks often and if the caller is silent for long.
func TestYandexSessions(t *testing.T) {
	for name, c := range map[string]struct {
		count int
		pause time.Duration
	}{"often": {25, 30 * time.Second}, "rarely": {2, 11 * time.Minute}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testYandexSessions(t, c.count, c.pause) })
		})
	}
}

// testYandexSessions runs one case: after each of count pauses, the caller speaks twice.
func testYandexSessions(t *testing.T, count int, pause time.Duration) {
	t.Helper()
	n := fakeprovider.NewNet()
	fakes := fakeprovider.Serve(n, fakeprovider.Typical())
	defer func() { _ = fakes.Close() }()
	all := setups()
	yandex := all[slices.IndexFunc(all, func(s setup) bool { return s.name == "yandex" })].open(n)
	rec, err := yandex.Recognize(t.Context(), pipeline.Stream{Rate: 8000})
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	go func() {
		for range count {
			silence(rec, pause)
			speak(rec, "hello there")
			_ = rec.Finalize()
			speak(rec, "good day")
			_ = rec.Finalize()
		}
		silence(rec, time.Second)
		failed = rec.Close()
	}()
	var texts []string
	at := time.Duration(0)
	for r := range rec.Results() {
		if !r.Final || r.Text == "" {
			continue
		}
		if texts = append(texts, r.Text); r.Start < at || r.End < r.Start {
			t.Errorf("%q from %v to %v after %v", r.Text, r.Start, r.End, at)
		}
		at = r.End
	}
	synctest.Wait()
	for i, text := range texts {
		if want := []string{"hello there", "good day"}[i%2]; text != want {
			t.Fatalf("text %d: %q, want %q", i, text, want)
		}
	}
	if len(texts) != 2*count || failed != nil {
		t.Errorf("%d texts, %v", len(texts), failed)
	}
	if sessions := fakes.Requests(fakeprovider.ASR); sessions < 3 {
		t.Errorf("%d sessions", sessions)
	}
	if spoken := time.Duration(count) * pause; at < spoken || at > spoken+time.Duration(count)*4*time.Second {
		t.Errorf("the last word ends after %v", at)
	}
}

func FuzzParseYandex(f *testing.F) {
	for _, b := range [][]byte{response(4, "hi there"), response(5, "hi"), response(7, "Hi."), eouUpdate(1 << 60), nil} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		y := yandexAnswers{normalized: true}
		l := tracker{}
		l.addRequest(time.Second, 0)
		for range 2 {
			h, err := y.parse(b)
			if err != nil {
				return
			}
			if h.End < 0 || h.Start < 0 {
				t.Errorf("%+v", h)
			}
			l.onUpdate(h)
		}
	})
}
