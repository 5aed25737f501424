package main

import (
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/apply"
)

const (
	campaignContacts = 1500
	campaignKills    = 40
)

// TestSoakCampaign calls a list from two servers that are killed in turn: no attempt rings twice, no contact is
// called by both at once, and each is completed or waits for its next attempt.
func TestSoakCampaign(t *testing.T) {
	if os.Getenv("PARLEYTEST_SOAK") == "" {
		t.Skip("make soak")
	}
	s, over := newSoak(t, 0)
	s.openCampaigns()
	other := slices.Concat(s.environ, []string{"PARLEY_DATA_DIR=" + openDir(t), "PARLEY_HTTP_ADDR=127.0.0.1:" + freePort(t)})
	first, second := s.serve(), serveAs(t, other)
	s.ready()
	id := campaign(t, &demo.Client{URL: s.api.URL, Key: s.api.Key}, map[string]any{"retry_config": map[string]any{"attempts": 2, "interval_s": 60}}, many(campaignContacts)...)
	var kills []time.Time
	for range campaignKills {
		<-time.After(time.Duration(500+rand.IntN(7000)) * time.Millisecond)
		killed := &first
		if rand.IntN(2) == 0 {
			killed = &second
		}
		_ = (*killed).Process.Kill()
		kills = append(kills, time.Now())
		_ = (*killed).Wait() // killed
		if killed == &first {
			first = s.serve()
		} else {
			second = serveAs(t, other)
		}
	}
	kills = append(kills, time.Now())
	_ = second.Process.Kill() // and never comes back: the other settles what it left
	_ = second.Wait()         // killed
	s.drained(id)
	s.end(first)
	over()
	s.judgeCampaign(kills)
}

// serveAs runs a server with the given settings.
func serveAs(t *testing.T, environ []string) *exec.Cmd {
	t.Helper()
	cmd, _, lines := child(t, "parley", "serve")
	cmd.Env = append(os.Environ(), environ...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the process
		for lines.Scan() {
			continue
		}
	}()
	return cmd
}

// openCampaigns allows the organization to call Kazakhstan at any hour, fast.
func (s *soak) openCampaigns() {
	spec, err := apply.Parse(strings.NewReader(`organizations:
- name: demo
  market: kz
  calling_window: {days: [0, 1, 2, 3, 4, 5, 6], start: "00:00", end: "24:00"}
  trunks:
  - name: demo
    subgroups: [{name: default, allowed_destinations: ["7"], agents: [demo], concurrent_calls: 500, calls_per_minute: 6000}]
`))
	if err == nil {
		err = apply.Apply(s.t.Context(), s.db.Pool, spec, apply.Options{AllowInsecure: true})
	}
	if err == nil { // who may talk with a server that was killed is left alone for no longer than its agent talks
		_, err = s.db.Pool.Exec(s.t.Context(), `UPDATE agent_versions SET definition = definition || '{"max_duration_s": 60}'`)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// drained waits until no contact of a campaign is left.
func (s *soak) drained(id string) {
	deadline := time.After(15 * time.Minute)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		var p progress
		if err := s.api.Do(s.t.Context(), http.MethodGet, "/v1/campaigns/"+id+"/progress", nil, &p); err == nil && p.Status == "completed" {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			s.t.Errorf("the campaign does not end: %+v", p)
			return
		}
	}
}

// judgeCampaign compares the observed calls with the promises.
func (s *soak) judgeCampaign(kills []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	attempts, _, twice := s.rangTwice()
	for what, sql := range map[string]string{
		"contacts without an end":                "SELECT count(*) FROM contacts WHERE state NOT IN ('done', 'exhausted', 'suppressed')",
		"contacts that are called too often":     "SELECT count(*) FROM contacts WHERE attempts > 2",
		"contacts with more calls than attempts": "SELECT count(*) FROM contacts k WHERE attempts <> (SELECT count(*) FROM calls c WHERE c.contact_id = k.id)",
		"attempts without an end":                "SELECT count(*) FROM contact_attempts WHERE ended_at IS NULL",
		"calls of one number at the same time": `SELECT count(*) FROM calls a JOIN calls b ON a.to_number = b.to_number AND a.id < b.id
			AND a.dialed_at < b.ended_at AND b.dialed_at < a.ended_at`,
	} {
		if n := s.count(sql); n != 0 {
			s.t.Errorf("%s: %d", what, n)
		}
	}
	if n := s.count("SELECT count(*) FROM contacts"); n != campaignContacts {
		s.t.Errorf("%d contacts of %d", n, campaignContacts)
	}
	unknown := s.count("SELECT count(*) FROM calls WHERE disconnection_reason IN ('unknown_after_restart', 'node_lost')")
	settled := s.settled(kills)
	if settled > 2*time.Minute {
		s.t.Errorf("an attempt whose server died was settled after up to %v", settled)
	}
	s.t.Logf("unknown attempts were settled within %v", settled)
	s.t.Logf("%d kills, %d contacts, %d attempts seen by the carrier, %d rang twice, %d lost with their server",
		campaignKills, campaignContacts, attempts, twice, unknown)
}

// settled returns the longest time from the death of a server to the next state of its contacts. It counts from
// the first death after the call was made, although the other server may have died.
func (s *soak) settled(kills []time.Time) (most time.Duration) {
	rows, err := s.db.Pool.Query(s.t.Context(), `SELECT c.created_at, e.done_at FROM calls c JOIN events e ON e.call_id = c.id
		WHERE c.disconnection_reason = 'unknown_after_restart'`)
	if err != nil {
		s.t.Fatal(err)
	}
	var made, done time.Time
	_, err = pgx.ForEachRow(rows, []any{&made, &done}, func() error {
		if n := slices.IndexFunc(kills, made.Before); n >= 0 {
			most = max(most, done.Sub(kills[n]))
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return most
}
