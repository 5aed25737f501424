package dialog

import (
	"strings"
	"testing"

	"github.com/emiago/sipgo/sip"
)

func request(t *testing.T, text string) *sip.Request {
	t.Helper()
	msg, err := sip.ParseMessage([]byte(strings.ReplaceAll(text, "\n", "\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	req, ok := msg.(*sip.Request)
	if !ok {
		t.Fatalf("%T", msg)
	}
	return req
}

const invite = `INVITE sip:bob@proxy.example;transport=tcp SIP/2.0
Via: SIP/2.0/TCP 192.0.2.1:5060;branch=z9hG4bK1
From: "Al" <sip:al@a.example>;tag=from
To: <sip:bob@proxy.example>
Call-ID: c1@192.0.2.1
CSeq: 7 INVITE
Contact: <sip:al@192.0.2.1:5062>
Record-Route: <sip:p2.example;lr>, <sip:p1.example:5070;lr>

`

func answer(req *sip.Request, extra ...sip.Header) *sip.Response {
	res := sip.NewResponse(200, "OK")
	sip.CopyHeaders("From", req, res)
	to := sip.ToHeader{Address: req.To().Address, Params: sip.HeaderParams{{K: "tag", V: "to"}}}
	res.AppendHeader(&to)
	sip.CopyHeaders("Call-ID", req, res)
	sip.CopyHeaders("CSeq", req, res)
	for _, h := range extra {
		res.AppendHeader(h)
	}
	return res
}

func contact(host string, port int, params ...sip.HeaderKV) *sip.ContactHeader {
	return &sip.ContactHeader{Address: sip.Uri{Scheme: "sip", User: "bob", Host: host, Port: port, UriParams: params}}
}

func route(host string, port int, loose bool) *sip.RecordRouteHeader {
	h := &sip.RecordRouteHeader{Address: sip.Uri{Scheme: "sip", Host: host, Port: port}}
	if loose {
		h.Address.UriParams.Add("lr", "")
	}
	return h
}

func TestFromResponse(t *testing.T) {
	for name, row := range map[string]struct {
		headers []sip.Header
		uri     string
		routes  []string
		dest    string
	}{
		"contact":     {[]sip.Header{contact("10.0.0.9", 5099)}, "sip:bob@10.0.0.9:5099", nil, "10.0.0.9:5099"},
		"no contact":  {nil, "sip:bob@proxy.example;transport=tcp", nil, "proxy.example:5060"},
		"udp contact": {[]sip.Header{contact("10.0.0.9", 0, sip.HeaderKV{K: "transport", V: "udp"})}, "sip:bob@10.0.0.9;transport=udp", nil, "10.0.0.9:5060"},
		"loose routes": {
			[]sip.Header{route("p2.example", 0, true), route("p1.example", 5070, true), contact("10.0.0.9", 5099)},
			"sip:bob@10.0.0.9:5099",
			[]string{"sip:p1.example:5070;lr", "sip:p2.example;lr"},
			"p1.example:5070",
		},
		"strict route": {
			[]sip.Header{route("p2.example", 0, true), route("p1.example", 5070, false), contact("10.0.0.9", 5099)},
			"sip:p1.example:5070",
			[]string{"sip:p2.example;lr", "sip:bob@10.0.0.9:5099"},
			"p1.example:5070",
		},
	} {
		d, err := FromResponse(request(t, invite), answer(request(t, invite), row.headers...))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ack, bye, next := d.Ack(7), d.Request(sip.BYE), d.Request(sip.OPTIONS)
		if ack.CSeq().SeqNo != 7 || ack.CSeq().MethodName != sip.ACK || bye.CSeq().SeqNo != 8 || next.CSeq().SeqNo != 9 {
			t.Errorf("%s: numbers %v %v %v", name, ack.CSeq(), bye.CSeq(), next.CSeq())
		}
		var routes []string
		for _, h := range bye.GetHeaders("Route") {
			routes = append(routes, strings.Trim(h.Value(), "<>"))
		}
		if bye.Recipient.String() != row.uri || strings.Join(routes, " ") != strings.Join(row.routes, " ") || bye.Destination() != row.dest {
			t.Errorf("%s: %s by %v at %s", name, bye.Recipient.String(), routes, bye.Destination())
		}
		if from, to := bye.From().Value(), bye.To().Value(); !strings.Contains(from, "tag=from") || !strings.Contains(to, "tag=to") {
			t.Errorf("%s: %s to %s", name, from, to)
		}
	}
}

func TestFromRequest(t *testing.T) {
	req := request(t, invite)
	d, err := FromRequest(req, "local")
	if err != nil {
		t.Fatal(err)
	}
	bye := d.Request(sip.BYE)
	if bye.Recipient.String() != "sip:al@192.0.2.1:5062" || bye.CSeq().SeqNo != 1 || bye.Destination() != "p2.example:5060" || bye.Transport() != "TCP" {
		t.Errorf("%s", bye)
	}
	if got := len(bye.GetHeaders("Route")); got != 2 {
		t.Errorf("%d routes", got)
	}
	// A request of the caller matches the dialog, and only a newer one is
	// accepted.
	theirs := request(t, strings.ReplaceAll(strings.Replace(invite, "<sip:bob@proxy.example>\nCall", "<sip:bob@proxy.example>;tag=local\nCall", 1), "7 INVITE", "8 INVITE"))
	if RequestKey(theirs) != d.Key() {
		t.Errorf("%+v is not %+v", RequestKey(theirs), d.Key())
	}
	if !d.CheckCSeq(8) || d.CheckCSeq(7) || !d.CheckCSeq(8) {
		t.Error("order of requests")
	}
	d.Retarget(contact("10.0.0.1", 1))
	d.Retarget(&sip.ContactHeader{Address: sip.Uri{Wildcard: true}})
	if got := d.Request(sip.BYE).Recipient.Host; got != "10.0.0.1" {
		t.Errorf("target %s", got)
	}
}

func TestFromRequestErrors(t *testing.T) {
	for name, text := range map[string]string{
		"no contact":  strings.Replace(invite, "Contact: <sip:al@192.0.2.1:5062>\n", "", 1),
		"tel contact": strings.Replace(invite, "<sip:al@192.0.2.1:5062>", "<tel:+1>", 1),
		"no from":     strings.Replace(invite, "From: \"Al\" <sip:al@a.example>;tag=from\n", "", 1),
	} {
		if d, err := FromRequest(request(t, text), "local"); err == nil {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
