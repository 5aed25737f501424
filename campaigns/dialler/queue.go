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

	rest  time.Duration // of the campaigns, as they were asked last
	since time.Time
}

// Claim implements control.Queue. Single calls come first, but for one: however
// many there are, campaigns get a call now and then.
func (q *Queue) Claim(ctx context.Context, p control.Place, lease time.Duration, most int) ([]*control.Claim, error) {
	claims, err := q.Queue.Claim(ctx, p, lease, max(1, most-1))
	for len(claims) < most && ctx.Err() == nil {
		c, rest, fault := q.Dialler.Take(ctx)
		err = errors.Join(err, fault)
		if c == nil {
			q.rest, q.since = rest, time.Now()
			break
		}
		claims = append(claims, c)
	}
	return claims, err
}

// Due implements control.Queue.
func (q *Queue) Due(ctx context.Context, limit time.Duration) (time.Duration, error) {
	wait, err := q.Queue.Due(ctx, limit)
	if rest := q.rest - time.Since(q.since); rest < wait {
		wait = max(rest, time.Millisecond)
	}
	return wait, err
}
