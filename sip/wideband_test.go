package sip

import (
	"context"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/sip/siptest"
)

// hum is a feed of one tone.
func hum(rate int, hz float64) media.Feed {
	second := tone.Sine(rate, rate, hz, 0.3)
	at := 0
	return media.FeedFunc(func(f media.Frame, _ time.Time) {
		at += copy(f, second[at:])
		at %= len(second)
	})
}

// hears waits until a leg hears a tone.
func hears(ctx context.Context, leg media.Leg, hz float64) bool {
	f := make(media.Frame, media.FrameLen(leg.Rate()))
	for ctx.Err() == nil && leg.ReadFrame(f) == nil {
		if tone.Power(f, leg.Rate(), hz) > 0.05 {
			return true
		}
	}
	return false
}

// TestEncryptedWideband calls over a trunk that wants SRTP and prefers G.722.
// A tone that no telephone carries passes both ways, and so does a key.
func TestEncryptedWideband(t *testing.T) {
	heard := make(chan string, 1)
	l := newLine(t, func(siptest.Invite) siptest.Script {
		return siptest.Script{Status: 200, Talk: func(ctx context.Context, leg media.Leg) {
			leg.Play(hum(leg.Rate(), 5000))
			got := ""
			if hears(ctx, leg, 6000) {
				got = "tone"
			}
			select {
			case key := <-leg.Digits():
				got += " " + string(key)
			case <-ctx.Done():
			}
			heard <- got
			<-ctx.Done()
		}}
	})
	to := l.target()
	to.Trunk.Encryption, to.Trunk.Codecs = media.Encrypted, []string{"G722", "PCMU"}
	leg, err := l.ua.Dial(t.Context(), to, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = leg.Hangup(media.LocalHangup) }()
	if leg.Rate() != 16000 {
		t.Errorf("the leg has %d Hz", leg.Rate())
	}
	leg.Play(hum(leg.Rate(), 6000))
	if !hears(soon(t), leg, 5000) {
		t.Error("we hear nothing above the telephone's band")
	}
	pad, ok := leg.(media.Keypad)
	if !ok {
		t.Fatal("the leg has no keys")
	}
	if err := pad.Press("7"); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-heard:
		if got != "tone 7" {
			t.Errorf("the other side heard %q", got)
		}
	case <-soon(t).Done():
		t.Error("the other side heard nothing")
	}
	if q := leg.(media.Gauge).Quality(); q.Codec != "G722" || q.Heard.Packets == 0 || q.Heard.MOS < 4 {
		t.Errorf("%+v", q)
	}
}

// TestUnknownCodec refuses a trunk before anything leaves.
func TestUnknownCodec(t *testing.T) {
	l := newLine(t, nil)
	to := l.target()
	to.Trunk.Codecs = []string{"opus"}
	if leg, err := l.ua.Dial(t.Context(), to, nil); err == nil {
		_ = leg.Hangup(media.LocalHangup)
		t.Error("dialled with a codec that there is not")
	}
}
