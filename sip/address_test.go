package sip

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/media/rtp/rtptest"
	"github.com/parley-voice/parley/sip/siptest"
)

func TestIPv6(t *testing.T) {
	transport, _ := rtptest.New(t, "::1")
	carrier := &siptest.Carrier{Listen: "[::1]:0", Media: transport, Answer: func(siptest.Invite) siptest.Script {
		return siptest.Script{Status: 200, Talk: func(ctx context.Context, leg media.Leg) {
			leg.Play(mediatest.Tone(440))
			<-ctx.Done()
		}}
	}}
	if err := carrier.Start(); err != nil {
		t.Skip(err) // a machine without IPv6
	}
	ua := &UA{Listen: "[::1]:0", Media: transport}
	if err := ua.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(ua.Close(context.Background()), carrier.Close()); err != nil {
			t.Error(err)
		}
	})
	for _, via := range []string{"udp", "tcp"} {
		call, err := ua.Dial(shortContext(t), media.Target{
			ID: "six-" + via, To: "12025550123", From: "+12025550100",
			Trunk: media.Trunk{Proxy: "sip:" + carrier.Addr().String() + ";transport=" + via},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		checkTone(t, call, 10, 440)
		_ = call.Hangup(media.LocalHangup)
		if err := drain(call); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	}
}

// TestPublicAddress checks that carriers receive the public address.
func TestPublicAddress(t *testing.T) {
	l := newEnvWith(t, &UA{Public: netip.MustParseAddr("192.0.2.7")}, func(siptest.Invite) siptest.Script {
		return siptest.Script{Ring: -1, Status: 486}
	})
	_, err := l.ua.Dial(shortContext(t), l.target(), nil)
	if causeOf(err) != media.Busy {
		t.Fatal(err)
	}
	e := l.carrier.Journal()[0]
	if contact, via := e.Contact, e.Via; !strings.Contains(contact, "@192.0.2.7:") || !strings.Contains(via, "192.0.2.7:") || !strings.Contains(via, "rport") {
		t.Errorf("Contact %q, Via %q", contact, via)
	}
}
