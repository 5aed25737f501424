package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/sip/auth"
)

const (
	registerInterval  = time.Hour        // interval that is requested
	registerTimeout   = 8 * time.Second  // time limit of one response
	firstRetry        = 5 * time.Second  // pause after the first failure; doubles with each further one
	maxRetry          = 10 * time.Minute // longest pause
	unregisterTimeout = 2 * time.Second  // time limit of the final REGISTER
	// maxInterval bounds an interval, granted or required.
	maxInterval = 24 * time.Hour
	// maxRetryAfter bounds the Retry-After of a registrar.
	maxRetryAfter = time.Hour
)

// A registration registers our Contact with a proxy and refreshes it (RFC 3261
// section 10.2).
type registration struct {
	registry *Registry
	proxy    Proxy
	task     task
	creds    *auth.Credentials

	callID     string
	cseq       uint32
	interval   time.Duration // requested interval
	registered bool          // the proxy has a binding for us

	mu    sync.Mutex
	state Registration
}

// A Registration is the state of a registration.
type Registration struct {
	Proxy, Username string
	Until           time.Time // when the binding ends; zero if not registered
	Err             error     // why there is no binding
}

func newRegistration(reg *Registry, p Proxy, d task) *registration {
	return &registration{
		registry: reg, proxy: p, task: d, interval: registerInterval,
		creds:  &auth.Credentials{Username: d.username, Password: d.password},
		callID: sip.GenerateTagN(24) + "@" + reg.Endpoint.Addr().Addr().String(),
		state:  Registration{Proxy: p.Text, Username: d.username},
	}
}

// Registrations returns the state of all registrations.
func (reg *Registry) Registrations() []Registration {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	all := make([]Registration, 0, len(reg.registrations))
	for _, r := range reg.registrations {
		r.mu.Lock()
		all = append(all, r.state)
		r.mu.Unlock()
	}
	return all
}

// run registers and refreshes until ctx ends, then unregisters.
func (r *registration) run(ctx context.Context) {
	defer r.unregister() //nolint:contextcheck // after ctx has ended
	retry := firstRetry
	for {
		start := time.Now()
		granted, err := r.register(ctx, r.interval)
		if ctx.Err() != nil {
			return
		}
		wait := refreshAfter(granted)
		if err != nil {
			wait = jitter(retry)
			if later, ok := errors.AsType[*retryLaterError](err); ok {
				wait = max(wait, min(later.after, maxRetryAfter))
			}
			retry = min(2*retry, maxRetry)
		} else {
			retry = firstRetry
		}
		r.setResult(start.Add(granted), err)
		if r.registry.OnRegistered != nil {
			r.registry.OnRegistered(err == nil, time.Since(start))
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// refreshAfter returns when to refresh: well before the end, but not within 1 s.
func refreshAfter(granted time.Duration) time.Duration {
	return max(granted*4/5-jitter(granted/20), time.Second)
}

func (r *registration) setResult(until time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Err, r.state.Until = err, until
	if err != nil {
		r.state.Until = time.Time{}
		if r.registry.Log != nil {
			r.registry.Log.Warn("failed to register with the trunk", "proxy", r.proxy.Text, "err", err)
		}
	}
}

func (r *registration) unregister() {
	if r.registered {
		ctx, cancel := context.WithTimeout(context.Background(), unregisterTimeout)
		_, _ = r.register(ctx, 0) // the binding expires without it
		cancel()
	}
	r.registry.mu.Lock()
	defer r.registry.mu.Unlock()
	delete(r.registry.registrations, r.task)
}

type retryLaterError struct{ after time.Duration }

func (e *retryLaterError) Error() string { return "503, Retry-After " + e.after.String() }

// register registers at the first target that answers and returns the granted
// interval. An interval of 0 unregisters.
func (r *registration) register(ctx context.Context, interval time.Duration) (time.Duration, error) {
	targets, err := r.registry.locate(ctx, r.proxy)
	for _, at := range targets {
		var granted time.Duration
		if granted, err = r.registerAt(ctx, at, interval); err == nil || ctx.Err() != nil {
			return granted, err
		}
	}
	return 0, err
}

// registerAt registers at one target. It answers one challenge, and one more with
// a stale nonce.
func (r *registration) registerAt(ctx context.Context, at Target, interval time.Duration) (time.Duration, error) {
	realm := "" // realm of the answered challenge
	for range 4 {
		req := r.newRequest(at, interval)
		name, value, err := r.creds.Header(string(sip.REGISTER), req.Recipient.String())
		if err != nil {
			return 0, fmt.Errorf("credentials: %w", err)
		}
		if name != "" {
			req.AppendHeader(sip.NewHeader(name, value))
		}
		res, err := r.do(ctx, req)
		if err != nil {
			return 0, err
		}
		switch status := res.StatusCode; {
		case res.IsSuccess():
			if interval > 0 && realm != "" {
				r.registry.PinRealm(r.proxy, realm)
			}
			return r.setGranted(grantedInterval(res, req.Contact(), interval), interval)
		case status == 401 || status == 407:
			if realm, err = r.acceptChallenge(res, at, realm); err != nil {
				return 0, err
			}
		case status == 423 && interval > 0: // RFC 3261 section 10.2.8
			if interval, err = longerInterval(res, interval); err != nil {
				return 0, err
			}
			r.interval = interval
		default:
			return 0, refusalError(res)
		}
	}
	return 0, errors.New("the trunk does not accept our credentials")
}

func (r *registration) setGranted(granted, requested time.Duration) (time.Duration, error) {
	r.registered = requested > 0 && granted > 0
	if requested > 0 && granted == 0 {
		return 0, errors.New("the registrar granted an interval of 0 s")
	}
	return min(granted, maxInterval), nil
}

func longerInterval(res *sip.Response, requested time.Duration) (time.Duration, error) {
	n, ok := ParseNumber(res.GetHeader("Min-Expires"))
	least := time.Duration(n) * time.Second
	switch {
	case !ok || least <= requested:
		return 0, errors.New("423 without a longer interval")
	case least > maxInterval:
		return 0, fmt.Errorf("the registrar requires an interval of %d s (423); Parley requests at most %d s", n, maxInterval/time.Second)
	default:
		return least, nil
	}
}

func refusalError(res *sip.Response) error {
	if after, ok := RetryAfter(res); ok && res.StatusCode == 503 {
		return &retryLaterError{after}
	}
	return fmt.Errorf("refused: %d", res.StatusCode)
}

func (r *registration) do(ctx context.Context, req *sip.Request) (*sip.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	return r.registry.Endpoint.Do(ctx, req)
}

// acceptChallenge takes a challenge of the trunk and returns its realm. After
// credentials for realm were sent, only a stale nonce is accepted. If the operator
// set a realm, the challenge must have it. A realm that Parley learned need not
// match, because a callee cannot challenge a REGISTER.
func (r *registration) acceptChallenge(res *sip.Response, at Target, realm string) (string, error) {
	from, err := netip.ParseAddrPort(res.Source())
	if err != nil || from.Addr().Unmap() != at.Hop.Addr.Addr() {
		return realm, errors.New("challenge from an address other than the trunk's")
	}
	name := "WWW-Authenticate"
	if res.StatusCode == 407 {
		name = "Proxy-Authenticate"
	}
	c, err := auth.Pick(HeaderValues(res, name), func(c auth.Challenge) error {
		if r.task.realm == "" {
			return nil
		}
		return r.registry.CheckRealm(r.task.realm, r.proxy, c.Realm)
	})
	switch {
	case err != nil:
		return realm, err
	case realm != "" && !c.Stale:
		return realm, errors.New("the trunk does not accept our credentials")
	}
	r.creds.SetChallenge(c, res.StatusCode == 407)
	return c.Realm, nil
}

func (r *registration) newRequest(at Target, interval time.Duration) *sip.Request {
	req := r.registry.newRequest(sip.REGISTER, at, r.task.username)
	r.cseq++
	req.CSeq().SeqNo = r.cseq
	id := sip.CallIDHeader(r.callID)
	req.ReplaceHeader(&id)
	contact := r.registry.Endpoint.Contact(req.Transport())
	contact.Params.Add("expires", strconv.Itoa(int(interval/time.Second)))
	req.ReplaceHeader(contact)
	req.AppendHeader(sip.NewHeader("Expires", strconv.Itoa(int(interval/time.Second))))
	return req
}

// grantedInterval returns the interval of our Contact in a response.
func grantedInterval(res *sip.Response, contact *sip.ContactHeader, requested time.Duration) time.Duration {
	for _, h := range res.GetHeaders("Contact") {
		c, ok := h.(*sip.ContactHeader)
		if !ok || !strings.EqualFold(c.Address.Host, contact.Address.Host) || c.Address.Port != contact.Address.Port {
			continue
		}
		if v, ok := c.Params.Get("expires"); ok {
			if n, err := strconv.ParseUint(v, 10, 31); err == nil {
				return time.Duration(n) * time.Second
			}
		}
	}
	if n, ok := ParseNumber(res.GetHeader("Expires")); ok {
		return time.Duration(n) * time.Second
	}
	return requested
}

// ParseNumber reads a header with a number.
func ParseNumber(h sip.Header) (uint32, bool) {
	if h == nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(h.Value()), 10, 32)
	return uint32(n), err == nil
}
