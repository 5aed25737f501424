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

// TestOnQuiet checks that a caller counts as quiet after 600 ms without voice, and that OnQuiet(false) comes before
// the frame with which a sound begins.
func TestOnQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		speech, _ := tone.Encode(8000, "are you open on sundays")
		speech = speech[:len(speech)/160*160]
		l := &fakeLeg{delay: func(int) time.Duration { return 0 }, began: time.Now(), concealer: plc.New(8000)}
		pcm := append(make([]int16, 50*160), speech...)
		for pcm = append(pcm, make([]int16, 50*160)...); len(pcm) > 0; pcm = pcm[160:] {
			l.frames = append(l.frames, pcm[:160])
		}
		type change struct {
			quiet bool
			frame int // number of frames that Sound had received
		}
		var got []change
		frames := 0
		edges := make(chan Edge, 100)
		e := &Listener{
			Leg: l, Sound: func(media.Frame) { frames++ }, Edges: edges,
			OnQuiet: func(quiet bool) { got = append(got, change{quiet, frames}) },
		}
		if err := e.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		end := 50 + len(speech)/160
		if len(got) != 3 || got[0] != (change{true, 29}) || got[1].quiet || got[1].frame < 50 || got[1].frame > 55 ||
			!got[2].quiet || got[2].frame < end+27 || got[2].frame > end+31 {
			t.Errorf("%+v; speech is in frames 50 to %d", got, end)
		}
	})
}
