package sip

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/sdp"
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/guard"
	"github.com/parley-voice/parley/sip/leg"
	"github.com/parley-voice/parley/sip/proxy"
	"github.com/parley-voice/parley/sip/timer"
)

// check refuses a target whose values must not stand in a message.
func check(t media.Target) ([]proxy.Proxy, error) {
	if err := guard.ID("call id", t.ID); err != nil {
		return nil, err
	}
	if err := guard.Number("number to dial", t.To); err != nil {
		return nil, err
	}
	if err := guard.Number("caller number", t.From); err != nil {
		return nil, err
	}
	if err := guard.Headers(headers(t)); err != nil {
		return nil, err
	}
	if err := Check(t.Trunk); err != nil {
		return nil, err
	}
	return proxy.All(t.Trunk)
}

// Check says why no call could go through a trunk, whatever the carrier says.
func Check(t media.Trunk) error {
	if t.Diversion != "" {
		if err := guard.Number("diversion", t.Diversion); err != nil {
			return err
		}
	}
	if err := guard.Headers(t.Headers); err != nil {
		return err
	}
	if _, err := sdp.Wished(t); err != nil {
		return err
	}
	_, err := proxy.All(t)
	return err
}

// headers are those of a call's trunk and its own, which win.
func headers(t media.Target) map[string]string {
	all := maps.Clone(t.Headers)
	if all == nil {
		all = map[string]string{}
	}
	for name, value := range t.Trunk.Headers {
		if _, own := all[name]; !own {
			all[name] = value
		}
	}
	return all
}

// invite is the request that opens the line at one place, unsigned.
func (d *dialling) invite(at proxy.Place, offer *sdp.Description, expires, least time.Duration) (*sip.Request, error) {
	t, host := d.target, at.Proxy.Host()
	to := sip.Uri{Scheme: "sip", User: guard.Escape(t.To), Host: host, Port: at.Proxy.Port}
	recipient := *to.Clone()
	if at.Proxy.Transport != "" {
		recipient.UriParams.Add("transport", sip.NetworkToLower(at.Proxy.Transport))
	}
	req := sip.NewRequest(sip.INVITE, recipient)
	caller := sip.Uri{Scheme: "sip", User: guard.Escape(t.From), Host: host}
	from := sip.FromHeader{Address: caller}
	if t.Trunk.Private { // RFC 3323 section 4.1.1.3
		from = sip.FromHeader{DisplayName: "Anonymous", Address: sip.Uri{Scheme: "sip", User: "anonymous", Host: "anonymous.invalid"}}
	}
	from.Params.Add("tag", d.tag)
	to.Port = 0 // RFC 3261 section 19.1.1: no port in a To
	req.AppendHeader(&from)
	req.AppendHeader(&sip.ToHeader{Address: to})
	id := sip.CallIDHeader(d.callID)
	req.AppendHeader(&id)
	d.cseq++
	req.AppendHeader(&sip.CSeqHeader{SeqNo: d.cseq, MethodName: sip.INVITE})
	hops := sip.MaxForwardsHeader(70)
	req.AppendHeader(&hops)
	req.AppendHeader(sip.NewHeader("Allow", endpoint.Allow))
	req.AppendHeader(sip.NewHeader("Supported", endpoint.Supported))
	setExpires(req, expires, least)
	identify(req, t.Trunk, caller)
	added := headers(t)
	for _, name := range slices.Sorted(maps.Keys(added)) {
		req.AppendHeader(sip.NewHeader(name, added[name]))
	}
	if err := d.ua.identity(req, t.From, cmp.Or(t.Number, t.To)); err != nil {
		return nil, err
	}
	leg.WithSDP(req, offer)
	req.SetTransport(at.Hop.Transport)
	req.SetDestination(at.Hop.Addr.String())
	return req, nil
}

// setExpires asks for a session that is refreshed (RFC 4028 section 7.1).
func setExpires(req *sip.Request, expires, least time.Duration) {
	req.RemoveHeader("Session-Expires")
	req.RemoveHeader("Min-SE")
	req.AppendHeader(sip.NewHeader("Session-Expires", timer.Interval{Length: expires}.String()))
	req.AppendHeader(sip.NewHeader("Min-SE", timer.Interval{Length: least}.String()))
}

// identify tells the carrier who calls, where the trunk wants it.
func identify(req *sip.Request, t media.Trunk, caller sip.Uri) {
	if t.Asserted || t.Private {
		req.AppendHeader(sip.NewHeader("P-Asserted-Identity", "<"+caller.String()+">")) // RFC 3325 section 9.1
	}
	if t.Private {
		req.AppendHeader(sip.NewHeader("Privacy", "id")) // RFC 3325 section 9.3
	}
	if t.Diversion != "" {
		by := caller
		by.User = guard.Escape(t.Diversion)
		req.AppendHeader(sip.NewHeader("Diversion", "<"+by.String()+">;reason=unknown")) // RFC 5806 section 4
	}
}

// authenticate adds the credentials that the trunk has asked for, where the
// request goes to the trunk's proxy. Whoever else is on the line could guess
// the password by them.
func (a *attempt) authenticate(req *sip.Request) error {
	if !a.toProxy(req) {
		return nil
	}
	name, value, err := a.creds.Header(string(req.Method), req.Recipient.String())
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	if name != "" {
		req.RemoveHeader("Authorization")
		req.RemoveHeader("Proxy-Authorization")
		req.AppendHeader(sip.NewHeader(name, value))
	}
	return nil
}

// toProxy says that a request goes to the proxy that the INVITE went to.
func (a *attempt) toProxy(req *sip.Request) bool {
	host, _, err := net.SplitHostPort(req.Destination())
	return err == nil && host == a.at.Hop.Addr.Addr().String()
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
