package proxy

import (
	"context"
	"sync"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/sanitize"
)

// A task probes a proxy or keeps a registration while trunks need it.
type task struct {
	proxy    string
	register bool // the task registers; otherwise it probes
	username string
	password media.Secret
	realm    string
}

// Stop ends all tasks. SetTrunks starts none afterwards.
func (reg *Registry) Stop() {
	reg.mu.Lock()
	reg.stopped = true
	reg.mu.Unlock()
	reg.stopExcept(nil)
}

func (reg *Registry) stopExcept(wanted map[task]bool) {
	reg.mu.Lock()
	var ending []func()
	for d, end := range reg.running {
		if !wanted[d] {
			ending = append(ending, end)
			delete(reg.running, d)
		}
	}
	reg.mu.Unlock()
	var all sync.WaitGroup
	for _, end := range ending {
		all.Go(end)
	}
	all.Wait()
}

// SetTrunks probes the proxies of the given trunks (OPTIONS) and registers for
// trunks that want it. It ends the tasks of other trunks and removes their state
// when no call can use it. It blocks until those tasks have ended: up to 2 s if a
// registrar does not answer.
func (reg *Registry) SetTrunks(trunks []media.Trunk) {
	wanted, proxies := map[task]bool{}, map[string]bool{}
	for _, t := range trunks {
		all, err := ParseAll(t)
		if err != nil {
			continue // calls through this trunk fail with this error
		}
		for _, p := range all {
			proxies[p.Text] = true
			wanted[task{proxy: p.Text}] = true
			if t.Register && t.Username != "" {
				wanted[task{proxy: p.Text, register: true, username: t.Username, password: t.Password, realm: t.Realm}] = true
			}
		}
	}
	reg.stopExcept(wanted)
	reg.prune(proxies, time.Now())
	for d := range wanted {
		reg.start(d)
	}
}

func (reg *Registry) start(d task) {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	p, err := Parse(d.proxy)
	if err != nil || reg.stopped || reg.running[d] != nil {
		return
	}
	if reg.running == nil {
		reg.running, reg.registrations = map[task]func(){}, map[task]*registration{}
	}
	ctx, quit := context.WithCancel(context.Background())
	ended := make(chan struct{})
	work := func() { reg.probe(ctx, p) }
	if d.register {
		r := newRegistration(reg, p, d)
		reg.registrations[d] = r
		work = func() { r.run(ctx) }
	}
	if !reg.Endpoint.Go(func() { defer close(ended); work() }) {
		quit()
		delete(reg.registrations, d)
		return
	}
	reg.running[d] = func() {
		quit()
		<-ended
	}
}

// newRequest returns a request outside a call. user is the user part of From.
func (reg *Registry) newRequest(method sip.RequestMethod, at Target, user string) *sip.Request {
	uri := at.Proxy.URI()
	recipient := *uri.Clone()
	if at.Proxy.Transport != "" {
		recipient.UriParams.Add("transport", sip.NetworkToLower(at.Proxy.Transport))
	}
	uri.Port = 0
	req := sip.NewRequest(method, recipient)
	uri.User = sanitize.EscapeUser(user)
	from := sip.FromHeader{Address: uri}
	from.Params.Add("tag", sip.GenerateTagN(16))
	req.AppendHeader(&from)
	if method == sip.OPTIONS {
		uri.User = ""
	}
	req.AppendHeader(&sip.ToHeader{Address: uri})
	id := sip.CallIDHeader(sip.GenerateTagN(24) + "@" + reg.Endpoint.Addr().Addr().String())
	req.AppendHeader(&id)
	req.AppendHeader(&sip.CSeqHeader{SeqNo: 1, MethodName: method})
	hops := sip.MaxForwardsHeader(70)
	req.AppendHeader(&hops)
	if method == sip.OPTIONS {
		req.AppendHeader(sip.NewHeader("Accept", "application/sdp"))
	}
	req.SetTransport(at.Hop.Transport)
	req.SetDestination(at.Hop.Addr.String())
	reg.Endpoint.Finalize(req)
	return req
}
