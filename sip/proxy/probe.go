package proxy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
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

// Probe sends an OPTIONS to all addresses of a trunk. It returns nil if one of them
// is up, and otherwise the reasons why they are not. It records nothing.
func (reg *Registry) Probe(ctx context.Context, t media.Trunk) error {
	all, err := ParseAll(t)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var probes sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	up := false
	record := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		up = up || err == nil
		errs = append(errs, err)
	}
	for _, p := range all {
		probes.Go(func() {
			targets, err := reg.locate(ctx, p)
			if err != nil {
				record(err)
			}
			for _, at := range targets {
				probes.Go(func() { record(reg.ask(ctx, at)) })
			}
		})
	}
	probes.Wait()
	if up {
		return nil
	}
	return errors.Join(errs...)
}

// ask sends an OPTIONS to a target. It returns an error if the target is not up.
func (reg *Registry) ask(ctx context.Context, at Target) error {
	res, err := reg.Endpoint.Do(ctx, reg.newRequest(sip.OPTIONS, at, "parley"))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s does not answer OPTIONS over %s", at.Hop.Addr, at.Hop.Transport)
	case err != nil:
		return fmt.Errorf("%s: %w", at.Hop.Addr, err)
	case res.StatusCode == 408 || res.StatusCode == 503:
		return fmt.Errorf("%s answers OPTIONS with %d %s", at.Hop.Addr, res.StatusCode, res.Reason)
	}
	return nil
}
