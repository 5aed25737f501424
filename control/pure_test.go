package control

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

func TestAttemptTransitions(t *testing.T) {
	want := map[AttemptState]string{
		Scheduled: "claimed ended", Claimed: "intent scheduled ended", Intent: "sent ringing answered ended unknown scheduled",
		Sent: "ringing answered ended unknown", Rang: "answered ended unknown", Answered: "ended", Closed: "", Unknown: "",
	}
	for from, text := range want {
		got := ""
		for i, to := range moves[from] {
			if i > 0 {
				got += " "
			}
			got += string(to)
			if !CanMove(from, to) || !slices.Contains(StatesBefore(to), from) {
				t.Errorf("%s to %s: the tables disagree", from, to)
			}
		}
		if got != text {
			t.Errorf("from %s: %s, want %s", from, got, text)
		}
	}
	for _, s := range HeldStates() {
		if !CanMove(s, Closed) {
			t.Errorf("a node cannot end an attempt that is %s", s)
		}
	}
}

func TestSentAttemptIsNeverQueued(t *testing.T) {
	for _, s := range []AttemptState{Sent, Rang, Answered, Closed, Unknown} {
		if CanMove(s, Scheduled) || CanMove(s, Claimed) {
			t.Errorf("%s may be dialed again", s)
		}
	}
}

func TestIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := time.UnixMilli(rapid.Int64Range(0, 1<<47).Draw(t, "a"))
		b := a.Add(time.Duration(rapid.Int64Range(1, 1<<40).Draw(t, "later")) * time.Millisecond)
		x, y := NewID("call_", a), NewID("call_", b)
		if len(x) != 31 || x >= y {
			t.Fatalf("%s of %v does not come before %s of %v", x, a, y, b)
		}
	})
	seen := map[string]bool{}
	now := time.Now()
	for range 10000 {
		id := NewID("", now)
		if seen[id] {
			t.Fatal("duplicate id")
		}
		seen[id] = true
	}
}

func TestZones(t *testing.T) {
	for _, good := range []string{"UTC", "Etc/UTC", "America/New_York", "Asia/Almaty", "America/Argentina/Buenos_Aires", "Australia/Lord_Howe"} {
		if _, err := Zone(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "Local", "Factory", "GMT", "Zulu", "EST", "EST5EDT", "Etc/GMT-5", "Etc/GMT", "+05:00", "UTC+5", "america/new_york", "posixrules", "posix/Europe/Berlin", "../etc/passwd", "Europe/../UTC", "Mars/Base"} {
		if _, err := Zone(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestEndings(t *testing.T) {
	for _, tt := range []struct {
		why    pipeline.Reason
		cause  error
		reason Reason
		by     Side
	}{
		{pipeline.CallerHungUp, nil, "callee_hangup", SideCallee},
		{pipeline.AgentHungUp, nil, "agent_hangup", SideAgent},
		{pipeline.Stopped, errEndRequested, "api_hangup", SideAPI},
		{pipeline.Stopped, errShutdown, ReasonShutdown, SideSystem},
		{pipeline.Stopped, nil, ReasonShutdown, SideSystem},
		{pipeline.MaxDurationReached, nil, "max_duration", SideSystem},
		{pipeline.Inactive, nil, "inactivity", SideSystem},
		{pipeline.NoMedia, nil, "media_timeout", SideSystem},
		{pipeline.AgentError, nil, "agent_error", SideSystem},
		{pipeline.Transferred, nil, "transferred", SideAgent},
		{pipeline.VoicemailReached, nil, "voicemail_reached", SideAgent},
		{pipeline.VoicemailLeft, nil, "voicemail_dropped", SideAgent},
		{pipeline.IVRReached, nil, "ivr_reached", SideAgent},
		{"", errors.New("x"), "agent_error", SideSystem},
	} {
		if r, by := endReason(tt.why, tt.cause); r != tt.reason || by != tt.by {
			t.Errorf("%s, %v: %s by %s", tt.why, tt.cause, r, by)
		}
	}
	for _, tt := range []struct {
		err, cause error
		reason     Reason
		by         Side
	}{
		{&media.DialError{Cause: media.Busy}, nil, "busy", SideCallee},
		{&media.DialError{Cause: media.Declined}, nil, "declined", SideCallee},
		{&media.DialError{Cause: media.NoAnswer}, nil, "no_answer", SideSystem},
		{&media.DialError{Cause: media.InvalidNumber}, nil, "invalid_number", SideCarrier},
		{&media.DialError{Cause: media.Blocked}, nil, "blocked", SideCarrier},
		{&media.DialError{Cause: media.AuthFailed}, nil, "auth_failed", SideCarrier},
		{&media.DialError{Cause: media.Congestion}, nil, "congestion", SideCarrier},
		{&media.DialError{Cause: media.Redirected}, nil, "redirect_refused", SideCarrier},
		{&media.DialError{Cause: media.Canceled}, errEndRequested, ReasonCanceled, SideAPI},
		{&media.DialError{Cause: media.Canceled}, errShutdown, ReasonCanceled, SideSystem},
		{&media.DialError{Cause: media.Failure}, nil, ReasonInternalError, SideSystem},
		{errors.New("x"), errEndRequested, ReasonCanceled, SideAPI},
		{errors.New("x"), nil, ReasonInternalError, SideSystem},
	} {
		var f CallResult
		if setFailure(tt.err, tt.cause, &f); f.Status != Failed || f.Reason != tt.reason || f.HangupBy != tt.by {
			t.Errorf("%v, %v: %s by %s", tt.err, tt.cause, f.Reason, f.HangupBy)
		}
	}
}

func TestBackoff(t *testing.T) {
	for n, want := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 5: 32 * time.Second, 8: 256 * time.Second, 9: 5 * time.Minute, 1000: 5 * time.Minute} {
		if got := Backoff(n); got != want {
			t.Errorf("try %d: %v, want %v", n, got, want)
		}
	}
}

func TestAnsweredBy(t *testing.T) {
	if party, amd := amdJSON(nil); party != "" || amd != nil {
		t.Errorf("no detection: %q, %s", party, amd)
	}
	party, amd := amdJSON(&pipeline.AnsweredBy{Party: "voicemail", Confidence: 0.97, Evidence: "beep", After: 2520 * time.Millisecond})
	if want := `{"confidence":0.97,"evidence":"beep","amd_ms":2520}`; party != "voicemail" || string(amd) != want {
		t.Errorf("%q, %s, want %s", party, amd, want)
	}
}
