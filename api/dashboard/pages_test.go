package dashboard_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/db"
)

// slowest is the time limit of a page.
const slowest = 100 * time.Millisecond

// soakCalls skips the test outside of make soak. It returns the number of calls to insert.
func soakCalls(t *testing.T) int {
	t.Helper()
	if os.Getenv("PARLEYTEST_SOAK") == "" {
		t.Skip("make soak")
	}
	if n, err := strconv.Atoi(os.Getenv("PARLEYTEST_PAGE_CALLS")); err == nil {
		return n
	}
	return 1_000_000
}

// TestSoakPages requests every page of an organization with a million calls and campaigns
// of 50,000 contacts: a draft and a running one. The worst of ten requests counts.
func TestSoakPages(t *testing.T) {
	n := soakCalls(t)
	h := dashtest.New(t)
	all := routes(t, h, "sales")
	began := time.Now()
	insertCalls(t, h, n)
	draft, running := createLarge(t, h, 50_000, "draft", false), createLarge(t, h, 50_000, "running", true)
	simulateCalls(t, h, running.Campaign.ID)
	t.Logf("filled in %v", time.Since(began).Round(time.Second))
	paths := []string{
		"campaigns/" + running.Campaign.ID, "campaigns/" + draft.Campaign.ID, "imports/" + running.Import.ID, "imports/" + draft.Import.ID, "campaigns/" + running.Campaign.ID + "/calls",
		"calls?to_number=2125550123", "calls?status=ended", "calls?campaign_id=" + running.Campaign.ID,
	}
	for _, r := range all {
		if r.Show != nil && !r.Root && !strings.HasSuffix(r.Path, "/lend") && r.Path != "campaigns/columns" && r.Path != "campaigns/importing" {
			paths = append(paths, r.Path)
		}
	}
	b := h.SignIn(t, "ada")
	for _, path := range paths {
		checkTime(t, b, path, "", nil)
	}
	page := "campaigns/" + draft.Campaign.ID
	checkTime(t, b, page, ", a do-not-call list changed before each", func(i int) {
		h.Exec(t, "INSERT INTO suppressions (org_id, number) VALUES ($1, $2)", h.Acme, fmt.Sprintf("1310299%04d", i))
	})
	h.Exec(t, "INSERT INTO suppressions (org_id, number) SELECT $1, '1900' || lpad(i::text, 7, '0') FROM generate_series(1, 200000) i", h.Acme)
	checkTime(t, b, page, ", with 200,000 numbers on the list", func(i int) {
		h.Exec(t, "INSERT INTO suppressions (org_id, number) VALUES ($1, $2)", h.Acme, fmt.Sprintf("1310298%04d", i))
	})
	slowestOf(t, b, page+"?anew=1", ", its own request for a new screening", func(i int) {
		h.Exec(t, "INSERT INTO suppressions (org_id, number) VALUES ($1, $2)", h.Acme, fmt.Sprintf("1310297%04d", i))
	})
	checkTime(t, b, page, ", its list changed before each", func(i int) {
		h.Exec(t, "UPDATE contacts SET state = 'suppressed', reason = 'withdrawn_by_client' WHERE campaign_id = $1 AND n = $2", draft.Campaign.ID, 7+i)
	})
	fresh := createLarge(t, h, 50_000, "fresh", true)
	page = "campaigns/" + fresh.Campaign.ID
	checkTime(t, b, page, ", its list just uploaded", nil)
	checkTime(t, b, page, ", 1,000 contacts changed one by one before each", func(i int) {
		h.Exec(t, fmt.Sprintf(`DO $$ BEGIN FOR i IN %d..%d LOOP
			UPDATE contacts SET state = CASE i %% 2 WHEN 0 THEN 'exhausted' ELSE 'done' END, attempts = 1 WHERE import_id = '%s' AND n = i AND state = 'pending';
		END LOOP; END $$`, 1000*i, 1000*i+999, fresh.Import.ID))
	})
	checkTime(t, b, page, ", each contact due at a different time", func(i int) {
		if i == 0 {
			h.Exec(t, "UPDATE contacts SET state = 'pending', next_attempt_at = now() + n * interval '1 s' WHERE campaign_id = $1 AND state <> 'suppressed'", fresh.Campaign.ID)
			h.Exec(t, "VACUUM ANALYZE contacts") // as autovacuum does after many changes
		}
	})
}

// TestSoakContacts requests the contacts of a campaign with a million of them, also far down the list.
func TestSoakContacts(t *testing.T) {
	soakCalls(t)
	h := dashtest.New(t)
	h.Furnish(t, "sales")
	id := createLarge(t, h, 1000, "large", true).Campaign.ID
	for from := 0; from < 1_000_000; from += 50_000 { // within the statement timeout
		h.Exec(t, `INSERT INTO contacts (id, org_id, campaign_id, import_id, n, number, priority, state, reason, attempts, next_attempt_at, hours_group, due_at, created_at, updated_at)
			SELECT 'con_0' || lpad(g::text, 25, '0'), org_id, campaign_id, import_id, 2000 + g, '+12133' || lpad(g::text, 6, '0'), g % 3, s.state,
				CASE WHEN s.state <> 'suppressed' THEN '' WHEN g % 1000 = 499 THEN 'opted_out' ELSE 'geo_rejected' END, g % 2,
				CASE WHEN s.state = 'pending' AND g % 2 = 1 THEN now() + g * interval '1 s' END, hours_group, now(), now(), now()
			FROM contacts, generate_series($2::int, $2::int + 49999) g, LATERAL (SELECT (ARRAY['pending', 'pending', 'done', 'exhausted', 'suppressed'])[1 + g % 5] AS state) s
			WHERE campaign_id = $1 AND n = 1`, id, from)
		h.Exec(t, `INSERT INTO contact_attempts (contact_id, n, org_id, campaign_id, number, call_id, outcome, began_at, ended_at)
			SELECT id, 1, org_id, campaign_id, number, 'call_of_' || id, 'no_answer', now() - n * interval '0.5 s', now() FROM contacts
			WHERE campaign_id = $1 AND attempts > 0 AND n BETWEEN 2000 + $2::int AND 51999 + $2::int`, id, from)
	}
	if err := (&store.TallyFolder{Pool: h.DB.Pool}).Fold(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.Exec(t, "VACUUM ANALYZE contacts, contact_attempts, contact_tallies, attempt_tallies")
	b := h.SignIn(t, "ada")
	middle := func(state string) string {
		return h.Text(t, `SELECT concat_ws('.', state, reason, priority, coalesce((extract(epoch FROM next_attempt_at) * 1000000)::bigint::text, ''), id)
			FROM contacts WHERE campaign_id = $1 AND state = $2 AND priority = 1 AND n > 500000 LIMIT 1`, id, state)
	}
	at := "campaigns/" + id + "/contacts"
	for _, path := range []string{
		"campaigns/" + id, at, at + "?show=suppressed", at + "?show=opted_out", at + "?show=pending&cursor=" + middle("pending"),
		at + "?cursor=" + middle("done"), at + "?cursor=" + middle("suppressed"), at + "?number=2133500000",
	} {
		checkTime(t, b, path, "", nil)
	}
}

// TestSoakOverview requests the Overview page of an organization with a million calls of 60 days in 40 campaigns, and
// lists behind its numbers. The statistics are written in SQL, because the follower would count for long.
func TestSoakOverview(t *testing.T) {
	n := soakCalls(t)
	h := dashtest.New(t)
	h.Furnish(t, "sales")
	h.InsertFigures(t, n, 10)
	countInSQL(t, h)
	t.Logf("%d calls, %d rows of statistics", n, h.Count(t, "SELECT count(*) FROM call_rollups"))
	b := h.SignIn(t, "ada")
	month := b.Get("overview?period=month").Body
	for _, path := range []string{"overview?period=day", "overview?period=week", "overview?period=month", "overview/export?period=month"} {
		if worst := slowestOf(t, b, path, "", nil); worst > 300*time.Millisecond {
			t.Errorf("%s takes %v", path, worst)
		}
	}
	packed := packedSize(t, month)
	if packed > maxPageSize {
		t.Errorf("%d bytes compressed", packed)
	}
	t.Logf("the page of 30 days has %d bytes, %d compressed", len(month), packed)
	for _, kind := range []string{
		"outcome=answered", "outcome=busy", "outcome=failed", "outcome=not_dialed", "outcome=dialed", "success=yes", "success=known", "has=response_time", "has=cost", "weekday=0",
		"agent_id=agt_renewals", "agent_id=agt_gone", "campaign_id=none", "campaign_id=cmp_spring7",
	} {
		for _, m := range regexp.MustCompile(`href="([^"]*/calls\?[^"]*)"`).FindAllStringSubmatch(month, -1) {
			if path := html.UnescapeString(m[1]); strings.Contains(path, kind) {
				checkTime(t, b, path, "", nil)
				break
			}
		}
	}
	for _, path := range []string{
		"calls?order=slowest", "calls?order=slowest&range=yesterday", "calls?order=slowest&range=month", "calls?order=slowest&range=month&agent_id=agt_renewals",
		"calls?order=slowest&range=yesterday&campaign_id=cmp_spring7", "calls?order=slowest&to_number=12125550123",
	} {
		checkTime(t, b, path, "", nil)
		if next := regexp.MustCompile(`href="([^"]*)" rel="next"`).FindStringSubmatch(b.Get(path).Body); next != nil {
			checkTime(t, b, html.UnescapeString(next[1]), "", nil)
		}
	}
}

// countInSQL writes the statistics of all calls, with response times and hours of the week that are always the same.
func countInSQL(t *testing.T, h *dashtest.Env) {
	t.Helper()
	times := "" // 30 buckets of response times
	for bucket := range 30 {
		times += fmt.Sprintf("%02x03", 20+bucket)
	}
	for _, sql := range []string{
		"TRUNCATE call_changes",
		`CREATE TABLE counted AS SELECT *, CASE WHEN answered_by = 'voicemail' THEN 1 WHEN answered_at IS NOT NULL THEN 0 WHEN dialed_at IS NULL THEN 6 WHEN disconnection_reason = 'no_answer' THEN 2
			WHEN disconnection_reason = 'busy' THEN 3 WHEN disconnection_reason IN ('declined', 'invalid_number') THEN 4 ELSE 5 END AS outcome, date_trunc('hour', created_at, 'UTC') AS hour, call_analysis->>'success' AS success,
			coalesce(1000 * extract(epoch FROM ended_at - answered_at), 0)::bigint AS talk FROM calls WHERE status IN ('ended', 'failed')`,
		`INSERT INTO call_rollups (org_id, hour, agent_id, campaign_id, calls, outcomes, judged, successful, talk_ms, costed, cost_nano, times, cells)
			SELECT org_id, hour, agent_id, coalesce(campaign_id, ''), count(*), ARRAY[count(*) FILTER (WHERE outcome = 0), count(*) FILTER (WHERE outcome = 1), count(*) FILTER (WHERE outcome = 2), count(*) FILTER (WHERE outcome = 3),
				count(*) FILTER (WHERE outcome = 4), count(*) FILTER (WHERE outcome = 5), count(*) FILTER (WHERE outcome = 6)],
				count(success), count(*) FILTER (WHERE success = 'true'), sum(talk), count(cost_nano), coalesce(sum(cost_nano), 0), '\x` + times + `', '\x140a04150a04' FROM counted GROUP BY 1, 2, 3, 4`,
		`INSERT INTO call_stats (call_id, rollup_id, outcome, successful, talk_ms, cost_nano, times, slowest_ms, org_id, created_at)
			SELECT c.id, r.id, outcome, success::boolean, talk, c.cost_nano, CASE WHEN answered_by = 'human' THEN '\x1401'::bytea ELSE '' END,
				CASE WHEN answered_by = 'human' THEN 300 + abs(hashtext(c.id)) % 9000 END, CASE WHEN answered_by = 'human' THEN c.org_id END, CASE WHEN answered_by = 'human' THEN c.created_at END
			FROM counted c JOIN call_rollups r ON r.org_id = c.org_id AND r.hour = c.hour AND r.agent_id = c.agent_id AND r.campaign_id = coalesce(c.campaign_id, '')`,
	} {
		h.ExecLong(t, sql)
	}
	for _, table := range []string{"calls", "call_rollups", "call_stats"} {
		h.Exec(t, "VACUUM ANALYZE "+table)
	}
}

// checkTime changes something and requests a page, ten times, and checks the slowest response.
func checkTime(t *testing.T, b *dashtest.Browser, path, what string, before func(i int)) {
	t.Helper()
	if worst := slowestOf(t, b, path, what, before); worst > slowest {
		t.Errorf("%s%s takes %v", path, what, worst)
	}
}

// slowestOf requests a page ten times, logs the times and returns the slowest.
func slowestOf(t *testing.T, b *dashtest.Browser, path, what string, before func(i int)) time.Duration {
	t.Helper()
	var took []time.Duration
	for i := range 10 {
		if before != nil {
			before(i)
		}
		at := time.Now()
		if a := b.Get(path); a.Status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, a.Status, a.Text())
		}
		took = append(took, time.Since(at))
	}
	first := took[0]
	slices.Sort(took)
	t.Logf("%-60s best %6.1f, median %6.1f, worst %6.1f, first %6.1f ms", path+what, ms(took[0]), ms(took[len(took)/2]), ms(took[len(took)-1]), ms(first))
	return took[len(took)-1]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// insertCalls inserts ended calls of acme, ten per second until now.
func insertCalls(t *testing.T, h *dashtest.Env, n int) {
	t.Helper()
	err := db.Tx(t.Context(), h.DB.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "SET LOCAL statement_timeout = 0"); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number,
				trunk_id, route_id, campaign_id, ring_seconds, created_at, dialed_at, answered_at, ended_at, answered_by, disconnection_reason, hangup_by, sip_status)
			SELECT 'call_' || lpad(g::text, 26, '0'), c.org_id, 'phone', CASE WHEN g % 3 = 0 THEN 'failed' ELSE 'ended' END, c.agent_id, c.agent_name, 1,
				'1212555' || lpad((g % 10000)::text, 4, '0'), c.from_number, c.dial_number, c.trunk_id, c.route_id, CASE WHEN g % 2 = 0 THEN 'cmp_' || g / 50000 END, 45,
				x.t, x.t, CASE WHEN g % 3 <> 0 THEN x.t + interval '5 s' END, x.t + interval '60 s', CASE WHEN g % 3 <> 0 THEN 'human' END,
				CASE WHEN g % 3 = 0 THEN 'busy' ELSE 'callee_hangup' END, 'callee', 200
			FROM generate_series(1, $1::int) g, LATERAL (SELECT now() - make_interval(secs => ($1 - g) / 10.0 + 60) AS t) x, (SELECT * FROM calls WHERE id = 'call_1') c`, n)
		return err
	})
	if err == nil {
		_, err = h.DB.Pool.Exec(t.Context(), "VACUUM ANALYZE calls")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// createLarge creates a campaign with many contacts, half with a time zone and some suppressed.
// The campaign is launched or stays a draft.
func createLarge(t *testing.T, h *dashtest.Env, n int, name string, launched bool) service.Status {
	t.Helper()
	areas := []string{"212", "310", "312", "305", "713", "602", "808", "907", "617", "404"}
	var list []json.RawMessage
	for i := range n {
		list = append(list, json.RawMessage(fmt.Sprintf(`{"phone": "+1%s2%06d", "name": "Ada %d", "timezone": %q, "variables": {"city": "Rome"}}`,
			areas[i%len(areas)], i, i, []string{"", "America/Chicago"}[i%2])))
	}
	_, err := h.DB.Pool.Exec(t.Context(), "INSERT INTO suppressions (org_id, number) SELECT $1, '12122' || lpad((i * 10)::text, 6, '0') FROM generate_series(1, 1000) i ON CONFLICT DO NOTHING", h.Acme)
	if err != nil {
		t.Fatal(err)
	}
	st, err := h.Dashboard.Campaigns.Service.Create(t.Context(), h.Acme, service.Actor{Via: "api"}, service.CreateRequest{
		Spec: campaigns.Spec{Name: name, Agent: "sales", CallsPerMinute: 20, DNC: map[bool]string{true: campaigns.Skip}[launched], Retry: json.RawMessage(`{"attempts": 2, "interval_s": 900}`)}, Rows: list, Attested: launched,
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[bool]campaigns.Status{true: campaigns.Running, false: campaigns.Draft}[launched]; st.Campaign.Status != want || st.Import.AcceptedRows < n*9/10 {
		t.Fatalf("%s is %s: %+v, %v", name, st.Campaign.Status, st.Import.Import, st.Blockers)
	}
	return st
}

// simulateCalls simulates calls to most contacts. Two in five wait for another attempt.
func simulateCalls(t *testing.T, h *dashtest.Env, id string) {
	t.Helper()
	for _, sql := range []string{
		`INSERT INTO contact_attempts (contact_id, n, org_id, campaign_id, number, call_id, outcome, began_at, ended_at)
			SELECT id, 1, org_id, campaign_id, number, 'call_of_' || id, (ARRAY['answered', 'no_answer', 'busy', 'voicemail', 'failed'])[1 + n % 5],
				now() - n * interval '300 ms', now() - n * interval '300 ms' FROM contacts WHERE campaign_id = $1 AND state = 'pending' AND n % 10 > 0`,
		`UPDATE contacts SET attempts = 1, state = CASE WHEN n % 5 IN (1, 2) THEN 'pending' WHEN n % 5 = 0 THEN 'done' ELSE 'exhausted' END,
				next_attempt_at = CASE WHEN n % 5 IN (1, 2) THEN now() + n * interval '1 s' END, due_at = now() + n * interval '1 s'
			WHERE campaign_id = $1 AND state = 'pending' AND n % 10 > 0`,
	} {
		h.Exec(t, sql, id)
	}
	if err := (&store.TallyFolder{Pool: h.DB.Pool}).Fold(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.Exec(t, "VACUUM ANALYZE contacts, contact_attempts, contact_tallies, attempt_tallies")
}

// TestSoakCallSearch searches the transcripts of a million calls of 60 days for words that are in most of them, in some, in few
// and in none, with other filters too. The words are written in SQL, as store.WordIndexer writes them.
func TestSoakCallSearch(t *testing.T) {
	n := soakCalls(t)
	h := dashtest.New(t)
	h.Furnish(t, "sales")
	h.InsertFigures(t, n, 10)
	countInSQL(t, h)
	h.Exec(t, "TRUNCATE call_word_changes")
	h.Say(t, "call_1", "caller: Marker.")
	mark := strings.Fields(h.Text(t, "SELECT array_to_string(tsvector_to_array(words), ' ') FROM call_words"))[0]
	began := time.Now()
	index := h.Text(t, "SELECT pg_get_indexdef('call_words_by_word'::regclass)")
	h.Exec(t, "DROP INDEX call_words_by_word")
	// 2,000 texts with 80 of 3,000 words, small numbers more often. "often" is in 9 of 10 calls, "seldom" in 1 of 5,000, "past" in
	// those before the last 30 days.
	h.ExecLong(t, `CREATE TABLE texts AS SELECT i, to_tsvector('pg_catalog.russian', (SELECT string_agg('word' || chr(97 + w / 676) || chr(97 + w / 26 % 26) || chr(97 + w % 26), ' ')
		FROM generate_series(1, 80) k, LATERAL (SELECT (3000 * power(abs(hashint4extended(i, k)) % 100000 / 100000.0, 3))::int AS w) r)) AS words FROM generate_series(0, 1999) i`)
	h.ExecLong(t, `INSERT INTO call_words (call_id, words) SELECT c.id, x.words || to_tsvector('pg_catalog.russian',
			CASE WHEN h % 10 > 0 THEN 'often' ELSE '' END || CASE WHEN h % 5000 = 7 THEN ' seldom' ELSE '' END
			|| CASE WHEN c.created_at < now() - interval '30 days' THEN ' past' ELSE '' END || CASE WHEN c.id LIKE '%0000777' THEN ' unique' ELSE '' END)
		|| array_to_tsvector(ARRAY[$1, $1 || to_char(c.created_at AT TIME ZONE 'UTC', 'YYMMDDHH24')])
		FROM calls c, LATERAL (SELECT abs(hashtext(c.id)) AS h) y JOIN texts x ON x.i = h % 2000 WHERE answered_at IS NOT NULL AND c.id LIKE 'call_f%'`, mark)
	h.ExecLong(t, `INSERT INTO call_lines (call_id, n, item) SELECT id, n, json_build_object('role', 'caller', 'text', repeat('I said this often and it is past. ', 4), 'start', n, 'end', n + 1)
		FROM (SELECT id FROM calls WHERE answered_at IS NOT NULL AND id LIKE 'call_f%' ORDER BY created_at DESC LIMIT 500) c, generate_series(1, 20) n`)
	h.ExecLong(t, index)
	h.ExecLong(t, "INSERT INTO call_tags (call_id, tag, org_id, author) SELECT id, 'review', org_id, 'ada' FROM calls WHERE id LIKE '%99'")
	h.ExecLong(t, "INSERT INTO call_scores (call_id, score, org_id, author) SELECT id, 1 + abs(hashtext(id)) % 5, org_id, 'ada' FROM calls WHERE id LIKE '%9'")
	h.Exec(t, "VACUUM ANALYZE call_words, call_tags, call_scores")
	rows := h.Count(t, "SELECT count(*) FROM call_words")
	t.Logf("%d transcripts in %v; bytes of each: row %d, with indexes %d", rows, time.Since(began).Round(time.Second),
		h.Count(t, "SELECT avg(pg_column_size(w.*))::int FROM call_words w"), h.Count(t, "SELECT pg_total_relation_size('call_words')")/rows)
	b := h.SignIn(t, "ada")
	for _, query := range []string{
		"q=often", "q=seldom", "q=unique", "q=nowhere", "q=past", "q=wordaaa", "q=wordaab+wordaba", "q=often+past", "q=wordaaa+-often", "q=%22wordaaa+wordaab%22", "q=seldom+or+past", "q=wordaaa&order=asc",
		"q=often&range=yesterday", "q=past&agent_id=agt_renewals", "q=often&outcome=answered&score=1", "q=often&tag=review", "q=seldom&status=failed", "q=wordaaa&to_number=12125550777",
		"range=month", "tag=review", "tag=review&score=5", "score=low", "score=any&agent_id=agt_gone",
	} {
		if worst := slowestOf(t, b, "calls?"+query, "", nil); worst > 500*time.Millisecond {
			t.Errorf("%s takes %v", query, worst)
		}
	}
	slowestOf(t, b, "calls/call_f0000000000000000000000777?q=often", "", nil)
}
