package provider

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/asr"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/llm"
	"github.com/parley-voice/parley/pipeline/tts"
)

func TestCheck(t *testing.T) {
	all := &Clients{Models: map[string]pipeline.Model{"a": nil, "b": nil}}
	for want, e := range map[string]pipeline.Engine{
		"":                                 {Provider: "a", Fallback: &pipeline.Engine{Provider: "b"}},
		`speech.llm.provider: "c"`:         {Provider: "c"},
		"accepted: a, b":                   {Provider: "c"},
		"speech.llm.fallback.provider: \"": {Provider: "a", Fallback: &pipeline.Engine{}},
		"speech.llm.fallback.fallback.pro": {Provider: "a", Fallback: &pipeline.Engine{Provider: "b", Fallback: &pipeline.Engine{Provider: "c"}}},
	} {
		if err := all.CheckModel(e); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", e, err)
		}
	}
}

// ruled is a provider with rules for its options.
type ruled struct{}

func (ruled) Reply(context.Context, pipeline.Prompt) iter.Seq2[pipeline.Delta, error] { return nil }

func (ruled) OptionRules() pipeline.OptionRules {
	return pipeline.OptionRules{Takes: []string{"options"}, Reserved: []string{"model"}}
}

// TestCheckOptions checks that refused options are errors and ignored ones are warnings, in
// fallbacks too.
func TestCheckOptions(t *testing.T) {
	all := &Clients{Models: map[string]pipeline.Model{"a": ruled{}, "b": nil}}
	e := pipeline.Engine{Provider: "b", Fallback: &pipeline.Engine{Provider: "a", Options: pipeline.Options{Speed: 2, Extra: map[string]any{"model": "x"}}}}
	warnings, err := all.checkModel(e)
	if err == nil || !strings.Contains(err.Error(), "speech.llm.fallback.options.model: ") || len(warnings) != 1 || !strings.HasPrefix(warnings[0], "speech.llm.fallback.speed: ") {
		t.Errorf("%v, %q", err, warnings)
	}
}

// both returns an engine with a fallback.
func both() pipeline.Engine {
	return pipeline.Engine{Provider: "one", Model: "first", Fallback: &pipeline.Engine{Provider: "two", Model: "second"}}
}

// pair starts two providers; the first always has a fault.
func pair(t *testing.T, f fakeprovider.Fault) (bad, good *fakeprovider.Net, client func(*fakeprovider.Net) *http.Client) {
	t.Helper()
	play := func(f fakeprovider.Fault) *fakeprovider.Net {
		n, script := fakeprovider.NewNet(), fakeprovider.Typical()
		script.Fault = func(fakeprovider.Provider, int) fakeprovider.Fault { return f }
		fakes := fakeprovider.Serve(n, script)
		t.Cleanup(func() { _ = fakes.Close() })
		return n
	}
	return play(f), play(fakeprovider.None), func(n *fakeprovider.Net) *http.Client {
		c := &http.Client{Transport: &http.Transport{DialContext: n.Dial}}
		t.Cleanup(c.CloseIdleConnections)
		return c
	}
}

func TestModel(t *testing.T) {
	for fault, want := range map[fakeprovider.Fault]string{
		fakeprovider.None: "you said hi there", fakeprovider.Refuse: "you said hi there", fakeprovider.Busy: "you said hi there",
		fakeprovider.Hang: "you said hi there", fakeprovider.Stall: "you said hi there", fakeprovider.Garble: "you said hi there",
		fakeprovider.Drop: "you said ", // after the first word, no fallback is used
	} {
		synctest.Test(t, func(t *testing.T) {
			bad, good, client := pair(t, fault)
			g := &Guards{}
			m := g.Model(&Clients{Models: map[string]pipeline.Model{
				"one": llm.OpenAI{URL: "http://fake/v1", Client: client(bad)}, "two": llm.OpenAI{URL: "http://fake/v1", Client: client(good)},
			}}, both(), nil)
			began := time.Now()
			var text strings.Builder
			var err error
			for d, broke := range m.Reply(t.Context(), pipeline.Prompt{Messages: []pipeline.Message{{Role: pipeline.RoleCaller, Text: "hi there"}}}) {
				text.WriteString(d.Text)
				err = broke
			}
			if text.String() != want || (err == nil) != (fault != fakeprovider.Drop) || time.Since(began) > 2*time.Second {
				t.Errorf("%s: %q, %v after %v", fault, text.String(), err, time.Since(began))
			}
		})
	}
}

func TestModelWithoutFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, _, client := pair(t, fakeprovider.Refuse)
		g := &Guards{}
		m := g.Model(&Clients{Models: map[string]pipeline.Model{"one": llm.OpenAI{URL: "http://fake/v1", Client: client(bad)}}}, pipeline.Engine{Provider: "one"}, nil)
		var last error
		for range maxFailures + 1 {
			for _, err := range m.Reply(t.Context(), pipeline.Prompt{}) {
				last = err
			}
		}
		if !errors.Is(last, ErrOpen) {
			t.Errorf("after %d refusals: %v", maxFailures, last)
		}
	})
}

func TestVoice(t *testing.T) {
	const text = "one two three four five."
	for _, fault := range []fakeprovider.Fault{fakeprovider.None, fakeprovider.Refuse, fakeprovider.Busy, fakeprovider.Hang, fakeprovider.Stall, fakeprovider.Garble, fakeprovider.Drop} {
		synctest.Test(t, func(t *testing.T) {
			bad, good, client := pair(t, fault)
			for name, v := range map[string]pipeline.Voice{
				"elevenlabs": tts.ElevenLabs{URL: "ws://fake", Dial: bad.Dial},
				"openai":     tts.OpenAI{URL: "http://fake/v1", Client: client(bad)},
			} {
				if name == "openai" && fault == fakeprovider.Drop {
					continue // its fallback may repeat a word, because its word times are estimates; see TestClauseVoice
				}
				g := &Guards{}
				both := g.Voice(&Clients{Voices: map[string]pipeline.Voice{"one": v, "two": tts.ElevenLabs{URL: "ws://fake", Dial: good.Dial}}}, both(), nil)
				began := time.Now()
				pcm, words, err := speak(t.Context(), both, text)
				heard := tone.NewDecoder(8000).Decode(append(pcm, make([]int16, 800)...))
				var got []string
				for _, w := range heard {
					got = append(got, w.Text)
				}
				if strings.Join(got, " ") != text || err != nil || time.Since(began) > 2*time.Second {
					t.Errorf("%s %s: heard %q, %v after %v", name, fault, got, err, time.Since(began))
				}
				if len(words) != 5 || words[4].End > time.Duration(len(pcm))*time.Second/8000 {
					t.Errorf("%s %s: words %v of %d samples", name, fault, words, len(pcm))
				}
			}
		})
	}
}

// TestClauseVoice checks a voice that speaks clause by clause and fails within a clause. Its fallback continues
// there, and repeats or leaves out at most one word.
func TestClauseVoice(t *testing.T) {
	const text = "one two three four five. six seven eight nine ten."
	for dies := range 2 {
		synctest.Test(t, func(t *testing.T) {
			n, spare := fakeprovider.NewNet(), fakeprovider.NewNet()
			bad := fakeprovider.Serve(n, fakeprovider.Script{Fault: func(_ fakeprovider.Provider, request int) fakeprovider.Fault {
				if request == dies {
					return fakeprovider.Drop
				}
				return fakeprovider.None
			}})
			good := fakeprovider.Serve(spare, fakeprovider.Script{})
			client := &http.Client{Transport: &http.Transport{DialContext: n.Dial}}
			defer func() {
				client.CloseIdleConnections()
				_, _ = bad.Close(), good.Close()
			}()
			v := (&Guards{}).Voice(&Clients{Voices: map[string]pipeline.Voice{
				"one": tts.OpenAI{URL: "http://fake/v1", Client: client}, "two": tts.ElevenLabs{URL: "ws://fake", Dial: spare.Dial},
			}}, both(), nil)
			pcm, words, err := speak(t.Context(), v, text)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range tone.NewDecoder(8000).Decode(append(pcm, make([]int16, 800)...)) {
				got = append(got, w.Text)
			}
			all, next := strings.Fields(text), 0
			for _, w := range got {
				at := slices.IndexFunc(all, func(x string) bool { return strings.HasPrefix(x, w) })
				if at < next-1 || at > next+1 {
					t.Errorf("clause %d dies: heard %q after %d words: %q", dies, w, next, got)
				}
				next = at + 1
			}
			if next != len(all) || len(got) < len(all)-1 || len(got) > len(all)+1 {
				t.Errorf("clause %d dies: heard %q", dies, got)
			}
			if len(words) < len(all)-1 || len(words) > len(all) {
				t.Errorf("clause %d dies: %d words are reported: %v", dies, len(words), words)
			}
		})
	}
}

func speak(ctx context.Context, v pipeline.Voice, text string) (pcm []int16, words []pipeline.Word, err error) {
	sp, err := v.Open(ctx, pipeline.Style{Rate: 8000})
	if err != nil {
		return nil, nil, err
	}
	for _, piece := range []string{text[:9], text[9:]} {
		if err := sp.Write(piece); err != nil {
			return nil, nil, err
		}
	}
	if err := sp.Flush(); err != nil {
		return nil, nil, err
	}
	for s, err := range sp.Audio() {
		if err != nil {
			return pcm, words, errors.Join(err, sp.Close())
		}
		pcm, words = append(pcm, s.PCM...), append(words, s.Words...)
	}
	return pcm, words, sp.Close()
}

func TestRecognizer(t *testing.T) {
	for fault, opens := range map[fakeprovider.Fault]int{fakeprovider.None: 1, fakeprovider.Refuse: 1, fakeprovider.Busy: 1, fakeprovider.Hang: 1, fakeprovider.Drop: 2, fakeprovider.Garble: 2, fakeprovider.Stall: 2} {
		synctest.Test(t, func(t *testing.T) {
			bad, good, _ := pair(t, fault)
			g := &Guards{}
			r := g.Recognizer(&Clients{Recognizers: map[string]pipeline.Recognizer{
				"one": asr.Deepgram{URL: "ws://fake/v1/listen", Dial: bad.Dial}, "two": asr.Flux{URL: "ws://fake/v2/listen", Dial: good.Dial},
			}}, both(), nil)
			for n := 1; ; n++ {
				rec, err := r.Recognize(t.Context(), pipeline.Stream{Rate: 8000})
				if err != nil {
					t.Fatal(err)
				}
				text, broke := listen(rec)
				if broke == nil {
					if n != opens || text != "one two three" {
						t.Errorf("%s: %q at the stream %d", fault, text, n)
					}
					return
				}
				if n == 3 {
					t.Fatalf("%s: %v", fault, broke)
				}
			}
		})
	}
}

// listen sends speech to rec and returns the transcript.
func listen(rec pipeline.Recognition) (string, error) {
	go func() {
		pcm, _ := tone.Encode(8000, "one two three")
		pcm = append(pcm, make([]int16, 1600)...)
		for n := media.FrameLen(8000); len(pcm) >= n; pcm = pcm[n:] {
			<-time.After(media.FrameTime)
			_ = rec.WriteFrame(pcm[:n]) // Close reports the error
		}
		_ = rec.Finalize() // Close reports the error
	}()
	for r := range rec.Results() {
		if r.Finalized {
			return r.Text, rec.Close()
		}
	}
	return "", rec.Close()
}
