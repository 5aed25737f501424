package endpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/resolver"
	"github.com/parley-voice/parley/sip/sanitize"
)

const maxIgnoredShown = 8

// errForbiddenTarget is returned for a request to an address that the peer must
// not make us send to.
var errForbiddenTarget = errors.New("the peer names an address of this machine or of its network, outside the trunk's")

// A sourceGuard drops messages of calls from addresses outside the trunk, and
// keeps requests from leaving to forbidden addresses.
type sourceGuard struct {
	calls       *callTable
	dialogs     *dialogTable
	filter      *sanitize.Filter
	log         *slog.Logger      // nil drops messages
	resolver    resolver.Resolver // nil uses the system's resolver
	local       netip.Addr
	work        *group
	withTimeout func(context.Context) (context.Context, func())
}

// isForeignResponse reports whether a datagram holds a response to a call from an
// address outside the trunk. The library must not see it: it would end the
// transaction.
func (g *sourceGuard) isForeignResponse(sender net.Addr, data []byte) bool {
	res, ok := sanitize.PeekResponse(data)
	at, udp := sender.(*net.UDPAddr)
	if !ok || !udp {
		return false
	}
	from := at.AddrPort().Addr()
	c := g.calls.get(res.CallID)
	if c.sources == nil {
		return g.isUnexpected(res, from)
	}
	if c.sources.AcceptsResponse(from, res.Status) {
		return false
	}
	g.reject(c, media.Message{Line: res.Line, Peer: at.String() + "/UDP"})
	return true
}

// isUnexpected reports whether the library must not see a response that belongs to no traced call. The library matches
// transactions by branch alone, so a response from any address could answer an INVITE if its Call-ID is wrong or
// hidden. Registrars and probed proxies may answer from any address.
func (g *sourceGuard) isUnexpected(res sanitize.ResponseHead, from netip.Addr) bool {
	if res.CallID != "" && (res.Method == string(sip.REGISTER) || res.Method == string(sip.OPTIONS)) || g.filter.TrustsHost(from) {
		return false
	}
	g.filter.CountForeign()
	return true
}

// isForeignRequest reports whether a request belongs to one of our dialogs but
// comes from an address outside the trunk.
func (g *sourceGuard) isForeignRequest(req *sip.Request) bool {
	if req.CallID() == nil || req.To() == nil || req.From() == nil || g.dialogs.find(req) == nil {
		return false
	}
	c := g.calls.get(string(*req.CallID()))
	at, err := netip.ParseAddrPort(req.Source())
	if c.sources == nil || err != nil || c.sources.AcceptsRequest(at.Addr()) {
		return false
	}
	g.reject(c, media.Message{
		Line: sanitize.Clean(string(req.Method) + " " + req.Recipient.String()), Peer: at.String() + "/" + strings.ToUpper(req.Transport()),
	})
	return true
}

// reject counts a dropped message, and adds the first ones to the trace of their
// call.
func (g *sourceGuard) reject(c call, m media.Message) {
	g.filter.CountForeign()
	n := c.sources.Rejected()
	if n <= maxIgnoredShown {
		m.At, m.Note = time.Now(), "ignored: its address does not belong to the trunk"
		c.ladder.Add(m)
	}
	if n == 1 && g.log != nil {
		g.log.Warn("ignored a message of a call: its address does not belong to the trunk", "line", m.Line, "from", m.Peer)
	}
}

// isTargetRefresh reports whether a method may change a dialog's remote target.
func isTargetRefresh(m sip.RequestMethod) bool { return m == sip.INVITE || m == sip.UPDATE }

// learn adds the addresses that an accepted message names to sources.
func (g *sourceGuard) learn(sources *Sources, msg sip.Message) {
	if sources == nil {
		return
	}
	var routes []string
	for _, h := range msg.GetHeaders("record-route") {
		if r, ok := h.(*sip.RecordRouteHeader); ok {
			routes = append(routes, r.Address.Host)
		}
	}
	contact := ""
	for _, h := range msg.GetHeaders("contact") {
		if c, ok := h.(*sip.ContactHeader); ok {
			contact = c.Address.Host
		}
	}
	for _, name := range sources.AddHosts(routes, contact) {
		g.work.run(func() {
			ctx, end := g.withTimeout(context.Background())
			defer end()
			hops, err := g.lookup(ctx, resolver.Proxy{Host: name})
			if err != nil {
				sources.ForgetName(name)
			}
			for _, at := range hops {
				sources.Add(at.Addr())
			}
		})
	}
}

// lookup finds the addresses of a host by its name, or else by its SRV records.
func (g *sourceGuard) lookup(ctx context.Context, p resolver.Proxy) ([]netip.AddrPort, error) {
	r := g.resolver
	if r == nil {
		r = &resolver.DNS{}
	}
	port := p.Port
	if port == 0 {
		p.Port = 5060 // with a port, Find looks up addresses instead of SRV records
	}
	hops, err := resolver.Find(ctx, r, p, g.local)
	if err != nil && (port == 0 || port == uint16(sip.DefaultPort(p.Transport))) { //nolint:gosec // 5060 or 5061
		p.Port = 0
		hops, err = resolver.Find(ctx, r, p, g.local)
	}
	if err != nil {
		return nil, err
	}
	all := make([]netip.AddrPort, 0, len(hops))
	for _, h := range hops {
		all = append(all, h.Addr)
	}
	return all, nil
}

// setDestination resolves the destination of a call's request to an address that
// the call may send to. A peer must not make us write to this machine, or to
// services around it.
func (g *sourceGuard) setDestination(ctx context.Context, req *sip.Request) error {
	id := req.CallID()
	if id == nil {
		return nil
	}
	c := g.calls.get(string(*id))
	if c.sources == nil {
		return nil
	}
	host, port, err := net.SplitHostPort(req.Destination())
	if err != nil {
		return fmt.Errorf("destination: %w", err)
	}
	if a, ok := parseHost(host); ok {
		if !c.sources.MaySendTo(a) {
			return errForbiddenTarget
		}
		return nil
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return fmt.Errorf("destination: %w", err)
	}
	addrs, err := g.lookup(ctx, resolver.Proxy{Host: host, Port: uint16(number), Transport: req.Transport()})
	if err != nil {
		return err
	}
	n := slices.IndexFunc(addrs, func(at netip.AddrPort) bool { return c.sources.MaySendTo(at.Addr()) })
	if n < 0 {
		return errForbiddenTarget
	}
	req.SetDestination(addrs[n].String())
	return nil
}
