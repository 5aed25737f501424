package playout

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// A sink collects the played frames.
type sink struct {
	t   *testing.T
	m   *Player
	due time.Time
	out []int16
}

func (w *sink) frames(n int) []int16 {
	from := len(w.out)
	for range n {
		f := make(media.Frame, 160)
		w.m.FillFrame(f, w.due)
		w.due = w.due.Add(media.FrameTime)
		w.out = append(w.out, f...)
	}
	return w.out[from:]
}

func (w *sink) say(number int64, pcm ...[]int16) *Utterance {
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

// count returns n samples whose values encode their position.
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
	w := &sink{t: t, m: New()}
	u := w.say(1, count(0, 400), count(400, 400), count(800, 800))
	if got := w.frames(3); got[0] != 1000 || got[479] != 1479 {
		t.Fatalf("played %d … %d, want 1000 … 1479", got[0], got[479])
	}
	w.m.Pause(0)
	got := w.frames(2)
	if got[10] == 0 || peak(got[80:]) != 0 {
		t.Errorf("got %v after a pause, want silence after 10 ms", got)
	}
	if u.Played() != 560 {
		t.Errorf("got %d samples played, want 560", u.Played())
	}
	w.m.Resume(300)
	if got = w.frames(1); got[80] != 1380 || u.Played() != 460 {
		t.Errorf("resumed at %d with %d played, want 1380 and 460", got[80], u.Played())
	}
	if got = w.frames(8); got[1139] != 2599 || peak(got[1140:]) != 0 {
		t.Errorf("got last sample %v, want 2599", got[1139])
	}
	marks := []Mark{<-w.m.Marks(), <-w.m.Marks()}
	if marks[0].Ended || !marks[1].Ended || len(w.m.Marks()) > 0 {
		t.Errorf("got marks %+v, want a start and an end", marks)
	}
}

func TestResumeWhereItStopped(t *testing.T) {
	w := &sink{t: t, m: New()}
	w.say(1, count(0, 1600))
	w.frames(2)
	w.m.Pause(0)
	w.frames(4)
	w.m.Resume(-1)
	if got := w.frames(1); got[100] != 1500 { // after 320 samples at full volume and 80 of the fade-out
		t.Errorf("resumed with %d, want 1500", got[100])
	}
}

func TestDuck(t *testing.T) {
	w := &sink{t: t, m: New()}
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
		t.Errorf("got %d after ducking, want 8000", got[159])
	}
}

// TestDrop checks that a dropped utterance fades out and never returns, and that the next one
// starts with full gain.
func TestDrop(t *testing.T) {
	for name, before := range map[string]func(*Player){"speaking": func(*Player) {}, "paused": func(m *Player) { m.Pause(0) }} {
		w := &sink{t: t, m: New()}
		w.say(1, count(0, 800), count(800, 800), count(1600, 800))
		w.frames(1)
		before(w.m)
		w.frames(2)
		w.m.Drop(2)
		if got := w.frames(3); peak(got[80:]) != 0 {
			t.Errorf("%s: got %v after a drop, want silence", name, got)
		}
		w.say(2, []int16{7, 7, 7, 7})
		if got := w.frames(2); got[0] != 7 || peak(got[4:]) != 0 {
			t.Errorf("%s: got %v for the next utterance", name, got)
		}
	}
}

// TestRewindIsBounded checks that a rewind beyond the history resumes at its oldest piece
// and never within another utterance.
func TestRewindIsBounded(t *testing.T) {
	w := &sink{t: t, m: New()}
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
	w.m.Pause(0)
	w.frames(1)
	w.m.Resume(0)
	w.frames(1)
	if got := u.Played(); got < 160*30 || got > 160*50 {
		t.Errorf("resumed at sample %d", got)
	}
}

func TestLevel(t *testing.T) {
	w := &sink{t: t, m: New()}
	if l := w.m.Level(); l != -120 {
		t.Errorf("got level %v for silence", l)
	}
	w.say(1, count(7000, 160))
	w.frames(1)
	if l := w.m.Level(); math.Abs(l-20*math.Log10(8080.0/32768)) > 0.1 {
		t.Errorf("level %v", l)
	}
	w.frames(1)
	if l := w.m.Level(); l != -120 {
		t.Errorf("got level %v after the voice", l)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	w := &sink{t: t, m: New()}
	w.say(1, make([]int16, 80000))
	f := make(media.Frame, 160)
	n := 0
	if got := testing.AllocsPerRun(400, func() {
		if n++; n%40 == 0 {
			w.m.Duck(n%80 == 0)
		}
		w.m.FillFrame(f, w.due)
	}); got != 0 {
		t.Errorf("got %v allocations per frame, want 0", got)
	}
}

func TestBoundary(t *testing.T) {
	u := &Utterance{Rate: 8000}
	u.Write("one two three", time.Now())
	u.Add(pipeline.Speech{PCM: loud(3 * time.Second), Words: SpreadWords("one two three", 3*time.Second)}, time.Now())
	u.played.Store(12000)
	if got := u.ResumePoint(); got != 8000 {
		t.Errorf("resumes at %d, want the start of the second word", got)
	}
	if got := u.RecentText(time.Second); got != "one two" {
		t.Errorf("got recent text %q", got)
	}
	u.played.Store(16010)
	if got := u.ResumePoint(); got != 16000 {
		t.Errorf("resumes at %d, want the start of the third word", got)
	}
}

// TestPauseWithinWord checks that a pause cuts off the current word, and that Resume repeats that word. If less than
// 25 ms of the word are left, the pause waits for its end. Both hold if the voice reports the word's end too early.
func TestPauseWithinWord(t *testing.T) {
	const sound, next, again = 8 * 300, 8 * 380, 0 // in samples: end of the word, start of the next word, start of the word
	for told, of := range map[time.Duration]map[int]int64{
		240 * time.Millisecond: {200: again, 235: again, 240: again, 274: again, 276: sound + 81, 299: sound + 81, 300: sound + 80, 340: 8 * 350, 378: next, 390: next},
		300 * time.Millisecond: {200: again, 274: again, 276: sound + 81, 298: sound + 81, 300: sound + 80, 340: 8 * 350, 378: next, 390: next},
	} {
		for pause, want := range of {
			u := &Utterance{Rate: 8000, Number: 1}
			u.Write("one two", time.Now())
			pcm := loud(time.Second)
			clear(pcm[sound:next])
			u.Add(pipeline.Speech{PCM: pcm, Words: []pipeline.Word{
				{Text: "one", End: told}, {Text: "two", Start: 380 * time.Millisecond, End: time.Second},
			}}, time.Now())
			w := &sink{t: t, m: New()}
			w.m.queue <- piece{of: u, pcm: pcm[:sound]}
			w.m.queue <- piece{of: u, pcm: pcm[sound:], start: sound}
			w.m.FillFrame(make(media.Frame, 8*pause), w.due)
			w.m.Pause(u.PausePoint())
			heard := w.frames(3)
			if left := sound - 8*pause; 0 < left && left <= 200 && (heard[left-1] != 5000 || peak(heard[left:]) != 0) {
				t.Errorf("paused after %d ms, word end %v: got its end missing or more audio", pause, told)
			}
			if peak(heard[320:]) != 0 {
				t.Errorf("paused after %d ms, word end %v: got level %d 40 ms later", pause, told, peak(heard[320:]))
			}
			if got := u.ResumePoint(); got != want {
				t.Errorf("paused after %d ms, word end %v: resumes at sample %d, want %d", pause, told, got, want)
			}
			w.m.Resume(want)
			w.frames(1)
			if got := int64(u.Played()); got != want+160 || u.fadedOut.Load() != 0 {
				t.Errorf("resumed at %d: now at %d, %d faded", want, got, u.fadedOut.Load())
			}
		}
	}
}

// TestResumeWithinFrame checks that commands during a frame take effect with the next frame, so that no audio plays
// from the old position.
func TestResumeWithinFrame(t *testing.T) {
	w := &sink{t: t, m: New()}
	w.say(1, count(0, 1600))
	w.frames(2)
	w.m.Pause(0)
	w.frames(1)
	w.m.applyControls()
	w.m.Resume(160)
	f := make(media.Frame, 160)
	if w.m.fill(f, w.due); peak(f) != 0 {
		t.Errorf("played %d … %d before the rewind", f[0], f[159])
	}
	if got := w.frames(1); got[100] != 1260 {
		t.Errorf("resumed at %d, want 1260", got[100])
	}
}
