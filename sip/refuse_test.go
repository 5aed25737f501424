package sip

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/siptest"
)

func (l *env) dialError(t *testing.T, ctx context.Context, target media.Target, progress func(media.Progress)) *media.DialError { //nolint:revive // t comes first in tests
	t.Helper()
	leg, err := l.ua.Dial(ctx, target, progress)
	if err == nil {
		_ = leg.Hangup(media.LocalHangup)
		t.Fatal("the call was answered")
	}
	var failure *media.DialError
	if !errors.As(err, &failure) {
		t.Fatalf("Dial returned %T", err)
	}
	return failure
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		script siptest.Script
		cause  media.Cause
		status int
	}{
		{"busy", siptest.Script{After: 20 * time.Millisecond, Status: 486}, media.Busy, 486},
		{"busy without a ring", siptest.Script{Ring: -1, Status: 600}, media.Busy, 600},
		{"declined", siptest.Script{After: 20 * time.Millisecond, Status: 603, Reason: "No\x01 Thanks"}, media.Declined, 603},
		{"unknown", siptest.Script{Ring: -1, Status: 404}, media.InvalidNumber, 404},
		{"congested", siptest.Script{Ring: -1, Status: 503, Headers: map[string]string{"Retry-After": "30"}}, media.Congestion, 503},
		{"redirected", siptest.Script{Ring: -1, Status: 302, Headers: map[string]string{"Contact": "<sip:+900555@127.0.0.1:9>"}}, media.Redirected, 302},
		{"many rings", siptest.Script{Rings: 30, RingEvery: 5 * time.Millisecond, After: 20 * time.Millisecond, Status: 480}, media.NoAnswer, 480},
		{"early media", siptest.Script{EarlyMedia: true, After: 100 * time.Millisecond, Status: 486}, media.Busy, 486},
		{"no codec in common", siptest.Script{After: 20 * time.Millisecond, Status: 200, SDP: []byte("v=0\r\nc=IN IP4 127.0.0.1\r\nm=audio 4000 RTP/AVP 18\r\n")}, media.RouteError, 0},
		{"no description", siptest.Script{After: 20 * time.Millisecond, Status: 200, SDP: []byte{}}, media.RouteError, 0},
		{"another address family", siptest.Script{After: 20 * time.Millisecond, Status: 200, SDP: []byte("v=0\r\nc=IN IP6 2001:db8::7\r\nm=audio 4000 RTP/AVP 0\r\n")}, media.RouteError, 0},
		{"multicast", siptest.Script{After: 20 * time.Millisecond, Status: 200, SDP: []byte("v=0\r\nc=IN IP4 239.1.2.3/64\r\nm=audio 4000 RTP/AVP 0\r\n")}, media.RouteError, 0},
		{"garbage", siptest.Script{After: 20 * time.Millisecond, Status: 200, SDP: []byte("\xff\x00 nonsense")}, media.RouteError, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newEnv(t, func(siptest.Invite) siptest.Script { return row.script })
			rings := 0
			failure := l.dialError(t, t.Context(), l.target(), func(p media.Progress) {
				if p == media.Ringing {
					rings++
				}
			})
			if failure.Cause != row.cause || failure.Status != row.status {
				t.Errorf("got %v", failure)
			}
			if want := row.script.Ring >= 0; (rings == 1) != want || rings > 1 {
				t.Errorf("%d ringing reports", rings)
			}
			if strings.ContainsRune(failure.Reason, 1) {
				t.Errorf("reason %q", failure.Reason)
			}
			if row.status == 0 { // the call was answered, so the carrier must receive a BYE
				if failure.Err == nil {
					t.Error("the error has no text")
				}
				l.waitEntry(t, func(e siptest.Entry) bool { return e.Answered && e.Cause == media.RemoteHangup })
			}
			if n := len(l.carrier.Journal()); n != 1 {
				t.Errorf("%d INVITEs", n)
			}
		})
	}
}

func TestRingTimeout(t *testing.T) {
	l := newEnv(t, func(siptest.Invite) siptest.Script { return siptest.Script{} })
	target := l.target()
	target.RingTimeout = 50 * time.Millisecond
	failure := l.dialError(t, t.Context(), target, nil)
	if failure.Cause != media.NoAnswer || failure.Status != 487 {
		t.Errorf("got %v", failure)
	}
	l.waitEntry(t, func(e siptest.Entry) bool { return e.Canceled && e.Rang && !e.Answered })
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := newEnv(t, func(siptest.Invite) siptest.Script { return siptest.Script{} })
	failure := l.dialError(t, ctx, l.target(), func(p media.Progress) {
		if p == media.Ringing {
			cancel()
		}
	})
	if failure.Cause != media.Canceled {
		t.Errorf("got %v", failure)
	}
	l.waitEntry(t, func(e siptest.Entry) bool { return e.Canceled })
}

// TestCancelBeforeResponse checks that a CANCEL is delayed until the first response.
func TestCancelBeforeResponse(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := newEnv(t, func(siptest.Invite) siptest.Script {
		cancel()
		return siptest.Script{Ring: 100 * time.Millisecond}
	})
	start := time.Now()
	failure := l.dialError(t, ctx, l.target(), func(p media.Progress) {
		if p == media.Ringing {
			t.Error("ringing was reported after the end")
		}
	})
	if failure.Cause != media.Canceled || time.Since(start) < 90*time.Millisecond {
		t.Errorf("got %v after %v", failure, time.Since(start))
	}
	l.waitEntry(t, func(e siptest.Entry) bool { return e.Canceled })
}

func TestCanceledBeforeDial(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := newEnv(t, nil)
	failure := l.dialError(t, ctx, l.target(), func(p media.Progress) { t.Errorf("progress %s", p) })
	if failure.Cause != media.Canceled || len(l.carrier.Journal()) != 0 {
		t.Errorf("got %v and %d INVITEs", failure, len(l.carrier.Journal()))
	}
}

// TestCancelRace makes answers and CANCELs cross. No call may stay up.
func TestCancelRace(t *testing.T) {
	const rounds, atOnce = 504, 12
	l := newEnv(t, func(in siptest.Invite) siptest.Script {
		s := siptest.Script{After: rand.N(10 * time.Millisecond), Status: 200}
		if in.To == "1" {
			s = siptest.Script{AnswerOnCancel: true}
		}
		return s
	})
	var sent atomic.Int64 // a busy machine may cancel before it sends the INVITE
	inParallel(rounds, atOnce, func(n int) {
		target := l.target()
		if n%3 == 0 {
			target.To = "1"
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond+rand.N(15*time.Millisecond))
		leg, err := l.ua.Dial(ctx, target, func(p media.Progress) {
			if p == media.Sent {
				sent.Add(1)
			}
		})
		cancel()
		switch {
		case err != nil:
			var failure *media.DialError
			if errors.As(err, &failure); failure.Cause != media.Canceled {
				t.Errorf("round %d: %v", n, err)
			}
		case n%3 == 0:
			t.Errorf("round %d: the answer to a CANCEL became a leg", n)
			fallthrough
		default:
			_ = leg.Hangup(media.LocalHangup)
		}
	})
	err := l.carrier.Wait(shortContext(t), func(all []siptest.Entry) bool {
		for _, e := range all {
			if e.Cause == "" {
				return false
			}
		}
		return int64(len(all)) == sent.Load()
	})
	answered := 0
	for _, e := range l.carrier.Journal() {
		if e.Answered {
			answered++
		}
		if e.Cause != media.Canceled && e.Cause != media.RemoteHangup {
			t.Errorf("%s ended with %q: %+v", e.ID, e.Cause, e)
		}
	}
	if err != nil || answered < rounds/3 || l.carrier.Calls() != 0 {
		t.Errorf("%v; %d of %d answered, %d calls up", err, answered, rounds, l.carrier.Calls())
	}
}

func TestSecondAnswerIsHungUp(t *testing.T) {
	l := newEnv(t, func(siptest.Invite) siptest.Script { return siptest.Script{Status: 200, SecondAnswer: true} })
	leg := l.call(t, l.target())
	e := l.waitEntry(t, func(e siptest.Entry) bool { return e.Forked != "" })
	if e.Forked != media.RemoteHangup || e.Cause != "" || leg.Cause() != "" {
		t.Errorf("the second phone ended with %q, the first with %q, our leg with %q", e.Forked, e.Cause, leg.Cause())
	}
	_ = leg.Hangup(media.LocalHangup)
	l.waitEntry(t, func(e siptest.Entry) bool { return e.Cause == media.RemoteHangup })
}

func TestInjectionIsRefused(t *testing.T) {
	l := newEnv(t, nil)
	for name, spoil := range map[string]func(*media.Target){
		"id":           func(x *media.Target) { x.ID = "a\r\nX: 1" },
		"id with host": func(x *media.Target) { x.ID = "a@b" },
		"empty id":     func(x *media.Target) { x.ID = "" },
		"to":           func(x *media.Target) { x.To = "1202@evil.example" },
		"to with line": func(x *media.Target) { x.To = "1202\r\nX: 1" },
		"empty to":     func(x *media.Target) { x.To = "" },
		"from":         func(x *media.Target) { x.From = "1>;tag=x" },
		"header value": func(x *media.Target) { x.Headers = map[string]string{"X-A": "b\r\nEvil: 1\r\n\r\nbody"} },
		"header del":   func(x *media.Target) { x.Headers = map[string]string{"X-A": "b\x7f"} },
		"header name":  func(x *media.Target) { x.Headers = map[string]string{"X-A: b\r\nEvil": "1"} },
		"via":          func(x *media.Target) { x.Headers = map[string]string{"vIA": "SIP/2.0/UDP evil.example"} },
		"contact":      func(x *media.Target) { x.Headers = map[string]string{"m": "<sip:evil.example>"} },
		"proxy":        func(x *media.Target) { x.Trunk.Proxy = "sip:127.0.0.1\r\nX: 1" },
		"proxy scheme": func(x *media.Target) { x.Trunk.Proxy = "tel:+12025550123" },
		"proxy user":   func(x *media.Target) { x.Trunk.Proxy = "sip:a@127.0.0.1" },
		"transport":    func(x *media.Target) { x.Trunk.Proxy = "sip:127.0.0.1;transport=sctp" },
		"no proxy":     func(x *media.Target) { x.Trunk.Proxy = "" },
		"too long for UDP": func(x *media.Target) {
			x.Headers = map[string]string{"X-A": strings.Repeat("a", 500), "X-B": strings.Repeat("b", 500)}
		},
	} {
		target := l.target()
		spoil(&target)
		failure := l.dialError(t, t.Context(), target, func(p media.Progress) { t.Errorf("%s: progress %s", name, p) })
		if failure.Cause != media.RouteError || failure.Err == nil {
			t.Errorf("%s: %v", name, failure)
		}
	}
	if n := len(l.carrier.Journal()); n != 0 {
		t.Errorf("%d INVITEs were sent", n)
	}
}

// TestLongInvite checks that a long INVITE uses TCP if the trunk leaves the transport open.
func TestLongInvite(t *testing.T) {
	l := newEnv(t, nil)
	target := l.target()
	target.Trunk.Proxy = "sip:" + l.carrier.Addr().String()
	target.Headers = map[string]string{"X-A": strings.Repeat("a", 500), "X-B": strings.Repeat("b", 500), "X-C": strings.Repeat("c", 500)}
	leg := l.call(t, target)
	e := l.waitEntry(t, func(e siptest.Entry) bool { return e.Acked })
	if e.Transport != "TCP" || len(e.Headers["X-B"]) != 500 {
		t.Errorf("the carrier saw %s and %d headers", e.Transport, len(e.Headers))
	}
	_ = leg.Hangup(media.LocalHangup)
	l.waitEntry(t, func(e siptest.Entry) bool { return e.Cause == media.RemoteHangup })
}

func TestNoCancelBeforeResponse(t *testing.T) {
	t.Parallel()
	l := newEnv(t, nil)
	silent := listenUDP(t, "127.0.0.1:0")
	target := l.target()
	target.Trunk.Proxy = "sip:" + silent.LocalAddr().String() + ";transport=udp"
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	failure := l.dialError(t, ctx, target, nil)
	// Before a response no CANCEL may be sent, so only the caller's timeout counts.
	if d := time.Since(start); failure.Cause != media.Canceled || d > 5*time.Second {
		t.Errorf("got %v after %v", failure, d)
	}
	buf := make([]byte, 2000)
	for {
		_ = silent.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		n, _, err := silent.ReadFrom(buf)
		if err != nil {
			break
		}
		if !strings.HasPrefix(string(buf[:n]), "INVITE ") {
			t.Errorf("sent %.10q", buf[:n])
		}
	}
	closed, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if err := l.ua.Close(closed); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close during a call returned %v", err)
	}
}
