package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/sip/siptest"
)

// dialog is what the callees say, and what the agent answers.
func dialog() (lines []string, answer func(said string) string) {
	turns := [][2]string{
		{"hello who is this please", "Hello, this is Parley from the book shop. Is this a good time to talk about your order?"},
		{"yes i have a minute what is it about", "The two books that you ordered last week have arrived. Would you like to pick them up, or shall we send them?"},
		{"when do you open on saturday", "On Saturday we open at nine in the morning and we close at six in the evening."},
		{"and is there parking near the shop", "Yes, there is a garage behind the station, about two minutes from our door. The first hour is free."},
		{"do you also have the odyssey in the new translation", "We have two copies of the new translation here. Shall I keep one of them for you until Saturday?"},
		{"yes please keep one for me", "Good, I have put one copy aside with your order. It costs eighteen dollars and fifty cents."},
		{"can i pay with my card", "Of course, you can pay with any card, or with cash. We also take gift vouchers."},
		{"and how long do you keep the order", "We keep it for two weeks. After that we send you a short message before it goes back."},
		{"fine then i will come on saturday at ten", "Very good, I have noted Saturday at ten. Is there anything else that I can do for you?"},
		{"no that is all thank you goodbye", "Thank you for your time. Goodbye!"},
	}
	for _, t := range turns {
		lines = append(lines, t[0])
	}
	return lines, func(said string) string {
		for _, t := range turns {
			if strings.Contains(said, t[0]) {
				return t[1]
			}
		}
		return "I did not understand that. Could you say it again, please?"
	}
}

// copies is how many copies of each call are measured, so that the pages of tables and indexes are full.
const copies = 200

// TestSoakBytes measures the bytes of rows of a call of ten turns with recording, analysis and two webhooks, by table. It
// places real calls and copies their rows.
func TestSoakBytes(t *testing.T) {
	soakOnly(t)
	const calls = 12
	lines, answer := dialog()
	script := demo.Script()
	script.Reply = func(m []fakeprovider.Message) string { return answer(m[len(m)-1].Content) }
	fakes, err := fakeprovider.Start(t.Context(), "127.0.0.1:0", script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fakes.Close() })
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	t.Cleanup(receiver.Close)
	c := carrier(t, &siptest.Carrier{Answer: func(siptest.Invite) siptest.Script {
		talk := siptest.Person{Greeting: lines[0], Lines: lines[1:]}.Talk
		return siptest.Script{Ring: 100 * time.Millisecond, After: 500 * time.Millisecond, Status: http.StatusOK, Talk: talk}
	}})
	url := dbtest.URL(t)
	agePacks(t, url)
	srv, api := startServer(t, c.Addr().String(), func(c *config.Config) {
		c.DatabaseURL, c.Endpoints.Fake = media.Secret(url), fakes.Addr()
	})
	eventually(t, "the node may write packs", srv.failover.MayPack)
	srv.exec(t, "UPDATE webhook_endpoints SET url = $1", receiver.URL)
	srv.exec(t, "UPDATE subgroups SET concurrent_calls = 500, calls_per_minute = 6000")
	for n := range calls {
		if status, text := orderCall(t, srv.publicURL, api.Key, fmt.Sprintf("+1202555%04d", n), fmt.Sprintf("order-%d", n)); status != http.StatusAccepted {
			t.Fatal(status, text)
		}
	}
	var turns, delivered int
	eventuallyWithin(t, 5*time.Minute, "all webhooks are delivered", func() bool {
		return srv.db.Pool.QueryRow(t.Context(), "SELECT count(*) FROM webhook_deliveries WHERE state = 'delivered'").Scan(&delivered) == nil && delivered == 2*calls
	})
	ids, err := db.Collect(t.Context(), srv.db.Pool, "calls", pgx.RowTo[string], "SELECT id FROM calls")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		w, fault := srv.store.Transcript(t.Context(), id)
		if fault != nil {
			t.Fatal(fault)
		}
		turns += len(w.Turns)
	}
	if turns < 8*calls {
		t.Fatalf("%d turns in %d calls", turns, calls)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	srv.stop(ctx)
	cancel()
	d, err := db.Open(t.Context(), db.Config{URL: string(srv.config.DatabaseURL), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	for table := range strings.FieldsSeq(rowsOfCalls) {
		copyRows(t, d, table)
	}
	t.Logf("%d turns in %d calls, %d copies of each", turns, calls, copies)
	if sum := report(t, d, calls*(copies+1)); sum > 15<<10 {
		t.Errorf("%.0f bytes a call, want at most 15 KiB", sum)
	}
}

// agePacks makes the migrations of a database two days old, because packs are written only when the migration that
// added them is a day old.
func agePacks(t testing.TB, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err == nil {
		_, err = conn.Exec(t.Context(), "UPDATE goose_db_version SET tstamp = tstamp - interval '2 days'")
		_ = conn.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (srv *server) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := srv.db.Pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// rowsOfCalls are the tables that have rows for each call.
const rowsOfCalls = "calls attempts events call_lines call_turns call_packs call_signalling webhook_deliveries idempotency_keys cost_tallies"

// copyRows adds copies of all rows of a table, with other ids of calls, attempts and deliveries.
func copyRows(t *testing.T, d *db.DB, table string) {
	t.Helper()
	columns := dbtest.Value[string](t, d, `SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
		WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' AND attidentity = ''`, table)
	err := db.Tx(t.Context(), d.Pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "SET LOCAL session_replication_role = replica; SET LOCAL statement_timeout = 0")
		if err == nil {
			_, err = tx.Exec(t.Context(), fmt.Sprintf(`
				INSERT INTO %[1]s (%[2]s) SELECT %[2]s FROM (SELECT (json_populate_record(NULL::%[1]s, regexp_replace(
					CASE WHEN r ? 'key' THEN regexp_replace(row_to_json(x)::text, '"key":"', '"key":"' || g.i || ' ') ELSE row_to_json(x)::text END,
					'\m((call|att|evt)_[0-9A-Za-z]{20})[0-9A-Za-z]{6}', '\1' || lpad(to_hex(g.i), 6, '0'), 'g')::json)).*
				FROM %[1]s x, to_jsonb(x) r, generate_series(1, %[3]d) g(i)) y`, table, columns, copies))
		}
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", table, err)
	}
}

// report logs the bytes of rows by table, and returns their sum.
func report(t *testing.T, d *db.DB, calls int) (sum float64) {
	t.Helper()
	var all strings.Builder
	fmt.Fprintf(&all, "%-20s %8s %8s %8s %8s\n", "bytes a call", "heap", "toast", "indexes", "sum")
	var sums [4]float64
	for _, table := range append(strings.Fields(rowsOfCalls), extraTables(t, d)...) {
		dbtest.Exec(t, d, "VACUUM FULL "+table)
		var size [3]float64
		err := d.Pool.QueryRow(t.Context(), `SELECT pg_relation_size(oid)::float8, coalesce(pg_total_relation_size(nullif(reltoastrelid, 0)), 0)::float8,
			pg_indexes_size(oid)::float8 FROM pg_class WHERE oid = $1::regclass`, table).Scan(&size[0], &size[1], &size[2])
		if err != nil {
			t.Fatal(err)
		}
		row := [4]float64{}
		for i := range size {
			row[i] = size[i] / float64(calls)
			row[3] += row[i]
		}
		for i := range row {
			sums[i] += row[i]
		}
		fmt.Fprintf(&all, "%-20s %8.0f %8.0f %8.0f %8.0f\n", table, row[0], row[1], row[2], row[3])
	}
	fmt.Fprintf(&all, "%-20s %8.0f %8.0f %8.0f %8.0f", "sum", sums[0], sums[1], sums[2], sums[3])
	t.Log("\n" + all.String())
	return sums[3]
}

// extraTables returns further tables with at least one row for each two calls.
func extraTables(t *testing.T, d *db.DB) (all []string) {
	t.Helper()
	known := regexp.MustCompile(`^(` + strings.ReplaceAll(rowsOfCalls, " ", "|") + `)$`)
	names, err := db.Collect(t.Context(), d.Pool, "tables", pgx.RowTo[string], "SELECT relname FROM pg_stat_user_tables WHERE n_live_tup >= 6 ORDER BY 1")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !known.MatchString(name) {
			all = append(all, name)
		}
	}
	return all
}
