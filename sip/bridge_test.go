package sip

import (
	"context"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/bridge"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestBridge bridges two legs with different rates, and checks that audio and keys pass until one
// hangs up.
func TestBridge(t *testing.T) {
	phones := make(chan media.Leg, 2)
	l := newEnv(t, func(in siptest.Invite) siptest.Script {
		return siptest.Script{Status: 200, Talk: func(ctx context.Context, leg media.Leg) {
			leg.Play(mediatest.Tone(map[string]float64{"1": 440, "2": 700}[in.To]))
			phones <- leg
			<-ctx.Done()
		}}
	})
	var legs, theirs [2]media.Leg
	for i, codec := range []string{"PCMU", "G722"} {
		target := l.target()
		target.To, target.Trunk.Codecs = []string{"1", "2"}[i], []string{codec}
		var err error
		if legs[i], err = l.ua.Dial(shortContext(t), target, nil); err != nil {
			t.Fatal(err)
		}
		theirs[i] = <-phones
	}
	type end struct {
		out bridge.Outcome
		err error
	}
	joined := make(chan end, 1)
	go func() {
		out, err := bridge.Join(t.Context(), legs[0], legs[1], nil)
		joined <- end{out, err}
	}()
	for i, hz := range []float64{700, 440} {
		checkTone(t, theirs[i], 50, hz)
	}
	if err := theirs[0].(media.Keypad).Press("7"); err != nil { //nolint:forcetypeassert // the leg of package sip/leg
		t.Fatal(err)
	}
	reading := make(chan error, 1)
	go func() { reading <- drain(theirs[1]) }()
	select {
	case key := <-theirs[1].Digits():
		if key != '7' {
			t.Errorf("pressed %q", key)
		}
	case <-time.After(5 * time.Second):
		t.Error("the key was not forwarded")
	}
	_ = theirs[0].Hangup(media.LocalHangup)
	if got := <-joined; got.err != nil || got.out.Cause != media.RemoteHangup {
		t.Errorf("%+v", got)
	}
	if err := <-reading; err == nil {
		t.Error("the other leg has not ended")
	}
}
