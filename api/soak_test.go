package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

// million inserts a million calls of acme, ten per second, of many kinds, some of them rare.
const million = `INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number,
		trunk_id, route_id, campaign_id, contact_id, import_id, external_id, metadata, ring_seconds, created_at, dialed_at, answered_at, ended_at,
		answered_by, disconnection_reason, hangup_by, sip_status, call_analysis, analysis_status)
	SELECT 'call_' || lpad(g::text, 26, '0'), $1, CASE WHEN g % 50 = 0 THEN 'web' ELSE 'phone' END,
		CASE WHEN g % 100000 = 0 THEN 'ringing' WHEN g % 3 = 0 THEN 'failed' ELSE 'ended' END, 'agt_' || g % 20, 'agent' || g % 20, 1,
		'1212555' || lpad((g % 10000)::text, 4, '0'), '+1202555010' || g % 5, '91212555', 'trk_' || g % 5, 'rte_' || g % 20,
		CASE WHEN g % 2 = 0 THEN 'cmp_' || g / 50000 END, CASE WHEN g % 2 = 0 THEN 'con_' || g END, CASE WHEN g % 2 = 0 THEN 'imp_' || g / 50000 END,
		CASE WHEN g % 10 = 0 THEN 'x' || g END, '{"order": "A-1001", "note": "as the client sent it"}', 45,
		t, t, CASE WHEN g % 3 <> 0 THEN t + interval '5 s' END, t + make_interval(secs => 5 + g % 300),
		CASE WHEN g % 3 <> 0 THEN (ARRAY['human', 'voicemail', 'unknown'])[1 + g % 3] END,
		CASE WHEN g % 9973 = 0 THEN 'node_lost' WHEN g % 3 = 0 THEN 'busy' ELSE 'callee_hangup' END, 'callee', 200,
		'{"summary": "The callee asked when the shop opens and got an answer.", "success": true}', 'complete'
	FROM (SELECT g, timestamptz '2026-01-01 00:00:00Z' + make_interval(secs => g / 10.0) AS t FROM generate_series(1, 1000000) g) g`

// TestSoakMillionCalls lists a million calls by every filter, from many pages, and reads single ones. Times are logged, not
// asserted: machines differ.
func TestSoakMillionCalls(t *testing.T) {
	if os.Getenv("PARLEYTEST_SOAK") == "" {
		t.Skip("make soak")
	}
	h := newEnv(t)
	began := time.Now()
	h.fill()
	t.Logf("1,000,000 calls written in %v", time.Since(began).Round(time.Second))
	var all []time.Duration
	for _, filter := range []string{
		"", "order=asc", "status=ended", "status=ringing", "status=failed,ended", "call_type=web", "call_type=phone", "agent_id=agent7", "agent_id=unknown",
		"campaign_id=cmp_3", "contact_id=con_500000", "import_id=imp_9,imp_12", "trunk_id=trk_1", "route_id=rte_3", "to_number=%2B12125550123", "from_number=12025550103",
		"disconnection_reason=node_lost", "disconnection_reason=busy", "disconnection_reason=redirect_refused", "answered_by=voicemail", "answered_by=fax",
		"external_id=x500000", "min_duration_s=280", "max_duration_s=3", "min_duration_s=42&max_duration_s=43",
		"status=ended&agent_id=agent7&answered_by=human", "status=ended&disconnection_reason=busy", "agent_id=agent7&min_duration_s=299&call_type=web",
	} {
		took := h.pages(filter)
		all = append(all, took...)
		slices.Sort(took)
		t.Logf("%-55s %3d pages, p50 %6.2f ms, worst %6.2f ms", filter, len(took), ms(took[len(took)/2]), ms(took[len(took)-1]))
	}
	slices.Sort(all)
	t.Logf("all: %d pages of 100, p50 %.2f ms, p99 %.2f ms, worst %.2f ms", len(all), ms(all[len(all)/2]), ms(all[len(all)*99/100]), ms(all[len(all)-1]))
	h.reads(3 * time.Second)
}

// fill inserts the calls. Creating the indexes afterward is faster.
func (h *env) fill() {
	h.t.Helper()
	ctx := h.t.Context()
	err := db.Tx(ctx, h.db.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = 0"); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'calls' AND indexname LIKE 'calls\\_by\\_%'")
		if err != nil {
			return err
		}
		var name, def string
		defs := map[string]string{}
		if _, err = pgx.ForEachRow(rows, []any{&name, &def}, func() error { defs[name] = def; return nil }); err != nil {
			return err
		}
		for name := range defs {
			if _, err = tx.Exec(ctx, "DROP INDEX "+name); err != nil {
				return err
			}
		}
		if _, err = tx.Exec(ctx, million, h.org); err != nil {
			return err
		}
		for _, def := range defs {
			if _, err = tx.Exec(ctx, def); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		_, err = h.db.Pool.Exec(ctx, "VACUUM ANALYZE calls")
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (h *env) pages(filter string) (took []time.Duration) {
	h.t.Helper()
	for place := range 10 {
		end := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(place+1) * 10_000 * time.Second)
		query, cursor := fmt.Sprintf("%s&created_before=%d&limit=100", filter, end.Unix()), ""
		for range 5 {
			began := time.Now()
			a := h.do("GET", "/v1/calls?"+query+cursor, "")
			took = append(took, time.Since(began))
			p := a.json(h.t)
			if a.status != http.StatusOK {
				h.t.Fatalf("%s: %d %s", filter, a.status, a.body)
			}
			next, more := p["next_cursor"].(string)
			if !more {
				break
			}
			cursor = "&cursor=" + url.QueryEscape(next)
		}
	}
	return took
}

// reads reads single calls in eight goroutines.
func (h *env) reads(d time.Duration) {
	h.t.Helper()
	var n atomic.Int64
	var readers sync.WaitGroup
	until := time.Now().Add(d)
	for i := range 8 {
		readers.Go(func() {
			for k := 0; time.Now().Before(until); k++ {
				id := fmt.Sprintf("call_%026d", (k*7919+i*104729)%1_000_000+1)
				if a := h.do("GET", "/v1/calls/"+id, ""); a.status != http.StatusOK {
					h.t.Errorf("%s: %d", id, a.status)
					return
				}
				n.Add(1)
			}
		})
	}
	readers.Wait()
	h.t.Logf("GET /v1/calls/{id}: %.0f per second", float64(n.Load())/d.Seconds())
}
