package sip

import (
	"context"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/sip/siptest"
)

func newTone(rate int, hz float64) media.Feed {
	second := tone.Sine(rate, rate, hz, 0.3)
	at := 0
	return media.FeedFunc(func(f media.Frame, _ time.Time) {
		at += copy(f, second[at:])
		at %= len(second)
	})
}

func waitTone(ctx context.Context, leg media.Leg, hz float64) bool {
	f := make(media.Frame, media.FrameLen(leg.Rate()))
	for ctx.Err() == nil && leg.ReadFrame(f) == nil {
		if tone.Power(f, leg.Rate(), hz) > 0.05 {
			return true
		}
	}
	return false
}

// TestEncryptedWideband calls a trunk with SRTP and G.722. A wideband tone passes
// both ways, and so does a key.
func TestEncryptedWideband(t *testing.T) {
	keys := make(chan string, 1)
	l := newEnv(t, func(siptest.Invite) siptest.Script {
		return siptest.Script{Status: 200, Talk: func(ctx context.Context, leg media.Leg) {
			leg.Play(newTone(leg.Rate(), 5000))
			got := ""
			if waitTone(ctx, leg, 6000) {
				got = "tone"
			}
			select {
			case key := <-leg.Digits():
				got += " " + string(key)
			case <-ctx.Done():
			}
			keys <- got
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
	leg.Play(newTone(leg.Rate(), 6000))
	if !waitTone(shortContext(t), leg, 5000) {
		t.Error("we hear nothing above the telephone's band")
	}
	pad, ok := leg.(media.Keypad)
	if !ok {
		t.Fatal("the leg does not implement media.Keypad")
	}
	if err := pad.Press("7"); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-keys:
		if got != "tone 7" {
			t.Errorf("the other side got the key %q", got)
		}
	case <-shortContext(t).Done():
		t.Error("the other side got no key")
	}
	if q := leg.(media.QualityReporter).Quality(); q.Codec != "G722" || q.Received.Packets == 0 || q.Received.MOS < 4 {
		t.Errorf("%+v", q)
	}
}

// TestUnknownCodec refuses a trunk before anything is sent.
func TestUnknownCodec(t *testing.T) {
	l := newEnv(t, nil)
	to := l.target()
	to.Trunk.Codecs = []string{"opus"}
	if leg, err := l.ua.Dial(t.Context(), to, nil); err == nil {
		_ = leg.Hangup(media.LocalHangup)
		t.Error("dialed with an unknown codec")
	}
}
