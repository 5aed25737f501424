package dialer

import (
	"context"
	"errors"
	"time"

	"github.com/parley-voice/parley/control"
)

// A Queue combines the dial queue of single calls with the calls of campaigns. Each node has its own Queue.
type Queue struct {
	control.Queue
	Dialer *Dialer

	campaignTurn bool          // if most is 1, the next Claim asks campaigns first
	rest         time.Duration // no campaign is due until since plus rest
	since        time.Time
}

// Claim implements control.Queue. It returns up to most claims. Single calls come first, but one claim is left for
// campaigns. If most is 1, single calls and campaigns take turns.
func (q *Queue) Claim(ctx context.Context, p control.NodeID, lease time.Duration, most int) (claims []*control.Claim, err error) {
	if most == 1 {
		q.campaignTurn = !q.campaignTurn
		if !q.campaignTurn {
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

// take takes one contact, and stores when to ask again if there is none.
func (q *Queue) take(ctx context.Context) (*control.Claim, error) {
	c, rest, err := q.Dialer.Take(ctx)
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
