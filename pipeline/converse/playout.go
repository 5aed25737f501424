package converse

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/media"
)

// queueLen is how many pieces of speech may wait. Voices speak faster than real
// time; a full queue holds them back.
const queueLen = 64

// A piece is a stretch of an utterance on its way to the caller.
type piece struct {
	of   *utterance
	pcm  []int16
	last bool
}

// A mark is what the playout tells of an utterance.
type mark struct {
	of   *utterance
	said bool // its last sample left; otherwise its first one did
	at   time.Time
}

// playout is the one queue between the agent and the caller. It is a feed: the
// leg takes each frame at the moment it leaves, so dropping what waits here is
// silence on the wire with the next frame. The clock's side takes no lock.
type playout struct {
	queue chan piece
	marks chan mark
	floor chan struct{} // held by the utterance that is being queued
	below atomic.Int64  // utterances with lower numbers are not played any more

	cur     piece      // the feed's own
	playing *utterance // the feed's own: began and is not over
}

func newPlayout() *playout {
	return &playout{queue: make(chan piece, queueLen), marks: make(chan mark, 64), floor: make(chan struct{}, 1)}
}

// FillFrame implements media.Feed.
func (p *playout) FillFrame(f media.Frame, due time.Time) {
	below := p.below.Load()
	n := 0
	for n < len(f) {
		if p.cur.of == nil || p.cur.of.number < below {
			p.cur = piece{}
			select {
			case p.cur = <-p.queue:
			default:
				p.rest(f[n:])
				return
			}
			continue
		}
		n += p.take(f[n:], due)
	}
}

// rest is the silence after what there is to say.
func (p *playout) rest(f media.Frame) {
	clear(f)
	if u := p.playing; u != nil && u.number >= p.below.Load() {
		u.dry.Add(1)
	}
}

// take moves samples from the current piece to f.
func (p *playout) take(f media.Frame, due time.Time) int {
	u := p.cur.of
	n := copy(f, p.cur.pcm)
	p.cur.pcm = p.cur.pcm[n:]
	if n > 0 && u.played.Add(int64(n)) == int64(n) {
		p.playing = u
		p.tell(mark{of: u, at: time.Now()}) // not due: a late clock is part of what the caller waits for
	}
	if len(p.cur.pcm) == 0 {
		if p.cur.last {
			p.playing = nil
			p.tell(mark{of: u, said: true, at: due.Add(media.FrameTime)})
		}
		p.cur = piece{}
	}
	return n
}

// tell never waits: there are two marks an utterance and room for many more, so
// a full channel means that nobody listens any more, and the mark is dropped.
func (p *playout) tell(m mark) {
	select {
	case p.marks <- m:
	default:
	}
}

// begin takes the floor for an utterance: pieces of two must not mix. The
// returned function gives it back. Where another holds the floor, begin waits
// for it or, with try, says false at once.
func (p *playout) begin(ctx context.Context, try bool) (release func(), ok bool) {
	release = func() { <-p.floor }
	select {
	case p.floor <- struct{}{}:
		return release, true
	default:
	}
	if try {
		return nil, false
	}
	select {
	case p.floor <- struct{}{}:
		return release, true
	case <-ctx.Done():
		return nil, false
	}
}

// push queues a piece, and waits while the queue is full.
func (p *playout) push(ctx context.Context, x piece) error {
	select {
	case p.queue <- x:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drop skips all utterances before number, from the next frame on.
func (p *playout) drop(number int64) { p.below.Store(number) }
