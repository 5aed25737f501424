package input

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/plc"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline/turn"
)

// A fakeLeg plays frames that were sent every 20 ms. Each arrives after delay and is read 60 ms
// after it was sent.
type fakeLeg struct {
	media.Leg
	frames    []media.Frame
	lost      map[int]bool
	delay     func(n int) time.Duration
	began     time.Time
	next      int
	concealer *plc.Concealer
}

func (*fakeLeg) Rate() int { return 8000 }

func (l *fakeLeg) ReadFrame(f media.Frame) error {
	if l.next == len(l.frames) {
		return io.EOF
	}
	<-time.After(time.Until(l.left(l.next).Add(60 * time.Millisecond)))
	copy(f, l.frames[l.next])
	if l.lost[l.next] {
		l.concealer.Conceal(f)
	} else {
		l.concealer.Receive(f)
	}
	l.next++
	return nil
}

func (l *fakeLeg) left(n int) time.Time { return l.began.Add(time.Duration(n) * media.FrameTime) }

func (l *fakeLeg) came(n int) time.Time { return l.left(n).Add(l.delay(n)) }

func (l *fakeLeg) Arrived() (time.Time, bool) {
	n := l.next - 1
	return l.came(n), !l.lost[n]
}

// TestEnd checks that Voiced is the arrival time of the last voiced sample. If that sample was or may have been lost,
// Voiced is the middle of the possible interval.
func TestEnd(t *testing.T) {
	const ms = time.Millisecond
	speech, _ := tone.Encode(8000, "are you open on sundays") // cut at the front, so that the last frame of the voice is full
	for len(speech)%160 != 0 {
		speech = speech[80:]
	}
	last := 50 + len(speech)/160 - 1 // index of the last voiced frame
	steady := func(int) time.Duration { return 10 * ms }
	jitter := func(n int) time.Duration { return time.Duration(n*7%20) * ms }
	for name, c := range map[string]struct {
		lost      []int // lost frames, counted from the last voiced frame
		delay     func(int) time.Duration
		want      time.Duration // time after the last voiced frame was sent
		estimated bool
	}{
		"steady":                  {nil, steady, 10 * ms, false},
		"jitter":                  {nil, jitter, jitter(last), false},
		"lost before":             {[]int{-2}, steady, 10 * ms, false},
		"lost long after":         {[]int{3}, steady, 10 * ms, false},
		"lost right before":       {[]int{-1}, steady, 10 * ms, false},
		"itself":                  {[]int{0}, steady, 0, true},
		"right after":             {[]int{1}, steady, 20 * ms, true},
		"the last two":            {[]int{-1, 0}, steady, -10 * ms, true},
		"itself, and right after": {[]int{0, 1}, steady, 10 * ms, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &fakeLeg{lost: map[int]bool{}, delay: c.delay, began: time.Now(), concealer: plc.New(8000)}
			for _, n := range c.lost {
				l.lost[last+n] = true
			}
			pcm := append(make([]int16, 50*160), speech...)
			for pcm = append(pcm, make([]int16, 30*160)...); len(pcm) > 0; pcm = pcm[160:] {
				l.frames = append(l.frames, pcm[:160])
			}
			edges := make(chan Edge, 100)
			e := &Listener{Leg: l, Sound: func(media.Frame) {}, Edges: edges}
			if err := e.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			close(edges)
			var end Edge
			for x := range edges {
				if x.Kind == turn.Silence {
					end = x
				}
			}
			if got := end.Voiced.Sub(l.left(last)); (got-c.want).Abs() > 0 || end.Estimated != c.estimated {
				t.Errorf("%s: got %v after the last frame left, estimated %v; want %v, %v", name, got, end.Estimated, c.want, c.estimated)
			}
			if read := end.Voiced.Add(end.Waited); end.Waited < 0 || read.After(end.At) {
				t.Errorf("%s: waited %v, read %v after the verdict", name, end.Waited, read.Sub(end.At))
			}
		})
	}
}

// TestSetBatch checks that frames within a sound may wait for one more, and those of a caller who has been quiet for
// 600 ms for four more. A frame after which a word may end and those of the pause after it must not wait.
func TestSetBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		speech, _ := tone.Encode(8000, "are you open on sundays")
		speech = speech[:len(speech)/160*160]
		l := &fakeLeg{delay: func(int) time.Duration { return 0 }, began: time.Now(), concealer: plc.New(8000)}
		pcm := append(make([]int16, 50*160), speech...)
		for pcm = append(pcm, make([]int16, 50*160)...); len(pcm) > 0; pcm = pcm[160:] {
			l.frames = append(l.frames, pcm[:160])
		}
		var batch time.Duration
		var got []time.Duration
		var levels []float64
		edges := make(chan Edge, 100)
		e := &Listener{
			Leg: l, Edges: edges, SetBatch: func(d time.Duration) { batch = d },
			Sound: func(f media.Frame) { got, levels = append(got, batch), append(levels, tone.Level(f)) },
		}
		if err := e.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		end, collected := 50+len(speech)/160, 0
		for i, d := range got {
			switch softer := i > 0 && levels[i] < levels[i-1]-fading; {
			case i >= 30 && i < 50 || i >= end+31:
				if d != quietBatch {
					t.Errorf("frame %d of silence: %v", i, d)
				}
			case i >= 50 && i < end+20 && softer && d != 0:
				t.Errorf("frame %d is softer than the one before: %v", i, d)
			case i >= end && i < end+27 && d != 0:
				t.Errorf("frame %d, after the speech: %v", i, d)
			case d == soundBatch:
				collected++
			}
		}
		if speaking := end - 50; collected < speaking/2 || len(got) != end+50 {
			t.Errorf("%d of %d frames of speech may wait", collected, speaking)
		}
	})
}
