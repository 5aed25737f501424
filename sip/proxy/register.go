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
	registerFor   = time.Hour        // what is asked for
	registerWait  = 8 * time.Second  // for one answer
	registerFirst = 5 * time.Second  // before a registration that failed is tried again; it doubles
	registerLast  = 10 * time.Minute // at most
	leaveWithin   = 2 * time.Second  // a carrier takes our leave
	// registerMost bounds an interval, whatever is granted or wanted.
	registerMost = 24 * time.Hour
	// laterMost bounds how long a registrar is left alone that asks for it.
	laterMost = time.Hour
)

// A registration tells a trunk's proxy where we are, and goes on telling it
// (RFC 3261 section 10.2).
type registration struct {
	book  *Book
	proxy Proxy
	duty  duty
	creds *auth.Credentials

	callID string
	cseq   uint32
	asked  time.Duration // interval
	known  bool          // the proxy knows us

	mu    sync.Mutex
	state Registration
}

// A Registration is how one stands.
type Registration struct {
	Proxy, Username string
	Until           time.Time // it lasts; zero where there is none
	Err             error     // why there is none
}

func newRegistration(b *Book, p Proxy, d duty) *registration {
	return &registration{
		book: b, proxy: p, duty: d, asked: registerFor,
		creds:  &auth.Credentials{Username: d.username, Password: d.password},
		callID: sip.GenerateTagN(24) + "@" + b.Endpoint.Addr().Addr().String(),
		state:  Registration{Proxy: p.Text, Username: d.username},
	}
}

// Registrations is how the registrations stand that are kept.
func (b *Book) Registrations() []Registration {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]Registration, 0, len(b.registrations))
	for _, r := range b.registrations {
		r.mu.Lock()
		all = append(all, r.state)
		r.mu.Unlock()
	}
	return all
}

// keep registers, and refreshes, until ctx ends; then it takes leave.
func (r *registration) keep(ctx context.Context) {
	defer r.leave() //nolint:contextcheck // after ctx has ended
	again := registerFirst
	for {
		began := time.Now()
		granted, err := r.register(ctx, r.asked)
		if ctx.Err() != nil {
			return
		}
		wait := refreshIn(granted)
		if err != nil {
			wait = around(again)
			if later, ok := errors.AsType[*laterError](err); ok {
				wait = max(wait, min(later.after, laterMost))
			}
			again = min(2*again, registerLast)
		} else {
			again = registerFirst
		}
		r.note(began.Add(granted), err)
		if r.book.Registered != nil {
			r.book.Registered(err == nil, time.Since(began))
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// refreshIn is when a registration is refreshed: well before it ends, but after
// a second at least.
func refreshIn(granted time.Duration) time.Duration {
	return max(granted*4/5-around(granted/20), time.Second)
}

func (r *registration) note(until time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Err, r.state.Until = err, until
	if err != nil {
		r.state.Until = time.Time{}
		if r.book.Log != nil {
			r.book.Log.Warn("the trunk does not register us", "proxy", r.proxy.Text, "err", err)
		}
	}
}

// leave ends the registration, if the proxy knows of one.
func (r *registration) leave() {
	if r.known {
		ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
		_, _ = r.register(ctx, 0) // it ends by itself too
		cancel()
	}
	r.book.mu.Lock()
	defer r.book.mu.Unlock()
	delete(r.book.registrations, r.duty)
}

// A laterError is a refusal that says when to try again.
type laterError struct{ after time.Duration }

// Error implements error.
func (e *laterError) Error() string { return "503, try again in " + e.after.String() }

// register asks for an interval at the first place that answers, and returns
// what was granted.
func (r *registration) register(ctx context.Context, interval time.Duration) (time.Duration, error) {
	places, err := r.book.find(ctx, r.proxy)
	for _, at := range places {
		var granted time.Duration
		if granted, err = r.at(ctx, at, interval); err == nil || ctx.Err() != nil {
			return granted, err
		}
	}
	return 0, err
}

// at registers at one place. A challenge is answered once, and once more with
// a fresh nonce.
func (r *registration) at(ctx context.Context, at Place, interval time.Duration) (time.Duration, error) {
	realm := "" // that asked for credentials
	for range 4 {
		req := r.request(at, interval)
		name, value, err := r.creds.Header(string(sip.REGISTER), req.Recipient.String())
		if err != nil {
			return 0, fmt.Errorf("credentials: %w", err)
		}
		if name != "" {
			req.AppendHeader(sip.NewHeader(name, value))
		}
		res, err := r.ask(ctx, req)
		if err != nil {
			return 0, err
		}
		switch status := res.StatusCode; {
		case res.IsSuccess():
			if interval > 0 && realm != "" {
				r.book.Pin(r.proxy, realm)
			}
			return r.accepted(granted(res, req.Contact(), interval), interval)
		case status == 401 || status == 407:
			if realm, err = r.challenged(res, at, realm); err != nil {
				return 0, err
			}
		case status == 423 && interval > 0: // RFC 3261 section 10.2.8
			if interval, err = longer(res, interval); err != nil {
				return 0, err
			}
			r.asked = interval
		default:
			return 0, refusal(res)
		}
	}
	return 0, errors.New("the trunk does not accept our credentials")
}

// accepted takes what a 200 granted of what was asked for.
func (r *registration) accepted(granted, asked time.Duration) (time.Duration, error) {
	r.known = asked > 0 && granted > 0
	if asked > 0 && granted == 0 {
		return 0, errors.New("the trunk grants a registration of no time")
	}
	return min(granted, registerMost), nil
}

// longer is the interval that a 423 wants instead of the one asked for.
func longer(res *sip.Response, asked time.Duration) (time.Duration, error) {
	n, ok := Number(res.GetHeader("Min-Expires"))
	least := time.Duration(n) * time.Second
	switch {
	case !ok || least <= asked:
		return 0, errors.New("423 without a longer interval")
	case least > registerMost:
		return 0, fmt.Errorf("423 wants %d s, at most %d are asked for", n, registerMost/time.Second)
	default:
		return least, nil
	}
}

func refusal(res *sip.Response) error {
	if after, ok := RetryAfter(res); ok && res.StatusCode == 503 {
		return &laterError{after}
	}
	return fmt.Errorf("refused: %d", res.StatusCode)
}

func (r *registration) ask(ctx context.Context, req *sip.Request) (*sip.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, registerWait)
	defer cancel()
	return r.book.Endpoint.Ask(ctx, req)
}

// challenged takes a challenge, if it is the trunk's, and returns its realm. One
// that comes after we answered the last, that of realm, must be for a fresh
// nonce. No phone sees a REGISTER: so the realm set is the only one that the
// registrar is held to.
func (r *registration) challenged(res *sip.Response, at Place, realm string) (string, error) {
	from, err := netip.ParseAddrPort(res.Source())
	if err != nil || from.Addr().Unmap() != at.Hop.Addr.Addr() {
		return realm, errors.New("challenge from another address than the trunk's")
	}
	name := "WWW-Authenticate"
	if res.StatusCode == 407 {
		name = "Proxy-Authenticate"
	}
	c, err := auth.Pick(Values(res, name), func(from string) bool { return r.duty.realm == "" || from == r.duty.realm })
	switch {
	case err != nil:
		return realm, err
	case realm != "" && !c.Stale:
		return realm, errors.New("the trunk does not accept our credentials")
	}
	r.creds.Accept(c, res.StatusCode == 407)
	return c.Realm, nil
}

func (r *registration) request(at Place, interval time.Duration) *sip.Request {
	req := r.book.request(sip.REGISTER, at, r.duty.username)
	r.cseq++
	req.CSeq().SeqNo = r.cseq
	id := sip.CallIDHeader(r.callID)
	req.ReplaceHeader(&id)
	contact := r.book.Endpoint.Contact(req.Transport())
	contact.Params.Add("expires", strconv.Itoa(int(interval/time.Second)))
	req.ReplaceHeader(contact)
	req.AppendHeader(sip.NewHeader("Expires", strconv.Itoa(int(interval/time.Second))))
	return req
}

// granted is the interval of our own Contact among those of an answer.
func granted(res *sip.Response, ours *sip.ContactHeader, asked time.Duration) time.Duration {
	for _, h := range res.GetHeaders("Contact") {
		c, ok := h.(*sip.ContactHeader)
		if !ok || !strings.EqualFold(c.Address.Host, ours.Address.Host) || c.Address.Port != ours.Address.Port {
			continue
		}
		if v, ok := c.Params.Get("expires"); ok {
			if n, err := strconv.ParseUint(v, 10, 31); err == nil {
				return time.Duration(n) * time.Second
			}
		}
	}
	if n, ok := Number(res.GetHeader("Expires")); ok {
		return time.Duration(n) * time.Second
	}
	return asked
}

// Number reads a header that is one.
func Number(h sip.Header) (uint32, bool) {
	if h == nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(h.Value()), 10, 32)
	return uint32(n), err == nil
}
