package sip

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/sdp"
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/guard"
)

// check refuses a target whose values must not stand in a message.
func check(t media.Target) (proxy, error) {
	if err := guard.ID("call id", t.ID); err != nil {
		return proxy{}, err
	}
	if err := guard.Number("number to dial", t.To); err != nil {
		return proxy{}, err
	}
	if err := guard.Number("caller number", t.From); err != nil {
		return proxy{}, err
	}
	for name, value := range t.Headers {
		if err := guard.Header(name, value); err != nil {
			return proxy{}, err
		}
	}
	return parseProxy(t.Trunk.Proxy)
}

// invite is the request that opens the line, unsigned.
func (u *UA) invite(t media.Target, p proxy, at netip.AddrPort, offer *sdp.Description) *sip.Request {
	to := sip.Uri{Scheme: "sip", User: guard.Escape(t.To), Host: p.uri.Host, Port: p.uri.Port}
	recipient := *to.Clone()
	if p.transport != "" {
		recipient.UriParams.Add("transport", sip.NetworkToLower(p.transport))
	}
	req := sip.NewRequest(sip.INVITE, recipient)
	from := sip.FromHeader{Address: sip.Uri{Scheme: "sip", User: guard.Escape(t.From), Host: p.uri.Host}}
	from.Params.Add("tag", sip.GenerateTagN(16))
	to.Port = 0 // RFC 3261 section 19.1.1: no port in a To
	req.AppendHeader(&from)
	req.AppendHeader(&sip.ToHeader{Address: to})
	id := sip.CallIDHeader(t.ID + "@" + u.endpoint.Addr().Addr().String())
	req.AppendHeader(&id)
	req.AppendHeader(&sip.CSeqHeader{SeqNo: 1, MethodName: sip.INVITE})
	hops := sip.MaxForwardsHeader(70)
	req.AppendHeader(&hops)
	req.AppendHeader(sip.NewHeader("Allow", endpoint.Allow))
	for _, name := range slices.Sorted(maps.Keys(t.Headers)) {
		req.AppendHeader(sip.NewHeader(name, t.Headers[name]))
	}
	endpoint.WithSDP(req, offer)
	req.SetTransport(p.transport)
	if p.transport == "" {
		req.SetTransport("UDP")
	}
	req.SetDestination(at.String())
	return req
}

// cancel is the CANCEL of an INVITE that was sent (RFC 3261 section 9.1).
func cancel(invite *sip.Request) *sip.Request {
	req := sip.NewRequest(sip.CANCEL, invite.Recipient)
	req.AppendHeader(sip.HeaderClone(invite.Via()))
	req.AppendHeader(sip.HeaderClone(invite.From()))
	req.AppendHeader(sip.HeaderClone(invite.To()))
	req.AppendHeader(sip.HeaderClone(invite.CallID()))
	req.AppendHeader(&sip.CSeqHeader{SeqNo: invite.CSeq().SeqNo, MethodName: sip.CANCEL})
	hops := sip.MaxForwardsHeader(70)
	req.AppendHeader(&hops)
	req.SetBody(nil)
	req.SetTransport(invite.Transport())
	req.SetDestination(invite.Destination())
	req.Laddr = invite.Laddr
	return req
}
