package main

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	campaignContacts = 1500
	campaignKills    = 40
)

// TestSoakCampaign runs a campaign on two servers that are killed in turn. No attempt may ring twice, and no contact
// may be called by both servers at once. Each contact must be completed or wait for its next attempt.
func TestSoakCampaign(t *testing.T) {
	soakOnly(t)
	s, over := newSoak(t, 0)
	s.allowCampaigns()
	other := slices.Concat(s.environ, []string{"PARLEY_DATA_DIR=" + openDir(t), "PARLEY_HTTP_ADDR=127.0.0.1:" + freePort(t)})
	first, second := s.serve(), s.serveWith(other)
	s.waitReady()
	id := campaign(t, s.api, map[string]any{"retry_config": map[string]any{"attempts": 2, "interval_s": 60}}, many(campaignContacts)...)
	var kills []time.Time
	for range campaignKills {
		<-time.After(time.Duration(500+rand.IntN(7000)) * time.Millisecond)
		killed := &first
		if rand.IntN(2) == 0 {
			killed = &second
		}
		_ = (*killed).Process.Kill()
		kills = append(kills, time.Now())
		_ = (*killed).Wait() // the process was killed
		if killed == &first {
			first = s.serve()
		} else {
			second = s.serveWith(other)
		}
	}
	kills = append(kills, time.Now())
	_ = second.Process.Kill() // the process stays dead; the other server settles its attempts
	_ = second.Wait()         // the process was killed
	s.waitCompleted(id)
	s.end(first)
	over()
	s.checkCampaign(kills)
}

// allowCampaigns allows the organization to call Kazakhstan at any hour, with high limits.
func (s *soak) allowCampaigns() {
	applySpec(s.t, s.db, `organizations:
- name: demo
  market: kz
  calling_window: {days: [0, 1, 2, 3, 4, 5, 6], start: "00:00", end: "24:00"}
  trunks:
  - name: demo
    subgroups: [{name: default, allowed_destinations: ["7"], agents: [demo], concurrent_calls: 500, calls_per_minute: 6000}]
`)
	// If a server is killed during a call, the contact waits for the maximum duration of a call.
	if _, err := s.db.Pool.Exec(s.t.Context(), `UPDATE agent_versions SET definition = definition || '{"max_duration_s": 60}'`); err != nil {
		s.t.Fatal(err)
	}
}

func (s *soak) waitCompleted(id string) {
	eventuallyWithin(s.t, 15*time.Minute, "the campaign is completed", func() bool {
		var p progress
		err := s.api.Do(s.t.Context(), http.MethodGet, "/v1/campaigns/"+id+"/progress", nil, &p)
		return err == nil && p.Status == "completed"
	})
}

func (s *soak) checkCampaign(kills []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	attempts, _, twice := s.checkRings()
	for what, sql := range map[string]string{
		"contacts that are not final":            "SELECT count(*) FROM contacts WHERE state NOT IN ('done', 'exhausted', 'suppressed')",
		"contacts that were called too often":    "SELECT count(*) FROM contacts WHERE attempts > 2",
		"contacts with more calls than attempts": "SELECT count(*) FROM contacts k WHERE attempts <> (SELECT count(*) FROM calls c WHERE c.contact_id = k.id)",
		"attempts that are not final":            "SELECT count(*) FROM contact_attempts WHERE ended_at IS NULL",
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
	settled := s.settleTime(kills)
	if settled > 2*time.Minute {
		s.t.Errorf("an attempt whose server died was settled after up to %v", settled)
	}
	s.t.Logf("unknown attempts were settled within %v", settled)
	s.t.Logf("%d kills, %d contacts, %d attempts seen by the carrier, %d rang twice, %d lost with their server",
		campaignKills, campaignContacts, attempts, twice, unknown)
}

// settleTime returns the longest time from the death of a server to the next state of its contacts. It measures from
// the first death after the call was created, although the call may have been on the other server.
func (s *soak) settleTime(kills []time.Time) (most time.Duration) {
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
