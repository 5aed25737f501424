package sip

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/guard"
	"github.com/parley-voice/parley/sip/health"
)

// probeFor is how long an address may take to say how it is.
const probeFor = 4 * time.Second

// A duty is one thing that is done for trunks for as long as they are kept.
type duty struct {
	proxy    string
	register bool // keeps a registration; else asks how the proxy is
	username string
	password media.Secret
	realm    string
}

// keepers are the duties that are being done.
type keepers struct {
	mu      sync.Mutex
	running map[duty]func() // stops it, and waits
}

// stop ends all duties but those wanted.
func (k *keepers) stop(wanted map[duty]bool) {
	k.mu.Lock()
	var ending []func()
	for d, end := range k.running {
		if !wanted[d] {
			ending = append(ending, end)
			delete(k.running, d)
		}
	}
	k.mu.Unlock()
	var all sync.WaitGroup
	for _, end := range ending {
		all.Go(end)
	}
	all.Wait()
}

// Keep looks after the trunks given, and no longer after others: it asks their
// proxies how they are (OPTIONS), and registers where a trunk wants it. It
// returns once what is not wanted any more has ended, which a carrier that
// takes no leave can draw out for 2 seconds.
func (u *UA) Keep(trunks []media.Trunk) {
	wanted := map[duty]bool{}
	for _, t := range trunks {
		all, err := proxies(t)
		if err != nil {
			continue // no call goes there either, and says why
		}
		for _, p := range all {
			wanted[duty{proxy: p.text}] = true
			if t.Register && t.Username != "" {
				wanted[duty{proxy: p.text, register: true, username: t.Username, password: t.Password, realm: t.Realm}] = true
			}
		}
	}
	u.keepers.stop(wanted)
	for d := range wanted {
		u.begin(d)
	}
}

func (u *UA) begin(d duty) {
	u.keepers.mu.Lock()
	defer u.keepers.mu.Unlock()
	if u.keepers.running[d] != nil {
		return
	}
	if u.keepers.running == nil {
		u.keepers.running = map[duty]func(){}
	}
	p, err := parseProxy(d.proxy)
	if err != nil {
		return
	}
	ctx, quit := context.WithCancel(context.Background())
	ended := make(chan struct{})
	work := func() { u.probe(ctx, p) }
	if d.register {
		r := newRegistration(u, p, d)
		work = func() { r.keep(ctx) }
	}
	if !u.endpoint.Go(func() { defer close(ended); work() }) {
		quit()
		return
	}
	u.keepers.running[d] = func() {
		quit()
		<-ended
	}
}

// Trunks is what is known of the addresses of trunks.
func (u *UA) Trunks() []health.State { return u.health.States(time.Now()) }

// probe asks a proxy how it is, again and again, until ctx ends.
func (u *UA) probe(ctx context.Context, p proxy) {
	for {
		wait := health.ProbeEvery
		places, err := u.find(ctx, p)
		if err != nil {
			wait = health.ProbeDown
		}
		for _, at := range places {
			if u.ask(ctx, at) {
				continue
			}
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

// ask sends an OPTIONS to one place. Whatever the answer, one that answers
// lives; save where it says that it cannot take calls.
func (u *UA) ask(ctx context.Context, at place) bool {
	ctx, cancel := context.WithTimeout(ctx, probeFor)
	defer cancel()
	req := u.request(sip.OPTIONS, at, "parley")
	res, err := u.endpoint.Ask(ctx, req)
	now := time.Now()
	switch {
	case errors.Is(err, endpoint.ErrClosed) || errors.Is(ctx.Err(), context.Canceled):
		return true // we are leaving
	case err != nil || res.StatusCode == 408:
		u.health.Missed(at.address(), now)
		return false
	}
	if after, ok := retryAfter(res); ok && res.StatusCode == 503 {
		u.health.Bar(at.address(), after, now)
		return false
	}
	u.health.Answered(at.address(), now)
	return true
}

// request begins a request to a proxy outside any call. user is who asks.
func (u *UA) request(method sip.RequestMethod, at place, user string) *sip.Request {
	uri := sip.Uri{Scheme: "sip", Host: at.proxy.host(), Port: at.proxy.uri.Port}
	recipient := *uri.Clone()
	if at.proxy.transport != "" {
		recipient.UriParams.Add("transport", sip.NetworkToLower(at.proxy.transport))
	}
	uri.Port = 0
	req := sip.NewRequest(method, recipient)
	uri.User = guard.Escape(user)
	from := sip.FromHeader{Address: uri}
	from.Params.Add("tag", sip.GenerateTagN(16))
	req.AppendHeader(&from)
	if method == sip.OPTIONS {
		uri.User = ""
	}
	req.AppendHeader(&sip.ToHeader{Address: uri})
	id := sip.CallIDHeader(sip.GenerateTagN(24) + "@" + u.endpoint.Addr().Addr().String())
	req.AppendHeader(&id)
	req.AppendHeader(&sip.CSeqHeader{SeqNo: 1, MethodName: method})
	hops := sip.MaxForwardsHeader(70)
	req.AppendHeader(&hops)
	if method == sip.OPTIONS {
		req.AppendHeader(sip.NewHeader("Accept", "application/sdp"))
	}
	req.SetTransport(at.hop.Transport)
	req.SetDestination(at.hop.Addr.String())
	u.endpoint.Sign(req)
	return req
}
