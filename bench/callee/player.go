package callee

import (
	"time"

	"github.com/parley-voice/parley/media"
)

// echoGain is a gain of -20 dB.
const echoGain = 10

// backlog is the largest number of waiting echo frames: half a second. Further frames are dropped.
const backlog = 25

// maxLine is the most frames of a line: one minute.
const maxLine = 3000

// A player plays one line at a time, mixed with noise and with the echo of received audio. Lines,
// echo and times pass through channels, so the clock's goroutine takes no lock and allocates
// nothing.
type player struct {
	next chan line
	done chan line            // receives each line when it has been played
	echo chan [maxFrame]int16 // nil disables the echo

	noise []int16
	at    int // position in the noise
	cur   line
}

// maxFrame is the largest frame in samples: 20 ms at 16 kHz.
const maxFrame = 320

// A line holds the samples left to play, and when its frames were played and due.
type line struct {
	pcm       []int16
	left, due []time.Time
}

func newPlayer(echo time.Duration, noise []int16) *player {
	m := &player{noise: noise, next: make(chan line, 1), done: make(chan line, 1)}
	if echo > 0 {
		m.echo = make(chan [maxFrame]int16, backlog)
		for range int(echo / media.FrameTime) {
			m.echo <- [maxFrame]int16{}
		}
	}
	return m
}

// say plays pcm. The previous line must be finished.
func (m *player) say(pcm []int16) {
	m.next <- line{pcm, make([]time.Time, 0, maxLine), make([]time.Time, 0, maxLine)}
}

// hear queues a frame for the echo.
func (m *player) hear(f media.Frame) {
	if m.echo == nil {
		return
	}
	var kept [maxFrame]int16
	for i, x := range f[:min(len(f), maxFrame)] {
		kept[i] = x / echoGain
	}
	select {
	case m.echo <- kept:
	default: // dropped: after a stall of the clock, a full queue would keep the echo late
	}
}

func (m *player) FillFrame(f media.Frame, due time.Time) {
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
			m.done <- m.cur // never blocks, because only one line plays at a time
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
