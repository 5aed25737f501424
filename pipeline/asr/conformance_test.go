package asr

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

// recognizers lists the recognizers of the fake providers.
func recognizers(n *fakeprovider.Net) map[string]pipeline.Recognizer {
	return map[string]pipeline.Recognizer{
		"deepgram":   Deepgram{URL: "ws://fake/v1/listen", Key: "canary", Dial: n.Dial},
		"flux":       Flux{URL: "ws://fake/v2/listen", Key: "canary", Dial: n.Dial},
		"assemblyai": AssemblyAI{URL: "ws://fake/v3/ws", Key: "canary", Dial: n.Dial},
		"openai":     OpenAI{URL: "ws://fake/v1/realtime", Key: "canary", Dial: n.Dial},
	}
}

// each runs a test in a bubble for each recognizer.
func each(t *testing.T, script fakeprovider.Script, test func(t *testing.T, name string, r pipeline.Recognizer)) {
	t.Helper()
	for _, name := range []string{"deepgram", "flux", "assemblyai", "openai"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := fakeprovider.NewNet()
				fakes := fakeprovider.Serve(n, script)
				defer func() { _ = fakes.Close() }()
				test(t, name, recognizers(n)[name])
			})
		})
	}
}

// always returns a script with one fault.
func always(f fakeprovider.Fault) fakeprovider.Script {
	s := fakeprovider.Typical()
	s.Fault = func(fakeprovider.Provider, int) fakeprovider.Fault { return f }
	return s
}

// A talk is the result of words sent to a recognizer.
type talk struct {
	results []pipeline.Result
	asked   time.Duration // time of the first Finalize since the start
	answers []time.Duration
	err     error
}

// converse sends each text, finalizes it, and collects results until 3 s after the last.
func converse(t *testing.T, r pipeline.Recognizer, rate int, say ...string) talk {
	t.Helper()
	began := time.Now()
	rec, err := r.Recognize(t.Context(), pipeline.Stream{Rate: rate})
	if err != nil {
		t.Fatal(err)
	}
	var out talk
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, text := range say {
			speak(rec, text)
			if out.asked == 0 {
				out.asked = time.Since(began)
			}
			if rec.Finalize() != nil {
				return
			}
			silence(rec, time.Second)
		}
		silence(rec, 3*time.Second)
		out.err = rec.Close()
	})
	for res := range rec.Results() {
		out.results = append(out.results, res)
		if res.Finalized {
			out.answers = append(out.answers, time.Since(began))
		}
	}
	wg.Wait()
	out.err = errors.Join(out.err, rec.Close())
	return out
}

func speak(rec pipeline.Recognition, text string) {
	if text != "" {
		say(rec, text)
	}
	silence(rec, 200*time.Millisecond) // as long as the voice detector waits
}

func silence(rec pipeline.Recognition, d time.Duration) {
	f := make(media.Frame, media.FrameLen(rec.Rate()))
	for range d / media.FrameTime {
		<-time.After(media.FrameTime)
		if rec.WriteFrame(f) != nil {
			return
		}
	}
}

func (o talk) finals() []string {
	var all []string
	for _, r := range o.results {
		if r.Final && r.Text != "" {
			all = append(all, r.Text)
		}
	}
	return all
}

func TestRecognizers(t *testing.T) {
	for _, rate := range []int{8000, 16000} {
		each(t, fakeprovider.Typical(), func(t *testing.T, name string, r pipeline.Recognizer) {
			t.Helper()
			o := converse(t, r, rate, "hello there", "good day")
			if !slices.Equal(o.finals(), []string{"hello there", "good day"}) || len(o.answers) != 2 || o.err != nil {
				t.Fatalf("at %d Hz: %q, %d answers, %v", rate, o.finals(), len(o.answers), o.err)
			}
			// The answer comes with the provider's, plus the time to fill a chunk.
			if d := o.answers[0] - o.asked; d < 150*time.Millisecond || d > 250*time.Millisecond {
				t.Errorf("at %d Hz: answered after %v", rate, d)
			}
			at := time.Duration(0)
			for _, res := range o.results {
				if res.Final {
					if res.Start < at || res.End < res.Start {
						t.Errorf("at %d Hz: %v to %v after %v", rate, res.Start, res.End, at)
					}
					at = res.End
				}
				if name != "openai" && res.Final && len(res.Words) != 2 {
					t.Errorf("at %d Hz: words %v", rate, res.Words)
				}
			}
			if p := o.results[len(o.results)-1].EndOfTurn; (p > 0.5) != (name == "flux" || name == "assemblyai") {
				t.Errorf("end of turn %v", p)
			}
		})
	}
}

// TestNothingWasSaid checks that a cough also gets an answer and the stream continues.
func TestNothingWasSaid(t *testing.T) {
	each(t, fakeprovider.Typical(), func(t *testing.T, _ string, r pipeline.Recognizer) {
		t.Helper()
		o := converse(t, r, 8000, "", "hello there", "")
		if !slices.Equal(o.finals(), []string{"hello there"}) || len(o.answers) != 3 || o.err != nil {
			t.Fatalf("%q, %d answers, %v", o.finals(), len(o.answers), o.err)
		}
		if d := o.answers[0] - o.asked; d > answerTimeout {
			t.Errorf("answered after %v", d)
		}
	})
}

// TestLate checks that the interim text answers for a slow provider, and that its later
// text is delivered without repetition. A provider that sends anything gets more time.
func TestLate(t *testing.T) {
	for _, fault := range []fakeprovider.Fault{fakeprovider.Late, fakeprovider.Mute} {
		each(t, always(fault), func(t *testing.T, name string, r pipeline.Recognizer) {
			t.Helper()
			o := converse(t, r, 8000, "hello there")
			want, limit := []string{"hello there"}, answerTimeout
			if name == "openai" {
				limit = slowTimeout
			}
			if name == "openai" && fault == fakeprovider.Mute {
				want = nil
			}
			if !slices.Equal(o.finals(), want) || o.err != nil {
				t.Errorf("%s: %q, %v", fault, o.finals(), o.err)
			}
			if len(o.answers) == 0 || o.answers[0]-o.asked > limit {
				t.Errorf("%s: asked at %v, answered at %v", fault, o.asked, o.answers)
			}
		})
	}
}

// TestHalfOpen checks that a silent stream ends with an error.
func TestHalfOpen(t *testing.T) {
	each(t, always(fakeprovider.Stall), func(t *testing.T, _ string, r pipeline.Recognizer) {
		t.Helper()
		if o := converse(t, r, 8000, "hello there", "good day"); !errors.Is(o.err, errSilent) {
			t.Errorf("%q, %v", o.finals(), o.err)
		}
	})
}

func TestFreeze(t *testing.T) {
	for _, fault := range []fakeprovider.Fault{fakeprovider.Freeze, fakeprovider.HalfOpen} {
		each(t, always(fault), func(t *testing.T, _ string, r pipeline.Recognizer) {
			t.Helper()
			o := converse(t, r, 8000, "hello there", "good day", "is anybody there", "hello")
			if o.err == nil || fault == fakeprovider.Freeze && !errors.Is(o.err, errSilent) {
				t.Errorf("%s: %q, %v", fault, o.finals(), o.err)
			}
		})
	}
}

func TestBreaks(t *testing.T) {
	for fault, want := range map[fakeprovider.Fault]string{fakeprovider.Drop: "receive", fakeprovider.Reset: "receive", fakeprovider.Garble: "not JSON"} {
		each(t, always(fault), func(t *testing.T, _ string, r pipeline.Recognizer) {
			t.Helper()
			o := converse(t, r, 8000, "one two three")
			if o.err == nil || !strings.Contains(o.err.Error(), want) || strings.Contains(o.err.Error(), "canary") {
				t.Errorf("%s: %v, want %q", fault, o.err, want)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for fault, status := range map[fakeprovider.Fault]int{fakeprovider.Refuse: http.StatusServiceUnavailable, fakeprovider.Absent: http.StatusNotFound, fakeprovider.Busy: http.StatusTooManyRequests} {
		each(t, always(fault), func(t *testing.T, _ string, r pipeline.Recognizer) {
			t.Helper()
			rec, err := r.Recognize(t.Context(), pipeline.Stream{Rate: 8000})
			var refused *pipeline.RefusedError
			if rec != nil || !errors.As(err, &refused) || refused.Status != status || (refused.RetryAfter == 2*time.Second) != (fault == fakeprovider.Busy) || refused.IsRequestFault() != (fault == fakeprovider.Absent) {
				t.Errorf("%v", err)
			}
			if strings.Contains(err.Error(), "canary") {
				t.Errorf("error contains a secret: %v", err)
			}
		})
	}
}

// TestNoHandshake checks that the context ends a handshake without response.
func TestNoHandshake(t *testing.T) {
	each(t, always(fakeprovider.Hang), func(t *testing.T, _ string, r pipeline.Recognizer) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		rec, err := r.Recognize(ctx, pipeline.Stream{Rate: 8000})
		if rec != nil || !errors.Is(err, context.Canceled) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
