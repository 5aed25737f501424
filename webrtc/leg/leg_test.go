package leg

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/webrtc/ice"
)

// TestKeys checks that each digit is received once, at any clock rate and despite retransmissions. A digit after the
// end of the leg is dropped.
func TestKeys(t *testing.T) {
	for _, rate := range []int64{8000, 48000} {
		l := &Leg{}
		if err := l.Open(); err != nil {
			t.Fatal(err)
		}
		seq := uint16(65530)
		at := uint32(1<<32 - 20000)
		press := func(code byte) {
			for n := range 7 { // five frames of 20 ms and two retransmissions
				held := min(n+1, 5) * int(rate) / 50
				h := rtp.Header{Marker: n == 0, SSRC: 7, SequenceNumber: seq, Timestamp: at}
				l.receiveKey(&h, []byte{code, 10, byte(held >> 8), byte(held)}, rate, time.Now())
				seq++
			}
			late := rtp.Header{SSRC: 7, SequenceNumber: seq - 7, Timestamp: at - uint32(rate)/2}
			l.receiveKey(&late, []byte{3, 0x8a, 3, 32}, rate, time.Now()) // a packet that is half a second late
			at += uint32(rate)
		}
		for _, code := range []byte{4, 2, 11} {
			press(code)
		}
		if err := l.Hangup(media.LocalHangup); err != nil {
			t.Fatal(err)
		}
		press(1)
		got := ""
		for k := range l.Digits() {
			got += string(k)
		}
		if got != "42#" {
			t.Errorf("at %d Hz got %q, want 42#", rate, got)
		}
	}
}

// TestConsentExpires checks that consent expires without answers, and that each expiry is reported once.
func TestConsentExpires(t *testing.T) {
	c := consent{limit: 30 * time.Second}
	began := time.Now()
	for _, at := range []struct {
		second  int
		answers uint64
		expired bool
	}{
		{0, 0, false},
		{20, 0, false},
		{29, 9, false},
		{58, 9, false},
		{59, 9, true},
		{61, 9, false},
		{100, 9, false},
		{101, 10, false},
		{130, 10, false},
		{131, 10, true},
		{140, 1, false}, // a new pair of candidates counts from zero
		{169, 1, false},
	} {
		if got := c.update(at.answers, began.Add(time.Duration(at.second)*time.Second)); got != at.expired {
			t.Errorf("after %d s with %d answers: %v", at.second, at.answers, got)
		}
	}
}

// A noConnector creates no connections. CanReach accepts all but private addresses.
type noConnector struct{}

func (noConnector) Connect() (*webrtc.PeerConnection, error) { return nil, errors.New("no connection") }
func (noConnector) CanReach(a netip.Addr) bool               { return !a.IsPrivate() }

// TestCandidateLimits checks the limits on accepted candidates, and that the rest of an offer is unchanged.
func TestCandidateLimits(t *testing.T) {
	const head = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
	const audio = "m=audio 9 UDP/TLS/RTP/SAVPF 9\r\nc=IN IP4 0.0.0.0\r\na=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\na=rtpmap:9 G722/8000\r\na=end-of-candidates\r\n"
	candidates := func(n int, of string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "a=candidate:%d 1 udp 2130706431 %s %d typ host\r\n", i, of, 1000+i)
		}
		return b.String()
	}
	p := &peer{leg: &Leg{Connector: noConnector{}}}
	now := time.Now()
	for _, c := range []struct {
		name, at, within string
		after            time.Duration
		want             int
	}{
		{"two", "", candidates(2, "192.0.2.1"), 0, 2},
		{"too many", "", candidates(800, "192.0.2.1"), time.Minute, maxCandidates},
		{"at session level", candidates(800, "192.0.2.1"), "", time.Minute, maxCandidates},
		{"unreachable", candidates(1, "10.0.0.1"), candidates(9, "10.0.0.1") + candidates(1, "2001:db8::1"), time.Minute, 1},
		{"host names", "", candidates(9, "x.local") + candidates(9, "intern.example"), time.Minute, 0},
		{"malformed", "", "a=candidate:\r\na=candidate:1 1 udp\r\n", time.Minute, 0},
		{"active TCP", "", "a=candidate:1 1 tcp 1 192.0.2.1 9 typ host tcptype active\r\n", time.Minute, 0},
		{"again", "", candidates(800, "192.0.2.1"), time.Minute, maxCandidates},
		{"at once", "", candidates(800, "192.0.2.1"), 0, maxCandidates},
		{"third at once", "", candidates(800, "192.0.2.1"), 0, maxCandidates},
		{"budget used up", "", candidates(800, "192.0.2.1"), 0, 0},
		{"a little later", "", candidates(800, "192.0.2.1"), 10 * time.Second, 10},
	} {
		now = now.Add(c.after)
		got, err := p.filterCandidates(head+c.at+audio+c.within, now)
		if n := strings.Count(got, "a=candidate:"); err != nil || n != c.want {
			t.Errorf("%s: got %d candidates, want %d: %v", c.name, n, c.want, err)
		}
		var rest strings.Builder
		for line := range strings.Lines(got) {
			if !strings.HasPrefix(line, "a=candidate:") {
				rest.WriteString(line)
			}
		}
		if rest.String() != head+audio {
			t.Errorf("%s: the rest is %q", c.name, rest.String())
		}
	}
	if _, err := p.filterCandidates("v=0\r\nnonsense", now); err == nil {
		t.Error("filterCandidates: got no error for an invalid offer")
	}
}

// TestManyCandidatesUseBudget checks that an offer with many candidates uses up the budget for later candidates.
func TestManyCandidatesUseBudget(t *testing.T) {
	e, err := ice.Open(t.Context(), ice.Config{UDP: netip.MustParseAddrPort("127.0.0.1:0")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	ours, theirs := &Leg{Connector: e}, &Leg{Connector: e}
	for _, l := range []*Leg{ours, theirs} {
		if err = l.Open(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Hangup(media.LocalHangup) }()
	}
	offer, err := theirs.CreateOffer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for n := range 200 {
		offer += fmt.Sprintf("a=candidate:%d 1 udp %d 127.0.0.1 9 typ host\r\n", n, 1000+n)
	}
	if _, err := ours.AnswerOffer(t.Context(), offer); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(ours.peer.pc.RemoteDescription().SDP, "a=candidate:"); n == 0 || n > maxCandidates {
		t.Errorf("got %d candidates", n)
	}
	used := ours.candidates.used
	if err := ours.AddCandidate(&webrtc.ICECandidateInit{Candidate: "candidate:1 1 udp 1 127.0.0.1 10 typ host"}); err != nil || ours.candidates.used != used {
		t.Errorf("one more: %v, %v of them before and %v after", err, used, ours.candidates.used)
	}
}
