package main

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestDrainDuringCampaign checks a server that shuts down. It must claim no more contacts and let live calls continue.
// When the drain timeout is over, it must end the remaining calls.
func TestDrainDuringCampaign(t *testing.T) {
	t.Parallel()
	var a inviteCounter
	var up, hungUp atomic.Int64
	srv, api := startServer(t, carrier(t, &siptest.Carrier{Answer: func(i siptest.Invite) siptest.Script {
		a.refuse(i)
		return siptest.Script{Status: 200, Talk: func(ctx context.Context, _ media.Leg) {
			up.Add(1)
			<-ctx.Done() // until the remote side hangs up
			hungUp.Add(1)
		}}
	}}).Addr().String())
	srv.allowAnyHour(t)
	id := campaign(t, api, nil, many(60)...)
	eventually(t, "calls are active", func() bool { return up.Load() >= 3 })
	srv.drain()
	<-time.After(500 * time.Millisecond) // claimed calls may still be sent
	placed := len(a.numbers())
	<-time.After(2 * time.Second)
	if got := len(a.numbers()); got != placed {
		t.Errorf("a draining server placed %d more calls", got-placed)
	}
	if up.Load() != int64(placed) || hungUp.Load() != 0 {
		t.Errorf("of %d calls %d are active and %d were ended before the timeout", placed, up.Load(), hungUp.Load())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	srv.node.Stop(ctx)
	eventually(t, "the calls are ended", func() bool { return hungUp.Load() == int64(placed) })
	var p progress
	eventually(t, "their contacts have outcomes", func() bool {
		p = readProgress(t, api, id)
		return p.ByState["in_call"] == 0
	})
	if p.Status != "running" || p.ByState["pending"] != 60-placed || p.Counters.Attempts != placed {
		t.Errorf("after %d calls: %+v", placed, p)
	}
	var n int
	err := srv.db.Pool.QueryRow(t.Context(), "SELECT count(*) FROM calls WHERE status = 'ended' AND disconnection_reason = 'shutdown'").Scan(&n)
	if err != nil || n != placed {
		t.Errorf("%d of %d calls ended with reason shutdown (%v)", n, placed, err)
	}
}

// rollingRestart is two servers that are restarted in turn under load.
type rollingRestart struct {
	*soak

	servers [2]*exec.Cmd
	environ [2][]string
	urls    [2]string
}

const (
	rolls       = 3
	rollingPace = 100 // campaign calls per minute; single calls are added
)

// TestSoakRolling restarts two servers in turn, three times, during a campaign and single calls. No call may be dropped
// or ring twice. A call request that is repeated at the other server must be accepted.
func TestSoakRolling(t *testing.T) {
	soakOnly(t)
	s, over := newSoak(t, 0)
	s.allowCampaigns()
	r := &rollingRestart{soak: s}
	s.environ = append(s.environ, "PARLEY_DRAIN_TIMEOUT=2m")
	addr := "127.0.0.1:" + freePort(t)
	r.environ = [2][]string{s.environ, slices.Concat(s.environ, []string{"PARLEY_DATA_DIR=" + openDir(t), "PARLEY_HTTP_ADDR=" + addr})}
	r.urls = [2]string{s.api.URL, "http://" + addr}
	for i := range r.servers {
		r.begin(i)
	}
	id := campaign(t, s.api, map[string]any{"calls_per_minute": rollingPace}, many(3000)...)
	ctx, enough := context.WithCancel(t.Context())
	var orders, again int
	var singles sync.WaitGroup
	singles.Go(func() { orders, again = r.order(ctx) })
	var longest time.Duration
	var on []int // number of active calls at each SIGTERM
	for range rolls {
		for i := range r.servers {
			<-time.After(3 * time.Second)
			on = append(on, s.count("SELECT count(*) FROM calls WHERE status IN ('ringing', 'ongoing')"))
			began := time.Now()
			if err := r.servers[i].Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := r.servers[i].Wait(); err != nil {
				t.Errorf("server %d: %v", i, err)
			}
			longest = max(longest, time.Since(began))
			r.begin(i)
		}
	}
	<-time.After(3 * time.Second)
	enough()
	singles.Wait()
	if err := s.api.Do(t.Context(), http.MethodPost, "/v1/campaigns/"+id+"/cancel", nil, &map[string]any{}); err != nil {
		t.Error(err)
	}
	eventuallyWithin(t, 2*time.Minute, "all calls have ended", func() bool { return s.count("SELECT count(*) FROM calls WHERE status NOT IN ('ended', 'failed')") == 0 })
	for i := range r.servers {
		s.end(r.servers[i])
	}
	over()
	t.Logf("%d restarts with %v active calls, the longest took %v; %d orders, %d repeats", 2*rolls, on, longest, orders, again)
	r.check(orders)
}

// begin starts server i and waits until it accepts requests.
func (r *rollingRestart) begin(i int) {
	r.servers[i] = r.serveWith(r.environ[i])
	url := r.api.URL
	r.api.URL = r.urls[i]
	r.waitReady()
	r.api.URL = url
}

// order requests single calls from the servers in turn. If a server does not accept a request, it repeats the request
// at the other server. It returns the number of accepted requests, and the number that it had to repeat.
func (r *rollingRestart) order(ctx context.Context) (orders, again int) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for ; ; orders++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return orders, again
		}
		for try := orders; !r.place(orders, r.urls[try%2]); try++ {
			again++
			select {
			case <-time.After(50 * time.Millisecond):
			case <-r.t.Context().Done():
				return orders, again
			}
		}
	}
}

// place requests a call and reports whether the server accepted the request.
func (r *rollingRestart) place(n int, url string) bool {
	status, text := orderCall(r.t, url, r.api.Key, fmt.Sprintf("+7701999%04d", n), fmt.Sprintf("rolling-%d", n))
	if status >= 400 && status < 500 && status != http.StatusConflict {
		r.t.Errorf("order %d: %d %s", n, status, text)
	}
	return status == http.StatusAccepted
}

func (r *rollingRestart) check(orders int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	attempts, rang, twice := r.checkRings()
	dropped := r.count(`SELECT count(*) FROM calls WHERE disconnection_reason IN
		('shutdown', 'node_lost', 'unknown_after_restart', 'internal_error', 'media_timeout', 'agent_error', 'queue_expired')
		OR disconnection_reason = 'cancelled' AND dialed_at IS NOT NULL`)
	if dropped != 0 {
		r.t.Errorf("%d calls were dropped", dropped)
	}
	if n := r.count("SELECT count(*) FROM calls WHERE campaign_id IS NULL"); n != orders {
		r.t.Errorf("%d calls of %d orders", n, orders)
	}
	if n := r.count("SELECT count(*) FROM contacts k WHERE attempts <> (SELECT count(*) FROM calls c WHERE c.contact_id = k.id)"); n != 0 {
		r.t.Errorf("%d contacts have other numbers of calls and attempts", n)
	}
	if n := r.count(`SELECT count(*) FROM calls a JOIN calls b ON a.to_number = b.to_number AND a.id < b.id AND a.campaign_id IS NOT NULL AND b.campaign_id IS NOT NULL`); n != 0 {
		r.t.Errorf("%d contacts were called twice", n)
	}
	r.t.Logf("%d calls, %d of the campaign, %d answered; the carrier saw %d attempts, %d rang, %d twice; %d dropped",
		r.count("SELECT count(*) FROM calls"), r.count("SELECT count(*) FROM calls WHERE campaign_id IS NOT NULL"),
		r.count("SELECT count(*) FROM calls WHERE answered_at IS NOT NULL"), attempts, rang, twice, dropped)
}
