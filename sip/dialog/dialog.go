// Package dialog is the state that two SIP user agents share once one has
// answered the other (RFC 3261 section 12), and the requests that follow it.
package dialog

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/emiago/sipgo/sip"
)

// A Key names a dialog, seen from our side.
type Key struct{ CallID, Local, Remote string }

// RequestKey is the dialog that a request of the peer belongs to.
func RequestKey(req *sip.Request) Key {
	return Key{callID(req), tag(req.To()), tag(req.From())}
}

// A Dialog is one side's state. Its methods may be called from any goroutine.
type Dialog struct {
	key           Key
	local, remote party
	transport     string
	caller        bool
	flow          string // where the INVITE went to, or came from
	lost          bool   // the peer named no place of its own

	mu       sync.Mutex
	routes   []sip.Uri
	target   sip.Uri // of the peer
	sent     uint32  // our last CSeq
	received uint32  // the peer's last CSeq
}

// A party is a From or a To.
type party struct {
	name   string
	uri    sip.Uri
	params sip.HeaderParams
}

// FromResponse is the dialog of the caller, whose INVITE was answered by res.
func FromResponse(invite *sip.Request, res *sip.Response) (*Dialog, error) {
	from, to, cseq := invite.From(), res.To(), invite.CSeq()
	if from == nil || to == nil || cseq == nil {
		return nil, errors.New("answer without From, To or CSeq")
	}
	d := &Dialog{
		key:       Key{callID(invite), tag(from), tag(to)},
		local:     party{from.DisplayName, from.Address, from.Params},
		remote:    party{to.DisplayName, to.Address, to.Params},
		transport: invite.Transport(),
		caller:    true,
		flow:      invite.Destination(),
		target:    invite.Recipient,
		sent:      cseq.SeqNo,
	}
	// An answer without a Contact that leads anywhere breaks the rules, but is
	// an answer, and what follows goes where the INVITE went.
	c := res.Contact()
	d.lost = c == nil || checkTarget(c.Address) != nil
	d.Retarget(c)
	d.routes = recordRoutes(res)
	slices.Reverse(d.routes) // RFC 3261 section 12.1.2
	return d, nil
}

// Confirm has an early dialog go on as the 2xx of the same peer says (RFC 3261
// section 13.2.2.4).
func (d *Dialog) Confirm(res *sip.Response) {
	d.Retarget(res.Contact())
	routes := recordRoutes(res)
	slices.Reverse(routes)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.routes = routes
}

// FromRequest is the dialog of the called, who answers invite with a tag.
func FromRequest(invite *sip.Request, localTag string) (*Dialog, error) {
	from, to, cseq := invite.From(), invite.To(), invite.CSeq()
	if from == nil || to == nil || cseq == nil {
		return nil, errors.New("INVITE without From, To or CSeq")
	}
	c := invite.Contact()
	if c == nil {
		return nil, errors.New("INVITE without Contact")
	}
	d := &Dialog{
		key:       Key{callID(invite), localTag, tag(from)},
		local:     party{to.DisplayName, to.Address, sip.HeaderParams{{K: "tag", V: localTag}}},
		remote:    party{from.DisplayName, from.Address, from.Params},
		transport: invite.Transport(),
		flow:      invite.Source(),
		target:    c.Address,
		received:  cseq.SeqNo,
		routes:    recordRoutes(invite),
	}
	return d, checkTarget(d.target)
}

func checkTarget(u sip.Uri) error {
	if u.Host == "" || u.Wildcard || u.Scheme != "sip" && u.Scheme != "sips" && u.Scheme != "" {
		return fmt.Errorf("contact %q leads nowhere", u.Scheme)
	}
	return nil
}

// Key names the dialog.
func (d *Dialog) Key() Key { return d.key }

// Transport is what the dialog was begun over: "UDP", "TCP" or "TLS".
func (d *Dialog) Transport() string { return d.transport }

// Caller says that the INVITE was ours, and with it the Call-ID.
func (d *Dialog) Caller() bool { return d.caller }

// RemoteURI is the peer's target: where it is reached.
func (d *Dialog) RemoteURI() sip.Uri {
	d.mu.Lock()
	defer d.mu.Unlock()
	return *d.target.Clone()
}

// Receive takes the CSeq of a request of the peer. It is false for a request
// older than one already seen (RFC 3261 section 12.2.2).
func (d *Dialog) Receive(cseq uint32) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if cseq < d.received {
		return false
	}
	d.received = cseq
	return true
}

// Retarget follows the peer to a new Contact (RFC 3261 section 12.2.2).
func (d *Dialog) Retarget(c *sip.ContactHeader) {
	if c == nil || checkTarget(c.Address) != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.target = c.Address
}

// Request is the next request of ours, without Via and Contact.
func (d *Dialog) Request(method sip.RequestMethod) *sip.Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sent++
	return d.request(method, d.sent)
}

// Prack acknowledges a provisional response to our INVITE that had the number
// cseq (RFC 3262 section 7.2).
func (d *Dialog) Prack(rseq, cseq uint32) *sip.Request {
	req := d.Request(sip.PRACK)
	req.AppendHeader(sip.NewHeader("RAck", fmt.Sprintf("%d %d INVITE", rseq, cseq)))
	return req
}

// Ack acknowledges the answer to our INVITE that had the number cseq.
func (d *Dialog) Ack(cseq uint32) *sip.Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.request(sip.ACK, cseq)
}

// request needs d.mu.
func (d *Dialog) request(method sip.RequestMethod, cseq uint32) *sip.Request {
	target, routes, first := d.target, d.routes, d.target
	if len(routes) > 0 {
		first = routes[0]
		if !first.UriParams.Has("lr") { // it routes strictly, RFC 3261 section 12.2.1.1
			routes = append(slices.Clone(routes[1:]), target)
			target = first
		}
	}
	target.Headers = nil
	req := sip.NewRequest(method, *target.Clone())
	for _, r := range routes {
		req.AppendHeader(&sip.RouteHeader{Address: *r.Clone()})
	}
	req.AppendHeader(&sip.FromHeader{DisplayName: d.local.name, Address: *d.local.uri.Clone(), Params: d.local.params.Clone()})
	req.AppendHeader(&sip.ToHeader{DisplayName: d.remote.name, Address: *d.remote.uri.Clone(), Params: d.remote.params.Clone()})
	id := sip.CallIDHeader(d.key.CallID)
	req.AppendHeader(&id)
	req.AppendHeader(&sip.CSeqHeader{SeqNo: cseq, MethodName: method})
	hops := sip.MaxForwardsHeader(70)
	req.AppendHeader(&hops)
	req.SetTransport(d.hop(first))
	req.SetDestination(hostPort(first, req.Transport()))
	// Over TLS, whoever proved its name for the INVITE is the only one known to
	// be who it says: Contacts seldom hold a name that a certificate does.
	if d.transport == "TLS" || d.lost && len(d.routes) == 0 {
		d.Reroute(req)
	}
	return req
}

// Reroute has a request go where the INVITE went, or came from. It is false
// where the request goes there anyway.
func (d *Dialog) Reroute(req *sip.Request) bool {
	if req.Transport() == d.transport && req.Destination() == d.flow {
		return false
	}
	req.SetTransport(d.transport)
	req.SetDestination(d.flow)
	return true
}

// hop is the transport to a URI: its own where that is spoken here, or that of
// the dialog.
func (d *Dialog) hop(u sip.Uri) string {
	t, _ := u.UriParams.Get("transport")
	if t = strings.ToUpper(t); t == "UDP" || t == "TCP" {
		return t
	}
	return d.transport
}

func hostPort(u sip.Uri, transport string) string {
	port := u.Port
	if port == 0 {
		port = sip.DefaultPort(transport)
	}
	return net.JoinHostPort(strings.Trim(u.Host, "[]"), strconv.Itoa(port))
}

func recordRoutes(msg sip.Message) (routes []sip.Uri) {
	for _, h := range msg.GetHeaders("record-route") {
		if r, ok := h.(*sip.RecordRouteHeader); ok {
			routes = append(routes, r.Address)
		}
	}
	return routes
}

func callID(msg sip.Message) string {
	if id := msg.CallID(); id != nil {
		return string(*id)
	}
	return ""
}

// tag is the tag of a From or a To, or "".
func tag[H interface {
	*sip.FromHeader | *sip.ToHeader
}](h H) string {
	var t string
	switch h := any(h).(type) {
	case *sip.FromHeader:
		if h != nil {
			t, _ = h.Params.Get("tag")
		}
	case *sip.ToHeader:
		if h != nil {
			t, _ = h.Params.Get("tag")
		}
	}
	return t
}
