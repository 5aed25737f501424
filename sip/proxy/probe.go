package proxy

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/health"
)

// probeFor is how long an address may take to say how it is.
const probeFor = 4 * time.Second

// probe asks a proxy how it is, again and again, until ctx ends.
func (b *Book) probe(ctx context.Context, p Proxy) {
	for {
		wait := health.ProbeEvery
		places, err := b.find(ctx, p)
		if err != nil {
			wait = health.ProbeDown
		}
		if !b.askAll(ctx, places) {
			wait = health.ProbeDown
		}
		select {
		case <-time.After(around(wait)):
		case <-ctx.Done():
			return
		}
	}
}

// around spreads what many do at the same time.
func around(d time.Duration) time.Duration {
	return d - d/10 + time.Duration(rand.Int64N(int64(d/5)+1)) //nolint:gosec // spreads load, keeps no secret
}

// askAll asks the places of a proxy at once, of which there are few: an address
// that is down must not have the next one asked too late. It returns when all
// have answered or missed, and says whether all are well.
func (b *Book) askAll(ctx context.Context, places []Place) bool {
	var ill atomic.Bool
	var asking sync.WaitGroup
	for _, at := range places {
		asking.Go(func() {
			if !b.ask(ctx, at) {
				ill.Store(true)
			}
		})
	}
	asking.Wait()
	return !ill.Load()
}

// ask sends an OPTIONS to one place. Whatever the answer, one that answers
// lives; save where it says that it cannot take calls.
func (b *Book) ask(ctx context.Context, at Place) bool {
	ctx, cancel := context.WithTimeout(ctx, probeFor)
	defer cancel()
	req := b.request(sip.OPTIONS, at, "parley")
	res, err := b.Endpoint.Ask(ctx, req)
	now := time.Now()
	switch {
	case errors.Is(err, endpoint.ErrClosed) || errors.Is(ctx.Err(), context.Canceled):
		return true // we are leaving
	case err != nil || res.StatusCode == 408:
		b.Health.Missed(at.Address(), "no answer to OPTIONS", now)
		return false
	case res.StatusCode == 503:
		if after, ok := RetryAfter(res); ok {
			b.Health.Bar(at.Address(), after, now)
		} else {
			b.Health.Missed(at.Address(), "503 to OPTIONS", now)
		}
		return false
	}
	b.Health.Answered(at.Address(), now)
	return true
}
