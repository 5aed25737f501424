package sanitize

import "testing"

func TestPeekResponse(t *testing.T) {
	for _, row := range []struct {
		text string
		want ResponseHead
		ok   bool
	}{
		{"SIP/2.0 200 OK\r\nVia: a\r\nCall-ID: x@y\r\n\r\n", ResponseHead{200, "200 OK", "x@y", ""}, true},
		{"SIP/2.0 200 OK\r\nCSeq: 1 INVITE\r\nCall-ID    : x\r\n\r\n", ResponseHead{200, "200 OK", "x", "INVITE"}, true},
		{"SIP/2.0 200 OK\r\nCSeq: 1 OPTIONS\r\ni: x\r\nCall-ID: y\r\ncseq: 1 INVITE\r\n\r\n", ResponseHead{200, "200 OK", "", ""}, true},
		{"SIP/2.0 180\r\ni :  x@y \r\n\r\nCall-ID: z\r\n", ResponseHead{180, "180", "x@y", ""}, true},
		{"SIP/2.0 486 Busy\x01\r\nCALL-id:x\r\n\r\n", ResponseHead{486, "486 Busy", "x", ""}, true},
		{"SIP/2.0 \r\n\r\nCall-ID: z\r\n", ResponseHead{}, true},
		{"SIP/2.0 x", ResponseHead{0, "x", "", ""}, true},
		{"INVITE sip:a SIP/2.0\r\nCall-ID: x\r\n\r\n", ResponseHead{}, false},
		{"", ResponseHead{}, false},
	} {
		if got, ok := PeekResponse([]byte(row.text)); got != row.want || ok != row.ok {
			t.Errorf("%q: %+v, %t", row.text, got, ok)
		}
	}
}
