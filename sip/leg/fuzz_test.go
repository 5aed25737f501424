package leg

import (
	"strings"
	"testing"

	"github.com/emiago/sipgo/sip"
)

// FuzzBodies reads what a peer may put into an INFO and a NOTIFY.
func FuzzBodies(f *testing.F) {
	f.Add("application/dtmf-relay", "Signal=5\r\nDuration=160\r\n")
	f.Add("application/dtmf", "11")
	f.Add("message/sipfrag", "SIP/2.0 200 OK\r\n")
	f.Fuzz(func(t *testing.T, kind, body string) {
		key, told, known := pressed(kind, body)
		if told && (!known || !strings.ContainsRune("0123456789*#ABCD", key)) {
			t.Fatalf("%q in %q is the key %q", body, kind, key)
		}
		req := sip.NewRequest(sip.NOTIFY, sip.Uri{Host: "a"})
		req.SetBody([]byte(body))
		if n, err := readNotice(req); err == nil && n.status != 0 && (n.status < 100 || n.status > 699) {
			t.Fatalf("%q has the status %d", body, n.status)
		}
	})
}
