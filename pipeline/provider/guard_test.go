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
	v, err := g.of("llm", "x").enter()
	if err != nil {
		t.Fatal(err)
	}
	v.note(Alive)
	if _, err := g.of("llm", "x").enter(); !errors.Is(err, ErrBusy) {
		t.Errorf("error %v", err)
	}
	v.leave(nil)
	v.leave(nil)
	if _, err := g.of("llm", "x").enter(); err != nil {
		t.Errorf("then: %v", err)
	}
}

// TestAside: work beside the calls takes of their room, and its failures close
// nobody off but itself; nor do theirs.
func TestAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Guards{Limits: map[string]int{"x": 2}}
		calls, beside := g.of("llm", "x"), g.aside("llm", "x")
		enter := func(g *guard, want error) *visit {
			v, err := g.enter()
			if !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
			return v
		}
		for range tolerated {
			enter(beside, nil).leave(errors.New("down"))
		}
		enter(beside, ErrOpen)
		one, two := enter(calls, nil), enter(calls, nil)
		<-time.After(firstPause)
		enter(beside, ErrBusy)
		one.leave(nil)
		two.leave(nil)
		enter(beside, nil).leave(nil)
		for range tolerated {
			enter(calls, nil).leave(errors.New("down"))
		}
		enter(calls, ErrOpen)
		enter(beside, nil).leave(nil)
	})
}

// reporter is a model that reports after a while, all at once.
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

// TestAsideWaits: what nobody waits for on the line may take longer.
func TestAsideWaits(t *testing.T) {
	for after, want := range map[time.Duration]time.Duration{10 * time.Second: 10 * time.Second, time.Hour: asideToken} {
		synctest.Test(t, func(t *testing.T) {
			m := (&Guards{}).Aside(map[string]pipeline.Model{"one": reporter{after}, "two": brains{}}, both())
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
		want Ending
	}{
		{nil, Worked},
		{errors.New("reset"), Failed},
		{context.DeadlineExceeded, Failed},
		{fmt.Errorf("x: %w", context.Canceled), Abandoned},
		{fmt.Errorf("%w: no object", pipeline.ErrUseless), Abandoned},
		{refused(400), Abandoned}, // a language that there is not
		{refused(404), Abandoned}, // a model
		{refused(413), Abandoned},
		{refused(422), Abandoned},
		{refused(401), Failed}, // the account's key
		{refused(402), Failed}, // the account is empty
		{refused(403), Failed},
		{refused(408), Failed},
		{refused(429), Failed},
		{refused(500), Failed},
		{refused(503), Failed},
	} {
		if got, _ := judge(tt.err); got != tt.want {
			t.Errorf("%v: %d, want %d", tt.err, got, tt.want)
		}
	}
}

// A line is a recognizer whose streams say what they are told to.
type line struct {
	refuses error
	streams []*words
}

func (l *line) Recognize(context.Context, pipeline.Stream) (pipeline.Recognition, error) {
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

// TestProbeOfAStream: once a recognizer opens a stream again others are let to
// it, however long that stream goes on.
func TestProbeOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := &line{refuses: errors.New("down")}, &Guards{}
		r := g.Recognizer(map[string]pipeline.Recognizer{"x": l}, pipeline.Engine{Provider: "x"})
		open := func() (pipeline.Recognition, error) { return r.Recognize(t.Context(), pipeline.Stream{}) }
		for range tolerated {
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

// TestStreamsThatBreak: streams that open and break are failures; those that
// understood something break now and then.
func TestStreamsThatBreak(t *testing.T) {
	for understood, want := range map[bool]error{false: ErrOpen, true: nil} {
		synctest.Test(t, func(t *testing.T) {
			l, g := &line{}, &Guards{}
			r := g.Recognizer(map[string]pipeline.Recognizer{"x": l}, pipeline.Engine{Provider: "x"})
			for i := range tolerated {
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

// TestBurst: fifty calls that break together close a provider off once.
func TestBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := (&Guards{}).of("llm", "x")
		var visits []*visit
		for range 50 {
			v, err := g.enter()
			if err != nil {
				t.Fatal(err)
			}
			visits = append(visits, v)
		}
		for _, v := range visits {
			v.leave(errors.New("reset"))
		}
		<-time.After(firstPause)
		if _, err := g.enter(); err != nil {
			t.Errorf("after %v: %v", firstPause, err)
		}
	})
}

// brains are models that answer, but for the one that there is not.
type brains struct{}

func (brains) Reply(_ context.Context, p pipeline.Prompt) iter.Seq2[pipeline.Delta, error] {
	return func(yield func(pipeline.Delta, error) bool) {
		if p.Model == "typo" {
			yield(pipeline.Delta{}, fmt.Errorf("x: %w", &pipeline.RefusedError{Status: 404}))
			return
		}
		yield(pipeline.Delta{Text: "hi"}, nil)
	}
}

// TestMistakeOfOne: an agent that asks for a model that there is not does not
// keep others from asking the provider.
func TestMistakeOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Guards{}
		all := map[string]pipeline.Model{"x": brains{}}
		ask := func(model string) (last error) {
			for _, err := range g.Model(all, pipeline.Engine{Provider: "x", Model: model}).Reply(t.Context(), pipeline.Prompt{}) {
				last = err
			}
			return last
		}
		for range 2 * tolerated {
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

// whole is a voice that speaks whole texts alone, at once.
type whole struct{ name string }

func (w whole) Open(context.Context, pipeline.Style) (pipeline.Speaking, error) {
	return &saying{name: w.name, texts: make(chan string, 99), over: make(chan struct{})}, nil
}

type saying struct {
	name  string
	texts chan string
	over  chan struct{}
	ended bool
}

func (s *saying) Say(text string) error { s.texts <- text; return nil }
func (s *saying) Flush() error          { close(s.texts); return nil }

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

// TestSlowText: a voice is not blamed for a model that takes its time to the end
// of a clause.
func TestSlowText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := (&Guards{}).Voice(map[string]pipeline.Voice{"one": whole{"one"}, "two": whole{"two"}}, both())
		sp, err := v.Open(t.Context(), pipeline.Style{Rate: 8000})
		if err != nil {
			t.Fatal(err)
		}
		defer sp.Close()
		go func() {
			for range 20 {
				_ = sp.Say("word ")
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

// TestStandings: who failed is left alone, is tried, and is asked again.
func TestStandings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Guards{Limits: map[string]int{"x": 7}}
		of := func() string { return fmt.Sprintf("%+v", g.Standings()) }
		if got := of(); got != "[]" {
			t.Errorf("before anybody is asked: %s", got)
		}
		g.aside("llm", "x")
		for range tolerated {
			v, err := g.of("tts", "y").enter()
			if err != nil {
				t.Fatal(err)
			}
			v.leave(errors.New("down"))
		}
		all := g.Standings()
		if len(all) != 2 || all[0].Seam != "llm" || all[0].Name != "x" || all[0].Most != 7 || all[0].Open || !all[1].Open || all[1].Tried || !all[1].Until.Equal(time.Now().Add(firstPause)) {
			t.Errorf("%+v", all)
		}
		<-time.After(firstPause)
		v, err := g.of("tts", "y").enter()
		if err != nil {
			t.Fatal(err)
		}
		if y := g.Standings()[1]; !y.Open || !y.Tried || y.Asked != 1 {
			t.Errorf("%+v", y)
		}
		v.leave(nil)
		if y := g.Standings()[1]; y.Open || y.Tried || y.Asked != 0 {
			t.Errorf("%+v", y)
		}
	})
}
