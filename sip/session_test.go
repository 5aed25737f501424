package sip

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/sip/dialog"
	"github.com/parley-voice/parley/sip/siptest"
)

func lines(all []media.Message) (out []string) {
	for _, m := range all {
		arrow := "<"
		if m.Out {
			arrow = ">"
		}
		word, _, _ := strings.Cut(m.Line, " ")
		out = append(out, arrow+word)
	}
	return out
}

// TestSessionTimer checks that refreshes of either side keep a call alive, and that a call without
// refreshes ends.
func TestSessionTimer(t *testing.T) {
	for name, row := range map[string]struct {
		session dialog.SessionExpires
		stops   bool // the carrier stops refreshing the session
	}{
		"we refresh":    {dialog.SessionExpires{Length: time.Second, Refresher: dialog.UAC}, false},
		"carrier does":  {dialog.SessionExpires{Length: time.Second, Refresher: dialog.UAS}, false},
		"carrier stops": {dialog.SessionExpires{Length: time.Second, Refresher: dialog.UAS}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newEnvWith(t, &UA{MinSession: time.Second}, nil)
			session := row.session
			b := l.addCarrier(t, &siptest.Carrier{MinSession: time.Second, Answer: func(siptest.Invite) siptest.Script {
				return siptest.Script{Status: 200, Session: session, NoRefresh: row.stops}
			}})
			target := l.target()
			target.Trunk.Proxy = b.Proxy()
			call := l.call(t, target)
			if row.stops {
				if err := drain(call); !errors.Is(err, io.EOF) || call.Cause() != media.Expired {
					t.Errorf("ended with %q, %v", call.Cause(), err)
				}
				return
			}
			updates := func() (n int) {
				for _, line := range lines(call.Ladder(t.Context())) {
					if line == ">UPDATE" || line == "<UPDATE" {
						n++
					}
				}
				return n
			}
			waitFor(t, func() bool { return updates() >= 3 }, func() string { return fmt.Sprintf("%d refreshes", updates()) })
			if call.Cause() != "" {
				t.Errorf("the call ended: %s", call.Cause())
			}
			_ = call.Hangup(media.LocalHangup)
		})
	}
}

// TestIntervalTooSmall checks that the carrier's interval is requested after a 422.
func TestIntervalTooSmall(t *testing.T) {
	l := newEnv(t, func(siptest.Invite) siptest.Script { return siptest.Script{Status: 200, MinSession: time.Hour} })
	call := l.call(t, l.target())
	_ = call.Hangup(media.LocalHangup)
	got := l.carrier.Journal()
	if len(got) != 2 || got[0].Status != 422 || got[1].Headers["Session-Expires"] != "3600" || got[1].CSeq != 2 {
		t.Errorf("%+v", got)
	}
}

// TestReliable checks that each copy of a reliable response is acknowledged.
func TestReliable(t *testing.T) {
	l := newEnv(t, func(siptest.Invite) siptest.Script { return siptest.Script{Reliable: true, Status: 200} })
	rang := 0
	call, err := l.ua.Dial(shortContext(t), l.target(), func(p media.Progress) {
		if p == media.Ringing {
			rang++
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	l.waitEntry(t, func(e siptest.Entry) bool { return e.Acked })
	_ = call.Hangup(media.LocalHangup)
	if e := l.waitEntry(t, func(e siptest.Entry) bool { return e.Cause != "" }); e.Pracks != 1 || !e.Acked || rang != 1 {
		t.Errorf("%d PRACKs, acknowledged %v, rang %d times", e.Pracks, e.Acked, rang)
	}
}

// newEnvWithPhone returns an environment whose carrier plays a tone, and its leg.
func newEnvWithPhone(t *testing.T) (*env, <-chan media.Leg) {
	t.Helper()
	phone := make(chan media.Leg, 1)
	return newEnv(t, func(siptest.Invite) siptest.Script {
		return siptest.Script{Status: 200, Talk: func(ctx context.Context, leg media.Leg) {
			leg.Play(mediatest.Tone(440))
			phone <- leg
			<-ctx.Done()
		}}
	}), phone
}

// TestHold checks that either side can hold the call, and that audio stops and resumes.
func TestHold(t *testing.T) {
	l, phone := newEnvWithPhone(t)
	call := l.call(t, l.target())
	defer func() { _ = call.Hangup(media.LocalHangup) }()
	theirs := <-phone
	for _, side := range []media.Leg{call, theirs} {
		for _, on := range []bool{true, true, false} {
			if err := side.(media.Holder).Hold(shortContext(t), on); err != nil { //nolint:forcetypeassert // the leg of package sip/leg
				t.Fatalf("hold %v: %v", on, err)
			}
		}
	}
	checkTone(t, call, 10, 440)
}

// TestGlare checks that crossing offers of both sides succeed.
func TestGlare(t *testing.T) {
	t.Parallel()
	l, phone := newEnvWithPhone(t)
	call := l.call(t, l.target())
	defer func() { _ = call.Hangup(media.LocalHangup) }()
	theirs := <-phone
	crossed := false
	for range 5 {
		both := make(chan error, 2)
		for _, side := range []media.Leg{call, theirs} {
			go func() { both <- side.(media.Holder).Hold(shortContext(t), true) }() //nolint:forcetypeassert // the leg of package sip/leg
		}
		for range 2 {
			if err := <-both; err != nil {
				t.Fatal(err)
			}
		}
		for _, m := range call.Ladder(t.Context()) {
			crossed = crossed || strings.HasPrefix(m.Line, "491")
		}
		if crossed {
			return
		}
		for _, side := range []media.Leg{call, theirs} {
			if err := side.(media.Holder).Hold(shortContext(t), false); err != nil { //nolint:forcetypeassert // the leg of package sip/leg
				t.Fatal(err)
			}
		}
	}
	t.Error("the offers never crossed")
}

// TestRefer tests a transfer and its failures.
func TestRefer(t *testing.T) {
	for name, row := range map[string]struct {
		refer *siptest.Refer
		want  string // text in the error
	}{
		"answered":         {&siptest.Refer{Status: 202, Statuses: []int{100, 180, 200}}, ""},
		"carrier hangs up": {&siptest.Refer{Status: 202, Statuses: []int{100, 200}, Hangup: true}, ""},
		"busy":             {&siptest.Refer{Status: 202, Statuses: []int{100, 486}}, "486"},
		"refused":          {&siptest.Refer{Status: 603}, "603"},
		"not supported":    {nil, "405"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newEnv(t, func(siptest.Invite) siptest.Script { return siptest.Script{Status: 200, Refer: row.refer} })
			call := l.call(t, l.target())
			defer func() { _ = call.Hangup(media.LocalHangup) }()
			l.waitEntry(t, func(e siptest.Entry) bool { return e.Acked })
			err := call.Refer(shortContext(t), "12025550177")
			switch {
			case row.want == "" && err != nil, row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)):
				t.Fatalf("transfer: %v", err)
			case row.want != "" && call.Cause() != "":
				t.Errorf("the call ended: %s", call.Cause())
			case row.want == "" && call.Cause() != media.Transferred:
				t.Errorf("ended with %q", call.Cause())
			}
			if row.refer != nil {
				if e := l.waitEntry(t, func(e siptest.Entry) bool { return e.ReferTo != "" }); !strings.Contains(e.ReferTo, "sip:12025550177@") {
					t.Error(e.ReferTo)
				}
			}
		})
	}
	l := newEnv(t, nil)
	call := l.call(t, l.target())
	defer func() { _ = call.Hangup(media.LocalHangup) }()
	if err := call.Refer(shortContext(t), "1>\r\nX: y"); err == nil {
		t.Error("a number with a line break was accepted")
	}
}

// TestIdentity checks that the carrier receives the caller identity as configured.
func TestIdentity(t *testing.T) {
	l := newEnv(t, nil)
	target := l.target()
	target.Trunk.Asserted, target.Trunk.Private, target.Trunk.Diversion = true, true, "+12025550188"
	target.Trunk.Headers, target.Headers = map[string]string{"X-Route": "a", "X-Both": "trunk"}, map[string]string{"X-Both": "call"}
	call := l.call(t, target)
	_ = call.Hangup(media.LocalHangup)
	e := l.carrier.Journal()[0]
	for name, want := range map[string]string{
		"P-Asserted-Identity": "<sip:+12025550100@127.0.0.1>", "Privacy": "id", "X-Route": "a", "X-Both": "call",
		"Diversion": "<sip:+12025550188@127.0.0.1>;reason=unknown",
	} {
		if e.Headers[name] != want {
			t.Errorf("%s: %q, want %q", name, e.Headers[name], want)
		}
	}
	if e.From != "anonymous" {
		t.Errorf("From %q", e.From)
	}
}

// TestLadder checks that the trace contains no secrets.
func TestLadder(t *testing.T) {
	l := newEnv(t, func(in siptest.Invite) siptest.Script {
		s := siptest.Script{Status: 200, Challenge: &siptest.Challenge{Realm: "carrier.example", Username: "u", Password: "canary-secret"}}
		if in.To == "404" {
			s.Ring, s.Status = -1, 404
		}
		return s
	})
	target := l.target()
	target.Trunk.Username, target.Trunk.Password = "u", "canary-secret"
	call := l.call(t, target)
	_ = call.Hangup(media.LocalHangup)
	ladder := call.Ladder(shortContext(t))
	if got := strings.Join(lines(ladder), " "); got != ">INVITE <401 >INVITE <180 <200 >ACK >BYE <200" {
		t.Error(got)
	}
	target.ID, target.To = l.target().ID, "404"
	_, err := l.ua.Dial(shortContext(t), target, nil)
	failure, ok := errors.AsType[*media.DialError](err)
	if !ok || strings.Join(lines(failure.Ladder), " ") != ">INVITE <401 >INVITE <404" {
		t.Errorf("%v: %v", err, lines(failure.Ladder))
	}
	var all bytes.Buffer
	for _, m := range append(ladder, failure.Ladder...) {
		all.WriteString(m.Line + m.Note + "\n")
	}
	for _, secret := range []string{"canary-secret", "nonce", "response="} {
		if strings.Contains(all.String(), secret) {
			t.Errorf("the ladder contains %q:\n%s", secret, &all)
		}
	}
}
