package sip

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/emiago/sipgo/sip"
)

// deviations explain outcomes that differ from the RFCs. docs/reliability.md
// repeats them verbatim.
var deviations = map[string]string{
	"rfc4475/regaut01.dat": "Parley is not a registrar: REGISTER gets 405",
}

// unparsed lists valid messages that the library cannot parse, also in
// docs/reliability.md.
var unparsed = map[string]string{
	"rfc4475/novelsc.dat": "a scheme with a dot is not parsed; the request is dropped instead of a 416",
}

type tortureCase struct {
	File   string `json:"file"`
	Kind   string `json:"kind"`
	Parser string `json:"parser"`
	UAS    string `json:"uas"`
	Note   string `json:"note"`
}

func loadTorture(t *testing.T) []tortureCase {
	t.Helper()
	text, err := os.ReadFile("testdata/torture/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []tortureCase
	if err = json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/torture/*/*.dat")
	if err != nil || len(files) != len(all) || len(all) != 62 {
		t.Fatalf("%d files, %d expectations: %v", len(files), len(all), err)
	}
	return all
}

func outcome(statuses []string) string {
	if len(statuses) == 0 {
		return "silence"
	}
	return strings.Join(statuses, " ")
}

func matches(got, allowed string) bool {
	for want := range strings.SplitSeq(allowed, "|") {
		switch want {
		case "any":
			return true
		case "drop", "no-crash":
			want = "silence"
		case "not-400":
			if len(got) == 3 && got != "400" {
				return true
			}
		case "exactly-one-reply":
			if len(got) == 3 {
				return true
			}
		case "2xx", "not-2xx-registration":
			if len(got) == 3 && strings.HasPrefix(got, "2") == (want == "2xx") {
				return true
			}
		}
		if got == want {
			return true
		}
	}
	return false
}

var topVia = regexp.MustCompile(`(?im)^(?:via|v)[ \t]*:((?:[^\r\n]|\r\n[ \t])*)\r\n`)

// withOwnVia replaces the top Via, so that responses arrive here.
func withOwnVia(message []byte, hop string) []byte {
	m := topVia.FindSubmatchIndex(message)
	if m == nil {
		return message
	}
	_, rest, more := strings.Cut(string(message[m[2]:m[3]]), ",")
	if more {
		rest = "," + rest
	}
	return []byte(string(message[:m[0]]) + "Via: " + hop + rest + "\r\n" + string(message[m[1]:]))
}

// TestTorture sends the torture messages of RFC 4475 and RFC 5118. Each has its
// own source address, so that the waits for silence run concurrently.
func TestTorture(t *testing.T) {
	all := loadTorture(t)
	l := newEnv(t, nil)
	peers := make([]*outsidePeer, len(all))
	for i, row := range all {
		message, err := os.ReadFile("testdata/torture/" + row.File)
		if err != nil {
			t.Fatal(err)
		}
		s := newOutsidePeerAt(t, l, fmt.Sprintf("127.47.5.%d:0", i+1))
		s.n, peers[i] = 1000*i, s
		branch := fmt.Sprintf("z9hG4bKtorture%d", i)
		if strings.Contains(row.Note, "branch is only the cookie") {
			branch = "z9hG4bK"
		}
		message = withOwnVia(message, fmt.Sprintf("SIP/2.0/UDP %s;rport;branch=%s", s.conn.LocalAddr(), branch))
		if _, err := s.conn.WriteTo(message, s.to); err != nil {
			t.Fatal(err)
		}
		checkAlive(t, l, 100_000+i, row.File)
	}
	deadline := time.Now().Add(500 * time.Millisecond)
	for i, row := range all {
		checkOutcome(t, row, peers[i].outcome(deadline))
		if got := peers[i].send(peers[i].request("OPTIONS", nil)); !strings.HasPrefix(got, "SIP/2.0 200") {
			t.Errorf("%s: OPTIONS afterwards was answered with %.40q", row.File, got)
		}
	}
	if connected, dialing := l.ua.Calls(); connected != 0 || dialing != 0 {
		t.Errorf("%d connected, %d dialing", connected, dialing)
	}
}

func checkAlive(t *testing.T, l *env, n int, after string) {
	t.Helper()
	s := newOutsidePeerAt(t, l, "127.47.6.1:0")
	defer func() { _ = s.conn.Close() }()
	s.n = n
	if got := s.send(s.request("OPTIONS", nil)); !strings.HasPrefix(got, "SIP/2.0 200") {
		t.Errorf("OPTIONS after %s was answered with %.40q", after, got)
	}
}

func checkOutcome(t *testing.T, row tortureCase, got string) {
	t.Helper()
	reason, deviates := deviations[row.File]
	if ok := matches(got, row.UAS); ok == deviates {
		t.Errorf("%s (%s): got %s, want %s, deviation %q", row.File, row.Note, got, row.UAS, reason)
	}
}

// outcome collects the final responses until a deadline.
func (s *outsidePeer) outcome(deadline time.Time) string {
	s.t.Helper()
	var statuses []string
	buf := make([]byte, 65536)
	for {
		if soonest := time.Now().Add(time.Millisecond); deadline.Before(soonest) {
			deadline = soonest
		}
		_ = s.conn.SetReadDeadline(deadline)
		n, _, err := s.conn.ReadFrom(buf)
		if err != nil {
			return outcome(statuses)
		}
		if text := string(buf[:n]); !strings.HasPrefix(text, "SIP/2.0 1") {
			version, rest, _ := strings.Cut(text, " ")
			if version != "SIP/2.0" {
				s.t.Errorf("answered in %s", version)
			}
			statuses = append(statuses, rest[:3])
		}
	}
}

func newOutsidePeerAt(t *testing.T, l *env, addr string) *outsidePeer {
	t.Helper()
	return &outsidePeer{t: t, conn: listenUDP(t, addr), to: net.UDPAddrFromAddrPort(l.ua.Addr())}
}

// TestTortureParser checks the library's parser.
func TestTortureParser(t *testing.T) {
	for _, row := range loadTorture(t) {
		message, err := os.ReadFile("testdata/torture/" + row.File)
		if err != nil {
			t.Fatal(err)
		}
		_, err = sip.ParseMessage(message)
		_, deviates := unparsed[row.File]
		switch {
		case row.Parser == "accept" && (err != nil) != deviates:
			t.Errorf("%s (%s) was not read: %v", row.File, row.Note, err)
		case row.Parser == "reject" && err == nil:
			t.Errorf("%s (%s) was read", row.File, row.Note)
		}
	}
}

// TestDeviationsAreDocumented compares docs/reliability.md with the lists above.
func TestDeviationsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Count(string(doc), "| `rfc")
	for _, list := range []map[string]string{deviations, unparsed} {
		for file, reason := range list {
			if rows--; !strings.Contains(string(doc), fmt.Sprintf("| `%s` | %s |\n", file, reason)) {
				t.Errorf("docs/reliability.md does not list %s", file)
			}
		}
	}
	if rows != 0 {
		t.Errorf("docs/reliability.md lists %d more", rows)
	}
}
