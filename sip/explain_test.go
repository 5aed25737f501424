package sip

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestTraceExplains checks that the trace of a failed call says why it was not retried.
func TestTraceExplains(t *testing.T) {
	t.Parallel()
	challenge := &siptest.Challenge{Realm: "carrier.example", Username: "u", Password: "p"}
	credentials := media.Trunk{Username: "u", Password: "p"}
	for _, row := range []struct {
		name   string
		script siptest.Script
		trunk  media.Trunk
		line   string // text of a message in the trace
		want   string // text in the note
	}{
		{"redirected", siptest.Script{Ring: -1, Status: 302}, media.Trunk{}, "302 ", "redirects are not supported"},
		{"overloaded", siptest.Script{Ring: -1, Status: 503}, media.Trunk{}, "503 ", "the carrier sent no Retry-After"},
		{"congested", siptest.Script{Ring: -1, Status: 503, Headers: map[string]string{"Retry-After": "30"}}, media.Trunk{}, "503 ", "Retry-After: 30"},
		{"no credentials", siptest.Script{Challenge: challenge}, media.Trunk{}, "401 ", "the carrier wants credentials"},
		{"foreign realm", siptest.Script{Challenge: challenge}, media.Trunk{Username: "u", Realm: "x.example"}, "401 ", `foreign realm "carrier.example": the trunk's realm is "x.example"`},
		{"no qop", siptest.Script{Challenge: &siptest.Challenge{Realm: "carrier.example", Username: "u", NoQOP: true}}, credentials, "401 ", "to answer it, set the realm of the trunk"},
		{"wrong password", siptest.Script{Challenge: challenge}, media.Trunk{Username: "u", Password: "q"}, "401 ", "does not accept our credentials"},
		{"audio nowhere", siptest.Script{Status: 200, SDP: []byte("v=0\r\nc=IN IP4 169.254.169.254\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n")}, media.Trunk{}, "", "except the trunk's own"},
		{"other family", siptest.Script{}, media.Trunk{Proxy: "sip:[::1]:5062;transport=udp"}, "no INVITE was sent", "::1 is an IPv6 address, and SIP uses IPv4 only"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			l := newEnv(t, func(siptest.Invite) siptest.Script { return row.script })
			target := l.target()
			if row.trunk.Proxy == "" {
				row.trunk.Proxy = target.Trunk.Proxy
			}
			target.Trunk = row.trunk
			began := time.Now()
			failure := l.dialError(t, t.Context(), target, nil)
			if !slices.ContainsFunc(failure.Ladder, func(m media.Message) bool {
				return strings.HasPrefix(m.Line, row.line) && strings.Contains(m.Note, row.want)
			}) {
				t.Errorf("the trace is %+v", failure.Ladder)
			}
			if d := time.Since(began); d > 10*time.Second {
				t.Errorf("it took %v", d)
			}
		})
	}
}

// TestLateChallengeIsExplained checks that a challenge after ringing is not answered, and that the
// trace notes it.
func TestLateChallengeIsExplained(t *testing.T) {
	simulate(t, &UA{FirstMedia: -1, MediaGap: -1}, func(t *testing.T, b *simEnv) { //nolint:thelper // the test itself
		to := target("late-401")
		to.Trunk.Username, to.Trunk.Password, to.Trunk.Realm = "u", "p", "carrier.example"
		invite, result := b.dial(t, to)
		b.send(t, reply(invite, "180 Ringing", peerTag, "", ""))
		b.send(t, reply(invite, "401 Unauthorized", peerTag, "WWW-Authenticate: Digest realm=\"carrier.example\", nonce=\"n\", qop=\"auth\"\r\n", ""))
		b.read(t, "ACK ")
		failure, ok := (<-result).err.(*media.DialError) //nolint:errorlint // always that
		if !ok || failure.Cause != media.AuthFailed {
			t.Fatalf("%v", failure)
		}
		if last := failure.Ladder[len(failure.Ladder)-1]; !strings.Contains(last.Note, "challenge after ringing may have begun") {
			t.Errorf("the trace ends with %q, note %q", last.Line, last.Note)
		}
	})
}

// TestCarrierTransferIsExplained checks that a REFER of the carrier is refused, and that the trace
// notes it.
func TestCarrierTransferIsExplained(t *testing.T) {
	simulate(t, &UA{FirstMedia: -1, MediaGap: -1}, func(t *testing.T, b *simEnv) { //nolint:thelper // the test itself
		call, invite := b.placeCall(t, "refer")
		b.send(t, strings.Replace(requestWithin(invite, "REFER", 7, ""), "Max-Forwards", "Refer-To: <sip:1@127.0.0.1>\r\nMax-Forwards", 1))
		if got := b.read(t, "SIP/2.0 "); !strings.HasPrefix(got, "SIP/2.0 405") {
			t.Errorf("answered %.60q", got)
		}
		<-time.After(time.Second)
		if l := ladderOf(t, call); !strings.Contains(l, "405 Method Not Allowed | 7 REFER, transfers by the carrier are not supported") {
			t.Errorf("the trace is\n%s", l)
		}
		b.hangUp(t, call)
	})
}
