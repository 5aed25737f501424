package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestCampaignDrains: a server that shuts down claims no more contacts, lets live calls continue, and ends the
// rest when its time is up.
func TestCampaignDrains(t *testing.T) {
	t.Parallel()
	var a asking
	var up, hungUp atomic.Int64
	srv, api := startServer(t, carrier(t, &siptest.Carrier{Answer: func(i siptest.Invite) siptest.Script {
		a.answer(i)
		return siptest.Script{Status: 200, Talk: func(ctx context.Context, _ media.Leg) {
			up.Add(1)
			<-ctx.Done() // until the remote side hangs up
			hungUp.Add(1)
		}}
	}}).Addr().String())
	srv.openAllDay(t)
	id := campaign(t, api, nil, many(60)...)
	soon(t, "calls are on", func() bool { return up.Load() >= 3 })
	srv.drain()
	<-time.After(500 * time.Millisecond) // claimed calls may still be sent
	asked := len(a.numbers())
	<-time.After(2 * time.Second)
	if got := len(a.numbers()); got != asked {
		t.Errorf("%d more are called by a server that drains", got-asked)
	}
	if up.Load() != int64(asked) || hungUp.Load() != 0 {
		t.Errorf("of %d calls %d are on and %d were ended while there was time", asked, up.Load(), hungUp.Load())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	srv.node.Stop(ctx)
	soon(t, "the calls are ended", func() bool { return hungUp.Load() == int64(asked) })
	var p progress
	soon(t, "their contacts know", func() bool {
		p = progress{}
		if err := api.Do(t.Context(), http.MethodGet, "/v1/campaigns/"+id+"/progress", nil, &p); err != nil {
			t.Fatal(err)
		}
		return p.ByState["in_call"] == 0
	})
	if p.Status != "running" || p.ByState["pending"] != 60-asked || p.Counters.Attempts != asked {
		t.Errorf("after %d calls: %+v", asked, p)
	}
	var n int
	err := srv.db.Pool.QueryRow(t.Context(), "SELECT count(*) FROM calls WHERE status = 'ended' AND disconnection_reason = 'shutdown'").Scan(&n)
	if err != nil || n != asked {
		t.Errorf("%d of %d calls ended for the shutdown (%v)", n, asked, err)
	}
}

// A rolling is two servers that are restarted in turn under load.
type rolling struct {
	*soak

	servers [2]*exec.Cmd
	environ [2][]string
	urls    [2]string
}

const (
	rolls       = 3
	rollingPace = 100 // campaign calls per minute; single calls are added
)

// TestSoakRolling restarts two servers in turn, three times, while a campaign and single calls keep them busy: no
// call is dropped, none rings twice, and every order that is repeated at the other server is accepted.
func TestSoakRolling(t *testing.T) {
	if os.Getenv("PARLEYTEST_SOAK") == "" {
		t.Skip("make soak")
	}
	s, over := newSoak(t, 0)
	s.openCampaigns()
	r := &rolling{soak: s}
	s.environ = append(s.environ, "PARLEY_DRAIN_TIMEOUT=2m")
	addr := "127.0.0.1:" + freePort(t)
	r.environ = [2][]string{s.environ, slices.Concat(s.environ, []string{"PARLEY_DATA_DIR=" + openDir(t), "PARLEY_HTTP_ADDR=" + addr})}
	r.urls = [2]string{s.api.URL, "http://" + addr}
	for i := range r.servers {
		r.begin(i)
	}
	id := campaign(t, &demo.Client{URL: s.api.URL, Key: s.api.Key}, map[string]any{"calls_per_minute": rollingPace}, many(3000)...)
	ctx, enough := context.WithCancel(t.Context())
	var orders, again int
	var singles sync.WaitGroup
	singles.Go(func() { orders, again = r.order(ctx) })
	var longest time.Duration
	var on []int // calls, as each server was told to go
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
	soonFor(t, 2*time.Minute, "all calls are over", func() bool { return s.count("SELECT count(*) FROM calls WHERE status NOT IN ('ended', 'failed')") == 0 })
	for i := range r.servers {
		s.end(r.servers[i])
	}
	over()
	t.Logf("%d restarts of servers with %v calls on, the longest in %v; %d orders, asked for again %d times", 2*rolls, on, longest, orders, again)
	r.judge(orders)
}

// begin starts a server and waits until it accepts requests.
func (r *rolling) begin(i int) {
	r.servers[i] = serveAs(r.t, r.environ[i])
	url := r.api.URL
	r.api.URL = r.urls[i]
	r.ready()
	r.api.URL = url
}

// order places single calls at the servers in turn, and repeats an order at the other one if it is not accepted.
// It returns how many were accepted.
func (r *rolling) order(ctx context.Context) (orders, again int) {
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

// place orders a call and reports whether the server accepted it.
func (r *rolling) place(n int, url string) bool {
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, url+"/v1/calls/phone", strings.NewReader(fmt.Sprintf(`{"agent_id":"demo","to_number":"+7701999%04d"}`, n)))
	if err != nil {
		r.t.Error(err)
		return true
	}
	req.Header.Set("Authorization", "Bearer "+r.api.Key)
	req.Header.Set("Idempotency-Key", fmt.Sprintf("rolling-%d", n))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	if resp.StatusCode >= 400 && resp.StatusCode < 500 && resp.StatusCode != http.StatusConflict {
		r.t.Errorf("order %d: %s", n, resp.Status)
	}
	return resp.StatusCode == http.StatusAccepted
}

// judge compares the observed calls with the promises.
func (r *rolling) judge(orders int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	attempts, rang, twice := r.rangTwice()
	dropped := r.count(`SELECT count(*) FROM calls WHERE disconnection_reason IN
		('shutdown', 'node_lost', 'unknown_after_restart', 'internal_error', 'media_timeout', 'agent_error', 'queue_expired')
		OR disconnection_reason = 'cancelled' AND dialed_at IS NOT NULL`)
	if dropped != 0 {
		r.t.Errorf("%d calls are dropped", dropped)
	}
	if n := r.count("SELECT count(*) FROM calls WHERE campaign_id IS NULL"); n != orders {
		r.t.Errorf("%d calls of %d orders", n, orders)
	}
	if n := r.count("SELECT count(*) FROM contacts k WHERE attempts <> (SELECT count(*) FROM calls c WHERE c.contact_id = k.id)"); n != 0 {
		r.t.Errorf("%d contacts with another number of calls than attempts", n)
	}
	if n := r.count(`SELECT count(*) FROM calls a JOIN calls b ON a.to_number = b.to_number AND a.id < b.id AND a.campaign_id IS NOT NULL AND b.campaign_id IS NOT NULL`); n != 0 {
		r.t.Errorf("%d contacts are called twice", n)
	}
	r.t.Logf("%d calls, %d of the campaign, %d answered; the carrier saw %d attempts, %d rang, %d twice; %d dropped",
		r.count("SELECT count(*) FROM calls"), r.count("SELECT count(*) FROM calls WHERE campaign_id IS NOT NULL"),
		r.count("SELECT count(*) FROM calls WHERE answered_at IS NOT NULL"), attempts, rang, twice, dropped)
}
