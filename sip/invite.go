package sip

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/sdp"
	"github.com/parley-voice/parley/sip/dialog"
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/leg"
	"github.com/parley-voice/parley/sip/proxy"
	"github.com/parley-voice/parley/sip/sanitize"
)

// checkTarget returns an error if values of the target must not be in a message.
func checkTarget(t media.Target) ([]proxy.Proxy, error) {
	if err := sanitize.CheckID("call id", t.ID); err != nil {
		return nil, err
	}
	if err := sanitize.CheckNumber("number to dial", t.To); err != nil {
		return nil, err
	}
	if err := sanitize.CheckNumber("caller number", t.From); err != nil {
		return nil, err
	}
	if err := sanitize.CheckHeaders(mergeHeaders(t)); err != nil {
		return nil, err
	}
	if err := CheckTrunk(t.Trunk); err != nil {
		return nil, err
	}
	return proxy.ParseAll(t.Trunk)
}

// CheckTrunk returns an error if a trunk's settings are invalid.
func CheckTrunk(t media.Trunk) error {
	if t.Diversion != "" {
		if err := sanitize.CheckNumber("diversion", t.Diversion); err != nil {
			return err
		}
	}
	if err := sanitize.CheckHeaders(t.Headers); err != nil {
		return err
	}
	if _, err := sdp.CapabilitiesFor(t); err != nil {
		return err
	}
	_, err := proxy.ParseAll(t)
	return err
}

// CheckTrunkReachable is CheckTrunk for a server with the given listening and
// public address; public may be invalid. It also checks that the proxies are
// reachable.
func CheckTrunkReachable(t media.Trunk, listen, public netip.Addr) error {
	if err := CheckTrunk(t); err != nil {
		return err
	}
	all, err := proxy.ParseAll(t)
	if err != nil {
		return err
	}
	for _, p := range all {
		if ip, ok := p.IP(); ok {
			if err := endpoint.CheckReachable(listen, public, ip); err != nil {
				return fmt.Errorf("proxy %q: %w", p.Text, err)
			}
		}
	}
	return nil
}

// mergeHeaders returns the headers of the call and its trunk; those of the call
// win.
func mergeHeaders(t media.Target) map[string]string {
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

// newInvite returns an INVITE without Via, Contact and User-Agent; Endpoint.Finalize adds them.
func (d *outboundCall) newInvite(at proxy.Target, offer *sdp.Description, expires, least time.Duration) (*sip.Request, error) {
	t, host := d.target, at.Proxy.Host()
	called, calling := t.Users()
	to := sip.Uri{Scheme: "sip", User: sanitize.EscapeUser(called), Host: host, Port: at.Proxy.Port}
	recipient := *to.Clone()
	if at.Proxy.Transport != "" {
		recipient.UriParams.Add("transport", sip.NetworkToLower(at.Proxy.Transport))
	}
	req := sip.NewRequest(sip.INVITE, recipient)
	caller := sip.Uri{Scheme: "sip", User: sanitize.EscapeUser(calling), Host: host}
	from := sip.FromHeader{Address: caller}
	if t.Trunk.Private { // RFC 3323 section 4.1.1.3
		from = sip.FromHeader{DisplayName: "Anonymous", Address: sip.Uri{Scheme: "sip", User: "anonymous", Host: "anonymous.invalid"}}
	}
	from.Params.Add("tag", d.tag)
	to.Port = 0 // a To header has no port, RFC 3261 section 19.1.1
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
	setSessionExpires(req, expires, least)
	addIdentityHeaders(req, t.Trunk, caller)
	added := mergeHeaders(t)
	for _, name := range slices.Sorted(maps.Keys(added)) {
		req.AppendHeader(sip.NewHeader(name, added[name]))
	}
	if err := d.ua.addIdentity(req, t.From, cmp.Or(t.Number, t.To)); err != nil {
		return nil, err
	}
	leg.SetSDP(req, offer)
	req.SetTransport(at.Hop.Transport)
	req.SetDestination(at.Hop.Addr.String())
	return req, nil
}

// setSessionExpires requests a session interval (RFC 4028 section 7.1).
func setSessionExpires(req *sip.Request, expires, least time.Duration) {
	req.RemoveHeader("Session-Expires")
	req.RemoveHeader("Min-SE")
	req.AppendHeader(sip.NewHeader("Session-Expires", dialog.SessionExpires{Length: expires}.String()))
	req.AppendHeader(sip.NewHeader("Min-SE", dialog.SessionExpires{Length: least}.String()))
}

// addIdentityHeaders adds the caller identity headers that the trunk wants.
func addIdentityHeaders(req *sip.Request, t media.Trunk, caller sip.Uri) {
	if t.Asserted || t.Private {
		req.AppendHeader(sip.NewHeader("P-Asserted-Identity", "<"+caller.String()+">")) // RFC 3325 section 9.1
	}
	if t.Private {
		req.AppendHeader(sip.NewHeader("Privacy", "id")) // RFC 3325 section 9.3
	}
	if t.Diversion != "" {
		by := caller
		by.User = sanitize.EscapeUser(t.Diversion)
		req.AppendHeader(sip.NewHeader("Diversion", "<"+by.String()+">;reason=unknown")) // RFC 5806 section 4
	}
}

// addCredentials adds the credentials that the trunk asked for, if the request
// goes to the trunk's proxy. Any other recipient could guess the password from
// them.
func (a *attempt) addCredentials(req *sip.Request) error {
	if !a.isToProxy(req) {
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

// isToProxy reports whether a request goes to the proxy of the INVITE.
func (a *attempt) isToProxy(req *sip.Request) bool {
	host, _, err := net.SplitHostPort(req.Destination())
	return err == nil && host == a.dest.Hop.Addr.Addr().String()
}

// newCancel returns the CANCEL of an INVITE (RFC 3261 section 9.1).
func newCancel(invite *sip.Request) *sip.Request {
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
