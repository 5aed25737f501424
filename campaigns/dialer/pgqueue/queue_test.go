package pgqueue

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/dialer"
	"github.com/parley-voice/parley/campaigns/dnc/screening"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/marketstore"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	controlstore "github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/pipeline"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// env is a campaign of an organization in Kazakhstan that calls at any hour.
type env struct {
	*testing.T

	db         *db.DB
	org, route string
	calls      *controlstore.Store
}

func newEnv(t *testing.T) *env {
	t.Helper()
	s := &env{T: t, db: dbtest.New(t)}
	s.calls = &controlstore.Store{Pool: s.db.Pool, Dial: s.db.DialPool}
	ctx := t.Context()
	var err error
	must := func() {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s.org, err = apikeys.EnsureOrganization(ctx, s.db.Pool, "acme")
	must()
	s.exec(`UPDATE organizations SET timezone = 'Asia/Almaty',
		settings = '{"market": "kz", "calling_window": {"days": [0,1,2,3,4,5,6], "start": "00:00", "end": "24:00"}}' WHERE id = $1`, s.org)
	d := agents.Default()
	fake := pipeline.Engine{Provider: "fake"}
	d.Prompt, d.Speech = "Sell.", pipeline.Engines{ASR: fake, LLM: fake, TTS: fake}
	agent, err := agents.Save(ctx, s.db.Pool, s.org, "sales", d)
	must()
	_, err = agents.Publish(ctx, s.db.Pool, s.org, "sales")
	must()
	trunk, err := trunks.Save(ctx, s.db.Pool, trunks.Trunk{OrgID: s.org, Name: "main", Proxy: "sip:127.0.0.1:5080;transport=udp", CallerNumbers: []string{"+77010000000"}})
	must()
	s.route, err = trunks.SaveSubgroup(ctx, s.db.Pool, trunks.Subgroup{
		OrgID: s.org, TrunkID: trunk, Name: "default", AllowedDestinations: []string{"7"}, ConcurrentCalls: 1000, CallsPerMinute: 1_000_000,
	})
	must()
	err = trunks.Attach(ctx, s.db.Pool, s.org, s.route, []string{agent})
	must()
	s.exec(`INSERT INTO campaigns (id, org_id, status, created_via, name, agent_id, agent_name, agent_version, timezone, timezone_source, accepts_additions,
			calls_per_minute, call_strategy, classification, retry, duplicate_action, use_contact_timezone, working_hours, trunk_id, route_id, from_number,
			dnc, market, created_at, updated_at)
		VALUES ('cmp_1', $1, 'running', 'api', 'Spring', $2, 'sales', 1, 'Asia/Almaty', 'organization', false, 200, 'standard', 'marketing',
			'{"attempts": 1, "interval_s": 900}', 'reject', false, '[]', $3, $4, '+77010000000', 'block', 'kz', now(), now())`, s.org, agent, trunk, s.route)
	s.exec("INSERT INTO campaign_paces (campaign_id) VALUES ('cmp_1')")
	s.exec(`INSERT INTO imports (id, org_id, campaign_id, kind, status, created_via, rows_seen, accepted, warned, rejected, duplicates, created_at)
		VALUES ('imp_1', $1, 'cmp_1', 'launch', 'accepted', 'api', 0, 0, 0, 0, 0, now())`, s.org)
	return s
}

func (s *env) exec(sql string, args ...any) {
	s.Helper()
	if _, err := s.db.Pool.Exec(context.WithoutCancel(s.Context()), sql, args...); err != nil {
		s.Fatal(err)
	}
}

func (s *env) query(sql string, args ...any) string {
	s.Helper()
	all, err := db.Collect(s.Context(), s.db.Pool, "query", pgx.RowTo[string], sql, args...)
	if err != nil {
		s.Fatal(err)
	}
	return strings.Join(all, " ")
}

// addContacts adds contacts. Their IDs are the last digits of their numbers.
func (s *env) addContacts(n int, groups int) {
	for from := 1; from <= n; from += 50_000 {
		s.addContactRange(from, min(from+50_000-1, n), groups)
	}
	s.exec("ANALYZE contacts")
}

func (s *env) addContactRange(from, to, groups int) {
	s.exec(`INSERT INTO contacts (id, org_id, campaign_id, import_id, n, number, zones, hours_group, due_at, state, created_at, updated_at)
		SELECT 'con_' || i, $1, 'cmp_1', 'imp_1', i, '+7701' || lpad(i::text, 7, '0'), '{Asia/Almaty}',
			CASE i % $3 WHEN 0 THEN ';Asia/Almaty;' ELSE 'S' || i % $3 || ';Asia/Almaty;' END, now() - interval '1 hour' + i * interval '1 millisecond',
			'pending', now(), now()
		FROM generate_series($4::int, $2::int) i`, s.org, to, groups, from)
}

func (s *env) queue(owner string) *Queue {
	return &Queue{
		Pool: s.db.DialPool, Store: &store.Store{Pool: s.db.Pool}, Claims: s.calls, Markets: &marketstore.Store{},
		Node: control.NodeID{Owner: owner, Home: "home"}, Lease: 15 * time.Second,
	}
}

// resetPace makes the next call of the campaign due now.
func (s *env) resetPace() {
	s.exec("UPDATE campaign_paces SET next_at = '-infinity', last_at = '-infinity'")
}

// take takes one contact; "" if there is none.
func (s *env) take(d *dialer.Dialer) string {
	s.Helper()
	claim, _, err := d.Take(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	if claim == nil {
		return ""
	}
	return claim.Call.ContactID
}

// wantTake takes one contact, which must be want; "" means none.
func (s *env) wantTake(d *dialer.Dialer, want string) {
	s.Helper()
	if got := s.take(d); got != want {
		s.Errorf("took %q, want %q", got, want)
	}
}

func (s *env) wantQuery(want, sql string) {
	s.Helper()
	if got := s.query(sql); got != want {
		s.Errorf("%s: %s, want %s", sql, got, want)
	}
}

// addCall adds a call to a number that was created some minutes ago. columns and values set further columns.
func (s *env) addCall(number, status string, minutes int, columns, values string) {
	s.Helper()
	s.exec(`INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, trunk_id, route_id, dial_number,
		ring_seconds, created_at, `+columns+`) VALUES ($1, $2, 'phone', $3, 'agt', 'sales', 1, $4, '7', 'trk', 'rte', $4, 30,
		now() - $5 * interval '1 minute', `+values+`)`, control.NewID("call_", time.Now()), s.org, status, number, minutes)
}

// newDialer returns a new dialer with its own queue.
func (s *env) newDialer() *dialer.Dialer { return &dialer.Dialer{Store: s.queue("node")} }

func TestTake(t *testing.T) {
	s := newEnv(t)
	s.addContacts(12, 3)
	s.exec("UPDATE campaigns SET calls_per_minute = 1") // a slow machine must not make the second call due
	s.exec("UPDATE contacts SET priority = 9 WHERE id = 'con_5'")
	s.exec("UPDATE contacts SET not_before = now() + interval '1 hour' WHERE id = 'con_1'")
	s.exec("UPDATE contacts SET not_after = now() - interval '1 hour' WHERE id = 'con_2'")
	s.exec("INSERT INTO suppressions (org_id, number) VALUES ($1, '77010000003')", s.org)
	s.wantTake(s.newDialer(), "con_5")
	s.wantTake(s.newDialer(), "")
	s.resetPace()
	s.wantTake(s.newDialer(), "con_4")
	if got := s.query("SELECT id || ':' || state || ':' || reason FROM contacts WHERE n <= 5 ORDER BY n"); got !=
		"con_1:pending: con_2:exhausted: con_3:suppressed:dnc_suppressed con_4:in_call: con_5:in_call:" {
		t.Errorf("contacts: %s", got)
	}
	call := s.query(`SELECT concat_ws('|', c.status, c.to_number, c.dial_number, c.campaign_id, c.contact_id, c.import_id, a.state, a.owner, c.disclosure <> '')
		FROM calls c JOIN attempts a ON a.call_id = c.id WHERE c.contact_id = 'con_4'`)
	if call != "queued|77010000004|77010000004|cmp_1|con_4|imp_1|claimed|node|t" {
		t.Errorf("its call: %s", call)
	}
}

// TestCapsAndActiveCalls checks that caps count all calls of the organization to a number, and that a number
// in a call is checked again soon.
func TestCapsAndActiveCalls(t *testing.T) {
	s := newEnv(t)
	s.addContacts(3, 1)
	for range 3 { // Kazakhstan allows three a day
		s.addCall("77010000001", "failed", 2, "dialed_at", "now() - interval '1 minute'")
	}
	s.addCall("77010000002", "ringing", 2, "dialed_at", "now()")
	for range 3 {
		s.addCall("77010000003", "failed", 2, "dialed_at", "NULL") // calls canceled before they were dialed
	}
	s.exec("UPDATE contacts SET governing_cap = 'daily' WHERE id = 'con_3'")
	s.wantTake(s.newDialer(), "con_3")
	s.wantQuery("", "SELECT governing_cap FROM contacts WHERE id = 'con_3'")
	s.wantQuery("con_1:daily:true con_2::true", "SELECT id || ':' || governing_cap || ':' || (due_at > now()) FROM contacts WHERE state = 'pending' ORDER BY n")
}

// TestTakeNothing checks that no contact is taken if the campaign does not run, no channel is free, no group may be
// called, or the organization has no market.
func TestTakeNothing(t *testing.T) {
	for name, sql := range map[string]string{
		"paused":        "UPDATE campaigns SET status = 'paused'",
		"ended":         "UPDATE campaigns SET ends_at = now() - interval '1 second'",
		"no market":     `UPDATE organizations SET settings = settings - 'market'`,
		"no channel":    "UPDATE subgroups SET concurrent_calls = 0",
		"route pace":    "UPDATE subgroups SET next_dial_at = now() + interval '1 minute'",
		"outside hours": `UPDATE campaigns SET working_hours = json_build_array(json_build_object('days', ARRAY[(extract(isodow FROM now() AT TIME ZONE 'Asia/Almaty')::int + 2) % 7], 'start', '03:00', 'end', '03:01'))`,
		"no zone":       "UPDATE contacts SET hours_group = ';;'",
		"not due":       "UPDATE contacts SET due_at = now() + interval '1 minute'",
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			s.addContacts(2, 1)
			s.exec(sql)
			s.wantTake(s.newDialer(), "")
			s.wantQuery("pending pending", "SELECT state FROM contacts UNION ALL SELECT id FROM calls")
		})
	}
}

// TestStaleRegistry checks that with a stale registry, contacts are called only if they do not require registry
// coverage.
func TestStaleRegistry(t *testing.T) {
	s := newEnv(t)
	s.addContacts(1, 1)
	rules := market.Files("kz")
	rules["package.yaml"] = strings.Replace(rules["package.yaml"], "registry: false", "registry: true\nstale_after: 744h", 1)
	p, err := market.Read(rules)
	if err != nil {
		t.Fatal(err)
	}
	b := s.queue("node")
	b.Markets = fixedMarket{p}
	age := 32 * 24 * time.Hour
	none := true
	b.Registries = func(context.Context, db.Querier, string) ([]screening.Registry, error) {
		if none {
			return nil, nil
		}
		return []screening.Registry{{Name: "kz", Downloaded: time.Now().Add(-age)}}, nil
	}
	s.exec(`UPDATE organizations SET settings = settings || '{"require_registry": true}'`)
	for _, none = range []bool{true, false} {
		b.readAt = time.Time{}
		if got := s.take(&dialer.Dialer{Store: b}); got != "" {
			t.Errorf("took %q with a stale registry or none (%v)", got, none)
		}
	}
	s.exec("UPDATE contacts SET due_at = now()")
	age, b.readAt = time.Hour, time.Time{}
	s.wantTake(&dialer.Dialer{Store: b}, "con_1")
}

// fixedMarket is a market with given rules.
type fixedMarket struct{ rules *market.Package }

func (o fixedMarket) Package(context.Context, db.Querier, string, string) (*market.Package, error) {
	return o.rules, nil
}

// TestDestinationNotAllowed checks that a contact that the route may not call is suppressed and does not
// delay others.
func TestDestinationNotAllowed(t *testing.T) {
	s := newEnv(t)
	s.addContacts(2, 1)
	s.exec("UPDATE contacts SET number = '+79161234567' WHERE id = 'con_1'")
	s.exec("UPDATE subgroups SET allowed_destinations = '{77}'")
	s.wantTake(s.newDialer(), "con_2")
	s.wantQuery("suppressedgeo_rejected", "SELECT state || reason FROM contacts WHERE id = 'con_1'")
}

// TestConcurrentTakes checks that concurrent nodes take each contact only once.
func TestConcurrentTakes(t *testing.T) {
	s := newEnv(t)
	const n = 60
	s.addContacts(n, 4)
	var mu sync.Mutex
	taken := map[string]int{}
	var nodes sync.WaitGroup
	for i := range 4 {
		b := s.queue(fmt.Sprint("node", i))
		d := &dialer.Dialer{Store: b, MaxIdle: time.Nanosecond}
		nodes.Go(func() {
			for range 100 {
				b.readAt = time.Time{} // the test changes the paces
				claim, _, err := d.Take(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if claim != nil {
					mu.Lock()
					taken[claim.Call.ContactID]++
					mu.Unlock()
				}
				if _, err = s.db.Pool.Exec(t.Context(), "UPDATE campaign_paces SET next_at = '-infinity', last_at = '-infinity'"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	nodes.Wait()
	for id, times := range taken {
		if times != 1 {
			t.Errorf("%s was taken %d times", id, times)
		}
	}
	if len(taken) != n || s.query("SELECT count(*)::text FROM attempts") != fmt.Sprint(n) {
		t.Errorf("%d of %d were taken", len(taken), n)
	}
}

// TestNodeLostBeforeInvite checks that a call of a lost node whose INVITE never left does not count.
func TestNodeLostBeforeInvite(t *testing.T) {
	s := newEnv(t)
	s.addContacts(1, 1)
	listed := &store.Store{Pool: s.db.Pool}
	s.calls.Undo = func(ctx context.Context, tx pgx.Tx, callID string) (bool, error) {
		return listed.Attempts.Revert(ctx, tx, callID, 0, time.Now())
	}
	s.wantTake(s.newDialer(), "con_1")
	s.exec("UPDATE attempts SET lease_until = now() - interval '1 second'")
	if n, err := s.calls.Settle(t.Context(), nil); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	s.wantQuery("pending0", "SELECT state || attempts FROM contacts UNION ALL SELECT id FROM calls UNION ALL SELECT id FROM attempts UNION ALL SELECT call_id FROM contact_attempts")
	s.resetPace()
	s.wantTake(s.newDialer(), "con_1")
}

// TestLooserCaps checks that a contact that a cap holds is checked again when the organization allows more calls,
// even if the cap changed during a pause or while no node ran. A contact with a later next attempt keeps waiting.
func TestLooserCaps(t *testing.T) {
	const loosened = `UPDATE organizations SET settings = settings || '{"frequency_caps": {"enabled": true, "daily": 9}}'`
	for name, before := range map[string]func(*env, *Queue, func() string) *Queue{
		"running": func(_ *env, b *Queue, _ func() string) *Queue { return b },
		"paused": func(s *env, b *Queue, take func() string) *Queue {
			s.exec("UPDATE campaigns SET status = 'paused', updated_at = now()")
			take()
			return b
		},
		"another node": func(s *env, _ *Queue, _ func() string) *Queue { return s.queue("node") },
		"failed recheck": func(s *env, b *Queue, take func() string) *Queue {
			s.exec("ALTER TABLE contacts ADD CONSTRAINT failing CHECK (next_attempt_at > now() + interval '1 minute') NOT VALID")
			s.exec(loosened)
			take()
			s.exec("ALTER TABLE contacts DROP CONSTRAINT failing")
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			s.addContacts(2, 1)
			s.exec("UPDATE contacts SET next_attempt_at = now() + interval '1 hour', due_at = now() + interval '1 hour' WHERE id = 'con_2'")
			for range 3 { // Kazakhstan allows three a day
				s.addCall("77010000001", "failed", 2, "dialed_at", "now() - interval '1 minute'")
			}
			b := s.queue("node")
			d := &dialer.Dialer{Store: b}
			take := func() string {
				s.resetPace()
				b.readAt = time.Time{}
				d.Wake("cmp_1")
				return s.take(d)
			}
			for range 2 {
				if got := take(); got != "" {
					t.Fatalf("took %s", got)
				}
			}
			last := before(s, b, take)
			s.exec(loosened)
			s.exec("UPDATE campaigns SET status = 'running'")
			if last != b {
				b, d = last, &dialer.Dialer{Store: last}
			}
			if got := take(); got != "con_1" {
				t.Errorf("took %q when nine a day are allowed: %s", got, s.query("SELECT state || governing_cap || due_at FROM contacts"))
			}
			if got := take(); got != "" {
				t.Errorf("took %q before its next attempt", got)
			}
		})
	}
}

// TestTakeCost logs the cost of taking a contact from few and from a million.
func TestTakeCost(t *testing.T) {
	if os.Getenv("PARLEYTEST_SOAK") == "" {
		t.Skip("make soak")
	}
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		s := newEnv(t)
		s.addContacts(n, 150)
		b := s.queue("node")
		d := &dialer.Dialer{Store: b}
		var all []time.Duration
		for range 600 {
			s.resetPace()
			if _, _, err := b.Running(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i := range b.running {
				b.running[i].Pace.Next, b.running[i].Pace.Last = time.Time{}, time.Time{}
			}
			began := time.Now()
			if s.take(d) == "" {
				t.Fatal("no contact was taken")
			}
			all = append(all, time.Since(began))
			s.exec("UPDATE attempts SET state = 'ended' WHERE state <> 'ended'")
		}
		slices.Sort(all)
		t.Logf("%7d contacts: p50 %v, p99 %v, max %v", n, all[len(all)/2], all[len(all)*99/100], all[len(all)-1])
		var priorities []int16
		var groups []string
		for _, l := range b.details["cmp_1"].groups {
			priorities, groups = append(priorities, l.Priority), append(groups, l.Group)
		}
		t.Log(s.query("EXPLAIN "+firstSQL, "cmp_1", priorities, groups, []string{}))
	}
}
