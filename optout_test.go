package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/sip/siptest"
)

const optOutNumber = "+77012349901"

// optOutAfter returns a callee that listens for a while, opts out by how, and keeps listening.
func optOutAfter(after time.Duration, how func(media.Leg)) func(context.Context, media.Leg) {
	return func(ctx context.Context, leg media.Leg) {
		ctx, cancel := context.WithTimeout(ctx, 18*time.Second)
		defer cancel()
		timer := time.AfterFunc(after, func() { how(leg) })
		defer timer.Stop()
		f := make(media.Frame, media.FrameLen(leg.Rate()))
		for ctx.Err() == nil && leg.ReadFrame(f) == nil {
			continue
		}
	}
}

func pressNine(leg media.Leg) {
	if pad, ok := leg.(media.Keypad); ok {
		_ = pad.Press("9") // after an error the test fails
	}
}

// sayOptOut says the opt-out five times, because lost audio can garble a sentence.
func sayOptOut(leg media.Leg) {
	pcm, _ := tone.Encode(leg.Rate(), "take me off your list")
	once := slices.Concat(pcm, make([]int16, 5*leg.Rate()/2))
	leg.Play(&machine{greeting: slices.Repeat(once, 5)})
}

// TestOptOut checks a callee who opts out by key or by speech, in a campaign call and in a single call. The number must
// be on the organization's suppression list during the call. No campaign and no single call may call it again.
func TestOptOut(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]func(media.Leg){"key": pressNine, "speech": sayOptOut} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inTime(t, func(t testing.TB) { optOut(t, name, how) })
		})
	}
}

func optOut(t testing.TB, source string, how func(media.Leg)) {
	c := carrier(t, &siptest.Carrier{Answer: func(siptest.Invite) siptest.Script {
		return siptest.Script{Status: http.StatusOK, Talk: optOutAfter(2*time.Second, how)}
	}})
	srv, api := startServer(t, c.Addr().String())
	srv.allowAnyHour(t)
	zone, err := time.LoadLocation("Asia/Almaty")
	if err != nil {
		t.Fatal(err)
	}
	later := (int(time.Now().In(zone).Weekday()) + 6 + 3) % 7 // 0 is Monday; the day in three days, so neither now nor after midnight
	other := campaign(t, api, map[string]any{"working_hours": []map[string]any{{"days": []int{later}, "start": "00:00", "end": "23:00"}}}, optOutNumber, "+77012349902")
	id := campaign(t, api, map[string]any{"retry_config": map[string]any{"attempts": 3, "interval_s": 60}}, optOutNumber)
	var during string
	eventuallyWithin(t, 25*time.Second, "the opt-out is stored", func() bool {
		return srv.db.Pool.QueryRow(t.Context(), `SELECT c.status FROM opt_outs o JOIN suppressions USING (org_id, number) JOIN calls c ON c.id = o.call_id
			WHERE o.source = $1`, source).Scan(&during) == nil
	})
	if during != string(control.Ongoing) {
		t.Errorf("the opt-out was stored when the call was %s", during)
	}
	var p, q progress
	eventuallyWithin(t, 20*time.Second, "the campaign is completed", func() bool {
		p, q = progress{}, progress{}
		for x, to := range map[string]*progress{id: &p, other: &q} {
			get(t, api, "/v1/campaigns/"+x+"/progress", to)
		}
		return p.Status == "completed"
	})
	if p.Suppressed["opted_out"] != 1 || p.Counters.Attempts != 1 || q.Suppressed["opted_out"] != 1 || q.ByState["pending"] != 1 {
		t.Errorf("%+v and %+v", p, q)
	}
	err = api.Do(t.Context(), http.MethodPost, "/v1/calls/phone", map[string]any{"agent_id": "demo", "to_number": optOutNumber}, &map[string]any{})
	if err == nil || !strings.Contains(err.Error(), string(control.CodeDestinationNotAllowed)) {
		t.Errorf("a call to the number: %v", err)
	}
	if source == "speech" { // the agent did not announce a key
		call, _ := waitEnded(t, api, requestCall(t, api, "+77012349903"))
		var n int
		err = srv.db.Pool.QueryRow(t.Context(), "SELECT count(*) FROM opt_outs JOIN suppressions USING (org_id, number) WHERE number = '77012349903'").Scan(&n)
		if err != nil || n != 1 || call.Reason != "agent_hangup" {
			t.Errorf("a single call: %d opt-outs are stored, %v; it ended with %s: %+v", n, err, call.Reason, call.Transcript)
		}
	}
}

// TestOptOutSurvivesKill kills the server as soon as an opt-out is visible. The number must not be called again,
// although its contact has attempts left.
func TestOptOutSurvivesKill(t *testing.T) {
	t.Parallel()
	var a inviteCounter
	c := &siptest.Carrier{Listen: "127.0.0.1:0", Answer: func(i siptest.Invite) siptest.Script {
		a.refuse(i)
		return siptest.Script{Status: http.StatusOK, Talk: optOutAfter(2*time.Second, pressNine)}
	}}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // fails because a killed server does not answer
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer receiver.Close()
	s := &soak{t: t}
	s.prepare(c.Addr().String(), receiver.URL)
	s.allowCampaigns()
	server := s.serve()
	s.waitReady()
	id := campaign(t, s.api, map[string]any{"retry_config": map[string]any{"attempts": 3, "interval_s": 60}}, optOutNumber)
	eventuallyWithin(t, 30*time.Second, "the opt-out is stored", func() bool { return s.count("SELECT count(*) FROM opt_outs") == 1 })
	_ = server.Process.Kill()
	_ = server.Wait() // the process was killed
	server = s.serve()
	s.waitCompleted(id)
	if n := s.count("SELECT count(*) FROM contacts k JOIN suppressions ON '+' || suppressions.number = k.number WHERE k.reason = 'opted_out' AND k.state = 'suppressed'"); n != 1 {
		t.Errorf("%d contacts are opted out, want 1", n)
	}
	if got := a.numbers(); len(got) != 1 || got[strings.TrimPrefix(optOutNumber, "+")] != 1 {
		t.Errorf("the carrier received %v", got)
	}
	s.end(server)
}
