package sanitize

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/emiago/sipgo/sip"
)

var testRules = Rules{Methods: "INVITE, ACK, CANCEL, BYE, OPTIONS, UPDATE, INFO", Extensions: "timer, 100rel"}

// request returns a complete request, with lines replaced by name and others
// added.
func request(method, uri string, lines ...string) string {
	all := []string{
		"Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bKa", "From: <sip:a@b>;tag=f", "To: <sip:c@d>", "Call-ID: 1@b",
		"CSeq: 1 " + method, "Max-Forwards: 70", "Contact: <sip:a@192.0.2.1>",
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		replaced := false
		for i, other := range all {
			if strings.HasPrefix(other, name+":") {
				all[i], replaced = line, true
				if value == "" {
					all[i] = ""
				}
			}
		}
		if !replaced {
			all = append(all, line)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s SIP/2.0\r\n", method, uri)
	for _, line := range all {
		if line != "" {
			b.WriteString(strings.TrimPrefix(line, "+") + "\r\n") // a plus adds a line with the same name
		}
	}
	return b.String() + "\r\n"
}

func parse(t *testing.T, text string) *sip.Request {
	t.Helper()
	msg, err := sip.ParseMessage([]byte(text))
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	req, ok := msg.(*sip.Request)
	if !ok {
		t.Fatalf("%q is not a request", text)
	}
	return req
}

func TestCheck(t *testing.T) {
	const uri = "sip:c@192.0.2.2"
	withBody := func(text string) string { return text + "v=0\r\n" }
	for name, row := range map[string]struct {
		text    string
		want    int // 0 means that the request passes
		headers string
	}{
		"complete":                        {request("INVITE", uri), 0, ""},
		"sips":                            {request("INVITE", "sips:c@192.0.2.2"), 0, ""},
		"no tag, of an older peer":        {request("INVITE", uri, "From: <sip:a@b>"), 0, ""},
		"no Max-Forwards":                 {request("INVITE", uri, "Max-Forwards:"), 0, ""},
		"no Contact":                      {request("INVITE", uri, "Contact:"), 0, ""},
		"Max-Forwards 0":                  {request("OPTIONS", uri, "Max-Forwards: 0"), 0, ""},
		"no From":                         {request("INVITE", uri, "From:"), 400, ""},
		"no To":                           {request("INVITE", uri, "To:"), 400, ""},
		"no Call-ID":                      {request("INVITE", uri, "Call-ID:"), 400, ""},
		"no CSeq":                         {request("INVITE", uri, "CSeq:"), 400, ""},
		"no Via":                          {request("INVITE", uri, "Via:"), 400, ""},
		"Via of another protocol":         {request("INVITE", uri, "Via: HTTP/1.1/UDP 192.0.2.1;branch=z9hG4bKa"), 400, ""},
		"Via without a host":              {request("INVITE", uri, "Via: SIP/2.0/UDP ;branch=z9hG4bKa"), 400, ""},
		"long branch":                     {request("INVITE", uri, "Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK"+strings.Repeat("a", 600)), 400, ""},
		"two Froms":                       {request("INVITE", uri, "+From: <sip:x@y>;tag=g"), 400, ""},
		"a From in its short form":        {request("INVITE", uri, "f: <sip:x@y>;tag=g"), 400, ""},
		"two Tos, the other spaced":       {request("INVITE", uri, "To : <sip:x@y>"), 400, ""},
		"two Call-IDs":                    {request("INVITE", uri, "i: 2"), 400, ""},
		"two CSeqs":                       {request("INVITE", uri, "+CSeq: 2 INVITE"), 400, ""},
		"two Max-Forwards":                {request("INVITE", uri, "+Max-Forwards: 7"), 400, ""},
		"two Contacts":                    {request("INVITE", uri, "m: <sip:x@y>"), 400, ""},
		"two Contacts in one":             {request("INVITE", uri, "Contact: <sip:x@y>, <sip:z@y>"), 400, ""},
		"two Contacts of a REGISTER":      {request("REGISTER", uri, "m: <sip:x@y>"), 0, ""},
		"two Content-Lengths":             {request("INVITE", uri, "Content-Length: 0", "l: 0"), 400, ""},
		"two Content-Types":               {request("INVITE", uri, "Content-Type: a/b", "c: c/d"), 400, ""},
		"two Session-Expires":             {request("INVITE", uri, "Session-Expires: 90", "x: 1800"), 400, ""},
		"two Vias":                        {request("INVITE", uri, "v: SIP/2.0/UDP 192.0.2.9"), 0, ""},
		"an invalid name":                 {request("INVITE", uri, "X Y: z"), 400, ""},
		"a name with a zero":              {request("INVITE", uri, "X\x00Y: z"), 400, ""},
		"space after a name":              {request("INVITE", uri, "X-Y \t: z"), 0, ""},
		"CSeq of another method":          {request("INVITE", uri, "CSeq: 1 BYE"), 400, ""},
		"CSeq in small letters":           {request("INVITE", uri, "CSeq: 1 invite"), 0, ""},
		"Max-Forwards 256":                {request("INVITE", uri, "Max-Forwards: 256"), 400, ""},
		"long Call-ID":                    {request("INVITE", uri, "Call-ID: "+strings.Repeat("a", 513)), 400, ""},
		"Call-ID with a space":            {request("INVITE", uri, "Call-ID: a b"), 400, ""},
		"long tag":                        {request("INVITE", uri, "From: <sip:a@b>;tag="+strings.Repeat("a", 513)), 400, ""},
		"another version":                 {strings.Replace(request("INVITE", uri), "SIP/2.0\r", "SIP/3.0\r", 1), 505, ""},
		"tel":                             {request("INVITE", "tel:+12025550123"), 416, ""},
		"an unknown scheme":               {request("OPTIONS", "unknown:this"), 416, ""},
		"an unknown scheme of MESSAGE":    {request("MESSAGE", "unknown:this"), 0, ""},
		"supported extensions":            {request("INVITE", uri, "Require: timer, 100rel"), 0, ""},
		"unsupported extensions":          {request("INVITE", uri, "Require: timer, a", "+Require: b;c"), 420, "Unsupported: a, b"},
		"unsupported in a BYE":            {request("BYE", uri, "Require: a"), 420, "Unsupported: a"},
		"ignored in an ACK":               {request("ACK", uri, "Require: a"), 0, ""},
		"ignored in a CANCEL":             {request("CANCEL", uri, "Require: a"), 0, ""},
		"Proxy-Require":                   {request("INVITE", uri, "Proxy-Require: a"), 0, ""},
		"a description":                   {withBody(request("INVITE", uri, "Content-Type: application/SDP ; x=y", "Content-Length: 5")), 0, ""},
		"another body":                    {withBody(request("INVITE", uri, "Content-Type: a/b", "Content-Length: 5")), 415, "Accept: application/sdp"},
		"another body of an UPDATE":       {withBody(request("UPDATE", uri, "c: a/b", "Content-Length: 5")), 415, "Accept: application/sdp"},
		"another body, optional":          {withBody(request("INVITE", uri, "Content-Type: a/b", "Content-Disposition: x; handling=optional", "Content-Length: 5")), 0, ""},
		"another body, required":          {withBody(request("INVITE", uri, "Content-Type: a/b", "Content-Disposition: x; handling=required", "Content-Length: 5")), 415, "Accept"},
		"no body":                         {request("INVITE", uri, "Content-Type: a/b"), 0, ""},
		"an encoded body":                 {withBody(request("INVITE", uri, "e: gzip", "Content-Type: application/sdp", "Content-Length: 5")), 415, "Accept-Encoding: identity"},
		"an encoded INFO":                 {withBody(request("INFO", uri, "Content-Encoding: gzip", "Content-Length: 5")), 415, "Accept-Encoding"},
		"identity encoding":               {withBody(request("INFO", uri, "Content-Encoding: identity", "Content-Length: 5")), 0, ""},
		"in French":                       {withBody(request("INVITE", uri, "Content-Type: application/sdp", "Content-Language: fr", "Content-Length: 5")), 0, ""},
		"Accept without SDP":              {request("INVITE", uri, "Accept: text/x"), 406, ""},
		"Accept with SDP":                 {request("INVITE", uri, "Accept: text/x, application/sdp;q=0.1"), 0, ""},
		"Accept anything":                 {request("INVITE", uri, "Accept: */*"), 0, ""},
		"Accept without SDP, in a dialog": {request("INVITE", uri, "To: <sip:c@d>;tag=t", "Accept: text/x"), 0, ""},
	} {
		req := TrimParams(parse(t, row.text))
		v, ok := testRules.Check(req)
		if v.Status != row.want || ok != (row.want == 0) {
			t.Errorf("%s: %d %s, %v, want %d", name, v.Status, v.Reason, ok, row.want)
		}
		var got strings.Builder
		for _, h := range v.Headers {
			got.WriteString(h.String())
		}
		if !strings.Contains(got.String(), row.headers) {
			t.Errorf("%s: headers %q, want %q", name, &got, row.headers)
		}
	}
}

func TestTrimParams(t *testing.T) {
	req := TrimParams(parse(t, request("INVITE", "sip:c@192.0.2.2", "From: <sip:a@b> ;  tag  =  f", "To: sip:c@d ;   tag    = t")))
	if tag(req.From().Params) != "f" || tag(req.To().Params) != "t" {
		t.Errorf("%q and %q", req.From().Params, req.To().Params)
	}
}

// FuzzCheck parses and checks any bytes: nothing panics, and every refusal can be
// sent with its status.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(request("INVITE", "sip:c@d")))
	f.Add([]byte(request("INVITE", "sip:c@d", "Require: a, b", "k: c", "Accept:,;,")))
	f.Add([]byte(request("OPTIONS", "x:y", "From: a ;tag=", "Content-Encoding: gzip")))
	files, err := filepath.Glob("../testdata/torture/*/*.dat")
	if err != nil || len(files) == 0 {
		f.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !looksLikeSIP(data) {
			return
		}
		msg, err := sip.ParseMessage(data)
		req, ok := msg.(*sip.Request)
		if err != nil || !ok {
			return
		}
		req = TrimParams(req)
		v, ok := testRules.Check(req)
		if ok {
			if v.Status != 0 || req.From() == nil || req.To() == nil || req.CSeq() == nil || req.CallID() == nil || req.Via() == nil {
				t.Fatalf("%q passed with %+v", data, v)
			}
			(&MergeDetector{}).IsMerged(req, now())
			return
		}
		if v.Status < 400 || v.Status > 699 || v.Reason == "" {
			t.Fatalf("%q was refused with %+v", data, v)
		}
		res := sip.NewResponseFromRequest(req, v.Status, v.Reason, nil)
		res.SipVersion = "SIP/2.0"
		for _, h := range v.Headers {
			if strings.ContainsAny(h.Value(), "\r\n") {
				t.Fatalf("%q was answered with %q", data, h.Value())
			}
			res.AppendHeader(h)
		}
		if !strings.HasPrefix(res.String(), fmt.Sprintf("SIP/2.0 %d %s\r\n", v.Status, v.Reason)) {
			t.Fatalf("%q was answered with %.40q", data, res.String())
		}
	})
}
