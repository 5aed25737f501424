package pgqueue

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/dialer"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/marketstore"
	"github.com/parley-voice/parley/campaigns/outcome"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/pipeline"
)

// TestRecordingIsDisclosed checks that the disclosure matches the launched version of the agent,
// not a later one.
func TestRecordingIsDisclosed(t *testing.T) {
	s := newEnv(t)
	s.addContacts(2, 1)
	if got := s.take(s.newDialer()); got == "" {
		t.Fatal("no contact was taken")
	}
	d := agents.Default()
	fake := pipeline.Engine{Provider: "fake"}
	d.Prompt, d.Speech, d.Recording = "Sell.", pipeline.Engines{ASR: fake, LLM: fake, TTS: fake}, !d.Recording
	var err error
	if _, err = agents.Save(t.Context(), s.db.Pool, s.org, "sales", d); err != nil {
		t.Fatal(err)
	}
	if _, err = agents.Publish(t.Context(), s.db.Pool, s.org, "sales"); err != nil {
		t.Fatal(err)
	}
	s.resetPace()
	if got := s.take(s.newDialer()); got == "" {
		t.Fatal("no contact was taken")
	}
	s.wantQuery("1 of 1 of 2", "SELECT count(DISTINCT disclosure) || ' of ' || count(DISTINCT recording_status) || ' of ' || count(*) FROM calls")
}

// TestInviteDeadline checks the deadline of the INVITE: the first of the end of the calling hours, the end of the
// campaign, and the contact's not_after.
func TestInviteDeadline(t *testing.T) {
	at := time.Now().UTC()
	zone := fmt.Sprintf("Etc/GMT%+d", at.Hour()-12) // it is noon there, so that no other limit comes before the tested one
	if at.Hour() == 12 {
		zone = "Etc/GMT"
	}
	ends := at.Truncate(time.Minute).Add(5 * time.Minute)
	local := time.Date(2000, 1, 1, 12, at.Minute()+5, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		sql  string
		want time.Time
	}{
		"hours":    {fmt.Sprintf(`UPDATE campaigns SET timezone = '%s', working_hours = '[{"days": [0,1,2,3,4,5,6], "start": "00:00", "end": "%s"}]'`, zone, local.Format("15:04")), ends},
		"campaign": {fmt.Sprintf("UPDATE campaigns SET ends_at = '%s'", ends.Format(time.RFC3339)), ends},
		"contact":  {fmt.Sprintf("UPDATE contacts SET not_after = '%s'", ends.Format(time.RFC3339)), ends},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			s.addContacts(1, 1)
			s.exec(c.sql)
			claim, _, err := s.newDialer().Take(t.Context())
			if err != nil || claim == nil {
				t.Fatal(claim, err)
			}
			if early := c.want.Sub(claim.NotAfter); early < 0 || early > 5*time.Second {
				t.Errorf("the INVITE may leave until %v, want %v", claim.NotAfter, c.want)
			}
		})
	}
}

// TestCallerNumberDenied checks that a campaign without an allowed caller number makes no calls, and
// does not delay other campaigns of the route.
func TestCallerNumberDenied(t *testing.T) {
	s := newEnv(t)
	s.addContacts(1, 1)
	s.addSecondCampaign()
	s.resetPace()
	s.exec("UPDATE campaigns SET from_number = '+77019999999' WHERE id = 'cmp_1'")
	claim, _, err := s.newDialer().Take(t.Context())
	if err == nil {
		t.Error("no error is returned")
	}
	if claim == nil || claim.Call.ContactID != "con_second" {
		t.Errorf("took %+v", claim)
	}
	s.wantQuery("pending", "SELECT state FROM contacts WHERE id = 'con_1'")
}

// addSecondCampaign adds another campaign of the route, which dialed later.
func (s *env) addSecondCampaign() {
	s.exec(`INSERT INTO campaigns SELECT * FROM json_populate_record(NULL::campaigns, (SELECT (to_jsonb(c) || '{"id": "cmp_2"}')::json FROM campaigns c WHERE id = 'cmp_1'))`)
	s.exec("INSERT INTO campaign_paces (campaign_id, last_at) VALUES ('cmp_2', now())")
	s.exec(`INSERT INTO contacts (id, org_id, campaign_id, import_id, n, number, zones, hours_group, due_at, state, created_at, updated_at)
		SELECT 'con_second', org_id, 'cmp_2', import_id, 100000, '+77012000000', zones, hours_group, due_at, state, now(), now() FROM contacts WHERE id = 'con_1'`)
}

// TestLockedCampaignIsSkipped checks that a campaign that is being paused is skipped at once, without a
// channel held while waiting.
func TestLockedCampaignIsSkipped(t *testing.T) {
	s := newEnv(t)
	s.addContacts(1, 1)
	tx, err := s.db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context())) //nolint:errcheck // cleanup
	if _, err = tx.Exec(t.Context(), "SELECT FROM campaigns WHERE id = 'cmp_1' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if claim, _, err := s.newDialer().Take(ctx); claim != nil || err != nil {
		t.Errorf("%v, %v", claim, err)
	}
}

// TestLongConversationCountsFromEnd checks that a conversation counts from its end, however long it was.
func TestLongConversationCountsFromEnd(t *testing.T) {
	s := newEnv(t)
	s.addContacts(1, 1)
	s.addCall("77010000001", "ended", 170*60, "dialed_at, answered_at, ended_at",
		"now() - interval '170 hours', now() - interval '170 hours', now() - interval '167 hours'")
	if k := s.history(s.db.Pool, "77010000001", 7*24*time.Hour); k.History.Talked.IsZero() {
		t.Error("the conversation is not in the history")
	}
}

// A sender is a pool or a transaction.
type sender interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// history returns the calls to a number.
func (s *env) history(q sender, digits string, within time.Duration) (k contact) {
	s.Helper()
	batch := &pgx.Batch{}
	queueHistory(batch, s.org, "+"+digits, time.Now().Add(-within-maxCallDuration), &k)
	if err := q.SendBatch(s.Context(), batch).Close(); err != nil {
		s.Fatal(err)
	}
	return k
}

// TestNumberLock checks that if two nodes check the caps of a number at the same time, for two campaigns, only one
// may call the number.
func TestNumberLock(t *testing.T) {
	s := newEnv(t)
	tx, err := s.db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context())) //nolint:errcheck // cleanup
	if s.history(tx, "77010000001", time.Hour).Engaged {
		t.Fatal("the number is locked before")
	}
	if !s.history(s.db.Pool, "77010000001", time.Hour).Engaged {
		t.Error("a second node may call the number too")
	}
	if s.history(s.db.Pool, "77010000002", time.Hour).Engaged {
		t.Error("another number is locked")
	}
}

// countingMarkets counts the reads of market packages.
type countingMarkets struct {
	marketstore.Store

	n int
}

func (c *countingMarkets) Package(ctx context.Context, q db.Querier, code, version string) (*market.Package, error) {
	c.n++
	return c.Store.Package(ctx, q, code, version)
}

// TestCampaignsAreCached checks that while one campaign has no channel, a call of another campaign does not cause all
// campaigns to be read again.
func TestCampaignsAreCached(t *testing.T) {
	s := newEnv(t)
	s.addContacts(5, 1)
	b, c := s.queue("node"), &countingMarkets{}
	b.Markets = c
	d := &dialer.Dialer{Store: b}
	s.exec("UPDATE subgroups SET concurrent_calls = 0")
	began := time.Now()
	for range 20 {
		s.wantTake(d, "")
	}
	if most := int(time.Since(began)/refreshAfter) + 1; c.n > most {
		t.Errorf("read %d times in %v", c.n, time.Since(began))
	}
}

// TestStaleRegistryWritesNothing checks that contacts without registry coverage keep waiting and are not
// written repeatedly.
func TestStaleRegistryWritesNothing(t *testing.T) {
	s := newEnv(t)
	s.addContacts(40, 1)
	b := s.queue("node")
	d := &dialer.Dialer{Store: b}
	if _, _, err := b.Running(t.Context()); err != nil {
		t.Fatal(err)
	}
	x := b.details["cmp_1"]
	x.stale = true
	b.details["cmp_1"] = x
	s.wantTake(d, "")
	s.wantQuery("0", "SELECT count(*)::text FROM contacts WHERE due_at > now()")
}

// TestIntentAfterPause checks that a claimed call is not made if its campaign is paused, canceled or over before the
// INVITE leaves. The contact keeps waiting.
func TestIntentAfterPause(t *testing.T) {
	for _, status := range []string{"paused", "cancelled", "completed"} {
		s := newEnv(t)
		s.calls.Undo = (&outcome.Recorder{Pool: s.db.Pool, Store: &store.Store{Pool: s.db.Pool}}).Undo
		s.addContacts(1, 1)
		claim, _, err := s.newDialer().Take(t.Context())
		if err != nil || claim == nil {
			t.Fatalf("%v, %v", claim, err)
		}
		s.exec("UPDATE campaigns SET status = $1", status)
		if err = s.calls.Intent(t.Context(), claim.Lease); !errors.Is(err, control.ErrStopped) {
			t.Errorf("%s: intent: %v", status, err)
		}
		if err = s.calls.Release(t.Context(), claim.Lease); err != nil {
			t.Fatal(err)
		}
		if got := s.query("SELECT state || ' ' || attempts FROM contacts"); got != "pending 0" {
			t.Errorf("%s: the contact is %s", status, got)
		}
	}
}

// TestDetachedAgent checks that an agent that was detached from its route makes no calls.
func TestDetachedAgent(t *testing.T) {
	s := newEnv(t)
	s.addContacts(1, 1)
	s.exec("DELETE FROM subgroup_agents")
	claim, _, err := s.newDialer().Take(t.Context())
	if claim != nil || control.CodeOf(err) != control.CodeAgentNotInSubgroup {
		t.Errorf("took %v, %v", claim, err)
	}
	s.wantQuery("pending 0", "SELECT state || ' ' || attempts FROM contacts")
}

// TestSuppressionWithInternationalPrefix checks that a number listed with an international prefix is not called.
func TestSuppressionWithInternationalPrefix(t *testing.T) {
	for _, code := range []string{"810", "00", "011"} {
		s := newEnv(t)
		s.addContacts(1, 1)
		s.exec("INSERT INTO suppressions (org_id, number) SELECT org_id, $1 || substr(number, 2) FROM contacts", code)
		if got := s.take(s.newDialer()); got != "" {
			t.Errorf("%s: took %s", code, got)
		}
		if got := s.query("SELECT state || ' ' || reason FROM contacts"); got != "suppressed dnc_suppressed" {
			t.Errorf("%s: the contact is %s", code, got)
		}
	}
}

// TestManyHeldContacts checks that a contact that may be called does not wait long behind many contacts that a cap or
// a list holds. A contact that another node has locked is not requested again at once.
func TestManyHeldContacts(t *testing.T) {
	s := newEnv(t)
	s.addContacts(3*maxCandidates, 1)
	tx, err := s.db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context())) //nolint:errcheck // cleanup
	if _, err = tx.Exec(t.Context(), "SELECT FROM contacts FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	if claim, rest, fault := s.newDialer().Take(t.Context()); fault != nil || claim != nil || rest < dialer.DefaultMaxIdle/2 {
		t.Errorf("all contacts are locked: %v, %v, next in %v", claim, fault, rest)
	}
	if err = tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.exec(`INSERT INTO suppressions (org_id, number) SELECT $1, substr(number, 2) FROM contacts WHERE n < 3 * $2`, s.org, maxCandidates)
	d := s.newDialer()
	for n := range 2 {
		claim, rest, err := d.Take(t.Context())
		if err != nil || claim != nil || rest > dialer.DefaultMaxIdle/2 {
			t.Fatalf("%d: %v, %v, next in %v", n, claim, err, rest)
		}
	}
	s.wantTake(d, fmt.Sprint("con_", 3*maxCandidates))
}
