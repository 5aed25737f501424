package main

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/sip/siptest"
)

// machine is an answering machine. It plays a greeting and a beep, and then records.
type machine struct {
	greeting []int16

	mu       sync.Mutex
	recorded []int16
	rate     int
}

// FillFrame implements media.Feed.
func (m *machine) FillFrame(f media.Frame, _ time.Time) {
	n := copy(f, m.greeting)
	clear(f[n:])
	m.greeting = m.greeting[n:]
}

// talk implements siptest's Script.Talk.
func (m *machine) talk(ctx context.Context, leg media.Leg) {
	rate := leg.Rate()
	words, _ := tone.Encode(rate, "please leave a message after the tone")
	m.greeting = slices.Concat(make([]int16, rate/2), words, make([]int16, rate), tone.Sine(rate, rate/3, 1000, 0.2))
	leg.Play(m)
	m.record(ctx, leg)
}

// record records the audio of the leg until the leg or ctx ends.
func (m *machine) record(ctx context.Context, leg media.Leg) {
	f := make(media.Frame, media.FrameLen(leg.Rate()))
	for ctx.Err() == nil && leg.ReadFrame(f) == nil {
		m.mu.Lock()
		m.recorded, m.rate = append(m.recorded, f...), leg.Rate()
		m.mu.Unlock()
	}
}

// heard returns the words in the recording.
func (m *machine) heard() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return decodeSpeech(append(m.recorded, make([]int16, m.rate/10)...), m.rate)
}

// TestVoicemail leaves a message on one answering machine and hangs up on another.
func TestVoicemail(t *testing.T) {
	t.Parallel()
	inTime(t, testVoicemail)
}

func testVoicemail(t testing.TB) {
	const message = "please call us back. thank you."
	machines := make(chan *machine, 2)
	c := carrier(t, &siptest.Carrier{Answer: func(siptest.Invite) siptest.Script {
		m := &machine{}
		machines <- m
		return siptest.Script{Status: http.StatusOK, Talk: m.talk}
	}})
	srv, api := startServer(t, c.Addr().String())
	srv.applyFile(t, `organizations: [{name: demo, agents: [{name: demo, published: true, voicemail_message: "`+message+`"}]}]`)
	for policy, want := range map[string]string{"leave_message": "voicemail_dropped", "hangup": "voicemail_reached"} {
		var call struct {
			apiCall
			AnsweredBy string `json:"answered_by"`
			HangupBy   string `json:"hangup_by"`
			AMD        struct {
				Confidence float64 `json:"confidence"`
				Evidence   string  `json:"evidence"`
				AMDMS      float64 `json:"amd_ms"`
			} `json:"amd"`
		}
		body := map[string]any{"agent_id": "demo", "to_number": "+12025550123", "voicemail": policy}
		post(t, api, "/v1/calls/phone", body, &call)
		waitEnded(t, api, call.CallID)
		get(t, api, "/v1/calls/"+call.CallID, &call)
		if call.Status != "ended" || call.Reason != want || call.HangupBy != "agent" || call.AnsweredBy != "voicemail" ||
			call.AMD.Confidence < 0.9 || !strings.HasPrefix(call.AMD.Evidence, "phrase") && call.AMD.Evidence != "beep" || call.AMD.AMDMS <= 0 {
			t.Errorf("%s: %+v", policy, call)
		}
		if got, left := (<-machines).heard(), policy == "leave_message"; left && got != message || !left && got != "" {
			t.Errorf("%s: the machine recorded %q", policy, got)
		}
		var list struct {
			Calls []struct {
				CallID string `json:"call_id"`
			} `json:"calls"`
		}
		query := url.Values{"answered_by": {"voicemail"}, "disconnection_reason": {want}}
		get(t, api, "/v1/calls?"+query.Encode(), &list)
		if len(list.Calls) != 1 || list.Calls[0].CallID != call.CallID {
			t.Errorf("%s: the list has %+v", policy, list.Calls)
		}
	}
}
