package proxy

import (
	"context"
	"sync"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/guard"
)

// A duty is one thing that is done for trunks for as long as they are kept.
type duty struct {
	proxy    string
	register bool // keeps a registration; else asks how the proxy is
	username string
	password media.Secret
	realm    string
}

// Stop ends all duties, for good: Keep begins none any more.
func (b *Book) Stop() {
	b.mu.Lock()
	b.stopped = true
	b.mu.Unlock()
	b.stop(nil)
}

// stop ends all duties but those wanted.
func (b *Book) stop(wanted map[duty]bool) {
	b.mu.Lock()
	var ending []func()
	for d, end := range b.running {
		if !wanted[d] {
			ending = append(ending, end)
			delete(b.running, d)
		}
	}
	b.mu.Unlock()
	var all sync.WaitGroup
	for _, end := range ending {
		all.Go(end)
	}
	all.Wait()
}

// Keep looks after the trunks given, and no longer after others: it asks their
// proxies how they are (OPTIONS), and registers where a trunk wants it. What is
// known of others is forgotten where no call could use it. It returns once what
// is not wanted any more has ended, which a carrier that takes no leave can draw
// out for 2 seconds.
func (b *Book) Keep(trunks []media.Trunk) {
	wanted, named := map[duty]bool{}, map[string]bool{}
	for _, t := range trunks {
		all, err := All(t)
		if err != nil {
			continue // no call goes there either, and says why
		}
		for _, p := range all {
			named[p.Text] = true
			wanted[duty{proxy: p.Text}] = true
			if t.Register && t.Username != "" {
				wanted[duty{proxy: p.Text, register: true, username: t.Username, password: t.Password, realm: t.Realm}] = true
			}
		}
	}
	b.stop(wanted)
	b.prune(named, time.Now())
	for d := range wanted {
		b.begin(d)
	}
}

func (b *Book) begin(d duty) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, err := Parse(d.proxy)
	if err != nil || b.stopped || b.running[d] != nil {
		return
	}
	if b.running == nil {
		b.running, b.registrations = map[duty]func(){}, map[duty]*registration{}
	}
	ctx, quit := context.WithCancel(context.Background())
	ended := make(chan struct{})
	work := func() { b.probe(ctx, p) }
	if d.register {
		r := newRegistration(b, p, d)
		b.registrations[d] = r
		work = func() { r.keep(ctx) }
	}
	if !b.Endpoint.Go(func() { defer close(ended); work() }) {
		quit()
		delete(b.registrations, d)
		return
	}
	b.running[d] = func() {
		quit()
		<-ended
	}
}

// request begins a request to a proxy outside any call. user is who asks.
func (b *Book) request(method sip.RequestMethod, at Place, user string) *sip.Request {
	uri := at.Proxy.URI()
	recipient := *uri.Clone()
	if at.Proxy.Transport != "" {
		recipient.UriParams.Add("transport", sip.NetworkToLower(at.Proxy.Transport))
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
	id := sip.CallIDHeader(sip.GenerateTagN(24) + "@" + b.Endpoint.Addr().Addr().String())
	req.AppendHeader(&id)
	req.AppendHeader(&sip.CSeqHeader{SeqNo: 1, MethodName: method})
	hops := sip.MaxForwardsHeader(70)
	req.AppendHeader(&hops)
	if method == sip.OPTIONS {
		req.AppendHeader(sip.NewHeader("Accept", "application/sdp"))
	}
	req.SetTransport(at.Hop.Transport)
	req.SetDestination(at.Hop.Addr.String())
	b.Endpoint.Sign(req)
	return req
}
