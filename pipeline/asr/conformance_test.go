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

// A setup is a recognizer with a fake provider.
type setup struct {
	name string
	open func(n *fakeprovider.Net) pipeline.Recognizer
	// noWords means that the results have no word times.
	noWords bool
	// finalizeOnly means that text comes only after Finalize.
	finalizeOnly bool
	// slow means that the provider sends some message after a Finalize or during a pause, so that
	// the tracker waits up to slowTimeout for its answer.
	slow bool
	// lateRefusal means that a refusal comes only after the first audio.
	lateRefusal bool
	// noTerms means that the recognizer takes no key terms.
	noTerms bool
	// malformed is the error after a malformed message; empty means "not JSON".
	malformed string
	// endOfTurn means that the recognizer reports the probability of the end of the turn.
	endOfTurn bool
}

// setups lists the recognizers under test.
func setups() []setup {
	return []setup{
		{name: "deepgram", open: func(n *fakeprovider.Net) pipeline.Recognizer {
			return Deepgram{URL: "ws://fake/v1/listen", Key: "canary", Dial: n.Dial}
		}},
		{name: "flux", endOfTurn: true, slow: true, open: func(n *fakeprovider.Net) pipeline.Recognizer {
			return Flux{URL: "ws://fake/v2/listen", Key: "canary", Dial: n.Dial}
		}},
		{name: "assemblyai", endOfTurn: true, open: func(n *fakeprovider.Net) pipeline.Recognizer {
			return AssemblyAI{URL: "ws://fake/v3/ws", Key: "canary", Dial: n.Dial}
		}},
		{name: "openai", noWords: true, slow: true, open: func(n *fakeprovider.Net) pipeline.Recognizer {
			return OpenAI{URL: "ws://fake/v1/realtime", Key: "canary", Dial: n.Dial}
		}},
		{name: "openai older", noWords: true, slow: true, finalizeOnly: true, open: func(n *fakeprovider.Net) pipeline.Recognizer {
			return ofModel{OpenAI{URL: "ws://fake/v1/realtime", Key: "canary", Dial: n.Dial}, "gpt-4o-transcribe"}
		}},
		{name: "transcriptions", slow: true, finalizeOnly: true, lateRefusal: true, open: func(n *fakeprovider.Net) pipeline.Recognizer {
			return ofModel{Transcriptions{URL: "http://fake/v1", Key: "canary", Client: &http.Client{Transport: &http.Transport{DialContext: n.Dial}}}, "whisper-1"}
		}},
		{name: "soniox", open: func(n *fakeprovider.Net) pipeline.Recognizer {
			return Soniox{URL: "ws://fake/transcribe-websocket", Key: "canary", Dial: n.Dial}
		}},
		{name: "azure", open: func(n *fakeprovider.Net) pipeline.Recognizer {
			return Azure{URL: "ws://fake/stt/speech/universal/v2", Key: "canary", Dial: n.Dial}
		}},
		{name: "yandex", lateRefusal: true, noTerms: true, malformed: "not a message", open: func(n *fakeprovider.Net) pipeline.Recognizer {
			protocols := new(http.Protocols)
			protocols.SetUnencryptedHTTP2(true)
			return Yandex{URL: "http://fake", Key: "canary", Client: &http.Client{Transport: &http.Transport{DialContext: n.Dial, Protocols: protocols}}}
		}},
	}
}

// ofModel is a recognizer with a default model of its own.
type ofModel struct {
	pipeline.Recognizer
	model string
}

func (m ofModel) Recognize(ctx context.Context, s pipeline.Stream) (pipeline.Recognition, error) {
	if s.Model == "" {
		s.Model = m.model
	}
	return m.Recognizer.Recognize(ctx, s)
}

// each runs test once per recognizer, each time in a synctest bubble.
func each(t *testing.T, script fakeprovider.Script, test func(t *testing.T, r pipeline.Recognizer, s setup)) {
	t.Helper()
	for _, s := range setups() {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := fakeprovider.NewNet()
				fakes := fakeprovider.Serve(n, script)
				defer func() { _ = fakes.Close() }()
				test(t, s.open(n), s)
			})
		})
	}
}

// always returns a script in which every request has the same fault.
func always(f fakeprovider.Fault) fakeprovider.Script {
	s := fakeprovider.Typical()
	s.Fault = func(fakeprovider.Provider, int) fakeprovider.Fault { return f }
	return s
}

// A talk is the outcome of converse.
type talk struct {
	results []pipeline.Result
	asked   time.Duration // time from the start to the first Finalize
	first   time.Duration // time from the start to the first text
	answers []time.Duration
	err     error
}

// converse sends each text, followed by Finalize. It collects results until 3 s after the last text.
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
		if out.first == 0 && res.Text != "" {
			out.first = time.Since(began)
		}
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
	silence(rec, 200*time.Millisecond) // about the pause after which the voice activity detector ends speech
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
		each(t, fakeprovider.Typical(), func(t *testing.T, r pipeline.Recognizer, s setup) {
			t.Helper()
			o := converse(t, r, rate, "hello there", "good day")
			if !slices.Equal(o.finals(), []string{"hello there", "good day"}) || len(o.answers) != 2 || o.err != nil {
				t.Fatalf("at %d Hz: %q, %d answers, %v", rate, o.finals(), len(o.answers), o.err)
			}
			// The answer takes the provider's response time plus the time to fill a chunk.
			if d := o.answers[0] - o.asked; d < 150*time.Millisecond || d > 250*time.Millisecond {
				t.Errorf("at %d Hz: answered after %v", rate, d)
			}
			if o.first < o.asked == s.finalizeOnly {
				t.Errorf("at %d Hz: first text after %v, Finalize after %v", rate, o.first, o.asked)
			}
			at := time.Duration(0)
			for _, res := range o.results {
				if res.Final {
					if res.Start < at || res.End < res.Start {
						t.Errorf("at %d Hz: %v to %v after %v", rate, res.Start, res.End, at)
					}
					at = res.End
				}
				if !s.noWords && res.Final && res.Text != "" && len(res.Words) != 2 {
					t.Errorf("at %d Hz: words %v", rate, res.Words)
				}
			}
			if p := o.results[len(o.results)-1].EndOfTurn; (p > 0.5) != s.endOfTurn {
				t.Errorf("end of turn %v", p)
			}
		})
	}
}

// TestNothingWasSaid checks that a Finalize without speech gets an answer, and that the stream continues.
func TestNothingWasSaid(t *testing.T) {
	each(t, fakeprovider.Typical(), func(t *testing.T, r pipeline.Recognizer, _ setup) {
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

// TestLate checks a provider whose final text is late. The interim text answers the Finalize, and the late text is
// delivered without repeated words. A provider that sends anything in between gets more time.
func TestLate(t *testing.T) {
	for _, fault := range []fakeprovider.Fault{fakeprovider.Late, fakeprovider.Mute} {
		each(t, always(fault), func(t *testing.T, r pipeline.Recognizer, s setup) {
			t.Helper()
			o := converse(t, r, 8000, "hello there")
			want, limit := []string{"hello there"}, answerTimeout
			if s.slow {
				limit = slowTimeout
			}
			if s.finalizeOnly && fault == fakeprovider.Mute {
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

// TestHalfOpen checks that a stream ends with an error if the provider stops sending messages.
func TestHalfOpen(t *testing.T) {
	each(t, always(fakeprovider.Stall), func(t *testing.T, r pipeline.Recognizer, _ setup) {
		t.Helper()
		if o := converse(t, r, 8000, "hello there", "good day"); !errors.Is(o.err, errSilent) {
			t.Errorf("%q, %v", o.finals(), o.err)
		}
	})
}

func TestFreeze(t *testing.T) {
	for _, fault := range []fakeprovider.Fault{fakeprovider.Freeze, fakeprovider.HalfOpen} {
		each(t, always(fault), func(t *testing.T, r pipeline.Recognizer, _ setup) {
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
		each(t, always(fault), func(t *testing.T, r pipeline.Recognizer, s setup) {
			t.Helper()
			want := want
			if fault == fakeprovider.Garble && s.malformed != "" {
				want = s.malformed
			}
			o := converse(t, r, 8000, "one two three")
			if o.err == nil || !strings.Contains(o.err.Error(), want) || strings.Contains(o.err.Error(), "canary") {
				t.Errorf("%s: %v, want %q", fault, o.err, want)
			}
		})
	}
}

// refusalOf returns the error of a refused stream. Recognize or the recognition may report it.
func refusalOf(t *testing.T, r pipeline.Recognizer, stream pipeline.Stream) error {
	t.Helper()
	rec, err := r.Recognize(t.Context(), stream)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		speak(rec, "hello there")
		_ = rec.Finalize()
		silence(rec, time.Second)
		_ = rec.Close()
	})
	for range rec.Results() {
	}
	return rec.Close()
}

func TestRefusals(t *testing.T) {
	for fault, status := range map[fakeprovider.Fault]int{
		fakeprovider.Refuse: http.StatusServiceUnavailable, fakeprovider.Absent: http.StatusNotFound, fakeprovider.Busy: http.StatusTooManyRequests,
	} {
		each(t, always(fault), func(t *testing.T, r pipeline.Recognizer, s setup) {
			t.Helper()
			if rec, err := r.Recognize(t.Context(), pipeline.Stream{Rate: 8000}); (err == nil) != s.lateRefusal {
				t.Errorf("%s at the opening: %v", fault, err)
			} else if rec != nil {
				_ = rec.Close()
			}
			err := refusalOf(t, r, pipeline.Stream{Rate: 8000})
			var refused *pipeline.RefusedError
			if !errors.As(err, &refused) || refused.Status != status || refused.IsRequestFault() != (fault == fakeprovider.Absent) {
				t.Fatalf("%s: %v", fault, err)
			}
			if (refused.RetryAfter == 2*time.Second) != (fault == fakeprovider.Busy) {
				t.Errorf("%s: retry after %v", fault, refused.RetryAfter)
			}
			if strings.Contains(err.Error(), "canary") {
				t.Errorf("error contains a secret: %v", err)
			}
		})
	}
}

// TestUnknownModel checks that the refusal of a model counts as a fault of the request and states
// the reason. One agent's mistake must not pause the provider for all agents.
func TestUnknownModel(t *testing.T) {
	each(t, fakeprovider.Typical(), func(t *testing.T, r pipeline.Recognizer, _ setup) {
		t.Helper()
		err := refusalOf(t, r, pipeline.Stream{Rate: 8000, Model: fakeprovider.UnknownModel})
		var refused *pipeline.RefusedError
		if !errors.As(err, &refused) || !refused.IsRequestFault() || !strings.Contains(strings.ToLower(refused.Text), "model") {
			t.Errorf("%v", err)
		}
	})
}

// TestQuietCaller checks that a caller who coughs but says nothing does not end the stream.
func TestQuietCaller(t *testing.T) {
	each(t, fakeprovider.Typical(), func(t *testing.T, r pipeline.Recognizer, _ setup) {
		t.Helper()
		rec, err := r.Recognize(t.Context(), pipeline.Stream{Rate: 8000})
		if err != nil {
			t.Fatal(err)
		}
		var failed error
		go func() {
			for range 6 {
				silence(rec, 3*time.Second)
				_ = rec.Finalize()
			}
			silence(rec, 2*time.Second)
			failed = rec.Close()
		}()
		answers := 0
		for res := range rec.Results() {
			if res.Finalized {
				answers++
			}
			if res.Text != "" {
				t.Errorf("text %q of silence", res.Text)
			}
		}
		synctest.Wait()
		if answers != 6 || failed != nil {
			t.Errorf("%d answers, %v", answers, failed)
		}
	})
}

// TestNoHandshake checks that the context ends a handshake without response.
func TestNoHandshake(t *testing.T) {
	each(t, always(fakeprovider.Hang), func(t *testing.T, r pipeline.Recognizer, s setup) {
		t.Helper()
		if s.lateRefusal {
			return // Recognize returns before any response
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		rec, err := r.Recognize(ctx, pipeline.Stream{Rate: 8000})
		if rec != nil || !errors.Is(err, context.Canceled) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// TestCloseEarly checks that Close is quick at any time and returns no error.
func TestCloseEarly(t *testing.T) {
	for _, fault := range []fakeprovider.Fault{
		fakeprovider.None, fakeprovider.Stall, fakeprovider.Freeze, fakeprovider.HalfOpen, fakeprovider.Mute, fakeprovider.Late,
	} {
		each(t, always(fault), func(t *testing.T, r pipeline.Recognizer, _ setup) {
			t.Helper()
			for _, after := range []func(rec pipeline.Recognition){
				func(pipeline.Recognition) {},
				func(rec pipeline.Recognition) { speak(rec, "hello there") },
				func(rec pipeline.Recognition) { speak(rec, "hello there"); _ = rec.Finalize() },
				func(rec pipeline.Recognition) {
					speak(rec, "hello there")
					_ = rec.Finalize()
					silence(rec, 100*time.Millisecond)
				},
			} {
				rec, err := r.Recognize(t.Context(), pipeline.Stream{Rate: 8000})
				if err != nil {
					t.Fatal(err)
				}
				after(rec)
				began := time.Now()
				if err := rec.Close(); err != nil {
					t.Errorf("%s: %v", fault, err)
				}
				if d := time.Since(began); d > 2*time.Second {
					t.Errorf("%s: closing took %v", fault, d)
				}
				for range rec.Results() {
				}
			}
		})
	}
}

// TestIdle checks that a stream without audio stays open.
func TestIdle(t *testing.T) {
	each(t, fakeprovider.Typical(), func(t *testing.T, r pipeline.Recognizer, _ setup) {
		t.Helper()
		rec, err := r.Recognize(t.Context(), pipeline.Stream{Rate: 8000})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			<-time.After(30 * time.Second)
			speak(rec, "hello there")
			_ = rec.Finalize()
			silence(rec, time.Second)
			if err := rec.Close(); err != nil {
				t.Error(err)
			}
		})
		var finals []string
		for res := range rec.Results() {
			if res.Final && res.Text != "" {
				finals = append(finals, res.Text)
			}
		}
		if wg.Wait(); !slices.Equal(finals, []string{"hello there"}) {
			t.Errorf("%q", finals)
		}
	})
}
