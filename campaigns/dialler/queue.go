package dialler

import (
	"context"
	"errors"
	"time"

	"github.com/parley-voice/parley/control"
)

// A Queue is the dial queue of single calls, and the campaigns beside it. It is
// for one node.
type Queue struct {
	control.Queue
	Dialler *Dialler

	turn  bool          // the next call alone is the campaigns'
	rest  time.Duration // of the campaigns, as they were asked last
	since time.Time
}

// Claim implements control.Queue. Single calls come first, but for one: however
// many there are, campaigns get a call now and then. Where there is room for one
// alone they take turns.
func (q *Queue) Claim(ctx context.Context, p control.Place, lease time.Duration, most int) (claims []*control.Claim, err error) {
	if most == 1 {
		q.turn = !q.turn
		if !q.turn {
			c, fault := q.take(ctx)
			if c != nil {
				return []*control.Claim{c}, fault
			}
			err = fault
		}
	}
	claims, fault := q.Queue.Claim(ctx, p, lease, max(1, most-1))
	err = errors.Join(err, fault)
	for len(claims) < most && ctx.Err() == nil {
		c, fault := q.take(ctx)
		err = errors.Join(err, fault)
		if c == nil {
			break
		}
		claims = append(claims, c)
	}
	return claims, err
}

// take takes one contact, and keeps when to ask again where there is none.
func (q *Queue) take(ctx context.Context) (*control.Claim, error) {
	c, rest, err := q.Dialler.Take(ctx)
	if c == nil {
		q.rest, q.since = rest, time.Now()
	}
	return c, err
}

// Due implements control.Queue.
func (q *Queue) Due(ctx context.Context, limit time.Duration) (time.Duration, error) {
	wait, err := q.Queue.Due(ctx, limit)
	if rest := q.rest - time.Since(q.since); rest < wait {
		wait = max(rest, time.Millisecond)
	}
	return wait, err
}
