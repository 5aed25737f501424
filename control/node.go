package control

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// A Node claims attempts from the dial queue and runs them, keeps its leases,
// and settles what lost nodes left behind.
type Node struct {
	Place  Place
	Queue  Queue
	Runner *Runner
	// Lease is how long a claim lasts without a sign of life; 0 means 15 s. A
	// third of it passes between two signs.
	Lease time.Duration
	// Poll is how often the queue is looked at without being woken; 0 means 1 s.
	Poll time.Duration
	// MaxCalls bounds the calls on this node; 0 means 1000.
	MaxCalls int
	// Share, where set, says how many calls to take from the queue at once, and how
	// long to wait before the next: others may need the machine more.
	Share func() (most int, apart time.Duration)
	// Wake and WakeEnds, where set, say that the queue, or what is asked to
	// end, may have changed.
	Wake, WakeEnds <-chan struct{}
	Log            *slog.Logger

	mu      sync.Mutex
	stop    chan struct{} // closed when nothing more is to be claimed
	claimed chan struct{} // closed when nothing more is claimed
	calls   sync.WaitGroup
	running atomic.Int64
	tasks   sync.WaitGroup
	quit    context.CancelFunc
	giveUp  context.CancelFunc // ends the claim under way
}

// Start begins to claim. The node runs until Stop.
func (n *Node) Start(ctx context.Context) {
	ctx, n.quit = context.WithCancel(context.WithoutCancel(ctx))
	asking, giveUp := context.WithCancel(ctx)
	n.giveUp = giveUp
	n.mu.Lock()
	n.stop, n.claimed = make(chan struct{}), make(chan struct{})
	n.mu.Unlock()
	n.tasks.Go(func() { n.claim(ctx, asking); close(n.claimed) })
	n.tasks.Go(func() { n.keep(ctx) })
	n.tasks.Go(func() { n.hearEnds(ctx) })
}

// Accepting reports whether the node still claims.
func (n *Node) Accepting() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stop == nil {
		return false
	}
	select {
	case <-n.stop:
		return false
	default:
		return true
	}
}

// Drain stops claiming and leaves the calls that are on alone.
func (n *Node) Drain() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stop == nil {
		return // it never started
	}
	select {
	case <-n.stop:
	default:
		close(n.stop)
	}
}

// goodbyeFor is how long agents have for their goodbyes.
const goodbyeFor = 15 * time.Second

// Stop drains, waits for the calls until ctx ends, then ends them, and returns
// when all is over. Where the time of ctx is up, and nobody cancelled it, the
// agents say goodbye first. The leases are kept meanwhile.
func (n *Node) Stop(ctx context.Context) {
	if n.quit == nil {
		return // it never started
	}
	n.Drain()
	// Before the claim under way is over, a call may still begin.
	select {
	case <-n.claimed:
	case <-ctx.Done():
		n.giveUp()
		<-n.claimed
	}
	over := make(chan struct{})
	go func() { n.calls.Wait(); close(over) }()
	select {
	case <-over:
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			n.Runner.Live.leaveAll()
			select {
			case <-over:
			case <-time.After(goodbyeFor):
			}
		}
		n.Runner.Live.endAll(errShutdown)
		<-over
	}
	n.giveUp()
	n.quit()
	n.tasks.Wait()
	n.Runner.Wait()
}

// claim takes work while there is some, and then waits for more. The queue is
// asked under asking, the calls run under ctx.
func (n *Node) claim(ctx, asking context.Context) {
	for n.Accepting() {
		most, apart := n.share()
		got, wait := n.next(ctx, asking, most)
		switch {
		case !got:
			n.rest(wait, n.Wake)
		case apart > 0:
			n.rest(apart, nil)
		}
	}
}

// rest waits, until it is woken or the node stops.
func (n *Node) rest(wait time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-n.stop:
	case <-wake:
	case <-timer.C:
	}
}

// claimAtOnce is how many calls a node takes from the queue at a time, at most.
const claimAtOnce = 32

func (n *Node) share() (int, time.Duration) {
	if n.Share == nil {
		return claimAtOnce, 0
	}
	return n.Share()
}

// next claims calls, or says how long to wait for one.
func (n *Node) next(ctx, asking context.Context, most int) (bool, time.Duration) {
	if n.room() <= 0 {
		return false, n.poll()
	}
	got, err := n.claimSome(ctx, asking, most)
	if err != nil && asking.Err() == nil {
		n.log().WarnContext(ctx, "the dial queue does not answer", "err", err)
	}
	if got || err != nil {
		return got, n.poll()
	}
	wait := n.due(asking, n.poll())
	if wait == n.poll() {
		// What became due while we asked is not in the answer.
		got, _ = n.claimSome(ctx, asking, most)
	}
	return got, wait
}

// due is how long nothing can be claimed for the pacing, at most limit.
func (n *Node) due(ctx context.Context, limit time.Duration) time.Duration {
	short, cancel := context.WithTimeout(ctx, n.lease()/3)
	defer cancel()
	wait, err := n.Queue.Due(short, limit)
	if err != nil {
		return limit // the next claim tells what is wrong
	}
	return wait
}

func (n *Node) claimSome(ctx, asking context.Context, most int) (bool, error) {
	if !n.Accepting() {
		return false, nil
	}
	short, cancel := context.WithTimeout(asking, n.lease()/3)
	defer cancel()
	claims, err := n.Queue.Claim(short, n.Place, n.lease(), min(most, n.room()))
	for _, c := range claims {
		if !n.Accepting() { // it stopped while it asked
			err = errors.Join(err, n.Runner.giveBack(ctx, c.Lease))
			continue
		}
		n.run(ctx, c)
	}
	return len(claims) > 0 && n.Accepting(), err
}

// run makes an attempt beside the others.
func (n *Node) run(ctx context.Context, c *Claim) {
	n.running.Add(1)
	n.calls.Go(func() {
		defer n.running.Add(-1)
		if err := n.Runner.Run(ctx, c); errors.Is(err, ErrFenced) {
			n.log().WarnContext(ctx, "the call was settled by another node", "call", c.Call.ID)
		} else if err != nil {
			n.log().ErrorContext(ctx, "the call broke", "call", c.Call.ID, "err", err)
		}
	})
}

// keep renews the leases and settles those of others.
func (n *Node) keep(ctx context.Context) {
	tick := time.NewTicker(n.lease() / 3)
	defer tick.Stop()
	var queue contact
	for {
		if err := n.renew(ctx); err != nil {
			// The calls go on from memory; nothing new is dialled while the
			// queue cannot be read.
			n.log().WarnContext(ctx, "the leases are not renewed", "err", err)
			queue.lost()
		} else if queue.heard(time.Now(), n.lease()) >= n.lease() {
			n.settle(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// renew asks the queue also where there is nothing to renew: that it answers
// is what allows to settle.
func (n *Node) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, n.lease()/3)
	defer cancel()
	mine := n.Runner.Live.attempts()
	held, err := n.Queue.Renew(ctx, n.Place.Owner, mine, n.lease())
	if err == nil {
		n.Runner.Live.keepOnly(mine, held)
	}
	return err
}

func (n *Node) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, n.lease()/3)
	defer cancel()
	settled, err := n.Queue.Settle(ctx, n.Runner.Live.attempts())
	if err != nil && ctx.Err() == nil {
		n.log().WarnContext(ctx, "lapsed leases are not settled", "err", err)
	}
	if settled > 0 {
		n.log().WarnContext(ctx, "settled what was left behind", "attempts", settled)
	}
}

// A contact is since when the queue has answered without a gap. While it does
// not answer, the leases of nodes lapse that are alive; so nobody is taken for
// lost before all had a lease's time to renew.
type contact struct{ since, last time.Time }

// heard notes an answer, and returns how long the contact has held. A renewal
// that comes a sixth of a lease late may have been kept from coming.
func (c *contact) heard(now time.Time, lease time.Duration) time.Duration {
	if c.since.IsZero() || now.Sub(c.last) > lease/2 {
		c.since = now
	}
	c.last = now
	return now.Sub(c.since)
}

func (c *contact) lost() { *c = contact{} }

// hearEnds ends the calls of this node that were asked to end elsewhere.
func (n *Node) hearEnds(ctx context.Context) {
	tick := time.NewTicker(n.poll())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.WakeEnds:
		case <-tick.C:
		}
		if n.Runner.Live.Count() == 0 {
			continue
		}
		short, cancel := context.WithTimeout(ctx, 5*time.Second)
		ids, err := n.Queue.ToEnd(short, n.Place.Owner)
		cancel()
		if err != nil {
			continue // the next look tells; the renewal logs what is wrong
		}
		for _, id := range ids {
			n.Runner.Live.End(id)
		}
	}
}

func (n *Node) lease() time.Duration { return orElse(n.Lease, 15*time.Second) }
func (n *Node) poll() time.Duration  { return orElse(n.Poll, time.Second) }

// room is how many more calls the node may have.
func (n *Node) room() int { return orElse(n.MaxCalls, 1000) - int(n.running.Load()) }

func (n *Node) log() *slog.Logger {
	if n.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return n.Log
}

func orElse[T comparable](v, other T) T {
	var zero T
	if v == zero {
		return other
	}
	return v
}
