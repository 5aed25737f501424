package mouth

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// A wire is what left, frame by frame.
type wire struct {
	t   *testing.T
	m   *Mouth
	due time.Time
	out []int16
}

func (w *wire) frames(n int) []int16 {
	from := len(w.out)
	for range n {
		f := make(media.Frame, 160)
		w.m.FillFrame(f, w.due)
		w.due = w.due.Add(media.FrameTime)
		w.out = append(w.out, f...)
	}
	return w.out[from:]
}

func (w *wire) say(number int64, pcm ...[]int16) *Utterance {
	w.t.Helper()
	u := &Utterance{Number: number, Rate: 8000}
	for i, p := range pcm {
		u.Add(pipeline.Speech{PCM: p}, w.due)
		if err := w.m.Push(context.Background(), u, p, i == len(pcm)-1); err != nil {
			w.t.Fatal(err)
		}
	}
	return u
}

// count is a piece of n samples that tell their place.
func count(from, n int) []int16 {
	pcm := make([]int16, n)
	for i := range pcm {
		pcm[i] = int16(1000 + from + i)
	}
	return pcm
}

func peak(pcm []int16) int {
	most := 0
	for _, x := range pcm {
		most = max(most, int(math.Abs(float64(x))))
	}
	return most
}

func TestPauseAndResume(t *testing.T) {
	w := &wire{t: t, m: New()}
	u := w.say(1, count(0, 400), count(400, 400), count(800, 800))
	if got := w.frames(3); got[0] != 1000 || got[479] != 1479 {
		t.Fatalf("played %d … %d", got[0], got[479])
	}
	w.m.Pause()
	got := w.frames(2)
	if got[10] == 0 || peak(got[80:]) != 0 {
		t.Errorf("a pause fades out within 10 ms: %v", got)
	}
	if u.Played() != 560 {
		t.Errorf("%d samples played, want 560", u.Played())
	}
	w.m.Resume(300)
	if got = w.frames(1); got[80] != 1380 || u.Played() != 460 {
		t.Errorf("went on at %d, %d played", got[80], u.Played())
	}
	if got = w.frames(8); got[1139] != 2599 || peak(got[1140:]) != 0 {
		t.Errorf("ended with %v", got[1139])
	}
	marks := []Mark{<-w.m.Marks(), <-w.m.Marks()}
	if marks[0].Said || !marks[1].Said || len(w.m.Marks()) > 0 {
		t.Errorf("marks %+v", marks)
	}
}

func TestResumeWhereItStopped(t *testing.T) {
	w := &wire{t: t, m: New()}
	w.say(1, count(0, 1600))
	w.frames(2)
	w.m.Pause()
	w.frames(4)
	w.m.Resume(-1)
	if got := w.frames(1); got[100] != 1500 { // 320, and 80 of the fade
		t.Errorf("went on with %d", got[100])
	}
}

func TestDuck(t *testing.T) {
	w := &wire{t: t, m: New()}
	loud := make([]int16, 3200)
	for i := range loud {
		loud[i] = 8000
	}
	w.say(1, loud)
	w.frames(1)
	w.m.Duck(true)
	if got := w.frames(2); got[319] != 2000 || got[0] < 7000 {
		t.Errorf("ducked from %d to %d, want 2000", got[0], got[319])
	}
	w.m.Duck(false)
	if got := w.frames(1); got[159] != 8000 {
		t.Errorf("back at %d", got[159])
	}
}

// TestDrop: what is dropped fades out, none of it comes later, and what is said
// next begins with full voice.
func TestDrop(t *testing.T) {
	for name, before := range map[string]func(*Mouth){"speaking": func(*Mouth) {}, "paused": (*Mouth).Pause} {
		w := &wire{t: t, m: New()}
		w.say(1, count(0, 800), count(800, 800), count(1600, 800))
		w.frames(1)
		before(w.m)
		w.frames(2)
		w.m.Drop(2)
		if got := w.frames(3); peak(got[80:]) != 0 {
			t.Errorf("%s: %v after a drop", name, got)
		}
		w.say(2, []int16{7, 7, 7, 7})
		if got := w.frames(2); got[0] != 7 || peak(got[4:]) != 0 {
			t.Errorf("%s: next %v", name, got)
		}
	}
}

// TestRewindIsBounded: a tape that does not reach so far goes on with the oldest
// of it, and never with another utterance.
func TestRewindIsBounded(t *testing.T) {
	w := &wire{t: t, m: New()}
	w.say(1, count(0, 160))
	u := &Utterance{Number: 2, Rate: 8000}
	for i := range 100 {
		if i%50 == 0 {
			w.frames(51)
		}
		if err := w.m.Push(context.Background(), u, count(160*i, 160), false); err != nil {
			t.Fatal(err)
		}
	}
	w.frames(49)
	w.m.Pause()
	w.frames(1)
	w.m.Resume(0)
	w.frames(1)
	if got := u.Played(); got < 160*30 || got > 160*50 {
		t.Errorf("went on at sample %d", got)
	}
}

func TestLevel(t *testing.T) {
	w := &wire{t: t, m: New()}
	if l := w.m.Level(); l != -120 {
		t.Errorf("silence is %v", l)
	}
	w.say(1, count(7000, 160))
	w.frames(1)
	if l := w.m.Level(); math.Abs(l-20*math.Log10(8080.0/32768)) > 0.1 {
		t.Errorf("level %v", l)
	}
	w.frames(1)
	if l := w.m.Level(); l != -120 {
		t.Errorf("then %v", l)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	w := &wire{t: t, m: New()}
	w.say(1, make([]int16, 80000))
	f := make(media.Frame, 160)
	n := 0
	if got := testing.AllocsPerRun(400, func() {
		if n++; n%40 == 0 {
			w.m.Duck(n%80 == 0)
		}
		w.m.FillFrame(f, w.due)
	}); got != 0 {
		t.Errorf("%v allocations a frame", got)
	}
}

func TestBoundary(t *testing.T) {
	u := &Utterance{Rate: 8000}
	u.Write("one two three", time.Now())
	u.Add(pipeline.Speech{PCM: loud(3 * time.Second), Words: Evenly("one two three", 3*time.Second)}, time.Now())
	u.played.Store(12000)
	if got := u.Boundary(); got != 8000 {
		t.Errorf("goes on at %d, want the beginning of the second word", got)
	}
	if got := u.Saying(time.Second); got != "one two" {
		t.Errorf("is saying %q", got)
	}
	u.played.Store(16010)
	if got := u.Boundary(); got != 16000 {
		t.Errorf("goes on at %d, want the beginning of the third word", got)
	}
}

// TestAWordInTheFadeIsSaidAgain: a pause that begins with a word's last 2 ms fades
// them out; one that begins with the next word goes on with that.
func TestAWordInTheFadeIsSaidAgain(t *testing.T) {
	for left, want := range map[int]int64{16: 0, 0: 8000} { // of the word when the pause begins
		u := &Utterance{Rate: 8000, Number: 1}
		u.Write("one two", time.Now())
		pcm := u.Add(pipeline.Speech{PCM: loud(2 * time.Second), Words: Evenly("one two", 2*time.Second)}, time.Now())
		m := New()
		m.queue <- piece{of: u, pcm: pcm}
		m.FillFrame(make(media.Frame, 8000-left), time.Now())
		m.Pause()
		m.FillFrame(make(media.Frame, 160), time.Now())
		if got := u.Boundary(); got != want {
			t.Errorf("%d samples before the end of the word: goes on at %d, want %d", left, got, want)
		}
		m.Resume(u.Boundary())
		m.FillFrame(make(media.Frame, 160), time.Now())
		if u.faded.Load() != 0 {
			t.Error("what is said again is taken for faded")
		}
	}
}
