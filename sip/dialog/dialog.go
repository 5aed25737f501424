// Package dialog holds one side's state of a SIP dialog (RFC 3261 section 12) and creates the requests within it. It also
// negotiates session timers (RFC 4028).
package dialog

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/emiago/sipgo/sip"
)

// A Key identifies a dialog. Local and Remote are tags.
type Key struct{ CallID, Local, Remote string }

// RequestKey returns the key of the dialog that a peer's request belongs to.
func RequestKey(req *sip.Request) Key {
	key := Key{CallID: callID(req)}
	if to := req.To(); to != nil {
		key.Local = tag(to.Params)
	}
	if from := req.From(); from != nil {
		key.Remote = tag(from.Params)
	}
	return key
}

// A Dialog is one side's state. Its methods are safe for concurrent use.
type Dialog struct {
	key           Key
	local, remote nameAddr
	transport     string
	isCaller      bool
	flow          string // address to which the INVITE was sent, or from which it came
	noContact     bool   // the peer has sent no valid Contact

	mu        sync.Mutex
	routes    []sip.Uri
	target    sip.Uri // remote target
	localSeq  uint32  // CSeq of our last request
	remoteSeq uint32  // CSeq of the peer's last request
}

type nameAddr struct {
	name   string
	uri    sip.Uri
	params sip.HeaderParams
}

// FromResponse returns the caller's dialog after the response res.
func FromResponse(invite *sip.Request, res *sip.Response) (*Dialog, error) {
	from, to, cseq := invite.From(), res.To(), invite.CSeq()
	if from == nil || to == nil || cseq == nil {
		return nil, errors.New("answer without From, To or CSeq")
	}
	d := &Dialog{
		key:       Key{callID(invite), tag(from.Params), tag(to.Params)},
		local:     nameAddr{from.DisplayName, from.Address, from.Params},
		remote:    nameAddr{to.DisplayName, to.Address, to.Params},
		transport: invite.Transport(),
		isCaller:  true,
		flow:      invite.Destination(),
		target:    invite.Recipient,
		localSeq:  cseq.SeqNo,
	}
	// A 2xx without a valid Contact violates RFC 3261, but it answers the call. Later requests go
	// to the address of the INVITE.
	c := res.Contact()
	d.noContact = c == nil || checkTarget(c.Address) != nil
	d.Retarget(c)
	d.routes = recordRoutes(res)
	slices.Reverse(d.routes) // RFC 3261 section 12.1.2
	return d, nil
}

// Confirm updates an early dialog with the 2xx of the same peer (RFC 3261 section
// 13.2.2.4).
func (d *Dialog) Confirm(res *sip.Response) {
	d.Retarget(res.Contact())
	routes := recordRoutes(res)
	slices.Reverse(routes)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.routes = routes
}

// FromRequest returns the callee's dialog for an answer with a tag.
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
		key:       Key{callID(invite), localTag, tag(from.Params)},
		local:     nameAddr{to.DisplayName, to.Address, sip.HeaderParams{{K: "tag", V: localTag}}},
		remote:    nameAddr{from.DisplayName, from.Address, from.Params},
		transport: invite.Transport(),
		flow:      invite.Source(),
		target:    c.Address,
		remoteSeq: cseq.SeqNo,
		routes:    recordRoutes(invite),
	}
	return d, checkTarget(d.target)
}

func checkTarget(u sip.Uri) error {
	if u.Host == "" || u.Wildcard || u.Scheme != "sip" && u.Scheme != "sips" && u.Scheme != "" {
		return fmt.Errorf("contact with the scheme %q and no usable host; want sip or sips", u.Scheme)
	}
	return nil
}

// Key identifies the dialog.
func (d *Dialog) Key() Key { return d.key }

// Transport returns the transport of the INVITE: "UDP", "TCP" or "TLS".
func (d *Dialog) Transport() string { return d.transport }

// IsCaller reports whether we sent the INVITE, and so own the Call-ID.
func (d *Dialog) IsCaller() bool { return d.isCaller }

// Peer returns the address that the INVITE was sent to or came from.
func (d *Dialog) Peer() netip.Addr {
	at, _ := netip.ParseAddrPort(d.flow) // invalid if the address cannot be parsed
	return at.Addr().Unmap()
}

// RemoteURI returns the remote target.
func (d *Dialog) RemoteURI() sip.Uri {
	d.mu.Lock()
	defer d.mu.Unlock()
	return *d.target.Clone()
}

// CheckCSeq records the CSeq of a peer's request. It returns false if the request
// is older than an earlier one (RFC 3261 section 12.2.2).
func (d *Dialog) CheckCSeq(cseq uint32) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if cseq < d.remoteSeq {
		return false
	}
	d.remoteSeq = cseq
	return true
}

// Retarget sets the remote target to a valid Contact (RFC 3261 section 12.2.2).
func (d *Dialog) Retarget(c *sip.ContactHeader) {
	if c == nil || checkTarget(c.Address) != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.target = c.Address
}

// Request returns the next request within the dialog, without Via and Contact.
func (d *Dialog) Request(method sip.RequestMethod) *sip.Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.localSeq++
	return d.request(method, d.localSeq)
}

// Prack returns the PRACK of the provisional response rseq to our INVITE cseq
// (RFC 3262 section 7.2).
func (d *Dialog) Prack(rseq, cseq uint32) *sip.Request {
	req := d.Request(sip.PRACK)
	req.AppendHeader(sip.NewHeader("RAck", fmt.Sprintf("%d %d INVITE", rseq, cseq)))
	return req
}

// Ack returns the ACK for the 2xx to our INVITE cseq.
func (d *Dialog) Ack(cseq uint32) *sip.Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.request(sip.ACK, cseq)
}

// request must be called with d.mu held.
func (d *Dialog) request(method sip.RequestMethod, cseq uint32) *sip.Request {
	target, routes, first := d.target, d.routes, d.target
	if len(routes) > 0 {
		first = routes[0]
		if !first.UriParams.Has("lr") { // strict routing, RFC 3261 section 12.2.1.1
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
	req.SetTransport(d.transportTo(first))
	req.SetDestination(hostPort(first, req.Transport()))
	// Over TLS only the peer of the INVITE has proved its name: Contacts seldom
	// hold a name that a certificate has.
	if d.transport == "TLS" || d.noContact && len(d.routes) == 0 {
		d.Reroute(req)
	}
	return req
}

// Reroute changes the destination of a request to the address of the INVITE. It
// returns false if that is its destination already.
func (d *Dialog) Reroute(req *sip.Request) bool {
	if req.Transport() == d.transport && req.Destination() == d.flow {
		return false
	}
	req.SetTransport(d.transport)
	req.SetDestination(d.flow)
	return true
}

// transportTo returns the transport in a URI, if supported, or else the dialog's.
func (d *Dialog) transportTo(u sip.Uri) string {
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
	host := strings.Trim(u.Host, "[]")
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(port)
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

func tag(params sip.HeaderParams) string { return params.GetOr("tag", "") }
