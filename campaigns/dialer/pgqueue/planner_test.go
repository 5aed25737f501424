package pgqueue

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/dialer"
	"github.com/parley-voice/parley/campaigns/marketstore"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	controlstore "github.com/parley-voice/parley/control/store"
)

func (s *env) planner(owner string) *Planner {
	return &Planner{
		Pool: s.db.Pool, Store: &store.Store{Pool: s.db.Pool}, Markets: &marketstore.Store{}, Owner: owner, Log: slog.New(slog.DiscardHandler),
	}
}

// plannedQueue returns the queue of a node that follows the plan.
func (s *env) plannedQueue(owner string) *Queue {
	q := s.queue(owner)
	q.Planned = true
	return q
}

// plan makes a plan and wants the planner to have the duty or not.
func (s *env) plan(p *Planner, want bool) {
	s.Helper()
	if mine, err := p.Step(s.Context()); err != nil || mine != want {
		s.Fatalf("planned: %t, %v; want %t", mine, err, want)
	}
}

// running returns the IDs of the campaigns that a queue reads.
func (s *env) running(q *Queue) (ids string) {
	s.Helper()
	q.readAt = time.Time{}
	all, _, err := q.Running(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	for _, c := range all {
		ids += c.ID
	}
	return ids
}

// TestIdlePlan checks that a plan is one statement while no campaign runs.
func TestIdlePlan(t *testing.T) {
	s := newEnv(t)
	s.exec("UPDATE campaigns SET status = 'paused'")
	p := s.planner("a")
	pool, statements := dbtest.Traced(t, s.db)
	p.Pool = pool
	s.plan(p, true)
	statements() // the first plan is written
	s.plan(p, true)
	if all := statements(); len(all) != 1 {
		t.Errorf("statements %q", all)
	}
}

// TestPlan checks which campaigns a node reads by the plan.
func TestPlan(t *testing.T) {
	for name, c := range map[string]struct{ sql, want string }{
		"a contact is due":           {"SELECT 1", "cmp_1"},
		"a contact is due soon":      {"UPDATE contacts SET due_at = now() + interval '1.5 seconds'", "cmp_1"},
		"no contact is due":          {"UPDATE contacts SET due_at = now() + interval '1 minute'", ""},
		"no contact waits":           {"UPDATE contacts SET state = 'exhausted'", ""},
		"paused":                     {"UPDATE campaigns SET status = 'paused'", ""},
		"over":                       {"UPDATE campaigns SET ends_at = now()", ""},
		"closed":                     {`UPDATE organizations SET settings = settings || '{"calling_window": {"days": [], "start": "09:00", "end": "10:00"}}'`, ""},
		"invalid organization":       {"UPDATE organizations SET settings = '[]'", ""},
		"the next call is not due":   {"UPDATE campaign_paces SET next_at = now() + interval '20 seconds'", ""},
		"the clock was set back":     {"UPDATE campaign_paces SET next_at = now() + interval '1 hour'", "cmp_1"},
		"paused after the plan":      {"UPDATE campaigns SET status = 'paused'; INSERT INTO campaign_plans VALUES ('cmp_1', now())", ""},
		"a lower priority is due":    {"UPDATE contacts SET priority = 5, due_at = now() + interval '1 hour' WHERE n = 1", "cmp_1"},
		"another group is due first": {"UPDATE contacts SET due_at = now() + interval '1 hour', hours_group = 'A;Asia/Almaty;' WHERE n = 1", "cmp_1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			s.addContacts(2, 1)
			s.exec(c.sql)
			p := s.planner("planner")
			if mine, err := p.Step(t.Context()); !mine || (err != nil) != (name == "invalid organization") {
				t.Fatalf("planned: %t, %v", mine, err)
			}
			if got := s.running(s.plannedQueue("node")); got != c.want {
				t.Errorf("the node reads %q, want %q", got, c.want)
			}
		})
	}
}

// TestOnePlans checks that one node plans at a time, that an unchanged plan is not written again, and that a plan that
// was changed by others is restored.
func TestOnePlans(t *testing.T) {
	s := newEnv(t)
	s.addContacts(1, 1)
	a, b := s.planner("a"), s.planner("b")
	s.plan(a, true)
	s.plan(b, false)
	written := a.writtenAt
	s.plan(a, true)
	if a.writtenAt != written {
		t.Error("an unchanged plan is written again")
	}
	s.exec("DELETE FROM campaign_plans")
	a.writtenAt = a.writtenAt.Add(-rewriteEvery)
	s.plan(a, true)
	s.wantQuery("cmp_1", "SELECT campaign_id FROM campaign_plans")
	a.release(t.Context())
	s.plan(b, true)
	s.plan(a, false)
	s.exec("UPDATE campaigns SET status = 'paused'")
	s.plan(b, true)
	s.wantQuery("0", "SELECT count(*)::text FROM campaign_plans")
}

// TestNobodyPlans checks that nodes read all running campaigns if no node plans for some time.
func TestNobodyPlans(t *testing.T) {
	s := newEnv(t)
	s.addContacts(1, 1)
	q := s.plannedQueue("node")
	if got := s.running(q); got != "cmp_1" {
		t.Errorf("without a planner the node reads %q", got)
	}
	s.exec("INSERT INTO duties (name, owner, until) VALUES ('plans', 'killed', now() - interval '1 second')")
	if got := s.running(q); got != "" {
		t.Errorf("a second after the duty ended, the node reads %q", got)
	}
	s.exec("UPDATE duties SET until = now() - $1::interval", unplannedAfter)
	if got := s.running(q); got != "cmp_1" {
		t.Errorf("after %v without a planner the node reads %q", unplannedAfter, got)
	}
}

// TestPlannerRechecksCaps checks that contacts that a cap held are due again after a change of the campaign.
func TestPlannerRechecksCaps(t *testing.T) {
	s := newEnv(t)
	s.addContacts(1, 1)
	p := s.planner("a")
	s.plan(p, true)
	s.exec("UPDATE contacts SET governing_cap = 'market_daily', due_at = now() + interval '1 hour', next_attempt_at = now() + interval '1 hour'")
	s.plan(p, true)
	s.wantQuery("true", "SELECT (due_at > now())::text FROM contacts")
	s.exec("UPDATE campaigns SET updated_at = now()")
	s.plan(p, true)
	s.wantQuery("false", "SELECT (due_at > now())::text FROM contacts")
}

// A plannedNode is a node that plans and claims, with connections of its own.
type plannedNode struct {
	pool    *pgxpool.Pool
	planner *Planner
	queue   *Queue
	wake    <-chan struct{} // of the dial queue
	cancel  context.CancelFunc
	tasks   sync.WaitGroup
}

// startNode starts a node. Without notifications it only polls.
func (s *env) startNode(owner string, planned, notifications bool) *plannedNode {
	s.Helper()
	config := s.db.Pool.Config()
	config.MaxConns = 6
	pool, err := pgxpool.NewWithConfig(s.Context(), config)
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	n := &plannedNode{pool: pool, cancel: cancel, planner: s.planner(owner), queue: s.plannedQueue(owner)}
	n.queue.Planned = planned
	n.planner.Pool, n.planner.Store, n.queue.Pool, n.queue.Store = pool, &store.Store{Pool: pool}, pool, &store.Store{Pool: pool}
	listener := &db.Listener{Pool: pool}
	if notifications {
		n.planner.Wake, n.queue.Wake = listener.Subscribe(store.ChannelCampaigns), listener.Subscribe(ChannelPlans)
		n.wake = listener.Subscribe(controlstore.ChannelQueue)
		n.tasks.Go(func() { listener.Run(ctx) })
	}
	if planned {
		n.tasks.Go(func() { n.planner.Run(ctx) })
	}
	s.Cleanup(n.stop)
	return n
}

func (n *plannedNode) stop() {
	n.cancel()
	n.tasks.Wait()
	n.pool.Close()
}

// kill stops a node as if it were killed: it does not release the duty.
func (n *plannedNode) kill() {
	n.pool.Close() // the release fails
	n.stop()
}

// awaitPlan waits until a node has planned the campaign.
func (s *env) awaitPlan(owner string) {
	s.Helper()
	for s.query("SELECT d.owner FROM duties d, campaign_plans WHERE name = 'plans'") != owner {
		<-time.After(5 * time.Millisecond)
	}
}

// await waits until a campaign is ready by the plan, or is not, and returns how long that took.
func (s *env) await(q *Queue, want string) time.Duration {
	s.Helper()
	began := time.Now()
	for s.running(q) != want {
		if time.Since(began) > 10*time.Second {
			s.Fatalf("the node still does not read %q", want)
		}
		<-time.After(5 * time.Millisecond)
	}
	return time.Since(began)
}

// TestPlannerTakeover kills the planning node. Another must plan within 5 s.
func TestPlannerTakeover(t *testing.T) {
	s := newEnv(t)
	s.addContacts(1, 1)
	s.exec("UPDATE contacts SET due_at = now() + interval '1 hour'")
	first := s.startNode("first", true, true)
	s.awaitPlan("first")
	s.startNode("second", true, true)
	first.kill()
	s.exec("UPDATE contacts SET due_at = now()")
	took := s.await(s.plannedQueue("reader"), "cmp_1")
	s.wantQuery("second", "SELECT owner FROM duties WHERE name = 'plans'")
	if took > 5*time.Second {
		t.Errorf("the takeover took %v", took)
	}
	t.Logf("the takeover took %v", took)
}

// TestPlanFollowsChanges checks how soon a node reads a campaign after it was paused, resumed, got contacts, or was
// canceled: at once if the planner is notified, and within the interval between plans if the notification is lost.
func TestPlanFollowsChanges(t *testing.T) {
	for name, notified := range map[string]bool{"notified": true, "notification lost": false} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			s.addContacts(1, 1)
			s.startNode("planner", true, notified)
			s.awaitPlan("planner")
			q := s.plannedQueue("reader")
			all := &store.Store{Pool: s.db.Pool}
			c, err := all.Get(t.Context(), s.db.Pool, s.org, "cmp_1", false)
			if err != nil {
				t.Fatal(err)
			}
			change := func(status campaigns.Status) func() {
				return func() {
					c.Status, c.UpdatedAt = status, time.Now()
					if err := all.SaveStatus(t.Context(), s.db.Pool, c); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, x := range []struct {
				what   string
				change func()
				want   string
			}{
				{"pause", change(campaigns.Paused), ""},
				{"resume", change(campaigns.Running), "cmp_1"},
				{"end of the contacts", func() { s.exec("UPDATE contacts SET state = 'exhausted'") }, ""},
				{"new contacts", func() { s.addContactRange(2, 3, 1) }, "cmp_1"},
				{"cancel", change(campaigns.Canceled), ""},
			} {
				x.change()
				took := s.await(q, x.want)
				if most := planEvery + 2*time.Second; took > most {
					t.Errorf("%s acts after %v, want at most %v", x.what, took, most)
				}
				t.Logf("%s acts after %v", x.what, took)
			}
		})
	}
}

// TestSoakPlans logs how many transactions idle nodes make in a second with 300 running campaigns, with and without a
// planner. The contacts of the campaigns wait for a later attempt, or for a free channel.
func TestSoakPlans(t *testing.T) {
	if os.Getenv("PARLEYTEST_SOAK") == "" {
		t.Skip("make soak")
	}
	const campaigns, most = 300, 100
	for _, c := range []struct {
		planned bool
		waitFor string
		sql     string
	}{
		{false, "a later attempt", "UPDATE contacts SET due_at = now() + interval '1 hour'"},
		{true, "a later attempt", "UPDATE contacts SET due_at = now() + interval '1 hour'"},
		{false, "a free channel", "UPDATE subgroups SET concurrent_calls = 0"},
		{true, "a free channel", "UPDATE subgroups SET concurrent_calls = 0"},
	} {
		for _, nodes := range []int{1, 2, 10} {
			t.Run(fmt.Sprintf("%s, %d nodes, planner %t", c.waitFor, nodes, c.planned), func(t *testing.T) { // stops the nodes at its end
				s, planned := newEnv(t), c.planned
				s.addContacts(20, 3)
				s.exec(c.sql)
				s.exec(`INSERT INTO campaigns SELECT x.* FROM campaigns c, generate_series(2, $1::int) g, json_populate_record(c, json_build_object('id', 'cmp_' || g)) x`, campaigns)
				s.exec("INSERT INTO campaign_paces (campaign_id) SELECT id FROM campaigns WHERE id <> 'cmp_1'")
				s.exec(`INSERT INTO contacts (id, org_id, campaign_id, import_id, n, number, zones, hours_group, due_at, state, created_at, updated_at)
				SELECT k.id || '_' || g, k.org_id, 'cmp_' || g, k.import_id, g * 100 + k.n, '+7702' || lpad((g * 100 + k.n)::text, 7, '0'), k.zones, k.hours_group,
					k.due_at, k.state, k.created_at, k.updated_at
				FROM contacts k, generate_series(2, $1::int) g WHERE k.campaign_id = 'cmp_1'`, campaigns)
				s.exec("ANALYZE campaigns, contacts")
				for n := range nodes {
					x := s.startNode(fmt.Sprint("node", n), planned, planned)
					queue := &dialer.Queue{Queue: &controlstore.Store{Pool: x.pool}, Dialer: &dialer.Dialer{Store: x.queue}}
					node := &control.Node{
						ID: x.queue.Node, Queue: queue, Runner: &control.Runner{Live: &control.Live{}}, Wake: x.wake, Log: slog.New(slog.DiscardHandler),
					}
					node.Start(t.Context())
					t.Cleanup(func() { node.Stop(context.WithoutCancel(t.Context())) })
				}
				transactions := func() int {
					return dbtest.Value[int](t, s.db, "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()")
				}
				const settle, span = 5 * time.Second, 10 * time.Second
				<-time.After(settle)
				before, began := transactions(), time.Now()
				<-time.After(span)
				rate := float64(transactions()-before) / time.Since(began).Seconds()
				t.Logf("%d campaigns wait for %s, %2d nodes, planner %t: %.0f tx/s", campaigns, c.waitFor, nodes, planned, rate)
				if planned && c.waitFor == "a later attempt" && rate > most {
					t.Errorf("%.0f tx/s, want at most %d", rate, most)
				}
			})
		}
	}
}
