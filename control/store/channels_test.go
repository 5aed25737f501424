package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/store"
)

// wrongCountsSQL counts the keys whose count differs from the live attempts, in one snapshot.
const wrongCountsSQL = `SELECT count(*) FROM (
	SELECT FROM (
		SELECT trunk_id, subgroup_id, org_id, 1 AS n FROM attempts WHERE trunk_id <> '' AND state IN ` + store.ActiveStates + `
		UNION ALL SELECT trunk_id, subgroup_id, org_id, -n FROM channel_counts) x
	GROUP BY trunk_id, subgroup_id, org_id HAVING sum(n) <> 0) wrong`

func (b *fixture) counter() *store.ChannelCounter {
	return &store.ChannelCounter{Pool: b.db.Pool, Log: slog.New(slog.DiscardHandler)}
}

// check checks the counts although they were checked a moment ago.
func (b *fixture) check(c *store.ChannelCounter) int {
	b.t.Helper()
	b.exec("DELETE FROM duties WHERE name = 'channels'")
	n, err := c.Check(context.WithoutCancel(b.t.Context()), time.Minute)
	if err != nil {
		b.t.Error(err)
	}
	return n
}

// A churn is a node that claims calls and lets them progress, end, return to the queue, expire or be deleted, in
// random order.
type churn struct {
	*fixture

	random *rand.Rand
	node   string
	held   []*control.Claim
}

// take removes a random claim from those that are held.
func (c *churn) take() *control.Claim {
	i := c.random.IntN(len(c.held))
	one := c.held[i]
	c.held = append(c.held[:i], c.held[i+1:]...)
	return one
}

// step does one random thing.
func (c *churn) step(ctx context.Context) (err error) {
	what := c.random.IntN(10)
	switch {
	case len(c.held) == 0 || what < 2:
		claims, fault := c.store.Claim(ctx, control.NodeID{Owner: c.node, Home: c.node}, time.Minute, 1+c.random.IntN(8))
		c.held = append(c.held, claims...)
		return fault
	case what < 4:
		l := c.held[c.random.IntN(len(c.held))].Lease
		if err = c.store.Intent(ctx, l); err == nil {
			err = c.store.Mark(ctx, l, control.Rang, time.Now())
		}
	case what < 6:
		err = c.store.Finish(ctx, c.take().Lease, control.CallResult{Status: control.Failed, Reason: "busy", EndedAt: time.Now(), Recording: control.RecordingNone})
	case what < 7:
		err = c.store.Finish(ctx, c.take().Lease, control.CallResult{
			Status: control.Ended, Reason: "callee_hangup", AnsweredAt: time.Now(), EndedAt: time.Now(), Recording: control.RecordingNone,
		})
	case what < 8:
		err = c.store.Release(ctx, c.take().Lease)
	case what < 9:
		if _, err = c.db.Pool.Exec(ctx, "UPDATE attempts SET lease_until = now() - interval '1 s' WHERE id = $1", c.take().Lease.AttemptID); err == nil {
			_, err = c.store.Settle(ctx, nil)
		}
	default:
		one := c.take()
		if c.random.IntN(2) == 0 {
			_, err = c.db.Pool.Exec(ctx, "DELETE FROM calls WHERE id = $1", one.Call.ID)
		} else {
			_, err = c.store.End(ctx, c.org, one.Call.ID)
		}
	}
	if errors.Is(err, control.ErrFenced) {
		err = nil
	}
	return err
}

// TestChannelCounts lets nodes change attempts in random order, some in transactions that roll back. In every snapshot
// the counts equal the live attempts, the limits hold, and no transaction waits for a counter long enough to deadlock.
func TestChannelCounts(t *testing.T) {
	const limit, nodes = 30, 6
	names := []string{"a", "b", "c"}
	b := newFixture(t, 12, 1<<20, names...)
	b.store.Dial = b.db.DialPool
	for _, name := range names {
		b.addCalls(b.order(name, 1)[0], name, 400, false)
	}
	b.exec("UPDATE trunks SET concurrent_calls = $1", limit)
	counter := b.counter()
	over, stop := make(chan struct{}), time.Now().Add(4*time.Second)
	var workers sync.WaitGroup
	for n := range nodes {
		workers.Go(func() {
			c := &churn{fixture: b, random: rand.New(rand.NewPCG(uint64(n), 1)), node: fmt.Sprint("node", n)}
			for time.Now().Before(stop) {
				if err := c.step(context.WithoutCancel(t.Context())); err != nil {
					t.Errorf("node %d: %v", n, err)
					return
				}
			}
		})
	}
	go func() { workers.Wait(); close(over) }()
	for snapshots := 0; ; snapshots++ {
		if wrong := dbtest.Value[int](t, b.db, wrongCountsSQL); wrong > 0 {
			t.Errorf("%d counts differ from the live attempts", wrong)
		}
		if live := dbtest.Value[int](t, b.db, "SELECT count(*) FROM attempts WHERE state IN "+store.ActiveStates); live > limit {
			t.Errorf("%d live calls, limit %d", live, limit)
		}
		if snapshots%10 == 0 {
			if n := b.check(counter); n > 0 {
				t.Errorf("%d counts repaired", n)
			}
		}
		select {
		case <-over:
			t.Logf("%d snapshots; states: %s", snapshots, dbtest.Value[string](t, b.db, "SELECT string_agg(state || ' ' || n, ', ') FROM (SELECT state, count(*) AS n FROM attempts GROUP BY 1) x"))
			if rows := dbtest.Value[int](t, b.db, "SELECT count(*) FROM channel_counts"); rows > len(names)*(nodes+2) {
				t.Errorf("%d rows of counts", rows)
			}
			b.check(counter)
			if rows := dbtest.Value[int](t, b.db, "SELECT count(*) FROM channel_counts"); rows > len(names) {
				t.Errorf("%d rows after they were merged", rows)
			}
			if wrong := dbtest.Value[int](t, b.db, wrongCountsSQL); wrong > 0 {
				t.Errorf("%d counts differ from the live attempts after they were merged", wrong)
			}
			return
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// TestChannelCountRepair checks that wrong counts are corrected, that a check within the interval of another does
// nothing, and that a lock on the counters delays no claim.
func TestChannelCountRepair(t *testing.T) {
	b := newFixture(t, 2, 1<<20, "sales")
	b.order("sales", 4)
	if b.claim("n") == nil {
		t.Fatal("nothing to claim")
	}
	b.exec("UPDATE channel_counts SET n = n + 1")
	b.exec("INSERT INTO channel_counts (trunk_id, subgroup_id, org_id, n) VALUES ('trk_gone', 'rte_gone', $1, 3)", b.org)
	if b.claim("n") != nil {
		t.Fatal("the wrong count is not in use")
	}
	c := b.counter()
	if n := b.check(c); n != 2 || c.Repaired() != 2 {
		t.Errorf("repaired %d, want 2", n)
	}
	if n := dbtest.Value[int](t, b.db, "SELECT count(*) FROM channel_counts"); n != 1 {
		t.Errorf("%d rows of counts, want 1", n)
	}
	b.exec("UPDATE channel_counts SET n = n + 1")
	if n, err := c.Check(t.Context(), time.Minute); n != 0 || err != nil {
		t.Errorf("a second check in the same minute repaired %d: %v", n, err)
	}
	if n := b.check(c); n != 1 {
		t.Errorf("repaired %d, want 1", n)
	}
	tx, err := b.db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context())) //nolint:errcheck // cleanup
	if _, err = tx.Exec(t.Context(), "UPDATE channel_counts SET n = n"); err != nil {
		t.Fatal(err)
	}
	if b.claim("n") == nil {
		t.Error("no call is claimed while another transaction holds the counter")
	}
	if b.claim("n") != nil {
		t.Error("the limit does not hold while another transaction holds the counter")
	}
}

// TestChannelCountMigration checks that the migration counts the calls that are live when it runs.
func TestChannelCountMigration(t *testing.T) {
	b := newFixture(t, 3, 1<<20, "a", "b")
	text, err := os.ReadFile("../db/migrations/00264_channel_counts.sql")
	if err != nil {
		t.Fatal(err)
	}
	up, down, _ := strings.Cut(string(text), "-- +goose Down")
	b.exec(down)
	b.order("a", 5)
	b.order("b", 4)
	b.exec("UPDATE attempts SET state = 'answered' WHERE id IN (SELECT min(id) FROM attempts GROUP BY subgroup_id)")
	b.exec(up)
	if wrong := dbtest.Value[int](t, b.db, wrongCountsSQL); wrong > 0 {
		t.Errorf("%d counts differ from the live attempts", wrong)
	}
	claimed := 0
	for b.claim("n") != nil {
		claimed++
	}
	if claimed != 2+2 { // the limit of each subgroup is 3, and one call of each is live
		t.Errorf("claimed %d more calls, want 4", claimed)
	}
}
