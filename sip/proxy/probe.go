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

// probeTimeout is how long an address may take to answer a probe.
const probeTimeout = 4 * time.Second

func (reg *Registry) probe(ctx context.Context, p Proxy) {
	for {
		wait := health.ProbeInterval
		targets, err := reg.locate(ctx, p)
		if err != nil {
			wait = health.ProbeDownInterval
		}
		if !reg.probeAll(ctx, targets) {
			wait = health.ProbeDownInterval
		}
		select {
		case <-time.After(jitter(wait)):
		case <-ctx.Done():
			return
		}
	}
}

// jitter changes d by up to 10 percent, to spread load.
func jitter(d time.Duration) time.Duration {
	return d - d/10 + time.Duration(rand.Int64N(int64(d/5)+1)) //nolint:gosec // spreads load, keeps no secret
}

// probeAll probes the targets of a proxy concurrently, so that one that is down
// does not delay others. It reports whether all are up.
func (reg *Registry) probeAll(ctx context.Context, targets []Target) bool {
	var failed atomic.Bool
	var probes sync.WaitGroup
	for _, at := range targets {
		probes.Go(func() {
			if !reg.probeTarget(ctx, at) {
				failed.Store(true)
			}
		})
	}
	probes.Wait()
	return !failed.Load()
}

// probeTarget sends an OPTIONS to a target and records the result. Any response
// except 408 and 503 means that it is up.
func (reg *Registry) probeTarget(ctx context.Context, at Target) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req := reg.newRequest(sip.OPTIONS, at, "parley")
	sent := time.Now()
	res, err := reg.Endpoint.Do(ctx, req)
	now := time.Now()
	switch {
	case errors.Is(err, endpoint.ErrClosed) || errors.Is(ctx.Err(), context.Canceled):
		return true // the UA is closing, so there is no result
	case err != nil || res.StatusCode == 408:
		reg.Health.RecordMissedProbe(at.Address(), "no answer to OPTIONS", now)
		return false
	case res.StatusCode == 503:
		if after, ok := RetryAfter(res); ok {
			reg.Health.RecordRetryAfter(at.Address(), after, sent, now)
		} else {
			reg.Health.RecordMissedProbe(at.Address(), "503 to OPTIONS", now)
		}
		return false
	}
	reg.Health.RecordAnswer(at.Address(), now)
	return true
}
