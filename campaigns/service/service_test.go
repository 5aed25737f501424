package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/dnc/screening"
	"github.com/parley-voice/parley/campaigns/marketstore"
	"github.com/parley-voice/parley/campaigns/outcome"
	"github.com/parley-voice/parley/campaigns/progress"
	"github.com/parley-voice/parley/campaigns/report"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/pipeline"
)

func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", "25") // few runs, because each creates a campaign; -rapid.checks sets more
	dbtest.Main(m)
}

// A discardBucket discards its files.
type discardBucket struct{}

func (discardBucket) Put(_ context.Context, _ string, r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

func (discardBucket) Delete(context.Context, string) error { return nil }

// An env is a service with its own clock and one organization at a time.
type env struct {
	*service.Service

	ctx context.Context //nolint:containedctx // of the test
	db  *db.DB
	org string

	mu  sync.Mutex
	now time.Time
}

func (o *env) recorder() *outcome.Recorder {
	return &outcome.Recorder{Pool: o.db.Pool, Store: o.Store, Now: o.Now}
}

// newOrganization returns an env with an organization.
func newOrganization(t *testing.T) *env {
	t.Helper()
	o := newEnv(t)
	if err := o.addOrganization(); err != nil {
		t.Fatal(err)
	}
	return o
}

func newEnv(t *testing.T) *env {
	t.Helper()
	o := &env{ctx: t.Context(), db: dbtest.New(t), now: time.Date(2027, 3, 2, 17, 0, 0, 0, time.UTC)} // a Tuesday, noon in New York
	o.Service = &service.Service{
		Pool: o.db.Pool, Store: &store.Store{Pool: o.db.Pool}, Bucket: discardBucket{}, Markets: &marketstore.Store{}, Now: func() time.Time {
			o.mu.Lock()
			defer o.mu.Unlock()
			return o.now
		},
	}
	return o
}

func (o *env) advance(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now = o.now.Add(d)
}

// addOrganization creates an organization with an agent and a route.
func (o *env) addOrganization() error {
	var err error
	if o.org, err = apikeys.EnsureOrganization(o.ctx, o.db.Pool, control.NewID("org-", time.Now())); err != nil {
		return err
	}
	if _, err = o.db.Pool.Exec(o.ctx, `UPDATE organizations SET settings = '{"market": "us"}', timezone = 'America/New_York' WHERE id = $1`, o.org); err != nil {
		return err
	}
	d := agents.Default()
	fake := pipeline.Engine{Provider: "fake"}
	d.Prompt, d.Speech = "Sell.", pipeline.Engines{ASR: fake, LLM: fake, TTS: fake}
	agent, err := agents.Save(o.ctx, o.db.Pool, o.org, "sales", d)
	if err == nil {
		_, err = agents.Publish(o.ctx, o.db.Pool, o.org, "sales")
	}
	if err != nil {
		return err
	}
	trunk, err := trunks.Save(o.ctx, o.db.Pool, trunks.Trunk{OrgID: o.org, Name: "main", Proxy: "sip:127.0.0.1:5080;transport=udp", CallerNumbers: []string{"+12025550100"}})
	if err != nil {
		return err
	}
	group, err := trunks.SaveSubgroup(o.ctx, o.db.Pool, trunks.Subgroup{
		OrgID: o.org, TrunkID: trunk, Name: "default", AllowedDestinations: []string{"1"}, ConcurrentCalls: 10, CallsPerMinute: 600,
	})
	if err != nil {
		return err
	}
	return trunks.Attach(o.ctx, o.db.Pool, o.org, group, []string{agent})
}

func rowsOf(phones ...string) []json.RawMessage {
	var all []json.RawMessage
	for _, p := range phones {
		all = append(all, json.RawMessage(fmt.Sprintf(`{"phone":%q}`, p)))
	}
	return all
}

func testActor() service.Actor {
	return service.Actor{Via: campaigns.ByAPI, KeyID: "key_1", Actor: "tests"}
}

func (o *env) create(spec campaigns.Spec, attested bool, phones ...string) (service.Status, error) {
	spec.Name, spec.Agent, spec.CallsPerMinute = "Spring", "sales", 20
	return o.Create(o.ctx, o.org, testActor(), service.CreateRequest{Spec: spec, Rows: rowsOf(phones...), Attested: attested}, nil, nil)
}

func (o *env) mustCreate(t rapid.TB, spec campaigns.Spec, attested bool, phones ...string) service.Status {
	t.Helper()
	st, err := o.create(spec, attested, phones...)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func (o *env) tx(do func(pgx.Tx) error) error { return db.Tx(o.ctx, o.db.Pool, do) }

// column reads a column of strings.
func (o *env) column(sql string, args ...any) ([]string, error) {
	return db.Collect(o.ctx, o.db.Pool, "column", pgx.RowTo[string], sql, args...)
}

func (o *env) mustColumn(t rapid.TB, sql string, args ...any) []string {
	t.Helper()
	all, err := o.column(sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (o *env) exec(t rapid.TB, sql string, args ...any) {
	t.Helper()
	if _, err := o.db.Pool.Exec(o.ctx, sql, args...); err != nil {
		t.Fatal(err)
	}
}

// beginCall begins a call to a contact, as the dialer would.
func (o *env) beginCall(contact string) (call string, ok bool, err error) {
	call = control.NewID("call_", time.Now())
	err = o.tx(func(tx pgx.Tx) (fault error) {
		ok, fault = o.Store.Attempts.Begin(o.ctx, tx, contact, call, o.Now())
		return fault
	})
	return call, ok, err
}

func (o *env) record(call string, what retry.Outcome, awaits bool) (state campaigns.State, err error) {
	err = o.tx(func(tx pgx.Tx) (fault error) {
		state, fault = o.recorder().Record(o.ctx, tx, outcome.Outcome{CallID: call, Result: what, Ended: o.Now(), AwaitsAnalysis: awaits})
		return fault
	})
	return state, err
}

// testNumbers returns numbers to draw from: callable, foreign and invalid ones.
func testNumbers() []string {
	return []string{"2125550101", "2125550102", "12125550102", "3105550103", "8085550104", "+14165550105", "8005550106", "12", "x"}
}

// ignoreRefusal ignores refusals that may occur at any time.
func ignoreRefusal(err error) error {
	var refused *control.Error
	var blocked *service.BlockedError
	if errors.As(err, &refused) || errors.As(err, &blocked) {
		return nil
	}
	return err
}

// A machine performs operations on one campaign in any order.
type machine struct {
	*env

	campaign     string
	list         string                     // launch import of the campaign
	final        map[string]campaigns.State // states of contacts that must not change any more
	contacts     int
	fingerprints map[string]string // fingerprints of screenings by their result
}

func (m *machine) must(t *rapid.T, err error) {
	t.Helper()
	if err = ignoreRefusal(err); err != nil {
		t.Fatal(err)
	}
}

// drawID draws a contact of the campaign, or one of its calls; empty for none.
func (m *machine) drawID(t *rapid.T, sql string) string {
	all := m.mustColumn(t, sql, m.campaign)
	if len(all) == 0 {
		return ""
	}
	return rapid.SampledFrom(all).Draw(t, "which")
}

func (m *machine) actions() map[string]func(*rapid.T) {
	do := func(f func(context.Context, string, string, service.Actor) (service.Status, error)) func(*rapid.T) {
		return func(t *rapid.T) {
			_, err := f(m.ctx, m.org, m.campaign, testActor())
			m.must(t, err)
		}
	}
	return map[string]func(*rapid.T){
		"pause": do(m.Pause), "resume": do(m.Resume),
		"cancel": func(t *rapid.T) {
			if rapid.IntRange(0, 9).Draw(t, "seldom") == 0 {
				do(m.Cancel)(t)
			}
		},
		"launch": func(t *rapid.T) {
			_, err := m.Launch(m.ctx, m.org, m.campaign, testActor(), service.LaunchRequest{Confirmed: true, ImportID: m.list, DNC: campaigns.Skip})
			m.must(t, err)
		},
		"batch":    m.batch,
		"withdraw": m.withdraw,
		"list": func(t *rapid.T) {
			n := "1" + rapid.SampledFrom(testNumbers()[:2]).Draw(t, "number")
			_, err := m.db.Pool.Exec(m.ctx, "INSERT INTO suppressions (org_id, number) VALUES ($1, $2) ON CONFLICT DO NOTHING", m.org, n)
			m.must(t, err)
		},
		"take": func(t *rapid.T) {
			if id := m.drawID(t, "SELECT id FROM contacts WHERE campaign_id = $1 ORDER BY id"); id != "" {
				_, _, err := m.beginCall(id)
				m.must(t, err)
			}
		},
		"revert": func(t *rapid.T) {
			if call := m.drawID(t, "SELECT call_id FROM contact_attempts WHERE campaign_id = $1 AND ended_at IS NULL ORDER BY call_id"); call != "" {
				m.must(t, m.tx(func(tx pgx.Tx) error { _, err := m.Store.Attempts.Revert(m.ctx, tx, call, 0, m.Now()); return err }))
			}
		},
		"outcome": func(t *rapid.T) {
			if call := m.drawID(t, "SELECT call_id FROM contact_attempts WHERE campaign_id = $1 ORDER BY call_id"); call != "" {
				_, err := m.record(call, rapid.SampledFrom(retry.Outcomes()).Draw(t, "outcome"), rapid.Bool().Draw(t, "awaits"))
				m.must(t, err)
			}
		},
		"analysis": func(t *rapid.T) {
			if call := m.drawID(t, "SELECT call_id FROM contact_attempts WHERE campaign_id = $1 ORDER BY call_id"); call != "" {
				m.must(t, m.tx(func(tx pgx.Tx) error {
					_, err := m.recorder().RecordAnalysis(m.ctx, tx, call, nil, 0)
					return err
				}))
			}
		},
		"time": func(t *rapid.T) {
			m.advance(time.Duration(rapid.IntRange(0, 7200).Draw(t, "seconds")) * time.Second)
			m.must(t, m.RunDue(m.ctx))
		},
		"fold": func(t *rapid.T) { m.must(t, (&store.TallyFolder{Pool: m.db.Pool}).Fold(m.ctx)) },
		"restore": func(t *rapid.T) { // damages and repairs the tallies
			_, err := m.db.Pool.Exec(m.ctx, rapid.SampledFrom(tallyDamage).Draw(t, "how"))
			m.must(t, err)
			_, err = (&store.TallyFolder{Pool: m.db.Pool}).Repair(m.ctx)
			m.must(t, err)
		},
		"cap": func(t *rapid.T) { // as the dialer does
			if id := m.drawID(t, "SELECT id FROM contacts WHERE campaign_id = $1 AND state = 'pending' ORDER BY id"); id != "" {
				sql := rapid.SampledFrom([]string{
					"UPDATE contacts SET due_at = $2, next_attempt_at = $2, governing_cap = 'daily' WHERE id = $1",
					"UPDATE contacts SET due_at = $2, governing_cap = '' WHERE id = $1",
					"UPDATE contacts SET state = 'suppressed', reason = 'frequency_capped', governing_cap = 'daily', updated_at = $2 WHERE id = $1",
					"UPDATE contacts SET not_before = $2 WHERE id = $1",
					"UPDATE contacts SET not_after = $2 WHERE id = $1",
				}).Draw(t, "what")
				_, err := m.db.Pool.Exec(m.ctx, sql, id, m.Now().Add(time.Hour))
				m.must(t, err)
			}
		},
		"": m.check,
	}
}

func (m *machine) batch(t *rapid.T) {
	phones := rapid.SliceOfN(rapid.SampledFrom(testNumbers()), 1, 4).Draw(t, "phones")
	st, err := m.Add(m.ctx, m.org, m.campaign, testActor(), rowsOf(phones...), service.BatchHooks{})
	if refused, ok := errors.AsType[*service.RefusedError](err); ok {
		if i := refused.Import; i.AcceptedRows != 0 || i.Accepted || i.RefusalCode == "" || i.RowsSeen != len(phones) {
			t.Fatalf("%v is refused as %+v", phones, i)
		}
		return
	}
	m.must(t, err)
	if err == nil {
		m.contacts += st.Import.AcceptedRows
		if i := st.Import; i.Rejected != 0 || i.AcceptedRows+i.Duplicates != i.RowsSeen {
			t.Fatalf("%v is accepted as %+v", phones, i)
		}
	}
}

func (m *machine) withdraw(t *rapid.T) {
	sent, err := json.Marshal(rapid.SampledFrom(testNumbers()).Draw(t, "number"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := m.Withdraw(m.ctx, m.org, testActor(), service.WithdrawRequest{Phones: []json.RawMessage{sent}})
	m.must(t, err)
	for _, x := range w.Withdrawn {
		m.final[x.ContactID] = campaigns.Suppressed
	}
}

// check verifies the invariants of the campaign.
func (m *machine) check(t *rapid.T) {
	p, err := m.Progress(m.ctx, m.org, m.campaign)
	if err != nil {
		t.Fatal(err)
	}
	if fault := violatedInvariant(p); fault != "" {
		t.Fatalf("%s: %+v", fault, p)
	}
	if p.Counters.Contacts != m.contacts {
		t.Fatalf("%d contacts, want %d", p.Counters.Contacts, m.contacts)
	}
	m.checkFinalStates(t)
	m.checkTallies(t, p)
	odd, err := m.column(`
		SELECT k.id FROM contacts k LEFT JOIN LATERAL (
			SELECT count(*) AS all_, count(*) FILTER (WHERE ended_at IS NULL) AS live FROM contact_attempts x WHERE x.contact_id = k.id) x ON true
		WHERE k.campaign_id = $1 AND (k.attempts <> x.all_ OR (k.state = 'in_call') <> (x.live = 1) OR k.attempts > 2)`, m.campaign)
	if err != nil || len(odd) > 0 {
		t.Fatalf("contacts %v do not match their attempts, %v", odd, err)
	}
	st, err := m.Get(m.ctx, m.org, m.campaign, screening.Fresh)
	if err != nil {
		t.Fatal(err)
	}
	if x := st.Screen; !x.AsOfLaunch && x.ImportID != "" {
		uncached := &service.Service{Pool: m.Pool, Store: m.Store, Bucket: m.Bucket, Markets: m.Markets, Now: m.Now}
		fresh, err := uncached.Get(m.ctx, m.org, m.campaign, screening.Fresh)
		if err != nil || !reflect.DeepEqual(fresh.Screen, x) || !reflect.DeepEqual(fresh.Import.Matches, st.Import.Matches) {
			t.Fatalf("cached %+v, screened %+v, %v", x, fresh.Screen, err)
		}
		outcome := fmt.Sprint(x.Matched, x.Items, x.Checked, x.Unscreened)
		for o, f := range m.fingerprints {
			if (o == outcome) != (f == x.Fingerprint) {
				t.Fatalf("outcome %s has the fingerprint %s, outcome %s %s", o, f, outcome, x.Fingerprint)
			}
		}
		m.fingerprints[outcome] = x.Fingerprint
	}
	over := st.Campaign.Status.IsOver()
	if waits := p.ByState[campaigns.Pending] + p.ByState[campaigns.InCall] + p.ByState[campaigns.Awaiting]; st.Campaign.StatusReason == campaigns.QueueDrained && waits > 0 || over && p.Ready > 0 {
		t.Fatalf("the campaign is over by %s: %+v", st.Campaign.StatusReason, p)
	}
}

// tallyDamage lists ways to damage tallies.
var tallyDamage = []string{
	"TRUNCATE contact_tallies", "TRUNCATE attempt_tallies", "TRUNCATE contact_tallies, attempt_tallies", "TRUNCATE contact_times",
	"INSERT INTO contact_tallies SELECT * FROM contact_tallies", "INSERT INTO attempt_tallies SELECT * FROM attempt_tallies",
}

// checkTallies compares the tallies with a count of contacts and attempts.
func (m *machine) checkTallies(t *rapid.T, p progress.Progress) {
	counted, err := m.column(`
		SELECT concat_ws(' ', 'contact', state, reason, dnc_at_launch, governing_cap, cardinality(zones) > 1, CASE WHEN state = 'pending' THEN hours_group END,
			state = 'pending' AND attempts > 0, state = 'pending' AND (next_attempt_at IS NOT NULL OR not_before IS NOT NULL OR not_after IS NOT NULL), count(*))
		FROM contacts WHERE campaign_id = $1 GROUP BY state, reason, dnc_at_launch, governing_cap, cardinality(zones) > 1, CASE WHEN state = 'pending' THEN hours_group END,
			state = 'pending' AND attempts > 0, state = 'pending' AND (next_attempt_at IS NOT NULL OR not_before IS NOT NULL OR not_after IS NOT NULL)
		UNION ALL SELECT concat_ws(' ', 'attempt', coalesce(outcome, ''), count(*)) FROM contact_attempts WHERE campaign_id = $1 GROUP BY outcome ORDER BY 1`, m.campaign)
	if err != nil {
		t.Fatal(err)
	}
	tallied, err := m.column(`
		SELECT concat_ws(' ', 'contact', state, reason, at_launch, cap, ambiguous, CASE WHEN state = 'pending' THEN hours_group END, tried, timed, sum(n))
		FROM contact_tallies WHERE campaign_id = $1 GROUP BY state, reason, at_launch, cap, ambiguous, hours_group, tried, timed HAVING sum(n) <> 0
		UNION ALL SELECT concat_ws(' ', 'attempt', outcome, sum(n)) FROM attempt_tallies WHERE campaign_id = $1 GROUP BY outcome HAVING sum(n) <> 0 ORDER BY 1`, m.campaign)
	if err != nil || !slices.Equal(counted, tallied) {
		t.Fatalf("tallied %q, counted %q, %v", tallied, counted, err)
	}
	held, err := m.column("SELECT count(*)::text FROM contacts WHERE campaign_id = $1 AND state = 'pending' AND governing_cap <> '' AND next_attempt_at > $2", m.campaign, m.Now())
	if err != nil || held[0] != strconv.Itoa(p.Frequency.Held) {
		t.Fatalf("%d are held by a cap, counted %s, %v", p.Frequency.Held, held, err)
	}
}

// checkFinalStates checks that final contacts keep their state.
func (m *machine) checkFinalStates(t *rapid.T) {
	now := map[string]campaigns.State{}
	var id string
	var state campaigns.State
	if err := db.Each(m.ctx, m.db.Pool, "contacts", []any{&id, &state}, func() error {
		now[id] = state
		return nil
	}, "SELECT id, state FROM contacts WHERE campaign_id = $1 AND state IN ('done', 'exhausted', 'suppressed')", m.campaign); err != nil {
		t.Fatal(err)
	}
	for id, was := range m.final {
		if now[id] != was {
			t.Fatalf("contact %s was %s and is %q", id, was, now[id])
		}
	}
	m.final = now
}

// violatedInvariant returns the violated invariant of a progress, empty for none.
func violatedInvariant(p progress.Progress) string {
	sum := func(m map[string]int) (n int) {
		for _, v := range m {
			n += v
		}
		return n
	}
	states := 0
	for _, n := range p.ByState {
		states += n
	}
	c := p.Counters
	switch {
	case p.Ready+p.Holds != p.ByState[campaigns.Pending] || p.Ready < 0:
		return "ready + holds = pending"
	case sum(p.HeldReasons) != p.Holds:
		return "held_reasons = holds"
	case sum(p.SuppressedReasons) != p.ByState[campaigns.Suppressed]:
		return "suppressed_reasons = suppressed"
	case p.AtLaunch+p.MidCampaign != p.SuppressedReasons[campaigns.DNCSuppressed]:
		return "at launch + mid campaign"
	case sum(p.Frequency.ByCap) != p.Frequency.Held+p.Frequency.Blocked:
		return "by_governing_cap"
	case states != c.Contacts:
		return "by_state = contacts"
	case c.InProgress != p.ByState[campaigns.InCall]:
		return "calls in progress"
	case c.Attempts != c.Answered+c.Voicemail+c.IVR+c.NoAnswer+c.Busy+c.Declined+c.Failed+c.InProgress:
		return "attempts"
	case p.Status != campaigns.Running && p.Ready > 0:
		return "no contact is ready while the campaign does not run"
	}
	for _, n := range p.ByState {
		if n == 0 {
			return "by_state omits zeros"
		}
	}
	return ""
}

// TestProgressIsConsistent checks that after any operations in any order, the numbers of a campaign agree
// with each other and with its contacts.
func TestProgressIsConsistent(t *testing.T) {
	o := newEnv(t)
	rapid.Check(t, func(t *rapid.T) {
		if err := o.addOrganization(); err != nil {
			t.Fatal(err)
		}
		spec := campaigns.Spec{Retry: json.RawMessage(`{"attempts":2,"interval_s":60}`)}
		spec.Duplicates = rapid.SampledFrom([]string{"reject", "keep_first", "keep_last"}).Draw(t, "duplicates")
		if spec.Open = rapid.Bool().Draw(t, "open"); spec.Open || rapid.Bool().Draw(t, "ends") {
			spec.EndsAt = o.Now().Add(time.Duration(rapid.IntRange(1, 48).Draw(t, "hours")) * time.Hour)
		}
		phones := rapid.SliceOfN(rapid.SampledFrom(testNumbers()), 0, 6).Draw(t, "planned")
		st := o.mustCreate(t, spec, rapid.Bool().Draw(t, "attested"), phones...)
		m := &machine{env: o, campaign: st.Campaign.ID, final: map[string]campaigns.State{}, fingerprints: map[string]string{}}
		if i := st.Import; i != nil {
			m.list, m.contacts = i.ID, i.AcceptedRows
			if dropped := o.countDropped(t, i.ID); i.AcceptedRows+i.Rejected+dropped != i.RowsSeen || i.RowsSeen != len(phones) || i.Warned > i.AcceptedRows {
				t.Fatalf("%v: %+v, %d dropped", phones, i.Import, dropped)
			}
		}
		t.Repeat(m.actions())
	})
}

// reportTable collects the lines of a report.
type reportTable [][]string

func (t *reportTable) Write(cells []string) error {
	*t = append(*t, slices.Clone(cells))
	return nil
}
func (t *reportTable) Close() error { return nil }

// countDropped counts the rows of an import's report that were dropped as duplicates.
func (o *env) countDropped(t *rapid.T, id string) (n int) {
	var lines reportTable
	if err := o.Report(o.ctx, o.org, id, false, func() (report.Table, error) { return &lines, nil }); err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		if l[5] == "duplicate" {
			n++
		}
	}
	return n
}
