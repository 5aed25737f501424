package provider

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/llm"
)

// TestOwnLateness checks that a timeout counts as a failure of the provider unless this process
// was itself late at that time. A broken connection always counts.
func TestOwnLateness(t *testing.T) {
	const halt = 300 * time.Millisecond
	for _, tt := range []struct {
		err  error
		late time.Duration // time since this process ran late; 0 if it never did
		want Outcome
	}{
		{ErrSlow, 0, Failed},
		{ErrSlow, time.Second, Neutral},
		{ErrSlow, 3 * time.Second, Failed},
		{fmt.Errorf("x: %w", ErrSlow), time.Second, Neutral},
		{context.DeadlineExceeded, time.Second, Neutral},
		{errors.New("reset"), time.Second, Failed},
		{&pipeline.RefusedError{Status: 503}, time.Second, Failed},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := &Guards{}
			for range maxFailures {
				v, err := g.of("llm", "x").begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if tt.late > 0 {
					g.late.mu.Lock()
					g.late.note(halt, time.Now())
					g.late.mu.Unlock()
				}
				<-time.After(tt.late)
				v.finish(tt.err)
			}
			if _, err := g.of("llm", "x").begin(t.Context()); errors.Is(err, ErrOpen) != (tt.want == Failed) {
				t.Errorf("%v, %v after lateness: %v", tt.err, tt.late, err)
			}
		})
	}
}

// TestLatenessIsMeasured checks that lateness is detected while more goroutines than processors are busy.
func TestLatenessIsMeasured(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var l lateness
	l.start()
	defer l.end()
	var wg sync.WaitGroup
	until := time.Now().Add(500 * time.Millisecond)
	for range 64 {
		wg.Go(func() {
			for time.Now().Before(until) {
			}
		})
	}
	wg.Wait()
	if !l.excuses(time.Now()) {
		t.Error("got no lateness after 500 ms of overload")
	}
}

// TestLateModel checks that a late model is replaced even while this process runs late,
// without opening the breaker.
func TestLateModel(t *testing.T) {
	for late, want := range map[bool]bool{true: false, false: true} {
		synctest.Test(t, func(t *testing.T) {
			bad, good, client := pair(t, fakeprovider.Stall)
			g := &Guards{}
			m := g.Model(&Clients{Models: map[string]pipeline.Model{
				"one": llm.OpenAI{URL: "http://fake/v1", Client: client(bad)}, "two": llm.OpenAI{URL: "http://fake/v1", Client: client(good)},
			}}, both(), nil)
			for range 2 * maxFailures {
				if late {
					time.AfterFunc(time.Second, func() {
						g.late.mu.Lock()
						defer g.late.mu.Unlock()
						g.late.note(300*time.Millisecond, time.Now())
					})
				}
				for _, err := range m.Reply(t.Context(), pipeline.Prompt{}) {
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			if open := g.Statuses()[0].Open; open != want {
				t.Errorf("late %v: the breaker is open: %v", late, open)
			}
		})
	}
}

// TestHeardLater checks that a voice does not count as slow while its audio is unread, because earlier audio is still
// being played.
func TestHeardLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Guards{}
		v := g.Voice(&Clients{Voices: map[string]pipeline.Voice{"one": wholeTextVoice{"one"}, "two": wholeTextVoice{"two"}}}, both(), nil)
		sp, err := v.Open(t.Context(), pipeline.Style{Rate: 8000})
		if err != nil {
			t.Fatal(err)
		}
		defer sp.Close()
		if err := errors.Join(sp.Write("one two three. "), sp.Flush()); err != nil {
			t.Fatal(err)
		}
		<-time.After(3 * maxFirstSound)
		for s, err := range sp.Audio() {
			if err != nil || len(s.Words) != 1 || s.Words[0].Text != "one" {
				t.Errorf("%v, %v", s.Words, err)
			}
		}
	})
}
