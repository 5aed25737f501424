// Package mouth is the agent's voice on its way to the caller: one queue that
// can be lowered, paused, wound back to a word and dropped, to the sample; and
// the book of which words of it were heard.
package mouth

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/media"
)

const (
	// queueLen is how many pieces of speech may wait. Voices speak faster than
	// real time; a full queue holds them back.
	queueLen = 64
	// tapeLen is how many pieces that were played are kept to be wound back to.
	tapeLen = 64
	// ducked is the gain of a lowered voice (-12 dB).
	ducked = 0.25
	// ramp is how long a change of gain from nothing to all takes.
	ramp = 10 * time.Millisecond
)

// A piece is a stretch of an utterance on its way to the caller.
type piece struct {
	of    *Utterance
	pcm   []int16
	start int64 // sample of the utterance that it begins with
	last  bool
}

// A Mark is what is told of an utterance.
type Mark struct {
	Of   *Utterance
	Said bool // its last sample left; otherwise its first one did
	At   time.Time
}

// A Mouth is a media.Feed: the leg takes each frame at the moment it leaves, so
// what is asked of the mouth is on the wire with the next frame. The clock's
// side takes no lock and allocates nothing.
type Mouth struct {
	queue chan piece
	marks chan Mark
	floor chan struct{} // held by the utterance that is being queued

	below  atomic.Int64 // utterances with lower numbers are not played any more
	soft   atomic.Bool
	paused atomic.Bool
	from   atomic.Int64  // sample of the utterance that a pause waits for, where it is about to come
	back   atomic.Int64  // sample of the utterance on the tape to go on from, and one; 0 for none
	power  atomic.Uint64 // mean square of the frame that left last

	// The feed's own.
	tape     [tapeLen]piece
	cur, end int64      // pieces on the tape are counted; cur is being played
	off      int        // samples of it that were played
	gain     float64    // of the last sample
	playing  *Utterance // began and is not over
	still    bool       // it was paused when the frame began
}

// New returns a mouth that is silent.
func New() *Mouth {
	return &Mouth{queue: make(chan piece, queueLen), marks: make(chan Mark, 64), floor: make(chan struct{}, 1), gain: 1}
}

// Marks tells when utterances begin and end to be heard.
func (m *Mouth) Marks() <-chan Mark { return m.marks }

// Duck lowers the voice by 12 dB, or raises it again.
func (m *Mouth) Duck(on bool) { m.soft.Store(on) }

// Pause falls silent within 10 ms, of the sample from of what is being said where
// that is about to come; what is to be said waits.
func (m *Mouth) Pause(from int64) {
	m.from.Store(from)
	m.paused.Store(true)
}

// Resume goes on with what was paused, from the sample at of its utterance,
// with full voice. A negative at goes on where it stopped.
func (m *Mouth) Resume(at int64) {
	m.back.Store(at + 1)
	m.soft.Store(false)
	m.paused.Store(false)
}

// Drop skips all utterances before number; one that is being heard fades out
// within 10 ms. Nothing is paused or lowered after it.
func (m *Mouth) Drop(number int64) {
	m.below.Store(number)
	m.back.Store(0)
	m.soft.Store(false)
	m.paused.Store(false)
}

// Level is the level of the frame that left last, in dBFS; -120 for silence.
func (m *Mouth) Level() float64 {
	power := m.power.Load()
	if power == 0 {
		return -120
	}
	return max(-120, 10*math.Log10(float64(power)/(32768*32768)))
}

// FillFrame implements media.Feed.
func (m *Mouth) FillFrame(f media.Frame, due time.Time) {
	m.look()
	m.fill(f, due)
}

// look takes up what was asked for. A pause that ends after it lasts for the whole
// frame, so that nothing is heard before the voice went back.
func (m *Mouth) look() {
	m.still = m.paused.Load()
	m.rewind()
}

func (m *Mouth) fill(f media.Frame, due time.Time) {
	n := 0
	for n < len(f) {
		p := m.piece()
		if p == nil {
			m.rest()
			break
		}
		want := m.want(p.of)
		if want == 0 && (m.gain == 0 || p.of != m.playing) {
			if p.of.Number >= m.below.Load() {
				break // paused
			}
			m.cur, m.off, m.playing = m.end, 0, nil // the rest of the tape is its
			m.gain = 1
			continue
		}
		n += m.take(f[n:], p, want, due)
	}
	clear(f[n:])
	m.note(f)
}

// piece is what is played next; nil where there is nothing.
func (m *Mouth) piece() *piece {
	if m.cur == m.end {
		select {
		case p := <-m.queue:
			m.tape[m.end%tapeLen] = p
			m.end++
			m.off = 0
		default:
			return nil
		}
	}
	return &m.tape[m.cur%tapeLen]
}

// want is the gain that is asked for.
func (m *Mouth) want(u *Utterance) float64 {
	switch {
	case u.Number < m.below.Load() || m.still && m.left(u) == 0:
		return 0
	case m.soft.Load():
		return ducked
	default:
		return 1
	}
}

// left is how many samples of u a pause waits for.
func (m *Mouth) left(u *Utterance) int {
	if n := m.from.Load() - u.played.Load(); n > 0 && Span(u.Rate, int(n)) <= spare {
		return int(n)
	}
	return 0
}

// rewind goes back on the tape, as far as it reaches.
func (m *Mouth) rewind() {
	to := m.back.Swap(0) - 1
	if to < 0 || m.end == 0 || m.playing == nil {
		return
	}
	at := m.cur
	if at == m.end {
		at--
		m.off = len(m.tape[at%tapeLen].pcm)
	}
	for m.tape[at%tapeLen].start > to && at > 0 && at > m.end-tapeLen+1 && m.tape[(at-1)%tapeLen].of == m.playing {
		at--
	}
	p := &m.tape[at%tapeLen]
	if p.of != m.playing || to < p.start && at == m.cur || to >= p.start+int64(len(p.pcm)) {
		return
	}
	m.cur, m.off = at, int(max(0, to-p.start))
	m.playing.played.Store(p.start + int64(m.off))
}

// rest is the silence after what there is to say.
func (m *Mouth) rest() {
	if u := m.playing; u != nil && u.Number >= m.below.Load() && !m.still && !u.rests.Load() {
		u.dry.Add(1)
	}
	if m.still {
		m.gain = 0
	}
}

// take moves samples of p to f.
func (m *Mouth) take(f media.Frame, p *piece, want float64, due time.Time) int {
	u := p.of
	n := min(len(f), len(p.pcm)-m.off)
	if want == 0 {
		n = min(n, max(1, int(math.Round(m.gain*float64(u.Rate)*ramp.Seconds()))))
	} else if m.still {
		n = min(n, m.left(u))
	}
	copy(f, p.pcm[m.off:m.off+n])
	m.fade(f[:n], want, u.Rate)
	if m.off += n; want == 0 {
		u.faded.Add(int64(n))
	} else {
		u.faded.Store(0)
	}
	if n > 0 && u.played.Add(int64(n)) == int64(n) && m.playing != u {
		m.playing = u
		at := time.Now() // not due: a late clock is part of what the caller waits for
		if due.After(at) {
			at = due // and so is the packet, while it is filled
		}
		u.began.Store(at.UnixNano())
		m.tell(Mark{Of: u, At: at})
	}
	if m.off >= len(p.pcm) {
		m.cur++
		m.off = 0
		if p.last {
			m.over()
			m.tell(Mark{Of: u, Said: true, At: due.Add(media.FrameTime)})
		}
	}
	return n
}

// over lets go of what was said.
func (m *Mouth) over() {
	m.playing = nil
	clear(m.tape[:])
	m.cur, m.end = 0, 0
}

// fade brings the gain of the voice towards want.
func (m *Mouth) fade(f []int16, want float64, rate int) {
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

// note remembers how loud the frame is.
func (m *Mouth) note(f media.Frame) {
	var sum int64
	for _, x := range f {
		sum += int64(x) * int64(x)
	}
	m.power.Store(uint64(sum) / uint64(max(1, len(f))))
}

// tell never waits: there are two marks an utterance and room for many more, so
// a full channel means that nobody listens any more, and the mark is dropped.
func (m *Mouth) tell(x Mark) {
	select {
	case m.marks <- x:
	default:
	}
}

// Begin takes the floor for an utterance: pieces of two must not mix. The
// returned function gives it back. Where another holds the floor, Begin waits
// for it or, with try, says false at once.
func (m *Mouth) Begin(ctx context.Context, try bool) (release func(), ok bool) {
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

// Push queues a stretch of u, and waits while the queue is full. last tells
// that nothing comes after it. It belongs to whoever holds the floor.
func (m *Mouth) Push(ctx context.Context, u *Utterance, pcm []int16, last bool) error {
	p := piece{of: u, pcm: pcm, start: u.queued, last: last}
	u.queued += int64(len(pcm))
	select {
	case m.queue <- p:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
