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
	found, err := s.db.Pool.Query(s.Context(), sql, args...)
	if err != nil {
		s.Fatal(err)
	}
	all, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		s.Fatal(err)
	}
	return strings.Join(all, " ")
}

// addContacts adds contacts; their ids follow from their numbers.
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
	listed := &store.Store{Pool: s.db.Pool}
	markets := &marketstore.Store{}
	return &Queue{
		Pool: s.db.DialPool, Store: listed, Claims: s.calls, Markets: markets, Node: control.NodeID{Owner: owner, Home: "home"},
		Lease: 15 * time.Second,
	}
}

// resetPace makes the next call of the campaign due now.
func (s *env) resetPace() {
	s.exec("UPDATE campaign_paces SET next_at = '-infinity', last_at = '-infinity'")
}

// take takes one contact, "" for none.
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

// newDialer returns a dialer without state.
func (s *env) newDialer() *dialer.Dialer { return &dialer.Dialer{Store: s.queue("node")} }

func TestTake(t *testing.T) {
	s := newEnv(t)
	s.addContacts(12, 3)
	s.exec("UPDATE campaigns SET calls_per_minute = 1") // a busy machine takes its time between two takes
	s.exec("UPDATE contacts SET priority = 9 WHERE id = 'con_5'")
	s.exec("UPDATE contacts SET not_before = now() + interval '1 hour' WHERE id = 'con_1'")
	s.exec("UPDATE contacts SET not_after = now() - interval '1 hour' WHERE id = 'con_2'")
	s.exec("INSERT INTO suppressions (org_id, number) VALUES ($1, '77010000003')", s.org)
	if got := s.take(s.newDialer()); got != "con_5" {
		t.Errorf("the first is %q, not whose priority is highest", got)
	}
	if got := s.take(s.newDialer()); got != "" {
		t.Errorf("%q is called before the pace lets", got)
	}
	s.resetPace()
	if got := s.take(s.newDialer()); got != "con_4" {
		t.Errorf("the second is %q, want that which waits for longest and may be called", got)
	}
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

// TestCapsAndActiveCalls: caps count all calls of the organization to a number; a number in a call
// is checked again soon.
func TestCapsAndActiveCalls(t *testing.T) {
	s := newEnv(t)
	s.addContacts(3, 1)
	call := func(number, status, dialled string) {
		s.exec(`INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, trunk_id, route_id, dial_number,
			ring_seconds, created_at, dialed_at) VALUES ($1, $2, 'phone', $3, 'agt', 'sales', 1, $4, '7', 'trk', 'rte', $4, 30, now() - interval '2 minutes', `+dialled+`)`,
			control.NewID("call_", time.Now()), s.org, status, number)
	}
	for range 3 { // kz: three a day
		call("77010000001", "failed", "now() - interval '1 minute'")
	}
	call("77010000002", "ringing", "now()")
	for range 3 {
		call("77010000003", "failed", "NULL") // cancelled before they were dialled
	}
	s.exec("UPDATE contacts SET governing_cap = 'daily' WHERE id = 'con_3'") // until now
	if got := s.take(s.newDialer()); got != "con_3" {
		t.Errorf("%q is called", got)
	}
	if got := s.query("SELECT governing_cap FROM contacts WHERE id = 'con_3'"); got != "" {
		t.Errorf("who is called is held by %s", got)
	}
	if got := s.query("SELECT id || ':' || governing_cap || ':' || (due_at > now()) FROM contacts WHERE state = 'pending' ORDER BY n"); got != "con_1:daily:true con_2::true" {
		t.Errorf("those who wait: %s", got)
	}
}

// TestTakeNothing: no contact is taken of a campaign that is not running, without a channel,
// of closed groups, or of an organization without a market.
func TestTakeNothing(t *testing.T) {
	for name, sql := range map[string]string{
		"paused":        "UPDATE campaigns SET status = 'paused'",
		"over":          "UPDATE campaigns SET ends_at = now() - interval '1 second'",
		"no market":     `UPDATE organizations SET settings = settings - 'market'`,
		"no line":       "UPDATE subgroups SET concurrent_calls = 0",
		"its pace":      "UPDATE subgroups SET next_dial_at = now() + interval '1 minute'",
		"outside":       `UPDATE campaigns SET working_hours = json_build_array(json_build_object('days', ARRAY[(extract(isodow FROM now() AT TIME ZONE 'Asia/Almaty')::int + 2) % 7], 'start', '03:00', 'end', '03:01'))`,
		"nobody's law":  "UPDATE contacts SET hours_group = ';;'",
		"a waiting one": "UPDATE contacts SET due_at = now() + interval '1 minute'",
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			s.addContacts(2, 1)
			s.exec(sql)
			if got := s.take(s.newDialer()); got != "" {
				t.Errorf("%s is called", got)
			}
			if got := s.query("SELECT state FROM contacts UNION ALL SELECT id FROM calls"); got != "pending pending" {
				t.Errorf("left behind: %s", got)
			}
		})
	}
}

// TestStaleRegistry: with a stale registry, contacts that require coverage are not called;
// others are.
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
			t.Errorf("%q is called by a registry that is too old, or gone: %v", got, none)
		}
	}
	s.exec("UPDATE contacts SET due_at = now()")
	age, b.readAt = time.Hour, time.Time{}
	if got := s.take(&dialer.Dialer{Store: b}); got != "con_1" {
		t.Errorf("%q is called by a fresh one", got)
	}
}

// fixedMarket is a market with given rules.
type fixedMarket struct{ rules *market.Package }

func (o fixedMarket) Package(context.Context, db.Querier, string, string) (*market.Package, error) {
	return o.rules, nil
}

// TestDestinationNotAllowed: a contact that the route may not call is suppressed and does not
// delay others.
func TestDestinationNotAllowed(t *testing.T) {
	s := newEnv(t)
	s.addContacts(2, 1)
	s.exec("UPDATE contacts SET number = '+79161234567' WHERE id = 'con_1'")
	s.exec("UPDATE subgroups SET allowed_destinations = '{77}'")
	if got := s.take(s.newDialer()); got != "con_2" {
		t.Errorf("%q is called", got)
	}
	if got := s.query("SELECT state || reason FROM contacts WHERE id = 'con_1'"); got != "suppressedgeo_rejected" {
		t.Errorf("the other is %s", got)
	}
}

// TestConcurrentTakes: nodes that take at the same time take each contact once.
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
				b.readAt = time.Time{} // paces are hurried behind its back
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
			t.Errorf("%s is taken %d times", id, times)
		}
	}
	if len(taken) != n || s.query("SELECT count(*)::text FROM attempts") != fmt.Sprint(n) {
		t.Errorf("%d of %d are taken", len(taken), n)
	}
}

// TestNodeLostBeforeInvite: a call of a lost node whose INVITE never left does not count.
func TestNodeLostBeforeInvite(t *testing.T) {
	s := newEnv(t)
	s.addContacts(1, 1)
	listed := &store.Store{Pool: s.db.Pool}
	s.calls.Undo = func(ctx context.Context, tx pgx.Tx, callID string) (bool, error) {
		return listed.Attempts.Revert(ctx, tx, callID, 0, time.Now())
	}
	if got := s.take(s.newDialer()); got != "con_1" {
		t.Fatalf("%q is called", got)
	}
	s.exec("UPDATE attempts SET lease_until = now() - interval '1 second'")
	if n, err := s.calls.Settle(t.Context(), nil); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if got := s.query("SELECT state || attempts FROM contacts UNION ALL SELECT id FROM calls UNION ALL SELECT id FROM attempts UNION ALL SELECT call_id FROM contact_attempts"); got != "pending0" {
		t.Errorf("left behind: %s", got)
	}
	s.resetPace()
	if got := s.take(s.newDialer()); got != "con_1" {
		t.Errorf("then %q is called", got)
	}
}

// TestLooserCaps: a contact that a cap holds is checked again when the organization
// allows more, also if that changed during a pause or while no node ran. A contact with
// a later next attempt keeps waiting.
func TestLooserCaps(t *testing.T) {
	const loosened = `UPDATE organizations SET settings = settings || '{"frequency_caps": {"enabled": true, "daily": 9}}'`
	for how, miss := range map[string]func(*env, *Queue, func() string) *Queue{
		"seen": func(_ *env, b *Queue, _ func() string) *Queue { return b },
		"paused": func(s *env, b *Queue, take func() string) *Queue {
			s.exec("UPDATE campaigns SET status = 'paused', updated_at = now()")
			take()
			return b
		},
		"begun anew": func(s *env, _ *Queue, _ func() string) *Queue { return s.queue("node") },
		"in trouble": func(s *env, b *Queue, take func() string) *Queue {
			s.exec("ALTER TABLE contacts ADD CONSTRAINT nobody CHECK (next_attempt_at > now() + interval '1 minute') NOT VALID")
			s.exec(loosened)
			take()
			s.exec("ALTER TABLE contacts DROP CONSTRAINT nobody")
			return b
		},
	} {
		t.Run(how, func(t *testing.T) {
			s := newEnv(t)
			s.addContacts(2, 1)
			s.exec("UPDATE contacts SET next_attempt_at = now() + interval '1 hour', due_at = now() + interval '1 hour' WHERE id = 'con_2'")
			for range 3 { // kz: three a day
				s.exec(`INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, trunk_id, route_id, dial_number,
					ring_seconds, created_at, dialed_at) VALUES ($1, $2, 'phone', 'failed', 'agt', 'sales', 1, '77010000001', '7', 'trk', 'rte', '77010000001', 30,
					now() - interval '2 minutes', now() - interval '1 minute')`, control.NewID("call_", time.Now()), s.org)
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
					t.Fatalf("%s is called", got)
				}
			}
			last := miss(s, b, take)
			s.exec(loosened)
			s.exec("UPDATE campaigns SET status = 'running'")
			if last != b {
				b, d = last, &dialer.Dialer{Store: last}
			}
			if got := take(); got != "con_1" {
				t.Errorf("%q is called when nine a day are allowed: %s", got, s.query("SELECT state || governing_cap || due_at FROM contacts"))
			}
			if got := take(); got != "" {
				t.Errorf("%q is called before its next attempt", got)
			}
		})
	}
}

// TestTakeCost logs the cost of taking a contact, of few and of a million.
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
				t.Fatal("nobody is taken")
			}
			all = append(all, time.Since(began))
			s.exec("UPDATE attempts SET state = 'ended' WHERE state <> 'ended'")
		}
		slices.Sort(all)
		t.Logf("%7d contacts wait: p50 %v, p99 %v, most %v", n, all[len(all)/2], all[len(all)*99/100], all[len(all)-1])
		var priorities []int16
		var groups []string
		for _, l := range b.details["cmp_1"].groups {
			priorities, groups = append(priorities, l.Priority), append(groups, l.Group)
		}
		t.Log(s.query("EXPLAIN "+firstSQL, "cmp_1", priorities, groups, []string{}))
	}
}
