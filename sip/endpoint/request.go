package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/emiago/sipgo"
	"github.com/emiago/sipgo/sip"
)

// maxDatagram is the longest request sent over UDP, in bytes. A longer datagram
// may be fragmented (RFC 3261 section 18.1.1).
const maxDatagram = 1300

// ErrUnsent is wrapped by errors for a request of which no byte was sent.
var ErrUnsent = errors.New("not sent")

// asIs stops the library from adding headers to a request.
func asIs(*sipgo.Client, *sip.Request) error { return nil }

// Contact returns the Contact header of the endpoint for a transport.
func (e *Endpoint) Contact(transport string) *sip.ContactHeader {
	uri := sip.Uri{Scheme: "sip", User: "parley", Host: uriHost(e.local.public.Addr()), Port: e.port(transport)}
	uri.UriParams.Add("transport", sip.NetworkToLower(transport))
	return &sip.ContactHeader{Address: uri}
}

func (e *Endpoint) port(transport string) int {
	if at := e.TLSAddr(); transport == "TLS" && at.IsValid() {
		return int(at.Port())
	}
	return int(e.local.public.Port())
}

// uriHost formats an address as a URI host (RFC 3261 section 25.1).
func uriHost(ip netip.Addr) string {
	if ip.Is6() {
		return "[" + ip.String() + "]"
	}
	return ip.String()
}

// Finalize prepares a request for a transaction: it sets a new Via, and adds
// Contact, User-Agent and Content-Length if they are missing.
func (e *Endpoint) Finalize(req *sip.Request) {
	req.RemoveHeader("Via") // the request has at most our own Via
	via := &sip.ViaHeader{
		ProtocolName: "SIP", ProtocolVersion: "2.0", Transport: req.Transport(),
		Host: uriHost(e.local.public.Addr()), Port: e.port(req.Transport()),
	}
	via.Params.Add("branch", sip.GenerateBranchN(24))
	via.Params.Add("rport", "") // RFC 3581
	req.PrependHeader(via)
	if req.Contact() == nil && req.Method != sip.BYE {
		req.AppendHeader(e.Contact(req.Transport()))
	}
	if e.Name != "" && req.GetHeader("User-Agent") == nil {
		req.AppendHeader(sip.NewHeader("User-Agent", e.Name))
	}
	req.SetBody(req.Body())
	e.local.pin(req)
}

// FitsUDP reports whether a finalized request is short enough for UDP.
func FitsUDP(req *sip.Request) bool { return len(req.String()) <= maxDatagram }

// Send starts the transaction of a finalized request. Connecting ends with ctx, or after 4 s; the error then wraps that
// of the context.
func (e *Endpoint) Send(ctx context.Context, req *sip.Request) (sip.ClientTransaction, error) {
	ctx, end := e.conns.withTimeout(ctx)
	defer end()
	if err := e.guard.setDestination(ctx, req); err != nil {
		return nil, unsentError(req, err)
	}
	release, err := e.conns.connect(ctx, req)
	if err != nil {
		return nil, unsentError(req, err)
	}
	defer release()
	e.conns.sending.RLock()
	defer e.conns.sending.RUnlock()
	if e.conns.stopped.Load() {
		return nil, ErrClosed
	}
	e.filter.Trust(req.Destination())
	e.TraceSent(req, req.Destination())
	remove := func() {}
	if req.IsInvite() && req.Transport() == "UDP" {
		remove = e.invites.add(req)
	}
	tx, err := e.client.TransactionRequest(ctx, req, asIs)
	if err != nil {
		remove()
		return nil, unsentError(req, err)
	}
	if !tx.OnTerminate(func(string, error) { remove() }) { // the transaction has ended already
		remove()
	}
	return tx, nil
}

func unsentError(req *sip.Request, err error) error {
	return fmt.Errorf("send %s: %w: %w", req.Method, ErrUnsent, err)
}

// SendACK sends a finalized ACK, which has no transaction. Connecting takes at
// most 4 s.
func (e *Endpoint) SendACK(req *sip.Request) error {
	ctx, end := e.conns.withTimeout(context.Background())
	defer end()
	if err := e.guard.setDestination(ctx, req); err != nil {
		return unsentError(req, err)
	}
	release, err := e.conns.connect(ctx, req)
	if err != nil {
		return unsentError(req, err)
	}
	defer release()
	// The library's own function for this takes no context.
	conn, err := e.conns.connection(ctx, req)
	if err != nil {
		return unsentError(req, err)
	}
	defer func() { _, _ = conn.TryClose() }()
	e.filter.Trust(req.Destination())
	e.TraceSent(req, req.Destination())
	if err := conn.WriteMsg(req); err != nil {
		return unsentError(req, err)
	}
	return nil
}

// Do sends a finalized request and returns its final response. Without a response
// it returns after 32 s (RFC 3261 timer F), or when ctx ends.
func (e *Endpoint) Do(ctx context.Context, req *sip.Request) (*sip.Response, error) {
	tx, err := e.Send(ctx, req)
	if err != nil {
		return nil, err
	}
	defer tx.Terminate()
	for {
		select {
		case res := <-tx.Responses():
			e.TraceReceived(res)
			if !res.IsProvisional() {
				return res, nil
			}
		case <-tx.Done():
			return nil, fmt.Errorf("%s: %w", req.Method, errors.Join(errors.New("no answer"), tx.Err()))
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: %w", req.Method, ctx.Err())
		}
	}
}
