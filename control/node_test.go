package control

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// memoryQueue implements Queue in memory.
type memoryQueue struct {
	mu      sync.Mutex
	away    bool // every method returns an error
	settled []time.Time
	claim   func(ctx context.Context) (*Claim, error) // if nil, Claim returns no calls
	asked   []int                                     // number of calls that each claim asked for
}

func (q *memoryQueue) set(away bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.away = away
}

func (q *memoryQueue) settles() []time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.settled)
}

func (q *memoryQueue) err() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.away {
		return errors.New("the database is unavailable")
	}
	return nil
}

func (q *memoryQueue) Claim(ctx context.Context, _ NodeID, _ time.Duration, most int) ([]*Claim, error) {
	q.mu.Lock()
	q.asked = append(q.asked, most)
	q.mu.Unlock()
	if q.claim == nil {
		return nil, q.err()
	}
	c, err := q.claim(ctx)
	if c == nil {
		return nil, err
	}
	return []*Claim{c}, err
}

func (q *memoryQueue) Due(_ context.Context, l time.Duration) (time.Duration, error) {
	return l, q.err()
}
func (q *memoryQueue) EndRequests(context.Context, string) ([]string, error) { return nil, q.err() }

func (q *memoryQueue) Renew(context.Context, string, []string, time.Duration) ([]Lease, error) {
	return nil, q.err()
}

func (q *memoryQueue) Settle(context.Context, []string) (int, error) {
	err := q.err()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.settled = append(q.settled, time.Now())
	return 0, err
}

// TestNodeSettlesAfterOneLease checks that a node settles nothing for the time of one lease after its start and after
// a database outage, so that other nodes can renew their leases first.
func TestNodeSettlesAfterOneLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 15 * time.Second
		q := &memoryQueue{}
		n := &Node{Queue: q, Runner: &Runner{Live: &Live{}}, Lease: lease}
		n.Start(t.Context())
		defer n.Stop(t.Context())
		began := time.Now()
		<-time.After(3 * lease)
		all := q.settles()
		if len(all) == 0 || all[0].Sub(began) < lease || all[0].Sub(began) > 2*lease {
			t.Fatalf("settled %v after the start", sinceAll(began, all))
		}
		q.set(true)
		<-time.After(4 * lease)
		q.set(false)
		back, before := time.Now(), len(q.settles())
		<-time.After(3 * lease)
		late := q.settles()[before:]
		if len(late) == 0 || late[0].Sub(back) < lease || late[0].Sub(back) > 2*lease {
			t.Errorf("settled %v after the outage", sinceAll(back, late))
		}
	})
}

func sinceAll(t time.Time, all []time.Time) []time.Duration {
	var ds []time.Duration
	for _, at := range all {
		ds = append(ds, at.Sub(t))
	}
	return ds
}

// TestNodeStopReleasesPendingClaim checks that Stop releases the calls of a claim that completes during Stop.
func TestNodeStopReleasesPendingClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, answer := make(chan struct{}), make(chan struct{})
		q := &memoryQueue{claim: func(context.Context) (*Claim, error) {
			close(asked) // a second claim would panic here
			<-answer
			return newClaim(), nil
		}}
		b := &memoryStore{}
		r := &Runner{Attempts: b, Live: &Live{}, Dialer: dialFunc(func(context.Context, func(media.Progress)) (media.Leg, error) {
			t.Error("dialed while the node stops")
			return nil, &media.DialError{Cause: media.Canceled}
		})}
		n := &Node{Queue: q, Runner: r}
		n.Start(t.Context())
		<-asked
		stopped := make(chan struct{})
		go func() { n.Stop(t.Context()); close(stopped) }()
		synctest.Wait()
		select {
		case <-stopped:
			t.Error("Stop returned while a claim was under way")
		default:
		}
		close(answer)
		<-stopped
		if !slices.Equal(b.wrote, []string{"release"}) || r.Live.Count() != 0 {
			t.Errorf("wrote %v, %d live calls", b.wrote, r.Live.Count())
		}
	})
}

// TestNodeClaimsInBatches checks that a node under load claims few calls at a time, pauses between claims, and never
// exceeds MaxCalls.
func TestNodeClaimsInBatches(t *testing.T) {
	for _, tt := range []struct {
		share       int
		apart       time.Duration
		least, most int // claims per second
	}{{4, 80 * time.Millisecond, 9, 15}, {claimAtOnce, 0, 30, 50}} {
		synctest.Test(t, func(t *testing.T) {
			q := &memoryQueue{claim: func(context.Context) (*Claim, error) {
				<-time.After(10 * time.Millisecond)
				return newClaim(), nil
			}}
			over := make(chan struct{})
			r := &Runner{Attempts: &memoryStore{}, Live: &Live{}, Dialer: dialFunc(func(context.Context, func(media.Progress)) (media.Leg, error) {
				<-over
				return nil, &media.DialError{Cause: media.Busy}
			})}
			n := &Node{Queue: q, Runner: r, MaxCalls: 100, Lease: time.Hour, Batch: func() (int, time.Duration) { return tt.share, tt.apart }}
			n.Start(t.Context())
			<-time.After(time.Second - time.Millisecond)
			n.Drain()
			close(over)
			n.Stop(t.Context())
			if len(q.asked) < tt.least || len(q.asked) > tt.most {
				t.Errorf("%d at once: %d claims", tt.share, len(q.asked))
			}
			for i, most := range q.asked {
				if want := min(tt.share, max(1, (100-i)/claimShare)); most != want {
					t.Errorf("%d at once: asked for %d calls at claim %d", tt.share, most, i)
				}
			}
		})
	}
}

// TestNodesShareByRoom starts nodes of different sizes on one queue. The nodes must take calls about in proportion to
// their sizes, whether the calls come at once or one after the other.
func TestNodesShareByRoom(t *testing.T) {
	for _, apart := range []time.Duration{0, 20 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			waiting, over := 0, make(chan struct{})
			sizes := []int{30, 90}
			var nodes []*Node
			var wakes []chan struct{}
			for _, most := range sizes {
				wake := make(chan struct{}, 1)
				wakes = append(wakes, wake)
				q := &memoryQueue{claim: func(context.Context) (*Claim, error) {
					<-time.After(3 * time.Millisecond)
					mu.Lock()
					defer mu.Unlock()
					if waiting == 0 {
						return nil, nil
					}
					waiting--
					return newClaim(), nil
				}}
				r := &Runner{Attempts: &memoryStore{}, Live: &Live{}, Dialer: dialFunc(func(context.Context, func(media.Progress)) (media.Leg, error) {
					<-over
					return nil, &media.DialError{Cause: media.Busy}
				})}
				n := &Node{Queue: q, Runner: r, MaxCalls: most, Lease: time.Hour, Wake: wake}
				n.Start(t.Context())
				defer n.Stop(t.Context())
				defer n.Drain()
				nodes = append(nodes, n)
			}
			defer close(over)
			for range 60 {
				mu.Lock()
				waiting++
				mu.Unlock()
				for _, w := range wakes {
					select {
					case w <- struct{}{}:
					default:
					}
				}
				if apart > 0 {
					<-time.After(apart)
				}
			}
			<-time.After(5 * time.Second)
			small, large := nodes[0].Room().Running, nodes[1].Room().Running
			if small+large != 60 || large < 2*small || small < 5 {
				t.Errorf("%v apart: nodes for %v calls took %d and %d of 60", apart, sizes, small, large)
			}
		})
	}
}

// TestNodeStopWithHangingQueue checks that Stop returns soon after its context ends, even if the queue does not
// answer.
func TestNodeStopWithHangingQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan struct{}, 100)
		q := &memoryQueue{claim: func(ctx context.Context) (*Claim, error) {
			asked <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		n := &Node{Queue: q, Runner: &Runner{Attempts: &memoryStore{}, Live: &Live{}}, Lease: time.Hour}
		n.Start(t.Context())
		<-asked
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		n.Stop(ctx)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("Stop took %v", took)
		}
	})
}

// TestNodeStopLetsAgentsSayGoodbye checks that agents get goodbyeTimeout to say goodbye after the deadline of Stop. If
// the caller cancels Stop, calls end at once.
func TestNodeStopLetsAgentsSayGoodbye(t *testing.T) {
	for _, tt := range []struct {
		name    string
		goodbye time.Duration // duration of the goodbye
		cancel  bool
		took    time.Duration // expected duration of Stop after its context ended
	}{
		{"the time is up", 3 * time.Second, false, 3 * time.Second},
		{"an agent without end", time.Hour, false, goodbyeTimeout},
		{"a second signal", 3 * time.Second, true, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			once := true
			q := &memoryQueue{claim: func(ctx context.Context) (*Claim, error) {
				if once {
					once = false
					<-time.After(10 * time.Millisecond) // let the node renew its leases once
					return newClaim(), nil
				}
				<-ctx.Done()
				return nil, ctx.Err()
			}}
			b := &memoryStore{}
			r := &Runner{Attempts: b, Live: &Live{}, Dialer: answerWith(&silentLeg{}), Talker: talkFunc(func(ctx context.Context, br pipeline.SessionConfig) (pipeline.Outcome, error) {
				select {
				case <-br.Drain:
				case <-ctx.Done():
				}
				select {
				case <-time.After(tt.goodbye):
				case <-ctx.Done():
				}
				return pipeline.Outcome{Reason: pipeline.Stopped}, nil
			})}
			n := &Node{Queue: q, Runner: r, Lease: time.Hour}
			n.Start(t.Context())
			<-time.After(time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			wait := time.Minute
			if tt.cancel {
				wait = 10 * time.Second
				time.AfterFunc(wait, cancel)
			}
			began := time.Now()
			n.Stop(ctx)
			if took := time.Since(began) - wait; took != tt.took || b.final.Reason != ReasonShutdown {
				t.Errorf("%s: stopped %v after the wait, reason %s", tt.name, took, b.final.Reason)
			}
		})
	}
}
