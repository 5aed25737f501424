package provider

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

func TestLimit(t *testing.T) {
	g := &Guards{Limits: map[string]int{"x": 1}}
	v, err := g.of("llm", "x").begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	v.note(Responding)
	if _, err := g.of("llm", "x").begin(context.Background()); !errors.Is(err, ErrBusy) {
		t.Errorf("error %v", err)
	}
	v.finish(nil)
	v.finish(nil)
	if _, err := g.of("llm", "x").begin(context.Background()); err != nil {
		t.Errorf("then: %v", err)
	}
}

// TestBackground checks that background work shares the concurrency limit of calls but not
// their breaker.
func TestBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Guards{Limits: map[string]int{"x": 2}}
		calls, beside := g.of("llm", "x"), g.background("llm", "x")
		enter := func(g *guard, want error) *request {
			v, err := g.begin(context.Background())
			if !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
			return v
		}
		for range maxFailures {
			enter(beside, nil).finish(errors.New("down"))
		}
		enter(beside, ErrOpen)
		one, two := enter(calls, nil), enter(calls, nil)
		<-time.After(firstPause)
		enter(beside, ErrBusy)
		one.finish(nil)
		two.finish(nil)
		enter(beside, nil).finish(nil)
		for range maxFailures {
			enter(calls, nil).finish(errors.New("down"))
		}
		enter(calls, ErrOpen)
		enter(beside, nil).finish(nil)
	})
}

// reporter is a model that answers after a delay, in one piece.
type reporter struct{ after time.Duration }

func (r reporter) Reply(ctx context.Context, _ pipeline.Prompt) iter.Seq2[pipeline.Delta, error] {
	return func(yield func(pipeline.Delta, error) bool) {
		select {
		case <-time.After(r.after):
			yield(pipeline.Delta{Calls: []pipeline.ToolCall{{Name: "report"}}}, nil)
		case <-ctx.Done():
			yield(pipeline.Delta{}, ctx.Err())
		}
	}
}

// TestBackgroundWaits checks that background work has a longer time limit.
func TestBackgroundWaits(t *testing.T) {
	for after, want := range map[time.Duration]time.Duration{10 * time.Second: 10 * time.Second, time.Hour: maxBackgroundToken} {
		synctest.Test(t, func(t *testing.T) {
			m := (&Guards{}).BackgroundModel(&Clients{Models: map[string]pipeline.Model{"one": reporter{after}, "two": modelStub{}}}, both(), nil)
			began := time.Now()
			for _, err := range m.Reply(t.Context(), pipeline.Prompt{}) {
				if err != nil || time.Since(began) != want {
					t.Errorf("an answer after %v: %v after %v", after, err, time.Since(began))
				}
			}
		})
	}
}

func TestJudge(t *testing.T) {
	refused := func(status int) error { return fmt.Errorf("x: %w", &pipeline.RefusedError{Status: status}) }
	for _, tt := range []struct {
		err  error
		want Outcome
	}{
		{nil, Succeeded},
		{errors.New("reset"), Failed},
		{context.DeadlineExceeded, Failed},
		{fmt.Errorf("x: %w", context.Canceled), Neutral},
		{fmt.Errorf("%w: no object", pipeline.ErrUnusable), Neutral},
		{refused(400), Neutral}, // unknown language
		{refused(404), Neutral}, // unknown model
		{refused(413), Neutral},
		{refused(422), Neutral},
		{refused(401), Failed}, // invalid key
		{refused(402), Failed}, // no credit
		{refused(403), Failed},
		{refused(408), Failed},
		{refused(429), Failed},
		{refused(500), Failed},
		{refused(503), Failed},
	} {
		if got, _ := classify(tt.err); got != tt.want {
			t.Errorf("%v: %d, want %d", tt.err, got, tt.want)
		}
	}
}

// A scriptedRecognizer is a recognizer with scripted streams.
type scriptedRecognizer struct {
	refuses error
	streams []*words
}

func (l *scriptedRecognizer) Recognize(context.Context, pipeline.Stream) (pipeline.Recognition, error) {
	if l.refuses != nil {
		return nil, l.refuses
	}
	w := &words{results: make(chan pipeline.Result, 1)}
	l.streams = append(l.streams, w)
	return w, nil
}

type words struct {
	results chan pipeline.Result
	broke   error
	closed  bool
}

func (w *words) Rate() int                       { return 8000 }
func (w *words) WriteFrame(media.Frame) error    { return nil }
func (w *words) Finalize() error                 { return nil }
func (w *words) Results() <-chan pipeline.Result { return w.results }
func (w *words) Close() error {
	if !w.closed {
		w.closed = true
		close(w.results)
	}
	return w.broke
}

// TestProbeOfAStream checks that the breaker of a recognizer closes as soon as the stream of the probe opens, however
// long that stream lasts.
func TestProbeOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := &scriptedRecognizer{refuses: errors.New("down")}, &Guards{}
		r := g.Recognizer(&Clients{Recognizers: map[string]pipeline.Recognizer{"x": l}}, pipeline.Engine{Provider: "x"}, nil)
		open := func() (pipeline.Recognition, error) { return r.Recognize(t.Context(), pipeline.Stream{}) }
		for range maxFailures {
			if _, err := open(); !errors.Is(err, l.refuses) {
				t.Fatal(err)
			}
		}
		if _, err := open(); !errors.Is(err, ErrOpen) {
			t.Fatal(err)
		}
		l.refuses = nil
		<-time.After(firstPause)
		for range 3 {
			rec, err := open()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = rec.Close() }()
		}
	})
}

// TestStreamsThatBreak checks that a stream that breaks counts as a failure only if it has sent no result.
func TestStreamsThatBreak(t *testing.T) {
	for understood, want := range map[bool]error{false: ErrOpen, true: nil} {
		synctest.Test(t, func(t *testing.T) {
			l, g := &scriptedRecognizer{}, &Guards{}
			r := g.Recognizer(&Clients{Recognizers: map[string]pipeline.Recognizer{"x": l}}, pipeline.Engine{Provider: "x"}, nil)
			for i := range maxFailures {
				rec, err := r.Recognize(t.Context(), pipeline.Stream{})
				if err != nil {
					t.Fatal(err)
				}
				if understood {
					l.streams[i].results <- pipeline.Result{Text: "hello"}
					if res := <-rec.Results(); res.Text != "hello" {
						t.Errorf("%+v", res)
					}
				} else {
					l.streams[i].results <- pipeline.Result{Finalized: true, Unanswered: true}
				}
				l.streams[i].broke = errors.New("reset")
				if err := rec.Close(); !errors.Is(err, l.streams[i].broke) {
					t.Error(err)
				}
			}
			rec, err := r.Recognize(t.Context(), pipeline.Stream{})
			if !errors.Is(err, want) {
				t.Errorf("understood %v: %v", understood, err)
			}
			if rec != nil {
				_ = rec.Close()
			}
		})
	}
}

// TestBurst checks that fifty simultaneous failures open a breaker once.
func TestBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := (&Guards{}).of("llm", "x")
		var visits []*request
		for range 50 {
			v, err := g.begin(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			visits = append(visits, v)
		}
		for _, v := range visits {
			v.finish(errors.New("reset"))
		}
		<-time.After(firstPause)
		if _, err := g.begin(context.Background()); err != nil {
			t.Errorf("after %v: %v", firstPause, err)
		}
	})
}

// modelStub is a model that accepts every model name but "typo".
type modelStub struct{}

func (modelStub) Reply(_ context.Context, p pipeline.Prompt) iter.Seq2[pipeline.Delta, error] {
	return func(yield func(pipeline.Delta, error) bool) {
		if p.Model == "typo" {
			yield(pipeline.Delta{}, fmt.Errorf("x: %w", &pipeline.RefusedError{Status: 404}))
			return
		}
		yield(pipeline.Delta{Text: "hi"}, nil)
	}
}

// TestMistakeOfOne checks that one agent's requests for an unknown model do not open the
// breaker for other agents.
func TestMistakeOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Guards{}
		all := map[string]pipeline.Model{"x": modelStub{}}
		ask := func(model string) (last error) {
			for _, err := range g.Model(&Clients{Models: all}, pipeline.Engine{Provider: "x", Model: model}, nil).Reply(t.Context(), pipeline.Prompt{}) {
				last = err
			}
			return last
		}
		for range 2 * maxFailures {
			var refused *pipeline.RefusedError
			if err := ask("typo"); !errors.As(err, &refused) {
				t.Fatal(err)
			}
		}
		if err := ask("good"); err != nil {
			t.Error(err)
		}
	})
}

// wholeTextVoice is a voice that accepts only complete texts.
type wholeTextVoice struct{ name string }

func (w wholeTextVoice) Open(context.Context, pipeline.Style) (pipeline.Synthesis, error) {
	return &saying{name: w.name, texts: make(chan string, 99), over: make(chan struct{})}, nil
}

type saying struct {
	name  string
	texts chan string
	over  chan struct{}
	ended bool
}

func (s *saying) Write(text string) error { s.texts <- text; return nil }
func (s *saying) Flush() error            { close(s.texts); return nil }

func (s *saying) Close() error {
	if !s.ended {
		s.ended = true
		close(s.over)
	}
	return nil
}

func (s *saying) Audio() iter.Seq2[pipeline.Speech, error] {
	return func(yield func(pipeline.Speech, error) bool) {
		for {
			select {
			case _, more := <-s.texts:
				if !more {
					yield(pipeline.Speech{PCM: make([]int16, 800), Words: []pipeline.Word{{Text: s.name}}}, nil)
					return
				}
			case <-s.over:
				return
			}
		}
	}
}

// TestSlowText checks that a voice is not blamed for a model that takes long to complete a
// clause.
func TestSlowText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := (&Guards{}).Voice(&Clients{Voices: map[string]pipeline.Voice{"one": wholeTextVoice{"one"}, "two": wholeTextVoice{"two"}}}, both(), nil)
		sp, err := v.Open(t.Context(), pipeline.Style{Rate: 8000})
		if err != nil {
			t.Fatal(err)
		}
		defer sp.Close()
		go func() {
			for range 20 {
				_ = sp.Write("word ")
				<-time.After(100 * time.Millisecond)
			}
			_ = sp.Flush()
		}()
		for s, err := range sp.Audio() {
			if err != nil || len(s.Words) != 1 || s.Words[0].Text != "one" {
				t.Errorf("%v, %v", s.Words, err)
			}
		}
	})
}

// TestStatuses checks the status of a provider while its breaker is closed, open, probing and closed again.
func TestStatuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Guards{Limits: map[string]int{"x": 7}}
		of := func() string { return fmt.Sprintf("%+v", g.Statuses()) }
		if got := of(); got != "[]" {
			t.Errorf("got statuses before the first request: %s", got)
		}
		g.background("llm", "x")
		for range maxFailures {
			v, err := g.of("tts", "y").begin(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			v.finish(errors.New("down"))
		}
		all := g.Statuses()
		if len(all) != 2 || all[0].Kind != "llm" || all[0].Name != "x" || all[0].Limit != 7 || all[0].Open || !all[1].Open || all[1].Probing || !all[1].Until.Equal(time.Now().Add(firstPause)) {
			t.Errorf("%+v", all)
		}
		<-time.After(firstPause)
		v, err := g.of("tts", "y").begin(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if y := g.Statuses()[1]; !y.Open || !y.Probing || y.Active != 1 {
			t.Errorf("%+v", y)
		}
		v.finish(nil)
		if y := g.Statuses()[1]; y.Open || y.Probing || y.Active != 0 {
			t.Errorf("%+v", y)
		}
		if v, err = g.of("tts", "y").begin(context.Background()); err != nil {
			t.Fatal(err)
		}
		<-time.After(400 * time.Millisecond)
		v.note(Responding)
		v.finish(nil)
		want := Counts{Succeeded: 2, Failed: maxFailures, Response: Durations{Counts: [10]uint64{4: 1}, Sum: 400 * time.Millisecond}}
		if y := g.Statuses()[1]; y.Counts != want {
			t.Errorf("got %+v, want %+v", y.Counts, want)
		}
	})
}
