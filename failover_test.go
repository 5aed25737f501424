package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/siptest"
)

// switchover is a service with two nodes. Its primary database fails while an asynchronous standby lags behind.
type switchover struct {
	t       *testing.T
	pair    *dbtest.Pair
	pooler  *dbtest.Pooler // between the nodes and the database; may be nil
	nodes   [2]*server
	api     *demo.Client
	invites inviteCounter
	on      atomic.Int64
	early   atomic.Int64 // number of calls that ended before the callee hung up
	hangUp  chan struct{}

	mu  sync.Mutex
	log bytes.Buffer
	ids map[string]string // call IDs by Idempotency-Key
}

// Write stores the log of the nodes.
func (s *switchover) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

// talkFor limits how long callees stay in the call. They are silent, so the agent would say goodbye later.
const talkFor = 20 * time.Second

func newSwitchover(t *testing.T, pooled bool) *switchover {
	t.Helper()
	s := &switchover{t: t, pair: dbtest.NewPair(t), hangUp: make(chan struct{}), ids: map[string]string{}}
	url := s.pair.URL()
	if pooled {
		s.pooler = dbtest.NewPooler(s.pair)
		url = s.pooler.URL()
	}
	c := carrier(t, &siptest.Carrier{Answer: func(i siptest.Invite) siptest.Script {
		s.invites.refuse(i)
		return siptest.Script{Status: http.StatusOK, Ring: 50 * time.Millisecond, Talk: func(ctx context.Context, _ media.Leg) {
			s.on.Add(1)
			defer s.on.Add(-1)
			select {
			case <-s.hangUp:
			case <-time.After(talkFor):
			case <-ctx.Done():
				select {
				case <-s.hangUp:
				default:
					s.early.Add(1)
				}
			}
		}}
	}})
	change := func(c *config.Config) { c.DatabaseURL, c.Lease = media.Secret(url), 3*time.Second }
	s.nodes[0], s.api = startServer(t, c.Addr().String(), change)
	s.nodes[0].allowAnyHour(t)
	if _, err := s.nodes[0].db.Pool.Exec(t.Context(), "UPDATE subgroups SET concurrent_calls = 500"); err != nil {
		t.Fatal(err)
	}
	second := testConfig(t)
	change(&second)
	s.nodes[1] = runServer(t, second, slog.New(slog.NewTextHandler(s, nil)))
	return s
}

// order requests a call to a new number until the request is accepted. It checks that a repeated request returns the
// same call.
func (s *switchover) order(n int) {
	s.t.Helper()
	key := fmt.Sprintf("order-%d", n)
	eventuallyWithin(s.t, time.Minute, "the order is accepted", func() bool {
		status, text := orderCall(s.t, s.api.URL, s.api.Key, fmt.Sprintf("+1202555%04d", n), key)
		if status != http.StatusAccepted {
			return false
		}
		var c apiCall
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			s.t.Fatal(err)
		}
		if had := s.ids[key]; had != "" && had != c.CallID {
			s.t.Errorf("%s was answered with %s and then with %s", key, had, c.CallID)
		}
		s.ids[key] = c.CallID
		return true
	})
}

// count returns the result of a query for one number.
func (s *switchover) count(sql string) (n int) {
	s.t.Helper()
	eventuallyWithin(s.t, 30*time.Second, "the database answers", func() bool {
		return s.nodes[0].db.Pool.QueryRow(s.t.Context(), sql).Scan(&n) == nil
	})
	return n
}

// twice returns the numbers with more than one INVITE.
func (s *switchover) twice() (all []string) {
	for number, n := range s.invites.numbers() {
		if n > 1 {
			all = append(all, fmt.Sprintf("%s: %d INVITEs", number, n))
		}
	}
	return all
}

// run places calls, kills the primary before the standby has all of them, and promotes the standby.
func (s *switchover) run(contacts, before, behind int) {
	t := s.t
	for n := range before {
		s.order(n)
	}
	id := campaign(t, s.api, map[string]any{"calls_per_minute": 200}, many(contacts)...)
	eventuallyWithin(t, 30*time.Second, "calls are active", func() bool { return int(s.on.Load()) > before })
	s.pair.CaughtUp()
	s.pair.Cut()
	known := len(s.invites.numbers())
	for n := range behind {
		s.order(before + n)
	}
	eventuallyWithin(t, 30*time.Second, "the standby is behind", func() bool { return len(s.invites.numbers()) >= known+behind+2 })
	s.pair.Kill(0)
	on := s.on.Load()
	s.pair.Promote(1)
	if s.pooler != nil {
		s.pooler.Point(1)
	}
	eventuallyWithin(t, 30*time.Second, "the campaign is held", func() bool {
		var p progress
		err := s.api.Do(t.Context(), http.MethodGet, "/v1/campaigns/"+id+"/progress", nil, &p)
		return err == nil && p.HeldReasons["database_failover"] > 0
	})
	lost := len(s.invites.numbers()) - s.count("SELECT count(*) FROM attempts WHERE state NOT IN ('scheduled', 'claimed')")
	for n := range before + behind { // repeats requests, including those without a response
		s.order(n)
	}
	s.order(before + behind) // the dial queue runs again
	eventuallyWithin(t, 2*time.Minute, "the rest of the list was called", func() bool { return len(s.invites.numbers()) == contacts+before+behind+1 })
	if early := s.early.Load(); early > 0 {
		t.Errorf("%d calls were ended by the failover", early)
	}
	close(s.hangUp)
	eventuallyWithin(t, 30*time.Second, "all calls have ended in the database", func() bool {
		return s.count("SELECT count(*) FROM calls WHERE status NOT IN ('ended', 'failed')") == 0 &&
			s.count("SELECT count(*) FROM contacts WHERE state = 'done'") == contacts
	})
	talked := s.count("SELECT count(*) FROM calls WHERE status = 'ended' AND disconnection_reason = 'callee_hangup'")
	if want := contacts + before + behind + 1; talked != want {
		t.Errorf("%d calls ended by hangup of the callee, want %d", talked, want)
	}
	for _, twice := range s.twice() {
		t.Error(twice)
	}
	for n, srv := range s.nodes {
		st := srv.failover.Stats()
		if st.Changes != 1 || st.Lost+st.Facts > 0 {
			t.Errorf("node %d: %+v", n, st)
		}
		t.Logf("node %d: %+v", n, st)
	}
	t.Logf("%d active calls; the promoted database had lost %d of %d requests; %d numbers were called, %d twice; %d calls ended early",
		on, lost, known+behind, len(s.invites.numbers()), len(s.twice()), s.early.Load())
}

// TestFailover kills the primary database while an asynchronous standby is seconds behind. No number may be called
// twice, no call may end, and every repeated request must return the first call.
func TestFailover(t *testing.T) {
	t.Parallel()
	newSwitchover(t, false).run(12, 3, 3)
}

// TestSoakFailover is TestFailover with more calls.
func TestSoakFailover(t *testing.T) {
	soakOnly(t)
	newSwitchover(t, false).run(150, 20, 15)
}
