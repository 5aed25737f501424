package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/emiago/sipgo"
	"github.com/emiago/sipgo/sip"
)

// maxDatagram is the longest request sent over UDP; beyond it a datagram may
// be cut up on its way (RFC 3261 section 18.1.1).
const maxDatagram = 1300

// ErrUnsent is in the error of a request of which nothing has left.
var ErrUnsent = errors.New("not sent")

// asIs keeps the library from completing a request by its own lights.
func asIs(*sipgo.Client, *sip.Request) error { return nil }

// Contact is where the endpoint is reached over a transport.
func (e *Endpoint) Contact(transport string) *sip.ContactHeader {
	uri := sip.Uri{Scheme: "sip", User: "parley", Host: host(e.public.Addr()), Port: e.port(transport)}
	uri.UriParams.Add("transport", sip.NetworkToLower(transport))
	return &sip.ContactHeader{Address: uri}
}

// port is where peers reach the endpoint over a transport.
func (e *Endpoint) port(transport string) int {
	if at := e.SecureAddr(); transport == "TLS" && at.IsValid() {
		return int(at.Port())
	}
	return int(e.public.Port())
}

// host writes an address as a URI does (RFC 3261 section 25.1).
func host(ip netip.Addr) string {
	if ip.Is6() {
		return "[" + ip.String() + "]"
	}
	return ip.String()
}

// Sign completes a request for a transaction of its own: with Via, and where
// they are missing with Contact, User-Agent and Content-Length.
func (e *Endpoint) Sign(req *sip.Request) {
	req.RemoveHeader("Via") // there is one at most: ours
	via := &sip.ViaHeader{
		ProtocolName: "SIP", ProtocolVersion: "2.0", Transport: req.Transport(),
		Host: host(e.public.Addr()), Port: e.port(req.Transport()),
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
	e.pin(req)
}

// pin has a request over UDP leave from the socket we listen on. Over TCP the
// library finds or opens a connection to where the request goes.
func (e *Endpoint) pin(req *sip.Request) {
	req.Laddr = sip.Addr{}
	if req.Transport() == "UDP" {
		req.Laddr = sip.Addr{IP: net.IP(e.addr.Addr().AsSlice()), Port: int(e.addr.Port())}
	}
}

// Fits says whether a signed request may leave over UDP.
func Fits(req *sip.Request) bool { return len(req.String()) <= maxDatagram }

// Send begins the transaction of a signed request. ctx bounds the connecting,
// which takes no longer than 4 seconds; its error is then that of a context.
func (e *Endpoint) Send(ctx context.Context, req *sip.Request) (sip.ClientTransaction, error) {
	ctx, end := e.bounded(ctx)
	defer end()
	release, err := e.connect(ctx, req)
	if err != nil {
		return nil, unsent(req, err)
	}
	defer release()
	e.sending.RLock()
	defer e.sending.RUnlock()
	if e.deaf.Load() {
		return nil, ErrClosed
	}
	e.filter.Know(req.Destination())
	e.Note(req, req.Destination())
	tx, err := e.client.TransactionRequest(ctx, req, asIs)
	if err != nil {
		return nil, unsent(req, err)
	}
	return tx, nil
}

func unsent(req *sip.Request, err error) error {
	return fmt.Errorf("send %s: %w: %w", req.Method, ErrUnsent, err)
}

// Write sends a signed request that has no transaction: an ACK. Connecting
// takes no longer than 4 seconds.
func (e *Endpoint) Write(req *sip.Request) error {
	ctx, end := e.bounded(context.Background())
	defer end()
	release, err := e.connect(ctx, req)
	if err != nil {
		return unsent(req, err)
	}
	defer release()
	// The library's own way to write knows no bounds.
	conn, err := e.connection(ctx, req)
	if err != nil {
		return unsent(req, err)
	}
	defer func() { _, _ = conn.TryClose() }()
	e.filter.Know(req.Destination())
	e.Note(req, req.Destination())
	if err := conn.WriteMsg(req); err != nil {
		return unsent(req, err)
	}
	return nil
}

// Ask sends a signed request and returns its final response. It takes up to 32
// seconds where none comes (RFC 3261 timer F), and less once ctx has ended.
func (e *Endpoint) Ask(ctx context.Context, req *sip.Request) (*sip.Response, error) {
	tx, err := e.Send(ctx, req)
	if err != nil {
		return nil, err
	}
	defer tx.Terminate()
	for {
		select {
		case res := <-tx.Responses():
			e.Received(res)
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
