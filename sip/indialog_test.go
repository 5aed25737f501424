package sip

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/leg"
)

func (b *simEnv) next(within time.Duration) string {
	select {
	case d := <-b.peer.(*simConn).in: //nolint:forcetypeassert // from simulate
		return string(d.data)
	case <-time.After(within):
		return ""
	}
}

// hangUp ends a call and answers the BYE.
func (b *simEnv) hangUp(t *testing.T, call media.Leg) {
	t.Helper()
	if c := call.Cause(); c != "" {
		t.Errorf("the call has ended: %s", c)
		return
	}
	_ = call.Hangup(media.LocalHangup)
	b.send(t, reply(b.read(t, "BYE "), "200 OK", "", "", ""))
}

func ladderOf(t *testing.T, call *leg.Leg) string {
	t.Helper()
	var lines []string
	for _, m := range call.Ladder(t.Context()) {
		lines = append(lines, m.Line+" | "+m.Note)
	}
	return strings.Join(lines, "\n")
}

// TestAckWithInviteBranch checks that an ACK of a re-INVITE with the INVITE's branch is accepted
// (RFC 6026 section 7.1), and that the trace shows it.
func TestAckWithInviteBranch(t *testing.T) {
	simulate(t, &UA{FirstMedia: -1, MediaGap: -1}, func(t *testing.T, b *simEnv) { //nolint:thelper // the test itself
		call, invite := b.placeCall(t, "same-branch")
		for cseq := 7; cseq < 10; cseq++ {
			b.send(t, requestWithin(invite, "INVITE", cseq, sdpWithPort(9)))
			if got := b.read(t, "SIP/2.0 "); !strings.HasPrefix(got, "SIP/2.0 200") {
				t.Errorf("re-INVITE %d was answered with %.60q", cseq, got)
			}
			ack := strings.Replace(requestWithin(invite, "ACK", cseq, ""), "branch=z9hG4bKhandACK", "branch=z9hG4bKhandINVITE", 1)
			for range 3 { // like a retransmitted 200
				b.send(t, ack)
			}
			if more := b.next(time.Second); more != "" {
				t.Errorf("after the ACK of re-INVITE %d: got %.60q", cseq, more)
			}
			if want := fmt.Sprintf("%d ACK", cseq); !strings.Contains(ladderOf(t, call), want) {
				t.Errorf("the trace has no %q:\n%s", want, ladderOf(t, call))
			}
		}
		if more := b.next(40 * time.Second); more != "" {
			t.Errorf("got %.60q later", more)
		}
		b.hangUp(t, call)
	})
}

// TestUnknownInviteIsAnsweredOnce checks that each copy of an INVITE from outside gets one response. The response is
// the same for all users and not much longer than the request, even if the source is trusted.
func TestUnknownInviteIsAnsweredOnce(t *testing.T) {
	simulate(t, &UA{FirstMedia: -1, MediaGap: -1}, func(t *testing.T, b *simEnv) { //nolint:thelper // the test itself
		call, _ := b.placeCall(t, "known") // the peer's address is trusted from now on
		want := map[string]string{"": "403", ";tag=none": "481"}
		for tag, status := range want {
			plain := ""
			for n, user := range []string{"parley", "+12025550123", "guest"} {
				invite := fmt.Sprintf("INVITE sip:%s@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP %s;branch=z9hG4bKs%s%d\r\nFrom: <sip:s@x>;tag=f\r\n"+
					"To: <sip:u@127.0.0.1>%s\r\nCall-ID: unknown%s%d\r\nCSeq: 1 INVITE\r\nContact: <sip:s@%s>\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n",
					user, peerAddr, status, n, tag, status, n, peerAddr)
				for range 2 {
					b.send(t, invite)
					got := b.next(time.Second)
					if !strings.HasPrefix(got, "SIP/2.0 "+status) || 2*len(got) > 3*len(invite) {
						t.Errorf("an INVITE of %d bytes for %s was answered with %d bytes, %.60q", len(invite), user, len(got), got)
					}
					for more := b.next(time.Minute); more != ""; more = b.next(time.Minute) {
						t.Errorf("got %.60q then", more)
					}
					if got = strings.NewReplacer(fmt.Sprintf("%s%d", status, n), "").Replace(got); n == 0 {
						plain = header(got, "Via") + header(got, "Reason")
					} else if plain != header(got, "Via")+header(got, "Reason") {
						t.Errorf("%s has another answer: %q", user, got)
					}
				}
			}
		}
		b.hangUp(t, call)
	})
}

// TestOutOfOrderRequest checks that a request older than an earlier one gets 500 (RFC 3261 section
// 12.2.2).
func TestOutOfOrderRequest(t *testing.T) {
	simulate(t, &UA{FirstMedia: -1, MediaGap: -1}, func(t *testing.T, b *simEnv) { //nolint:thelper // the test itself
		call, invite := b.placeCall(t, "old")
		for n, row := range []struct {
			method string
			cseq   int
			status string
		}{
			{"OPTIONS", 20, "200"},
			{"OPTIONS", 19, "500"},
			{"INFO", 18, "500"},
			{"UPDATE", 17, "500"},
			{"NOTIFY", 16, "500"},
			{"MESSAGE", 15, "500"},
			{"INVITE", 14, "500"},
			{"MESSAGE", 30, "405"},
			{"OPTIONS", 29, "500"},
			{"OPTIONS", 31, "200"},
		} {
			b.send(t, requestWithin(invite, row.method, row.cseq, ""))
			got := b.next(time.Second)
			if !strings.HasPrefix(got, "SIP/2.0 "+row.status) {
				t.Errorf("%d: %s with CSeq %d was answered with %.60q, want %s", n, row.method, row.cseq, got, row.status)
			}
			if row.method == "INVITE" {
				b.send(t, strings.Replace(requestWithin(invite, "ACK", row.cseq, ""), "handACK", "handINVITE", 1))
			}
			synctest.Wait()
		}
		b.hangUp(t, call)
	})
}

// TestFaxOffer checks that an offer of audio and fax is answered with port 0 for the fax, and that
// an offer of fax alone is refused.
func TestFaxOffer(t *testing.T) {
	const fax, video = "m=image 40000 udptl t38\r\na=T38FaxVersion:0\r\n", "m=video 40002 RTP/AVP 97\r\na=rtpmap:97 H264/90000\r\n"
	head, audio, _ := strings.Cut(sdpWithPort(9), "m=audio")
	audio = "m=audio" + audio
	simulate(t, &UA{FirstMedia: -1, MediaGap: -1}, func(t *testing.T, b *simEnv) { //nolint:thelper // the test itself
		call, invite := b.placeCall(t, "fax")
		for n, row := range []struct{ name, offer, status, lines string }{
			{"fax after audio", head + audio + fax, "200", "audio image:0"},
			{"fax before audio", head + fax + audio, "200", "image:0 audio"},
			{"video and fax", head + video + audio + fax, "200", "video:0 audio image:0"},
			{"fax alone", head + fax, "488", ""},
			{"fax, audio refused", head + "m=audio 0 RTP/AVP 0\r\n" + fax, "488", ""},
			{"audio again", head + audio, "200", "audio"},
		} {
			cseq := 7 + n
			b.send(t, requestWithin(invite, "INVITE", cseq, row.offer))
			got := b.read(t, "SIP/2.0 ")
			ack := requestWithin(invite, "ACK", cseq, "")
			if row.status != "200" {
				ack = strings.Replace(ack, "handACK", "handINVITE", 1)
			}
			b.send(t, ack)
			var lines []string
			for line := range strings.SplitSeq(got, "\r\n") {
				if f := strings.Fields(strings.TrimPrefix(line, "m=")); strings.HasPrefix(line, "m=") {
					kind := f[0]
					if f[1] == "0" {
						kind += ":0"
					}
					lines = append(lines, kind)
				}
			}
			if !strings.HasPrefix(got, "SIP/2.0 "+row.status) || strings.Join(lines, " ") != row.lines {
				t.Errorf("%s: answered %.40q with %q, want %s with %q", row.name, got, lines, row.status, row.lines)
			}
			if c := call.Cause(); c != "" {
				t.Errorf("%s: the call ended: %s", row.name, c)
			}
			synctest.Wait()
		}
		b.hangUp(t, call)
	})
}
