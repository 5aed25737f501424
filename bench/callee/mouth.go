package callee

import (
	"time"

	"github.com/parley-voice/parley/media"
)

// echoGain is 20 dB down.
const echoGain = 10

// backlog is how many frames of echo may wait: half a second. What comes while
// they do is dropped, and the echo is the earlier for it.
const backlog = 25

// longest is how many frames a line may have: a minute.
const longest = 3000

// A mouth says one line at a time, sample-exactly, over the echo of what is
// heard. Lines, echo and times are handed over by channel: the clock's side
// takes no lock and allocates nothing.
type mouth struct {
	next chan line
	done chan line            // what was said
	echo chan [maxFrame]int16 // nil where there is none

	noise []int16
	at    int // of noise
	cur   line
}

// maxFrame is how many samples a frame has at most: of 16 kHz.
const maxFrame = 320

// A line is what is left to say, when its frames were said, and when each was due
// to leave.
type line struct {
	pcm       []int16
	left, due []time.Time
}

func newMouth(echo time.Duration, noise []int16) *mouth {
	m := &mouth{noise: noise, next: make(chan line, 1), done: make(chan line, 1)}
	if echo > 0 {
		m.echo = make(chan [maxFrame]int16, backlog)
		for range int(echo / media.FrameTime) {
			m.echo <- [maxFrame]int16{}
		}
	}
	return m
}

// say has pcm said. The line before must be done.
func (m *mouth) say(pcm []int16) {
	m.next <- line{pcm, make([]time.Time, 0, longest), make([]time.Time, 0, longest)}
}

// hear keeps a frame for its echo.
func (m *mouth) hear(f media.Frame) {
	if m.echo == nil {
		return
	}
	var kept [maxFrame]int16
	for i, x := range f[:min(len(f), maxFrame)] {
		kept[i] = x / echoGain
	}
	select {
	case m.echo <- kept:
	default: // the sender's clock stands: old echo would only come later and later
	}
}

// FillFrame implements media.Feed.
func (m *mouth) FillFrame(f media.Frame, due time.Time) {
	if m.cur.pcm == nil {
		select {
		case m.cur = <-m.next:
		default:
		}
	}
	n := copy(f, m.cur.pcm)
	clear(f[n:])
	if n > 0 {
		m.cur.left, m.cur.due = append(m.cur.left, time.Now()), append(m.cur.due, due)
		if m.cur.pcm = m.cur.pcm[n:]; len(m.cur.pcm) == 0 {
			m.done <- m.cur // there is room: one line is said at a time
			m.cur = line{}
		}
	}
	for i := range f {
		if len(m.noise) == 0 {
			break
		}
		f[i] = clip(int(f[i]) + int(m.noise[m.at]))
		m.at = (m.at + 1) % len(m.noise)
	}
	if m.echo == nil {
		return
	}
	select {
	case echo := <-m.echo:
		for i := range f {
			f[i] = clip(int(f[i]) + int(echo[i]))
		}
	default:
	}
}

func clip(x int) int16 { return int16(max(-32768, min(32767, x))) }
