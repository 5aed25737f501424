package sip

import (
	"context"
	"testing"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/sip/siptest"
)

func waitTone(ctx context.Context, leg media.Leg, hz float64) bool {
	f := make(media.Frame, media.FrameLen(leg.Rate()))
	for ctx.Err() == nil && leg.ReadFrame(f) == nil {
		if tone.Power(f, leg.Rate(), hz) > 0.03 {
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
			leg.Play(mediatest.Tone(5000))
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
	leg := l.call(t, to)
	defer func() { _ = leg.Hangup(media.LocalHangup) }()
	if leg.Rate() != 16000 {
		t.Errorf("the leg has %d Hz", leg.Rate())
	}
	leg.Play(mediatest.Tone(6000))
	if !waitTone(shortContext(t), leg, 5000) {
		t.Error("no wideband tone received")
	}
	if err := leg.Press("7"); err != nil {
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
	if q := leg.Quality(); q.Codec != "G722" || q.Received.Packets == 0 || q.Received.MOS < 4 {
		t.Errorf("%+v", q)
	}
}

// TestUnknownCodec checks that a trunk with an unknown codec is refused before anything is sent.
func TestUnknownCodec(t *testing.T) {
	l := newEnv(t, nil)
	to := l.target()
	to.Trunk.Codecs = []string{"opus"}
	if leg, err := l.ua.Dial(t.Context(), to, nil); err == nil {
		_ = leg.Hangup(media.LocalHangup)
		t.Error("dialed with an unknown codec")
	}
}
