package leg

import (
	"strings"
	"testing"

	"github.com/emiago/sipgo/sip"
)

func FuzzBodies(f *testing.F) {
	f.Add("application/dtmf-relay", "Signal=5\r\nDuration=160\r\n")
	f.Add("application/dtmf", "11")
	f.Add("message/sipfrag", "SIP/2.0 200 OK\r\n")
	f.Fuzz(func(t *testing.T, contentType, body string) {
		key, valid, supported := parseKey(contentType, body)
		if valid && (!supported || !strings.ContainsRune("0123456789*#ABCD", key)) {
			t.Fatalf("%q in %q is the key %q", body, contentType, key)
		}
		req := sip.NewRequest(sip.NOTIFY, sip.Uri{Host: "a"})
		req.SetBody([]byte(body))
		if n, err := parseNotify(req); err == nil && n.status != 0 && (n.status < 100 || n.status > 699) {
			t.Fatalf("%q has the status %d", body, n.status)
		}
	})
}
