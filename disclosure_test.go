package main

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/sip/siptest"
)

// interrupts is a callee that says hello, talks while the agent talks, and hangs up after a while.
func (m *machine) interrupts(ctx context.Context, leg media.Leg) {
	rate := leg.Rate()
	hello, _ := tone.Encode(rate, "hello")
	over, _ := tone.Encode(rate, "stop it please")
	m.greeting = slices.Concat(make([]int16, rate/2), hello, make([]int16, 3*rate), over, make([]int16, rate), over)
	leg.Play(m)
	ctx, cancel := context.WithTimeout(ctx, 13*time.Second)
	defer cancel()
	m.record(ctx, leg)
}

// TestDisclosure checks that a call with a disclosure starts with it, even if the callee talks at the same time. It
// checks the audio that the callee received.
func TestDisclosure(t *testing.T) {
	t.Parallel()
	inTime(t, testDisclosure)
}

func testDisclosure(t testing.TB) {
	callee := &machine{}
	c := carrier(t, &siptest.Carrier{Answer: func(siptest.Invite) siptest.Script {
		return siptest.Script{Status: http.StatusOK, Talk: callee.interrupts}
	}})
	srv, api := startServer(t, c.Addr().String())
	org, err := apikeys.FindOrganization(t.Context(), srv.db.Pool, "demo")
	if err != nil {
		t.Fatal(err)
	}
	const text = "this is anna calling for acme. i am an automated voice. this call is recorded. press nine."
	placed, err := srv.admission.Place(t.Context(), org, admission.Order{Agent: "demo", To: demo.Number, Disclosure: text}, nil)
	if err != nil {
		t.Fatal(err)
	}
	call, _ := waitEnded(t, api, placed.ID)
	if said := linesOf(call, "agent"); len(said) == 0 || !strings.EqualFold(said[0], text) {
		t.Errorf("the call %s (%s) begins with %+v", call.Status, call.Reason, call.Transcript)
	}
	if heard := callee.heard(); !strings.HasPrefix(heard, text) || heard == text {
		t.Errorf("the callee heard %q", heard)
	}
}
