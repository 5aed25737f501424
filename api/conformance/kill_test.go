package conformance_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/db/dbtest"
)

// usualKills is the default number of kills; PARLEYTEST_KILLS overrides it.
const usualKills = 5

// TestKillDuringRequest checks that kill -9 during a creation or a batch commits all of it or nothing, and that a
// repetition with its key is answered as documented.
func TestKillDuringRequest(t *testing.T) {
	s := shared.get(t)
	times := usualKills
	if n, err := strconv.Atoi(os.Getenv("PARLEYTEST_KILLS")); err == nil {
		times = n
	}
	k := &crashTest{service: &service{bin: s.bin, carrier: s.carrier}, rows: 400}
	var err error
	if k.database, err = dbtest.Shared(t.Context()); err != nil {
		t.Fatal(err)
	}
	if k.db, err = dbtest.Open(t.Context(), k.database, 2); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.db.Close)
	k.start(t)
	k.o = k.organization(t).useUSRules(t)
	k.target = k.o.campaign(t, oneRow, confirmed)
	began := time.Now()
	k.o.campaign(t, `"planned_calls":`+k.list(), confirmed)
	k.took = time.Since(began) * 3 / 2
	for i := range times {
		k.kill(t, fmt.Sprint("create-", i), "/v1/campaigns", campaignBody(`"planned_calls":`+k.list(), confirmed))
		k.kill(t, fmt.Sprint("batch-", i), fmt.Sprintf("/v1/campaigns/%v/calls", k.target["campaign_id"]), `{"calls":`+k.list()+","+confirmed+"}")
	}
	t.Logf("%d kills: %d requests wrote nothing, %d everything; repeats: %d new, %d replayed, %d in flight", 2*times, k.nothing, k.everything, k.fresh, k.replays, k.flights)
	if times > usualKills && (k.nothing == 0 || k.everything == 0) {
		t.Error("all kills were too early or all too late")
	}
	k.stop()
}

type crashTest struct {
	*service

	o      *organization
	target map[string]any // campaign that gets the batches
	rows   int
	took   time.Duration // approximate duration of a request

	nothing, everything, fresh, replays, flights int
}

func (k *crashTest) list() string {
	var all []string
	for i := range k.rows {
		all = append(all, fmt.Sprintf(`{"phone":"212555%04d","name":"n","variables":{"a":"b"}}`, i))
	}
	return "[" + strings.Join(all, ",") + "]"
}

func (k *crashTest) start(t *testing.T) {
	t.Helper()
	var err error
	if k.process, err = serve(t.Context(), k.bin, k.database); err != nil {
		t.Fatal(err)
	}
	if k.o != nil {
		k.o.url = k.url
	}
}

func tables() []string {
	return []string{"campaigns", "imports", "import_rows", "contacts", "attestations", "dnc_audit", "campaign_log"}
}

func (k *crashTest) counts(t *testing.T) (all []int) {
	t.Helper()
	for _, name := range tables() {
		var n int
		if err := k.db.Pool.QueryRow(t.Context(), "SELECT count(*) FROM "+name).Scan(&n); err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

// written reports whether all of a request was written, and whether nothing was.
func (k *crashTest) written(before, after []int, campaign bool) (all, none bool) {
	want := []int{0, 1, k.rows, k.rows, 1, 1, 1}
	if campaign {
		want[0], want[6] = 1, 2 // the campaign was created and launched
	}
	all, none = true, true
	for i := range before {
		all = all && after[i]-before[i] == want[i]
		none = none && after[i] == before[i]
	}
	return all, none
}

// kill sends a request, kills the program during it and checks the written rows.
func (k *crashTest) kill(t *testing.T, key, path, body string) {
	t.Helper()
	before := k.counts(t)
	creates := path == "/v1/campaigns"
	sent := make(chan response, 1)
	go func() {
		a, _ := k.o.request(t.Context(), "POST", path, body, "Idempotency-Key", key) // the kill may abort the request
		sent <- a
	}()
	<-time.After(time.Duration(rand.Int64N(int64(k.took))))
	if err := k.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-k.over
	answered := <-sent
	_ = os.RemoveAll(k.dir)
	k.waitDisconnected(t)
	after := k.counts(t)
	all, none := k.written(before, after, creates)
	switch {
	case all:
		k.everything++
	case none:
		k.nothing++
	default:
		t.Fatalf("%s: row counts of %v: %v before, %v after", key, tables(), before, after)
	}
	if answered.status == 201 && !all {
		t.Fatalf("%s: the response was 201 but the rows are missing", key)
	}
	k.start(t)
	again := k.o.do(t, "POST", path, body, "Idempotency-Key", key)
	if again.status == 409 {
		// The key was in use at the kill and expires after a minute.
		wantError(t, again, 409, "idempotency_key_in_flight")
		k.flights++
		k.exec(t, "UPDATE idempotency_keys SET created_at = created_at - interval '1 minute' WHERE key = $1", key)
		again = k.o.do(t, "POST", path, body, "Idempotency-Key", key)
	}
	again.want(t, 201)
	if replayed := again.header.Get("Idempotent-Replayed") == "true"; replayed != all {
		t.Fatalf("%s: written: %v; replayed: %v", key, all, replayed)
	} else if replayed {
		k.replays++
	} else {
		k.fresh++
	}
	if answered.status == 201 && string(answered.body) != string(again.body) {
		t.Fatalf("%s: first response %s, repeat %s", key, answered.body, again.body)
	}
	if all, _ = k.written(before, k.counts(t), creates); !all {
		t.Fatalf("%s: row counts of %v: %v before, %v at the end", key, tables(), before, k.counts(t))
	}
}

// waitDisconnected waits until the database has closed the program's connections.
func (k *crashTest) waitDisconnected(t *testing.T) {
	t.Helper()
	waitUntil(t, "the connections end", func() bool {
		var n int
		err := k.db.Pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'parley' AND state <> 'idle'").Scan(&n)
		return err == nil && n == 0
	})
}
