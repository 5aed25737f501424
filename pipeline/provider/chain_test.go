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

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/asr"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

// A scriptedVoice yields its parts and then fails with err.
type scriptedVoice struct {
	parts []pipeline.Speech
	late  bool // the parts are yielded only after the utterance is closed
	err   error

	closed chan struct{}
	text   strings.Builder
	opened int
}

func (v *scriptedVoice) Open(context.Context, pipeline.Style) (pipeline.Synthesis, error) {
	v.closed, v.opened = make(chan struct{}), v.opened+1
	return v, nil
}

func (v *scriptedVoice) Write(text string) error { v.text.WriteString(text); return nil }
func (v *scriptedVoice) Flush() error            { return nil }

func (v *scriptedVoice) Close() error {
	select {
	case <-v.closed:
	default:
		close(v.closed)
	}
	return nil
}

func (v *scriptedVoice) Audio() iter.Seq2[pipeline.Speech, error] {
	return func(yield func(pipeline.Speech, error) bool) {
		if v.late {
			<-v.closed
		}
		for _, p := range v.parts {
			p.Words = slices.Clone(p.Words)
			if !yield(p, nil) {
				return
			}
		}
		if v.err != nil {
			yield(pipeline.Speech{}, v.err)
		}
	}
}

// part returns a second of speech with words.
func part(words ...string) pipeline.Speech {
	sp := pipeline.Speech{PCM: make([]int16, 8000)}
	for _, w := range words {
		sp.Words = append(sp.Words, pipeline.Word{Text: w, End: time.Second})
	}
	return sp
}

func chainOf(all ...*scriptedVoice) pipeline.Voice {
	names, voices := []string{"one", "two", "three"}, map[string]pipeline.Voice{}
	var e *pipeline.Engine
	for i, v := range slices.Backward(all) {
		voices[names[i]] = v
		e = &pipeline.Engine{Provider: names[i], Fallback: e}
	}
	return (&Guards{}).Voice(&Clients{Voices: voices}, *e, nil)
}

// TestNothingTwice checks that no voice replaces a voice that has spoken without word times, even if an earlier voice
// reported word times.
func TestNothingTwice(t *testing.T) {
	broken := errors.New("broken")
	first := &scriptedVoice{parts: []pipeline.Speech{part("one")}, err: broken}
	second := &scriptedVoice{parts: []pipeline.Speech{part()}, err: broken}
	third := &scriptedVoice{parts: []pipeline.Speech{part("two")}}
	_, _, err := speak(t.Context(), chainOf(first, second, third), "one two three.")
	if !errors.Is(err, broken) || third.opened != 0 {
		t.Errorf("%v; the third voice says %q", err, third.text.String())
	}
	if got := strings.TrimSpace(second.text.String()); got != "two three." {
		t.Errorf("the second voice says %q", got)
	}
}

// TestLateSound checks a voice whose first sound comes just as the voice is closed for being late: the sound is
// dropped, and the next voice says the text.
func TestLateSound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := &scriptedVoice{parts: []pipeline.Speech{part()}, late: true}
		second := &scriptedVoice{parts: []pipeline.Speech{part("one", "two", "three.")}}
		pcm, words, err := speak(t.Context(), chainOf(first, second), "one two three.")
		if err != nil || len(pcm) != 8000 || len(words) != 3 || second.text.String() != "one two three." {
			t.Errorf("%d samples, words %v, %v; the second voice says %q", len(pcm), words, err, second.text.String())
		}
	})
}

// TestShortProbe checks that a model that reaches the token limit of a probe before its first word counts as usable.
func TestShortProbe(t *testing.T) {
	c := &Checker{Guards: &Guards{}, Clients: &Clients{Models: map[string]pipeline.Model{"m": endsWith{pipeline.ErrLength}, "f": endsWith{errors.New("down")}}}}
	for name, want := range map[string]bool{"m": true, "f": false} {
		e := pipeline.Engines{LLM: pipeline.Engine{Provider: name}}
		p := c.candidates(e)[1][0]
		c.store(p, c.probe(t.Context(), p))
		if err := c.unusable(p, time.Now()); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// endsWith is a model that ends an answer with an error before any word.
type endsWith struct{ err error }

func (m endsWith) Reply(context.Context, pipeline.Prompt) iter.Seq2[pipeline.Delta, error] {
	return func(yield func(pipeline.Delta, error) bool) { yield(pipeline.Delta{}, m.err) }
}

// slowModel is a model that never answers.
type slowModel struct{}

func (slowModel) Reply(ctx context.Context, _ pipeline.Prompt) iter.Seq2[pipeline.Delta, error] {
	return func(yield func(pipeline.Delta, error) bool) {
		<-ctx.Done()
		yield(pipeline.Delta{}, ctx.Err())
	}
}

// TestSlowReasoning checks that late answers of a model open its breaker, unless the agent lets the model reason.
func TestSlowReasoning(t *testing.T) {
	for effort, open := range map[string]bool{"": true, "none": true, "high": false} {
		synctest.Test(t, func(t *testing.T) {
			g := &Guards{}
			all := map[string]pipeline.Model{"slow": slowModel{}, "good": &providerStub{}}
			e := pipeline.Engine{Provider: "slow", Options: pipeline.Options{ReasoningEffort: effort}, Fallback: &pipeline.Engine{Provider: "good"}}
			for range maxFailures {
				for d, err := range g.Model(&Clients{Models: all}, e, nil).Reply(t.Context(), pipeline.Prompt{}) {
					if d.Text != "OK" || err != nil {
						t.Errorf("%q, %v", d.Text, err)
					}
				}
			}
			if got, _, _ := g.state("llm", "slow"); got != open {
				t.Errorf("with the effort %q the breaker is open: %v", effort, got)
			}
		})
	}
}

// TestLateRefusal checks that the next stream goes to the fallback if a recognizer refuses
// the audio only after the stream was opened.
func TestLateRefusal(t *testing.T) {
	for _, fault := range []fakeprovider.Fault{fakeprovider.Refuse, fakeprovider.Busy} {
		synctest.Test(t, func(t *testing.T) {
			bad, good, client := pair(t, fault)
			protocols := new(http.Protocols)
			protocols.SetUnencryptedHTTP2(true)
			grpc := &http.Client{Transport: &http.Transport{DialContext: bad.Dial, Protocols: protocols}}
			defer grpc.CloseIdleConnections()
			for name, first := range map[string]pipeline.Recognizer{
				"transcriptions": asr.Transcriptions{URL: "http://fake/v1", Client: client(bad)},
				"yandex":         asr.Yandex{URL: "http://fake", Client: grpc},
			} {
				r := (&Guards{}).Recognizer(&Clients{Recognizers: map[string]pipeline.Recognizer{
					"one": first, "two": asr.Deepgram{URL: "ws://fake/v1/listen", Dial: good.Dial},
				}}, both(), nil)
				for n, want := range []string{"", "one two three"} {
					rec, err := r.Recognize(t.Context(), pipeline.Stream{Rate: 8000})
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					if text, err := listen(rec); text != want || (err == nil) != (want != "") {
						t.Errorf("%s %s: stream %d: %q, %v", name, fault, n, text, err)
					}
				}
			}
		})
	}
}

// TestLateProbe checks that a probe sees a refusal that comes after the opening of a stream,
// and that opening such a stream does not close the breaker.
func TestLateProbe(t *testing.T) {
	for _, fault := range []fakeprovider.Fault{fakeprovider.None, fakeprovider.Refuse, fakeprovider.Absent, fakeprovider.Hang, fakeprovider.Drop} {
		synctest.Test(t, func(t *testing.T) {
			bad, _, client := pair(t, fault)
			protocols := new(http.Protocols)
			protocols.SetUnencryptedHTTP2(true)
			grpc := &http.Client{Transport: &http.Transport{DialContext: bad.Dial, Protocols: protocols}}
			defer grpc.CloseIdleConnections()
			all := map[string]pipeline.Recognizer{
				"transcriptions": asr.Transcriptions{URL: "http://fake/v1", Client: client(bad)},
				"yandex":         asr.Yandex{URL: "http://fake", Client: grpc},
			}
			for name := range all {
				c := &Checker{Guards: &Guards{}, Clients: &Clients{Recognizers: all}}
				e := pipeline.Engines{ASR: pipeline.Engine{Provider: name}}
				c.Check(t.Context(), e, true)
				got := c.Report(e)[0]
				if (got.Error == "") != (fault == fakeprovider.None) || got.Misconfigured != (fault == fakeprovider.Absent) {
					t.Errorf("%s, fault %q: %+v", name, fault, got)
				}
				if fault != fakeprovider.Refuse {
					continue
				}
				for range maxFailures {
					if v, err := c.Guards.of("asr", name).begin(t.Context()); err == nil {
						v.finish(errors.New("down"))
					}
				}
				<-time.After(longPause)
				rec, err := c.Guards.Recognizer(&Clients{Recognizers: all}, e.ASR, nil).Recognize(t.Context(), pipeline.Stream{Rate: 8000})
				if err != nil {
					t.Fatal(err)
				}
				if open, _, _ := c.Guards.state("asr", name); !open {
					t.Errorf("%s: opening a stream closed the breaker", name)
				}
				_ = rec.Close()
			}
		})
	}
}
