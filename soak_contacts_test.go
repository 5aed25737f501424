package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/dialer"
	"github.com/parley-voice/parley/campaigns/dialer/pgqueue"
	"github.com/parley-voice/parley/campaigns/marketstore"
	campaignstore "github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	controlstore "github.com/parley-voice/parley/control/store"
)

const (
	manyCampaigns = 50
	fewRows       = 20_000
	mostRows      = 200_000 // the longest list that a campaign accepts
	// mostPerRow is how much longer each row of the longest list may take than each row of a list of fewRows.
	mostPerRow = 2
	// mostImportMemory bounds the growth of the server's memory while it imports a list of any length.
	mostImportMemory = 96 << 20
)

// contactsSoak is a run of TestSoakTenMillionContacts.
type contactsSoak struct {
	*soak

	server *exec.Cmd
	each   int // contacts of each of the manyCampaigns campaigns
}

// TestSoakTenMillionContacts measures imports, screenings, reports, plans and claims with 50 campaigns of 200,000
// contacts. PARLEYTEST_CONTACTS is the number of contacts in all; the default is a million.
func TestSoakTenMillionContacts(t *testing.T) {
	soakOnly(t)
	all := 1_000_000
	if text := os.Getenv("PARLEYTEST_CONTACTS"); text != "" {
		var err error
		if all, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	base, over := newSoak(t, 0)
	defer over()
	s := &contactsSoak{soak: base, each: all / manyCampaigns}
	s.allowCampaigns()
	s.exec("UPDATE subgroups SET concurrent_calls = 1000000, calls_per_minute = 1000000")
	s.exec(`INSERT INTO suppressions (org_id, number) SELECT id, '7702' || lpad((g * 7)::text, 7, '0') FROM organizations, generate_series(1, 10000) g`)
	s.start()
	s.importTwice()
	s.stop()
	s.fill()
	s.measureRepair()
	s.measurePlans()
	s.measureIdle()
	s.measureTakes()
}

func (s *contactsSoak) exec(sql string, args ...any) {
	s.t.Helper()
	dbtest.Exec(s.t, s.db, sql, args...)
}

func (s *contactsSoak) start() {
	s.server = s.serve()
	s.waitReady()
}

func (s *contactsSoak) stop() {
	_ = s.server.Process.Kill()
	_ = s.server.Wait() // the process was killed
}

// peak calls do. It returns how long do took, and the largest growth of the server's memory during it.
func (s *contactsSoak) peak(do func()) (took time.Duration, grown int64) {
	s.t.Helper()
	process := fmt.Sprintf("/proc/%d/", s.server.Process.Pid)
	before := residentMemory(s.t, s.server.Process.Pid)
	if err := os.WriteFile(process+"clear_refs", []byte("5"), 0o600); err != nil { // resets VmHWM
		s.t.Fatal(err)
	}
	began := time.Now()
	do()
	took = time.Since(began)
	text, err := os.ReadFile(process + "status")
	if err != nil {
		s.t.Fatal(err)
	}
	kb, err := strconv.ParseInt(string(regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)[1]), 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return took, max(0, kb<<10-before)
}

// contactsFile returns a list of contacts with ten time zones, three priorities and a variable.
func contactsFile(rows int) []byte {
	zones := []string{
		"Asia/Almaty", "Asia/Aqtau", "Asia/Aqtobe", "Asia/Atyrau", "Asia/Oral", "Asia/Qostanay", "Asia/Qyzylorda", "Asia/Tashkent", "Asia/Bishkek", "",
	}
	var b bytes.Buffer
	b.WriteString("phone,name,timezone,priority,external_id,order,city\n")
	for n := range rows {
		fmt.Fprintf(&b, "+7702%07d,Contact Number %d,%s,%d,ext-%d,A-%d,Almaty\n", n, n, zones[n%len(zones)], 4+n%3, n, n)
	}
	return b.Bytes()
}

// request sends a request and returns the body of its response.
func (s *contactsSoak) request(method, path, kind string, body io.Reader) []byte {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.api.URL+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.api.Key)
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Idempotency-Key", control.NewID("key_", time.Now()))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= http.StatusMultipleChoices {
		s.t.Fatalf("%s %s: %s %v %.500s", method, path, resp.Status, err, text)
	}
	return text
}

// imported is a campaign that was created from a file, with the IDs of the campaign and the import.
type imported struct {
	rows         int
	id, importID string
	importing, launching,
	reporting, reading time.Duration
	importMemory, launchMemory, reportMemory int64
}

// create imports a list as a draft, launches the campaign later, and reads its report and its progress.
func (s *contactsSoak) create(rows int) (x imported) {
	s.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	err := form.WriteField("campaign", `{"name":"many","agent_id":"demo","calls_per_minute":20,"starts_at":4000000000}`)
	if err == nil {
		var w io.Writer
		if w, err = form.CreateFormFile("rows", "rows.csv"); err == nil {
			_, err = w.Write(contactsFile(rows))
		}
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	x.rows = rows
	var c struct {
		ID     string `json:"campaign_id"`
		Status string `json:"status"`
		Import struct {
			ID string `json:"import_id"`
		} `json:"import"`
	}
	x.importing, x.importMemory = s.peak(func() {
		err = json.Unmarshal(s.request(http.MethodPost, "/v1/campaigns", form.FormDataContentType(), &body), &c)
	})
	if x.id, x.importID = c.ID, c.Import.ID; err != nil || c.Status != "draft" {
		s.t.Fatalf("the campaign is %s: %v", c.Status, err)
	}
	x.launching, x.launchMemory = s.peak(func() {
		err = json.Unmarshal(s.request(http.MethodPost, "/v1/campaigns/"+x.id+"/launch", "application/json",
			strings.NewReader(fmt.Sprintf(`{"dnc":"skip","attestation":{"confirmed":true,"import_id":%q}}`, x.importID))), &c)
	})
	if err != nil || c.Status != "scheduled" {
		s.t.Fatalf("the campaign is %s: %v", c.Status, err)
	}
	x.reporting, x.reportMemory = s.peak(func() {
		if n := bytes.Count(s.request(http.MethodGet, "/v1/imports/"+x.importID+"/report?format=csv", "", nil), []byte("\n")); n != rows+1 {
			s.t.Errorf("the report has %d lines, want %d", n, rows+1)
		}
	})
	x.reading = s.progressTime(x.id)
	return x
}

// progressTime returns the median time of the progress endpoint.
func (s *contactsSoak) progressTime(id string) time.Duration {
	return median(21, func() { s.request(http.MethodGet, "/v1/campaigns/"+id+"/progress", "", nil) })
}

// median returns the median time of do.
func median(times int, do func()) time.Duration {
	took := make([]time.Duration, times)
	for n := range took {
		began := time.Now()
		do()
		took[n] = time.Since(began)
	}
	slices.Sort(took)
	return took[times/2]
}

// importTwice creates campaigns with short lists and with the longest, and compares the times per row, and the memory.
func (s *contactsSoak) importTwice() {
	s.create(fewRows) // warms up
	few, many := s.create(fewRows), s.create(mostRows)
	for _, x := range []imported{few, many} {
		perSecond := func(d time.Duration) int { return int(float64(x.rows) / d.Seconds()) }
		s.t.Logf("%6d rows: import %v, %d rows/s, memory +%d MiB; launch with screening %v, %d rows/s, +%d MiB; report %v, %d rows/s, +%d MiB; progress %v",
			x.rows, x.importing.Round(time.Millisecond), perSecond(x.importing), x.importMemory>>20,
			x.launching.Round(time.Millisecond), perSecond(x.launching), x.launchMemory>>20,
			x.reporting.Round(time.Millisecond), perSecond(x.reporting), x.reportMemory>>20, x.reading.Round(10*time.Microsecond))
	}
	for what, took := range map[string][2]time.Duration{
		"import": {few.importing, many.importing}, "launch": {few.launching, many.launching}, "report": {few.reporting, many.reporting},
	} {
		s.atMost(what+", time per row", took[1].Seconds()/mostRows, took[0].Seconds()/fewRows, mostPerRow)
	}
	s.atMost("progress", many.reading.Seconds(), few.reading.Seconds(), 2)
	for what, grown := range map[string]int64{"import": many.importMemory, "launch": many.launchMemory, "report": many.reportMemory} {
		if grown > mostImportMemory {
			s.t.Errorf("%s: the memory grew by %d MiB, want at most %d", what, grown>>20, int64(mostImportMemory)>>20)
		}
	}
	// The next attempt of each contact is later.
	for _, id := range []string{few.id, many.id} {
		s.exec("UPDATE campaigns SET status = 'running', starts_at = NULL, launched_at = now() WHERE id = $1", id)
		s.inSession("UPDATE contacts SET next_attempt_at = now() + interval '1 day', due_at = now() + interval '1 day' WHERE state = 'pending' AND campaign_id = '" + id + "'")
	}
	s.inSession("VACUUM ANALYZE contacts, contact_tallies")
	<-time.After(15 * time.Second) // the tallies are merged every 10 s
	waiting := [2]time.Duration{s.progressTime(few.id), s.progressTime(many.id)}
	s.t.Logf("progress while all contacts wait for the next attempt: %v and %v", waiting[0], waiting[1])
	s.atMost("progress while contacts wait", waiting[1].Seconds(), waiting[0].Seconds(), mostPerRow*mostRows/fewRows) // it counts them
	s.exec("UPDATE campaigns SET status = 'paused' WHERE status = 'running'")
}

// atMost checks a ratio.
func (s *contactsSoak) atMost(what string, got, reference, most float64) {
	s.t.Helper()
	if ratio := got / reference; ratio > most {
		s.t.Errorf("%s: %.2f times as much, want at most %.1f", what, ratio, most)
	}
}

// fill adds the campaigns cmp_1 to cmp_50 as copies of the imported one, without triggers, and with indexes that are
// created afterwards. cmp_0 has fewRows contacts.
func (s *contactsSoak) fill() {
	began := time.Now()
	s.inTx(func(tx pgx.Tx) error {
		_, err := tx.Exec(s.t.Context(), `SET LOCAL session_replication_role = replica; SET LOCAL statement_timeout = 0; SET LOCAL maintenance_work_mem = '512MB'`)
		if err != nil {
			return err
		}
		indexes, err := db.Collect(s.t.Context(), tx, "indexes", pgx.RowTo[string], `SELECT 'DROP INDEX ' || indexname || ';' || indexdef FROM pg_indexes
			WHERE tablename = 'contacts' AND indexname NOT IN (SELECT conname FROM pg_constraint WHERE conrelid = 'contacts'::regclass)`)
		for _, x := range indexes {
			drop, _, _ := strings.Cut(x, ";")
			if err == nil {
				_, err = tx.Exec(s.t.Context(), drop)
			}
		}
		for n := 0; n <= manyCampaigns && err == nil; n++ {
			rows := s.each
			if n == 0 {
				rows = fewRows
			}
			err = s.copyCampaign(tx, n, rows)
		}
		for _, x := range indexes {
			_, create, _ := strings.Cut(x, ";")
			if err == nil {
				_, err = tx.Exec(s.t.Context(), create)
			}
		}
		return err
	})
	s.t.Logf("%d contacts copied in %v", manyCampaigns*s.each, time.Since(began).Round(time.Second))
	began = time.Now()
	s.inSession("VACUUM ANALYZE contacts, campaigns, imports")
	s.t.Logf("vacuum took %v; contacts: %s", time.Since(began).Round(time.Second),
		dbtest.Value[string](s.t, s.db, "SELECT pg_size_pretty(pg_table_size('contacts')) || ', indexes ' || pg_size_pretty(pg_indexes_size('contacts'))"))
}

// copyCampaign copies rows contacts of the longest import to a paused campaign.
func (s *contactsSoak) copyCampaign(tx pgx.Tx, n, rows int) error {
	const longest = "(SELECT id FROM imports WHERE length(id) = 30 ORDER BY rows_seen DESC LIMIT 1)"
	for _, sql := range []string{
		`INSERT INTO campaigns SELECT x.* FROM campaigns c,
			json_populate_record(c, json_build_object('id', 'cmp_' || $1::int, 'launch_import_id', 'imp_' || $1::int, 'updated_at', now())) x
			WHERE c.launch_import_id = ` + longest + ` AND $2::int > 0`,
		`INSERT INTO campaign_paces (campaign_id) SELECT 'cmp_' || $1::int WHERE $2::int > 0`,
		`INSERT INTO imports SELECT x.* FROM imports i,
			json_populate_record(i, json_build_object('id', 'imp_' || $1::int, 'campaign_id', 'cmp_' || $1::int, 'rows_seen', $2::int, 'accepted', $2::int)) x
			WHERE i.id = ` + longest,
		`INSERT INTO contacts (id, org_id, campaign_id, import_id, n, number, name, variables, metadata, external_id, language, timezone, states, zones, priority,
				state, created_at, updated_at, hours_group, due_at)
			SELECT 'con_' || lpad(($1::int * 1000000 + n)::text, 26, '0'), org_id, 'cmp_' || $1::int, 'imp_' || $1::int, n,
				'+7701' || lpad((($1::int * $2::int + n) % 10000000)::text, 7, '0'), name, variables, metadata, external_id, language, timezone, states, zones, priority,
				'pending', created_at, updated_at, hours_group, created_at
			FROM contacts WHERE import_id = ` + longest + ` AND n <= $2::int`,
	} {
		if _, err := tx.Exec(s.t.Context(), sql, n, rows); err != nil {
			return fmt.Errorf("%.60s: %w", sql, err)
		}
	}
	return nil
}

func (s *contactsSoak) inTx(do func(tx pgx.Tx) error) {
	s.t.Helper()
	if err := db.Tx(s.t.Context(), s.db.Pool, do); err != nil {
		s.t.Fatal(err)
	}
}

// inSession executes a statement without a time limit.
func (s *contactsSoak) inSession(sql string) {
	s.t.Helper()
	conn, err := s.db.Pool.Acquire(s.t.Context())
	if err == nil {
		defer conn.Release()
		if _, err = conn.Exec(s.t.Context(), "SET statement_timeout = 0"); err == nil {
			_, err = conn.Exec(s.t.Context(), sql)
		}
		_, _ = conn.Exec(s.t.Context(), "RESET statement_timeout") // the connection is used again
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// measureRepair counts the contacts of all campaigns, as each node does when it starts.
func (s *contactsSoak) measureRepair() {
	f := &campaignstore.TallyFolder{Pool: s.db.Pool}
	for _, what := range []string{"write the counters of all campaigns", "check the counters of all campaigns"} {
		began := time.Now()
		repaired, err := f.Repair(s.t.Context())
		s.t.Logf("%s: %v, %d repaired, %v", what, time.Since(began).Round(time.Millisecond), len(repaired), err)
		if err != nil {
			s.t.Error(err)
		}
	}
}

// run lets only the campaigns run that a condition selects.
func (s *contactsSoak) run(where string) {
	s.exec("UPDATE campaigns SET status = 'paused' WHERE status = 'running'")
	s.exec("UPDATE campaigns SET status = 'running', starts_at = NULL, launched_at = now() WHERE " + where)
}

const (
	oneCampaign = "id = 'cmp_0'"                              // with fewRows contacts
	runMany     = `id ~ '^cmp_[0-9]{1,2}$' AND id <> 'cmp_0'` // manyCampaigns
)

// measurePlans compares the plans of one short campaign and of all long ones.
func (s *contactsSoak) measurePlans() {
	var took [2]time.Duration
	for n, where := range []string{oneCampaign, runMany} {
		s.run(where)
		p := &pgqueue.Planner{
			Pool: s.db.Pool, Store: &campaignstore.Store{Pool: s.db.Pool}, Markets: &marketstore.Store{}, Owner: "soak", Log: slog.New(slog.DiscardHandler),
		}
		step := func() {
			if mine, err := p.Step(s.t.Context()); err != nil || !mine {
				s.t.Fatal(mine, err)
			}
		}
		began := time.Now()
		step()
		first := time.Since(began)
		took[n] = median(21, step)
		s.t.Logf("%d campaigns: the first plan takes %v, each further one %v", [2]int{1, manyCampaigns}[n], first.Round(10*time.Microsecond), took[n].Round(10*time.Microsecond))
		s.exec("DELETE FROM duties WHERE name = 'plans'")
	}
	s.atMost("a plan, time per campaign", took[1].Seconds()/manyCampaigns, took[0].Seconds(), mostPerRow)
}

// measureIdle compares what an idle server reads for one short campaign and for all long ones whose contacts wait.
func (s *contactsSoak) measureIdle() {
	const reads = `SELECT (SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'contacts')::float8 +
		(SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'contacts')::float8`
	const transactions = "SELECT (xact_commit + xact_rollback)::float8 FROM pg_stat_database WHERE datname = current_database()"
	s.exec("UPDATE campaigns SET working_hours = '[]'")
	s.exec(`UPDATE subgroups SET concurrent_calls = 0`) // no contact can be called
	var read, made [2]float64
	for n, where := range []string{oneCampaign, runMany} {
		s.run(where)
		s.start()
		const settle, span = 20 * time.Second, 20 * time.Second
		<-time.After(settle) // the server checks the counters first
		r, x := dbtest.Value[float64](s.t, s.db, reads), dbtest.Value[float64](s.t, s.db, transactions)
		<-time.After(span)
		read[n] = (dbtest.Value[float64](s.t, s.db, reads) - r) / span.Seconds()
		made[n] = (dbtest.Value[float64](s.t, s.db, transactions) - x) / span.Seconds()
		s.t.Logf("%d running campaigns: the server makes %.0f transactions/s and reads %.0f contacts/s; memory %d MiB",
			[2]int{1, manyCampaigns}[n], made[n], read[n], residentMemory(s.t, s.server.Process.Pid)>>20)
		s.stop()
	}
	s.exec(`UPDATE subgroups SET concurrent_calls = 1000000`)
	s.atMost("contacts read per campaign", read[1]/manyCampaigns, read[0], 2)
}

// measureTakes compares how long a node takes to begin a call, of one short campaign and of all long ones.
func (s *contactsSoak) measureTakes() {
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	var took [2]time.Duration
	for n, where := range []string{oneCampaign, runMany} {
		s.run(where)
		s.exec("DELETE FROM duties WHERE name = 'plans'")
		wake := make(chan struct{}, 1)
		q := &pgqueue.Queue{
			Pool: s.db.DialPool, Store: &campaignstore.Store{Pool: s.db.Pool}, Claims: &controlstore.Store{Pool: s.db.Pool, Dial: s.db.DialPool},
			Markets: &marketstore.Store{}, Node: control.NodeID{Owner: "node", Home: "home"}, Lease: 15 * time.Second, Wake: wake,
		}
		d := &dialer.Dialer{Store: q}
		var takes, reads []time.Duration
		for range 200 {
			s.exec("UPDATE campaign_paces SET next_at = '-infinity', last_at = '-infinity'")
			wake <- struct{}{}
			began := time.Now()
			if _, _, err := q.Running(ctx); err != nil {
				s.t.Fatal(err)
			}
			reads = append(reads, time.Since(began))
			began = time.Now()
			claim, _, err := d.Take(ctx)
			if err != nil || claim == nil {
				s.t.Fatal(claim, err)
			}
			takes = append(takes, time.Since(began))
			s.exec("UPDATE attempts SET state = 'ended' WHERE state <> 'ended'")
		}
		slices.Sort(takes)
		slices.Sort(reads)
		took[n] = takes[len(takes)/2]
		s.t.Logf("%d campaigns: a call begins in %v (p99 %v); the queue is read in %v", [2]int{1, manyCampaigns}[n],
			took[n].Round(10*time.Microsecond), takes[len(takes)*99/100].Round(10*time.Microsecond), reads[len(reads)/2].Round(10*time.Microsecond))
	}
	s.atMost("begin of a call", took[1].Seconds(), took[0].Seconds(), mostPerRow)
}
