package control

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Node claims attempts from the dial queue, runs them, renews their leases, and settles the attempts of lost nodes.
type Node struct {
	ID     NodeID
	Queue  Queue
	Runner *Runner
	// Lease is the duration of a lease; 0 means 15 s. The node renews its leases three times in this period.
	Lease time.Duration
	// Poll is the interval at which the queue is checked without a signal from Wake; 0 means 1 s.
	Poll time.Duration
	// MaxCalls is the maximum number of calls that run on this node; 0 means 1000.
	MaxCalls int
	// Limit stops the start of calls before they overload this node; nil disables it. Sample returns the load of this
	// process without the conversations.
	Limit  *LoadLimit
	Sample func() LoadSample
	// Batch returns how many calls to claim together, and the pause before the next claim. If it is nil, the node
	// claims up to 32 calls and does not pause.
	Batch func() (most int, apart time.Duration)
	// Wake signals that the queue changed. WakeEnds signals that somebody asked to end a call. Both may be nil.
	Wake, WakeEnds <-chan struct{}
	// Continuity detects that the database reverted to an older state; nil disables the check.
	Continuity Continuity
	Log        *slog.Logger

	mu          sync.Mutex
	stop        chan struct{} // closed to stop claiming
	claimed     chan struct{} // closed after the last claim
	calls       sync.WaitGroup
	running     atomic.Int64
	settled     atomic.Int64
	tasks       sync.WaitGroup
	quit        context.CancelFunc
	cancelClaim context.CancelFunc // cancels the claim that is running
}

// Start starts the node. It claims calls until Drain or Stop.
func (n *Node) Start(ctx context.Context) {
	ctx, n.quit = context.WithCancel(context.WithoutCancel(ctx))
	asking, cancelClaim := context.WithCancel(ctx)
	n.cancelClaim = cancelClaim
	n.mu.Lock()
	n.stop, n.claimed = make(chan struct{}), make(chan struct{})
	n.mu.Unlock()
	n.tasks.Go(func() { n.claimWhenReady(ctx, asking); close(n.claimed) })
	n.tasks.Go(func() { n.maintain(ctx) })
	n.tasks.Go(func() { n.pollEndRequests(ctx) })
	if n.Limit != nil {
		n.tasks.Go(func() { n.watchLoad(ctx) })
	}
}

const (
	loadInterval    = time.Second // between two samples of the load
	holdLogInterval = time.Minute // least time between two log lines about calls that wait
)

// watchLoad samples the load, and logs when calls wait because of it.
func (n *Node) watchLoad(ctx context.Context) {
	tick := time.NewTicker(loadInterval)
	defer tick.Stop()
	var logged time.Time
	for {
		s := n.Sample()
		s.At, s.Talking = time.Now(), n.Runner.Live.Talking()
		running := int(n.running.Load())
		n.Limit.Observe(s, running)
		if _, hold := n.Limit.Room(running); hold != "" && s.At.Sub(logged) > holdLogInterval {
			n.log().WarnContext(ctx, "no room for further calls on this node", "reason", hold, "calls", running)
			logged = s.At
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Accepting reports whether the node claims calls.
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

// Drain stops claiming. Running calls continue.
func (n *Node) Drain() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stop == nil {
		return // the node was not started
	}
	select {
	case <-n.stop:
	default:
		close(n.stop)
	}
}

// goodbyeTimeout is the time that agents have to say goodbye when the node shuts down.
const goodbyeTimeout = 15 * time.Second

// Stop stops claiming and waits for the running calls until ctx ends. Then it ends the remaining calls. If ctx ended
// by its deadline, the agents say goodbye first. The node renews leases until all calls have ended.
func (n *Node) Stop(ctx context.Context) {
	if n.quit == nil {
		return // the node was not started
	}
	n.Drain()
	// A running claim may still start a call.
	select {
	case <-n.claimed:
	case <-ctx.Done():
		n.cancelClaim()
		<-n.claimed
	}
	over := make(chan struct{})
	go func() { n.calls.Wait(); close(over) }()
	select {
	case <-over:
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			n.Runner.Live.sayGoodbye()
			select {
			case <-over:
			case <-time.After(goodbyeTimeout):
			}
		}
		n.Runner.Live.endAll(errShutdown)
		<-over
	}
	n.cancelClaim()
	n.quit()
	n.tasks.Wait()
	n.Runner.Wait()
}

// claimWhenReady starts claiming after the first successful continuity check.
func (n *Node) claimWhenReady(ctx, asking context.Context) {
	for n.Accepting() {
		if _, err := n.check(asking); err == nil {
			n.claim(ctx, asking)
			return
		} else if asking.Err() == nil {
			n.log().WarnContext(ctx, "dialing paused: failed to check whether the database reverted to an earlier state", "err", err)
		}
		n.sleep(n.poll(), nil)
	}
}

// check runs the continuity check, which restores calls that the database has lost.
func (n *Node) check(ctx context.Context) (ContinuityStatus, error) {
	if n.Continuity == nil {
		return ContinuityStatus{Open: true}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return n.Continuity.Check(ctx)
}

// checkTimeout bounds the continuity check, which may restore thousands of calls.
const checkTimeout = 30 * time.Second

// claim claims calls until the node stops. Queries use asking as their context; calls run with ctx.
func (n *Node) claim(ctx, asking context.Context) {
	for n.Accepting() {
		most, apart := n.batch()
		got, wait := n.next(ctx, asking, most)
		if !got {
			n.sleep(wait, n.Wake)
			apart = 0
		}
		if apart += n.claimDelay(); apart > 0 {
			n.sleep(apart, nil)
		}
	}
}

// claimDelay returns how long this node waits between claims: the less room it has, the longer. So nodes take calls
// about in proportion to their room.
func (n *Node) claimDelay() time.Duration {
	free := n.room().Free
	if free == 0 {
		return 0 // the next claim waits until a call has ended
	}
	return min(maxClaimDelay, time.Second/time.Duration(free))
}

const maxClaimDelay = 100 * time.Millisecond

// sleep waits until the time is over, wake signals, or the node stops.
func (n *Node) sleep(wait time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-n.stop:
	case <-wake:
	case <-timer.C:
	}
}

// Limits of the calls that are claimed together: a number, and a share of the room, so that a node with little room
// leaves calls to others.
const (
	claimAtOnce = 32
	claimShare  = 4
)

func (n *Node) batch() (int, time.Duration) {
	if n.Batch == nil {
		return claimAtOnce, 0
	}
	return n.Batch()
}

// next claims calls and reports whether it got any. If not, it also returns how long to wait before the next claim.
func (n *Node) next(ctx, asking context.Context, most int) (bool, time.Duration) {
	free := n.room().Free
	if free == 0 {
		return false, n.poll()
	}
	most = min(most, max(1, free/claimShare))
	got, err := n.claimSome(ctx, asking, most)
	if err != nil && asking.Err() == nil {
		n.log().WarnContext(ctx, "failed to claim from the dial queue", "err", err)
	}
	if got || err != nil {
		return got, n.poll()
	}
	wait := n.due(asking, n.poll())
	if wait == n.poll() {
		// A call may have become due during the query.
		got, _ = n.claimSome(ctx, asking, most)
	}
	return got, wait
}

// due returns how long pacing blocks all queued calls, but at most limit.
func (n *Node) due(ctx context.Context, limit time.Duration) time.Duration {
	short, cancel := context.WithTimeout(ctx, n.lease()/3)
	defer cancel()
	wait, err := n.Queue.Due(short, limit)
	if err != nil {
		return limit // the next claim logs the error
	}
	return wait
}

func (n *Node) claimSome(ctx, asking context.Context, most int) (bool, error) {
	if !n.Accepting() {
		return false, nil
	}
	if n.Continuity != nil {
		if err := n.Continuity.Err(); err != nil {
			return false, err
		}
	}
	short, cancel := context.WithTimeout(asking, n.lease()/3)
	defer cancel()
	claims, err := n.Queue.Claim(short, n.ID, n.lease(), min(most, n.room().Free))
	for _, c := range claims {
		if !n.Accepting() { // the node was stopped during the claim
			err = errors.Join(err, n.Runner.releaseLease(ctx, c.Lease))
			continue
		}
		n.run(ctx, c)
	}
	return len(claims) > 0 && n.Accepting(), err
}

func (n *Node) run(ctx context.Context, c *Claim) {
	n.running.Add(1)
	n.calls.Go(func() {
		defer n.running.Add(-1)
		if err := n.Runner.Run(ctx, c); errors.Is(err, ErrFenced) {
			n.log().WarnContext(ctx, "call was settled by another node", "call", c.Call.ID)
		} else if err != nil {
			n.log().ErrorContext(ctx, "call failed", "call", c.Call.ID, "err", err)
		}
	})
}

// maintain renews the leases of this node and settles the attempts of other nodes.
func (n *Node) maintain(ctx context.Context) {
	tick := time.NewTicker(n.lease() / 3)
	defer tick.Stop()
	var queue streak
	for {
		status, err := n.check(ctx)
		if err == nil {
			err = n.renew(ctx, status)
		}
		if err != nil {
			// Running calls continue. No call is dialed while the queue cannot be read.
			n.log().WarnContext(ctx, "failed to renew leases", "err", err)
			queue.reset()
		} else if !status.Open {
			queue.reset() // other nodes are still restoring calls
		} else if queue.extend(time.Now(), n.lease()) >= n.lease() {
			n.settle(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// renew renews the leases. It queries the queue even if the node has no leases: a successful query shows that the
// queue works, and the node settles attempts only while the queue works.
func (n *Node) renew(ctx context.Context, before ContinuityStatus) error {
	short, cancel := context.WithTimeout(ctx, n.lease()/3)
	defer cancel()
	mine := n.Runner.Live.attempts()
	held, err := n.Queue.Renew(short, n.ID.Owner, mine, n.lease())
	if err != nil || n.Continuity == nil {
		if err == nil {
			n.Runner.Live.endLost(mine, held)
		}
		return err
	}
	if n.Runner.Live.allHeld(mine, held) {
		return nil
	}
	// If the database reverted to an older state since the last check, it has lost the calls too. The check restores
	// them, so they must not end.
	if now, err := n.check(ctx); err != nil || now.Changes != before.Changes {
		return err
	}
	n.Runner.Live.endLost(slices.DeleteFunc(mine, n.Continuity.IsDetached), held)
	return nil
}

func (n *Node) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, n.lease()/3)
	defer cancel()
	settled, err := n.Queue.Settle(ctx, n.Runner.Live.attempts())
	if err != nil && ctx.Err() == nil {
		n.log().WarnContext(ctx, "failed to settle lapsed leases", "err", err)
	}
	if settled > 0 {
		n.settled.Add(int64(settled))
		n.log().WarnContext(ctx, "settled attempts of lost nodes", "attempts", settled)
	}
}

// streak measures how long the queue has answered without interruption. While the queue does not answer, the leases of
// live nodes expire too. After an outage the node therefore settles nothing for one lease period, in which every node
// can renew its leases.
type streak struct{ since, last time.Time }

// extend records an answer and returns the length of the streak. If the answer is late by more than a sixth of a
// lease, a new streak starts.
func (c *streak) extend(now time.Time, lease time.Duration) time.Duration {
	if c.since.IsZero() || now.Sub(c.last) > lease/2 {
		c.since = now
	}
	c.last = now
	return now.Sub(c.since)
}

func (c *streak) reset() { *c = streak{} }

// pollEndRequests ends the calls of this node that another node was asked to end.
func (n *Node) pollEndRequests(ctx context.Context) {
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
		ids, err := n.Queue.EndRequests(short, n.ID.Owner)
		cancel()
		if err != nil {
			continue // the next tick tries again; a failed lease renewal logs the error
		}
		for _, id := range ids {
			n.Runner.Live.End(id)
		}
	}
}

func (n *Node) lease() time.Duration { return cmp.Or(n.Lease, 15*time.Second) }
func (n *Node) poll() time.Duration  { return cmp.Or(n.Poll, time.Second) }

// Room is the number of calls that a node can run.
type Room struct {
	Running int
	Max     int  // maximum according to the settings
	Free    int  // calls that can start now
	Hold    Hold // why no call can start; empty if Free is positive
}

// Room returns the number of calls that this node can run.
func (n *Node) Room() Room {
	r := n.room()
	if !n.Accepting() {
		r.Free, r.Hold = 0, HoldStopping
	}
	return r
}

// room does what Room does, without regard to Drain.
func (n *Node) room() Room {
	r := Room{Running: int(n.running.Load()), Max: cmp.Or(n.MaxCalls, 1000)}
	if r.Free = max(0, r.Max-r.Running); r.Free == 0 {
		r.Hold = HoldMaxCalls
	} else if n.Limit != nil {
		room, hold := n.Limit.Room(r.Running)
		r.Free, r.Hold = min(r.Free, max(0, room)), hold
	}
	return r
}

// SettledAttempts returns how many attempts of lost nodes this node has settled.
func (n *Node) SettledAttempts() int64 { return n.settled.Load() }

func (n *Node) log() *slog.Logger { return cmp.Or(n.Log, slog.New(slog.DiscardHandler)) }
