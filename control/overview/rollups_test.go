package overview_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/overview"
)

var monday = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// A bench makes random calls, and random changes of them.
type bench struct {
	*testing.T

	db    *db.DB
	rnd   *rand.Rand
	made  int
	times map[string][]float64 // response times of each call
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t, dbtest.New(t), rand.New(rand.NewPCG(1, 2)), 0, map[string][]float64{}}
	b.exec("INSERT INTO organizations (id, name, timezone) VALUES ('org_1', 'acme', 'America/New_York'), ('org_2', 'globex', 'Asia/Kolkata')")
	return b
}

func (b *bench) exec(sql string, args ...any) {
	b.Helper()
	dbtest.Exec(b.T, b.db, sql, args...)
}

func (b *bench) pick(all ...string) string { return all[b.rnd.IntN(len(all))] }

// call adds a call of the first two days that has not ended yet.
func (b *bench) call() {
	b.made++
	id := fmt.Sprintf("call_%06d", b.made)
	at := monday.Add(time.Duration(b.rnd.IntN(48*3600*1000)) * time.Millisecond)
	b.exec(`INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number, trunk_id, route_id, ring_seconds, campaign_id, created_at)
		VALUES ($1, $2, $3, 'queued', $4, 'x', 1, $5, '', '', '', '', 45, nullif($6, ''), $7)`,
		id, b.pick("org_1", "org_1", "org_2"), b.pick("phone", "phone", "phone", "web"), b.pick("agt_1", "agt_2"), b.pick("12125550123", "13105550123", ""), b.pick("", "cmp_1", "cmp_2"), at)
}

// change makes one random change.
func (b *bench) change() {
	if b.made == 0 || b.rnd.IntN(4) == 0 {
		b.call()
		return
	}
	id := fmt.Sprintf("call_%06d", 1+b.rnd.IntN(b.made))
	switch b.rnd.IntN(11) {
	case 0, 1, 2: // a person or a machine answered
		b.turns(id)
		b.exec(`UPDATE calls SET status = 'ended', dialed_at = created_at + interval '1 s', answered_at = created_at + interval '9 s', ended_at = created_at + $2, answered_by = nullif($3, ''),
			disconnection_reason = 'callee_hangup', cost_nano = $4 WHERE id = $1 AND status = 'queued'`,
			id, time.Duration(9+b.rnd.IntN(300))*time.Second, b.pick("", "human", "unknown", "voicemail", "ivr"), b.rnd.IntN(1000))
	case 3:
		b.exec("UPDATE calls SET status = 'failed', dialed_at = created_at, ended_at = created_at + interval '1 min', disconnection_reason = $2, cost_nano = 0 WHERE id = $1 AND status = 'queued'",
			id, b.pick("no_answer", "busy", "declined", "route_error"))
	case 4:
		b.exec("UPDATE calls SET status = 'failed', ended_at = created_at, disconnection_reason = 'dnc_blocked' WHERE id = $1 AND status = 'queued'", id)
	case 5, 6: // the analysis is late
		b.exec("UPDATE calls SET analysis_status = 'completed', call_analysis = $2::jsonb, cost_nano = cost_nano + 7 WHERE id = $1 AND status = 'ended' AND analysis_status = 'none' AND erased_at IS NULL",
			id, b.pick(`{"success":true}`, `{"success":false}`, `{"success":null}`, `{}`))
	case 7: // the result of a lost node
		b.exec("UPDATE calls SET answered_at = created_at + interval '3 s', dialed_at = created_at, ended_at = greatest(ended_at, created_at + interval '3 s') WHERE id = $1 AND status = 'failed' AND answered_at IS NULL AND erased_at IS NULL", id)
	case 8: // the retention period of the turns ends
		b.exec("DELETE FROM call_turns WHERE call_id = $1 AND NOT EXISTS (SELECT FROM call_changes WHERE call_id = $1)", id)
	case 9:
		b.exec("UPDATE calls SET erased_at = now(), call_analysis = NULL, analysis_status = 'none' WHERE id = $1 AND status <> 'queued'", id)
		b.exec("DELETE FROM call_turns WHERE call_id IN (SELECT id FROM calls WHERE id = $1 AND erased_at IS NOT NULL)", id)
	case 10:
		b.exec("DELETE FROM calls WHERE id = $1", id)
	}
}

func (b *bench) turns(id string) {
	var times []float64
	if dbtest.Value[int](b.T, b.db, "SELECT count(*) FROM calls WHERE id = $1 AND status = 'queued'", id) == 0 {
		return
	}
	b.exec(`INSERT INTO call_turns (call_id, n, item) VALUES ($1, 0, '{"turn":0,"metrics":{"turn_ms":6400}}')`, id) // the greeting
	for n := range b.rnd.IntN(4) {
		ms := math.Round(40 * math.Exp(6*b.rnd.Float64()))
		times = append(times, ms)
		b.exec("INSERT INTO call_turns (call_id, n, item) VALUES ($1, $2, jsonb_build_object('turn', $2::int, 'metrics', jsonb_build_object('turn_ms', $3::float8, 'vad_ms', 1)))", id, n+1, ms)
	}
	b.times[id] = times
}

// A sum is what a recount by other means finds.
type sum struct {
	Org                                           string
	Hour                                          time.Time
	Agent, Campaign                               string
	Calls                                         int
	Outcomes                                      []int
	KnownSuccess, Successful, Talk, Costed, Costs int
	IDs                                           []string
}

// recount adds the calls up in SQL.
func (b *bench) recount() []sum {
	b.Helper()
	all, err := db.Collect(b.Context(), b.db.Pool, "recount", pgx.RowToStructByPos[sum], `
		WITH c AS (
			SELECT *, CASE WHEN answered_at IS NOT NULL AND answered_by IN ('voicemail', 'ivr', 'fax') THEN 1 WHEN answered_at IS NOT NULL THEN 0 WHEN dialed_at IS NULL OR call_type = 'web' THEN 6
				WHEN disconnection_reason = 'no_answer' THEN 2 WHEN disconnection_reason = 'busy' THEN 3 WHEN disconnection_reason IN ('declined', 'blocked', 'invalid_number') THEN 4 ELSE 5 END AS o
			FROM calls WHERE status IN ('ended', 'failed') AND erased_at IS NULL)
		SELECT org_id, date_trunc('hour', created_at, 'UTC') AS hour, agent_id, coalesce(campaign_id, ''), count(*),
			ARRAY[count(*) FILTER (WHERE o = 0), count(*) FILTER (WHERE o = 1), count(*) FILTER (WHERE o = 2), count(*) FILTER (WHERE o = 3), count(*) FILTER (WHERE o = 4), count(*) FILTER (WHERE o = 5), count(*) FILTER (WHERE o = 6)],
			count(*) FILTER (WHERE jsonb_typeof(call_analysis->'success') = 'boolean'), count(*) FILTER (WHERE call_analysis->'success' = 'true'),
			coalesce(sum(1000 * extract(epoch FROM ended_at - answered_at)), 0)::bigint, count(cost_nano), coalesce(sum(cost_nano), 0)::bigint, array_agg(id)
		FROM c GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4`)
	if err != nil {
		b.Fatal(err)
	}
	return all
}

// compare fails if the statistics differ from a recount.
func (b *bench) compare(where string) {
	b.Helper()
	want := b.recount()
	if n := dbtest.Value[int](b.T, b.db, "SELECT count(*) FROM call_rollups"); n != len(want) {
		b.Errorf("%s: %d rows, want %d", where, n, len(want))
	}
	if len(want) == 0 {
		b.Fatal("no calls to compare")
	}
	for _, w := range want {
		p, err := overview.Report(b.Context(), b.db.Pool, w.Org, w.Hour, w.Hour.Add(time.Hour))
		if err != nil {
			b.Fatal(err)
		}
		i := slices.IndexFunc(p.Groups, func(g overview.Group) bool { return g.Agent == w.Agent && g.Campaign == w.Campaign })
		if i < 0 {
			b.Errorf("%s: %v %s %s is missing", where, w.Hour, w.Agent, w.Campaign)
			continue
		}
		got := p.Groups[i].Sums
		if got.Calls != w.Calls || !slices.Equal(got.Outcomes[:], w.Outcomes) || got.KnownSuccess != w.KnownSuccess || got.Successful != w.Successful || got.TalkMS != int64(w.Talk) || got.Costed != w.Costed || got.CostNano != int64(w.Costs) {
			got.Times, got.Week = overview.Histogram{}, overview.Week{}
			b.Errorf("%s: %+v, want %+v", where, got, w)
		}
		var times overview.Histogram
		for _, id := range w.IDs {
			for _, ms := range b.times[id] {
				times.Add(ms)
			}
		}
		if got.Times != times {
			b.Errorf("%s: response times %v, want %v", where, got.Times, times)
		}
	}
}

// TestRollupsEqualRecount makes random changes while several followers count them and are stopped at random. The
// statistics always equal a recount.
func TestRollupsEqualRecount(t *testing.T) {
	b := newBench(t)
	f := &overview.Follower{Pool: b.db.Pool, Locate: func(digits string) string {
		return map[string]string{"12125550123": "America/New_York", "13105550123": "America/Los_Angeles"}[digits]
	}}
	for round := range 3 {
		var followers sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		for range 2 {
			followers.Go(func() {
				for n := 0; ctx.Err() == nil; n++ { // now and then a follower is stopped in the middle of a transaction
					short, cancel := ctx, func() {}
					if n%20 == 0 {
						short, cancel = context.WithTimeout(ctx, time.Duration(1+round)*2*time.Millisecond)
					}
					_, _ = f.Step(short)
					cancel()
				}
			})
		}
		for range 160 {
			b.change()
		}
		stop()
		followers.Wait()
		b.follow(f)
		b.compare(fmt.Sprintf("round %d", round))
		for _, org := range []string{"org_1", "org_2"}[:1+round%2] {
			if n, wrong, err := f.Recount(t.Context(), org, monday, monday.AddDate(0, 0, 2)); err != nil || wrong != 0 || n == 0 {
				t.Errorf("the recount finds %d of %d wrong: %v", wrong, n, err)
			}
		}
	}
	b.exec("UPDATE call_rollups SET calls = calls + 1, times = '' WHERE id % 3 = 0")
	b.exec("DELETE FROM call_rollups WHERE id % 7 = 0")
	b.exec("DELETE FROM call_stats WHERE right(call_id, 1) = '4'")
	wrong := 0
	for _, org := range []string{"org_1", "org_2"} {
		_, n, err := f.Recount(t.Context(), org, monday, monday.AddDate(0, 0, 2))
		if wrong += n; err != nil {
			t.Error(err)
		}
	}
	if wrong == 0 {
		t.Error("the recount finds nothing wrong in damaged statistics")
	}
	b.compare("after repair")
	b.compareSlowest(0)
	b.exec("UPDATE call_stats SET slowest_ms = NULL, org_id = NULL, created_at = NULL") // as the previous release writes rows
	for {
		if n, err := f.Step(t.Context()); err != nil {
			t.Fatal(err)
		} else if n == 0 {
			break
		}
	}
	b.compareSlowest(.04)
}

// compareSlowest fails if the slowest response of a call differs from the one that is stored. Without turns it may differ by
// a share of error.
func (b *bench) compareSlowest(share float64) {
	b.Helper()
	type row struct {
		ID      string
		Turns   bool
		Slowest *int
		Same    bool // organization and time are those of the call
	}
	all, err := db.Collect(b.Context(), b.db.Pool, "slowest", pgx.RowToStructByPos[row], `
		SELECT call_id, EXISTS (SELECT FROM call_turns t WHERE t.call_id = s.call_id), slowest_ms, (s.org_id, s.created_at) = (c.org_id, c.created_at) IS TRUE
		FROM call_stats s JOIN calls c ON c.id = s.call_id`)
	if err != nil {
		b.Fatal(err)
	}
	timed := 0
	for _, r := range all {
		want := 0.0
		for _, ms := range b.times[r.ID] {
			want = max(want, ms)
		}
		if want == 0 && r.Slowest == nil {
			continue
		}
		timed++
		if may := want * share; r.Slowest == nil || !r.Same || math.Abs(float64(*r.Slowest)-want) > may && (r.Turns || want >= 50) {
			b.Errorf("%+v, want %v", r, want)
		}
	}
	if timed < 10 {
		b.Errorf("%d calls have response times: the test is ineffective", timed)
	}
}

// follow counts all changes.
func (b *bench) follow(f *overview.Follower) {
	b.Helper()
	for dbtest.Value[int](b.T, b.db, "SELECT count(*) FROM call_changes") > 0 {
		if _, err := f.Step(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// TestIdleFollower checks that a step without a changed call is one statement.
func TestIdleFollower(t *testing.T) {
	pool, statements := dbtest.Traced(t, dbtest.New(t))
	n, err := (&overview.Follower{Pool: pool}).Step(t.Context())
	if all := statements(); n != 0 || err != nil || len(all) != 1 {
		t.Errorf("%d calls, %v; statements %q", n, err, all)
	}
}

// TestSuccessOutlivesTranscripts checks that statistics keep the success and the response times of a call whose transcript was
// deleted, and that they forget an erased call.
func TestSuccessOutlivesTranscripts(t *testing.T) {
	b := newBench(t)
	b.exec(`INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number, trunk_id, route_id, ring_seconds, created_at, dialed_at, answered_at, ended_at, call_analysis, analysis_status)
		VALUES ('call_1', 'org_1', 'phone', 'ended', 'agt_1', 'x', 1, '', '', '', '', '', 45, $1, $1, $1, $1, '{"success":true}', 'completed')`, monday)
	b.exec(`INSERT INTO call_turns (call_id, n, item) VALUES ('call_1', 1, '{"turn":1,"metrics":{"turn_ms":700,"vad_ms":200}}')`)
	f := &overview.Follower{Pool: b.db.Pool}
	read := func() overview.Sums {
		b.follow(f)
		p, err := overview.Report(t.Context(), b.db.Pool, "org_1", monday, monday.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		return p.Total()
	}
	before := read()
	if ms, ok := before.Times.Percentile(.5); before.Successful != 1 || !ok || math.Abs(ms-700) > 28 {
		t.Errorf("%d successful, response time %v", before.Successful, ms)
	}
	if c := before.Week[19]; c.Dialed != 1 || c.Answered != 1 { // Sunday, 19:00 in New York
		t.Errorf("cell %+v", c)
	}
	b.exec("DELETE FROM call_turns")
	b.exec("UPDATE calls SET call_analysis = NULL, analysis_status = 'none'")
	if after := read(); after != before {
		t.Errorf("after the deletion of the transcript: %+v, want %+v", after, before)
	}
	if _, wrong, err := f.Recount(t.Context(), "org_1", monday, monday.Add(time.Hour)); err != nil || wrong != 0 {
		t.Errorf("%d wrong, %v", wrong, err)
	}
	b.exec("UPDATE calls SET erased_at = now()")
	if after := read(); after.Calls != 0 || after.Times.Count() != 0 {
		t.Errorf("an erased call counts: %+v", after)
	}
	if n := dbtest.Value[int](t, b.db, "SELECT (SELECT count(*) FROM call_rollups) + (SELECT count(*) FROM call_stats)"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

// TestKeysOfHour checks that an hour has a bounded number of rows, however many agents call.
func TestKeysOfHour(t *testing.T) {
	b := newBench(t)
	b.exec(`INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number, trunk_id, route_id, ring_seconds, created_at)
		SELECT 'call_' || n, 'org_1', 'phone', 'failed', 'agt_' || n, 'x', 1, '', '', '', '', '', 45, $1 FROM generate_series(1, 700) n`, monday)
	b.follow(&overview.Follower{Pool: b.db.Pool})
	p, err := overview.Report(t.Context(), b.db.Pool, "org_1", monday, monday.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	total := p.Total()
	if len(p.Groups) != 101 || total.Calls != 700 {
		t.Errorf("%d rows of %d calls", len(p.Groups), total.Calls)
	}
}

// TestPercentiles checks the error bound of percentiles.
func TestPercentiles(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		var h overview.Histogram
		var all []float64
		for range 1 + rnd.IntN(500) {
			ms := 50 * math.Exp(rnd.Float64()*6)
			all = append(all, ms)
			h.Add(ms)
		}
		slices.Sort(all)
		for _, part := range []float64{.5, .95} {
			want := all[int(math.Ceil(part*float64(len(all))))-1]
			if got, ok := h.Percentile(part); !ok || math.Abs(got/want-1) > .04 {
				t.Errorf("percentile %v of %d is %v, want %v", part, len(all), got, want)
			}
		}
	}
	var none overview.Histogram
	if _, ok := none.Percentile(.5); ok {
		t.Error("a percentile without response times")
	}
}
