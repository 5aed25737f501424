// Package playout plays the agent's voice to the caller. Its queue can be ducked, paused,
// resumed at a word and dropped, exactly to the sample. Utterances record which of their words
// were played.
package playout

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/media"
)

const (
	// queueLen is the number of pieces that may wait. Voices produce speech faster than
	// real time; a full queue blocks them.
	queueLen = 64
	// historyLen is the number of played pieces kept for Resume.
	historyLen = 64
	// duckGain is the gain of a ducked voice (-12 dB).
	duckGain = 0.25
	// ramp is the duration of a gain change from 0 to 1.
	ramp = 10 * time.Millisecond
)

// A piece is a stretch of an utterance.
type piece struct {
	of    *Utterance
	pcm   []int16
	start int64 // index of its first sample within the utterance
	last  bool
}

// A Mark reports the start or end of an utterance's playout.
type Mark struct {
	Of    *Utterance
	Ended bool // the last sample was sent; otherwise the first sample was
	At    time.Time
}

// A Player is a media.Feed: the leg pulls each frame when it is due, so a command takes effect
// with the next frame. FillFrame takes no lock and allocates nothing.
type Player struct {
	queue chan piece
	marks chan Mark
	floor chan struct{} // held while an utterance is being queued

	minNumber atomic.Int64 // utterances with lower numbers are dropped
	ducking   atomic.Bool
	paused    atomic.Bool
	pauseAt   atomic.Int64  // sample at which a pause takes effect if it is near
	resumeAt  atomic.Int64  // sample of the current utterance to resume at, plus 1; 0 if there is none
	power     atomic.Uint64 // mean square of the last frame

	// The fields below belong to the goroutine that calls FillFrame.
	history  [historyLen]piece
	cur, end int64      // cur is the number of the piece being played, end that of the next piece from the queue
	off      int        // samples of cur that were played
	gain     float64    // gain of the last sample
	playing  *Utterance // utterance that has started and not ended
	frozen   bool       // the voice was paused when the frame began
}

// New returns a silent player.
func New() *Player {
	return &Player{queue: make(chan piece, queueLen), marks: make(chan Mark, 64), floor: make(chan struct{}, 1), gain: 1}
}

// Marks delivers the start and end of each utterance.
func (m *Player) Marks() <-chan Mark { return m.marks }

// Duck lowers the voice by 12 dB or restores it.
func (m *Player) Duck(on bool) { m.ducking.Store(on) }

// Pause silences the voice within 10 ms. If the sample with index from of the current
// utterance is at most 25 ms ahead, the player first plays up to that sample. The queue is
// kept.
func (m *Player) Pause(from int64) {
	m.pauseAt.Store(from)
	m.paused.Store(true)
}

// Resume continues a paused utterance at sample at, with full gain. A negative at continues at
// the sample where it stopped.
func (m *Player) Resume(at int64) {
	m.resumeAt.Store(at + 1)
	m.ducking.Store(false)
	m.paused.Store(false)
}

// Drop discards all utterances with numbers below number. One that is being played fades out
// within 10 ms. Drop also ends pausing and ducking.
func (m *Player) Drop(number int64) {
	m.minNumber.Store(number)
	m.resumeAt.Store(0)
	m.ducking.Store(false)
	m.paused.Store(false)
}

// Level returns the level of the last frame in dBFS; -120 means silence.
func (m *Player) Level() float64 {
	power := m.power.Load()
	if power == 0 {
		return -120
	}
	return max(-120, 10*math.Log10(float64(power)/(32768*32768)))
}

// FillFrame implements media.Feed.
func (m *Player) FillFrame(f media.Frame, due time.Time) {
	m.applyControls()
	m.fill(f, due)
}

// applyControls reads the pause and resume commands once per frame. A pause that is lifted
// within a frame lasts until the end of the frame, so that nothing plays before the rewind.
func (m *Player) applyControls() {
	m.frozen = m.paused.Load()
	m.rewind()
}

func (m *Player) fill(f media.Frame, due time.Time) {
	n := 0
	for n < len(f) {
		p := m.nextPiece()
		if p == nil {
			m.noteUnderrun()
			break
		}
		want := m.targetGain(p.of)
		if want == 0 && (m.gain == 0 || p.of != m.playing) {
			if p.of.Number >= m.minNumber.Load() {
				break // the voice is paused
			}
			m.cur, m.off, m.playing = m.end, 0, nil // skip the rest of the dropped utterance
			m.gain = 1
			continue
		}
		n += m.take(f[n:], p, want, due)
	}
	clear(f[n:])
	m.measure(f)
}

// nextPiece returns the piece to play; nil if there is none.
func (m *Player) nextPiece() *piece {
	if m.cur == m.end {
		select {
		case p := <-m.queue:
			m.history[m.end%historyLen] = p
			m.end++
			m.off = 0
		default:
			return nil
		}
	}
	return &m.history[m.cur%historyLen]
}

// targetGain returns the gain requested for u.
func (m *Player) targetGain(u *Utterance) float64 {
	switch {
	case u.Number < m.minNumber.Load() || m.frozen && m.untilPause(u) == 0:
		return 0
	case m.ducking.Load():
		return duckGain
	default:
		return 1
	}
}

// untilPause returns the number of samples of u to play before the pause.
func (m *Player) untilPause(u *Utterance) int {
	if n := m.pauseAt.Load() - u.played.Load(); n > 0 && SamplesDuration(u.Rate, int(n)) <= maxWordRest {
		return int(n)
	}
	return 0
}

// rewind moves back to the sample that Resume requested, or to the oldest piece in the history.
func (m *Player) rewind() {
	to := m.resumeAt.Swap(0) - 1
	if to < 0 || m.end == 0 || m.playing == nil {
		return
	}
	at := m.cur
	if at == m.end {
		at--
		m.off = len(m.history[at%historyLen].pcm)
	}
	for m.history[at%historyLen].start > to && at > 0 && at > m.end-historyLen+1 && m.history[(at-1)%historyLen].of == m.playing {
		at--
	}
	p := &m.history[at%historyLen]
	if p.of != m.playing || to < p.start && at == m.cur || to >= p.start+int64(len(p.pcm)) {
		return
	}
	m.cur, m.off = at, int(max(0, to-p.start))
	m.playing.played.Store(p.start + int64(m.off))
}

// noteUnderrun counts a silent frame within an utterance.
func (m *Player) noteUnderrun() {
	if u := m.playing; u != nil && u.Number >= m.minNumber.Load() && !m.frozen && !u.gapExpected.Load() {
		u.underrun.Add(1)
	}
	if m.frozen {
		m.gain = 0
	}
}

// take copies samples of p to f.
func (m *Player) take(f media.Frame, p *piece, want float64, due time.Time) int {
	u := p.of
	n := min(len(f), len(p.pcm)-m.off)
	if want == 0 {
		n = min(n, max(1, int(math.Round(m.gain*float64(u.Rate)*ramp.Seconds()))))
	} else if m.frozen {
		n = min(n, m.untilPause(u))
	}
	copy(f, p.pcm[m.off:m.off+n])
	m.fade(f[:n], want, u.Rate)
	if m.off += n; want == 0 {
		u.fadedOut.Add(int64(n))
	} else {
		u.fadedOut.Store(0)
	}
	if n > 0 && u.played.Add(int64(n)) == int64(n) && m.playing != u {
		m.playing = u
		at := time.Now() // if the media clock is late, the caller waits for it too
		if due.After(at) {
			at = due // the packet never leaves before it is due
		}
		u.began.Store(at.UnixNano())
		m.sendMark(Mark{Of: u, At: at})
	}
	if m.off >= len(p.pcm) {
		m.cur++
		m.off = 0
		if p.last {
			m.clearHistory()
			m.sendMark(Mark{Of: u, Ended: true, At: due.Add(media.FrameTime)})
		}
	}
	return n
}

func (m *Player) clearHistory() {
	m.playing = nil
	clear(m.history[:])
	m.cur, m.end = 0, 0
}

// fade moves the gain towards want.
func (m *Player) fade(f []int16, want float64, rate int) {
	if m.gain == 1 && want == 1 {
		return
	}
	step := 1 / (float64(rate) * ramp.Seconds())
	for i, x := range f {
		switch d := want - m.gain; {
		case math.Abs(d) < 1.5*step:
			m.gain = want
		case d > 0:
			m.gain += step
		default:
			m.gain -= step
		}
		f[i] = int16(float64(x) * m.gain)
	}
}

// measure stores the power of the frame.
func (m *Player) measure(f media.Frame) {
	var sum int64
	for _, x := range f {
		sum += int64(x) * int64(x)
	}
	m.power.Store(uint64(sum) / uint64(max(1, len(f))))
}

// sendMark sends a mark, or drops it if the channel is full. The channel has room for many more marks than an
// utterance has, so it is full only if nothing reads it.
func (m *Player) sendMark(x Mark) {
	select {
	case m.marks <- x:
	default:
	}
}

// Acquire reserves the queue for one utterance, because pieces of two utterances must not mix. release ends the
// reservation. If the queue is already reserved, Acquire waits until it is free or ctx ends; with try it returns
// false at once.
func (m *Player) Acquire(ctx context.Context, try bool) (release func(), ok bool) {
	release = func() { <-m.floor }
	select {
	case m.floor <- struct{}{}:
		return release, true
	default:
	}
	if try {
		return nil, false
	}
	select {
	case m.floor <- struct{}{}:
		return release, true
	case <-ctx.Done():
		return nil, false
	}
}

// Push queues a stretch of u and blocks while the queue is full. last marks the end of u.
// Only the holder of the reservation may call it.
func (m *Player) Push(ctx context.Context, u *Utterance, pcm []int16, last bool) error {
	p := piece{of: u, pcm: pcm, start: u.queued, last: last}
	u.queued += int64(len(pcm))
	select {
	case m.queue <- p:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
