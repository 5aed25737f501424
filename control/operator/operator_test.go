package operator

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/media"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const good media.Secret = "correct horse battery"

// start is a database with acme, whose owner is ada.
func start(t *testing.T) (d *db.DB, org, ada string) {
	t.Helper()
	d = dbtest.New(t)
	org, err := access.EnsureOrganization(t.Context(), d.Pool, "acme")
	if err == nil {
		ada, _, err = Create(t.Context(), d.Pool, Newcomer{Email: "Ada@Example.com", OrgID: org, Role: Owner, Password: good, Cost: Cost{Passes: 1, Memory: 8}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return d, org, ada
}

func exec(t *testing.T, d *db.DB, sql string, args ...any) {
	t.Helper()
	if _, err := d.Pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func TestRoles(t *testing.T) {
	for _, tt := range []struct {
		has, needed Role
		may         bool
	}{
		{Viewer, Viewer, true},
		{Viewer, Operator, false},
		{Operator, Viewer, true},
		{Operator, Operator, true},
		{Operator, Owner, false},
		{Owner, Owner, true},
		{"", Viewer, false},
		{"root", Viewer, false},
	} {
		if got := tt.has.May(tt.needed); got != tt.may {
			t.Errorf("%q may what %q is needed for: %v", tt.has, tt.needed, got)
		}
	}
}

func TestPasswords(t *testing.T) {
	a, b := Cost{}.hash(good), Cost{}.hash(good)
	if cheap := (Cost{Passes: 1, Memory: 8}).hash(good); !strings.HasPrefix(a, "$argon2id$v=19$m=19456,t=2,p=1$") || !matches(cheap, good) || matches(cheap, good+" ") {
		t.Errorf("%s, %s", a, cheap)
	}
	for _, bad := range []string{"m=4294967295,t=2", "m=19456,t=4294967295", "m=0,t=0", "m=-1,t=x"} {
		if matches(strings.Replace(a, "m=19456,t=2", bad, 1), good) {
			t.Errorf("%s is taken", bad)
		}
	}
	if a == b || !matches(a, good) || matches(a, good+" ") || matches(nobody(), "") || matches("", good) || matches("$argon2id$", good) {
		t.Errorf("%s", a)
	}
	for _, p := range []media.Secret{"", "elevenchars", media.Secret(strings.Repeat("a", 257)), "twelve chars\xff"} {
		if err := CheckPassword(p); err == nil || p != "" && strings.Contains(err.Error(), string(p)) {
			t.Errorf("%d bytes: %v", len(p), err)
		}
	}
	if err := CheckPassword("zwölf Zeichen"); err != nil {
		t.Error(err)
	}
	if err := CheckPassword(NewPassword()); err != nil {
		t.Error(err)
	}
}

func TestSessions(t *testing.T) {
	d, org, ada := start(t)
	token, err := SignIn(t.Context(), d.Pool, " ADA@example.com ", good, "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	open := func(token media.Secret) (Session, error) { return Open(t.Context(), d.Pool, token) }
	s, err := open(token)
	if err != nil || s.ID != ada || s.Email != "ada@example.com" || len(s.Seats) != 1 || s.Seats[0] != (Seat{org, "acme", s.Seats[0].Timezone, Owner}) {
		t.Fatalf("%+v, %v", s, err)
	}
	if err = s.Say(t.Context(), d.Pool, "+done"); err != nil {
		t.Fatal(err)
	}
	if s, err = open(token); err != nil || s.Said != "+done" {
		t.Errorf("%+v, %v", s, err)
	}
	if err = s.Visit(t.Context(), d.Pool, org); err != nil {
		t.Fatal(err)
	}
	if s, err = open(token); err != nil || s.Said != "" || s.LastOrg != org {
		t.Errorf("%+v, %v", s, err)
	}
	var kept string
	if err = d.Pool.QueryRow(t.Context(), "SELECT string_agg(s::text || p::text, '') FROM operator_sessions s, operators p").Scan(&kept); err != nil || strings.Contains(kept, string(token)) || strings.Contains(kept, string(good)) {
		t.Errorf("the database holds a secret: %s %v", kept, err)
	}
	for name, at := range map[string]string{"idle": "seen_at = now() - interval '12 hours 1 minute'", "old": "created_at = now() - interval '7 days 1 minute'"} {
		other, fault := SignIn(t.Context(), d.Pool, "ada@example.com", good, "192.0.2.1")
		if fault != nil {
			t.Fatal(fault)
		}
		exec(t, d, "UPDATE operator_sessions SET "+at+" WHERE hash = $1", sum(other))
		if _, err = open(other); !errors.Is(err, ErrSignedOut) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err = Sweep(t.Context(), d.Pool); err != nil {
		t.Fatal(err)
	}
	var n int
	if err = d.Pool.QueryRow(t.Context(), "SELECT count(*) FROM operator_sessions").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d sessions are left, %v", n, err)
	}
	if err = SignOut(t.Context(), d.Pool, token); err != nil {
		t.Fatal(err)
	}
	if _, err = open(token); !errors.Is(err, ErrSignedOut) {
		t.Errorf("signed out: %v", err)
	}
}

// TestANewPassword ends the other sessions, and needs the one before.
func TestANewPassword(t *testing.T) {
	d, _, _ := start(t)
	sign := func(p media.Secret) (media.Secret, error) {
		return SignIn(t.Context(), d.Pool, "ada@example.com", p, "")
	}
	here, err := sign(good)
	if err != nil {
		t.Fatal(err)
	}
	there, err := sign(good)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), d.Pool, here)
	if err != nil {
		t.Fatal(err)
	}
	if err = s.SetPassword(t.Context(), d.Pool, "not the one before", "another good one"); !errors.Is(err, ErrWrong) {
		t.Errorf("by a wrong one: %v", err)
	}
	if err = s.SetPassword(t.Context(), d.Pool, good, "short"); err == nil {
		t.Error("a short one is taken")
	}
	if err = s.SetPassword(t.Context(), d.Pool, good, "another good one"); err != nil {
		t.Fatal(err)
	}
	if _, err = Open(t.Context(), d.Pool, here); err != nil {
		t.Errorf("here: %v", err)
	}
	if _, err = Open(t.Context(), d.Pool, there); !errors.Is(err, ErrSignedOut) {
		t.Errorf("there: %v", err)
	}
	if _, err = sign(good); !errors.Is(err, ErrWrong) {
		t.Errorf("by the one before: %v", err)
	}
}

// TestTriesAreCounted: of many at a time no more are let through than of one after
// the other, and a good password does not help then.
func TestTriesAreCounted(t *testing.T) {
	d, _, _ := start(t)
	var wrong, slow atomic.Int64
	var all sync.WaitGroup
	for range 3 * triesOfAccount {
		all.Go(func() {
			_, err := SignIn(t.Context(), d.Pool, "ada@example.com", "not her password", "192.0.2.1")
			if _, many := errors.AsType[*SlowDownError](err); many {
				slow.Add(1)
			} else if errors.Is(err, ErrWrong) {
				wrong.Add(1)
			}
		})
	}
	all.Wait()
	if wrong.Load() > triesOfAccount || wrong.Load()+slow.Load() != 3*triesOfAccount {
		t.Errorf("%d were looked at, %d refused", wrong.Load(), slow.Load())
	}
	try := func(email string, p media.Secret, address string) error {
		_, err := SignIn(t.Context(), d.Pool, email, p, address)
		return err
	}
	isSlow := func(err error) bool { _, many := errors.AsType[*SlowDownError](err); return many }
	if err := try("ada@example.com", good, "192.0.2.2"); !isSlow(err) {
		t.Errorf("from elsewhere: %v", err)
	}
	for range triesOfAddress {
		_ = try("nobody@example.com", "x", "192.0.2.3") // counted all the same
	}
	if err := try("bob@example.com", "whatever it is", "192.0.2.3"); !isSlow(err) {
		t.Errorf("of another account: %v", err)
	}
	exec(t, d, "UPDATE operator_tries SET at = at - interval '16 minutes'")
	if err := try("ada@example.com", good, "192.0.2.3"); err != nil {
		t.Errorf("later: %v", err)
	}
}

func TestWhoIsNotLetIn(t *testing.T) {
	d, _, _ := start(t)
	for _, p := range [][2]string{{"ada@example.com", ""}, {"", string(good)}, {"bob@example.com", string(good)}, {"ada@example.com\x00", string(good)}, {"ada@example.com", strings.Repeat("a", 1000)}} {
		if _, err := SignIn(t.Context(), d.Pool, p[0], media.Secret(p[1]), "192.0.2.1"); !errors.Is(err, ErrWrong) {
			t.Errorf("%q: %v", p[0], err)
		}
	}
	if _, err := Open(t.Context(), d.Pool, "x"); !errors.Is(err, ErrSignedOut) {
		t.Errorf("by no token: %v", err)
	}
}

// TestAnOwnerIsLeft: whoever goes, even two at a time.
func TestAnOwnerIsLeft(t *testing.T) {
	d, org, ada := start(t)
	if err := SetRole(t.Context(), d.Pool, org, ada, Viewer); !errors.Is(err, ErrLastOwner) {
		t.Errorf("the last one becomes a viewer: %v", err)
	}
	if err := Remove(t.Context(), d.Pool, org, ada); !errors.Is(err, ErrLastOwner) {
		t.Errorf("the last one goes: %v", err)
	}
	bob, password, err := Create(t.Context(), d.Pool, Newcomer{Email: "bob@example.com", OrgID: org, Role: Owner})
	if err != nil || CheckPassword(password) != nil {
		t.Fatalf("%v", err)
	}
	if _, _, err = Create(t.Context(), d.Pool, Newcomer{Email: "bob@example.com", OrgID: org, Role: Viewer}); err == nil {
		t.Error("he has two roles")
	}
	var gone atomic.Int64
	var both sync.WaitGroup
	for _, id := range []string{ada, bob} {
		both.Go(func() {
			err := Change(context.WithoutCancel(t.Context()), d, Actor{ID: id, OrgID: org}, Owner, func(q db.Querier) (Entry, error) {
				return Entry{Action: "x"}, Remove(t.Context(), q, org, id)
			})
			if err == nil {
				gone.Add(1)
			} else if !errors.Is(err, ErrLastOwner) {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if left, err := Members(t.Context(), d.Pool, org); err != nil || len(left) != 1 || gone.Load() != 1 {
		t.Errorf("%d went, %+v are left, %v", gone.Load(), left, err)
	}
	if _, err := Find(t.Context(), d.Pool, org, "carol@example.com"); !errors.Is(err, ErrUnknown) {
		t.Errorf("who there is not: %v", err)
	}
	if err := Remove(t.Context(), d.Pool, org, "opr_9"); !errors.Is(err, ErrUnknown) {
		t.Errorf("who there is not: %v", err)
	}
}

// TestChangesAreLogged: with what they change, or not at all; for good.
func TestChangesAreLogged(t *testing.T) {
	d, org, ada := start(t)
	a := Actor{ID: ada, Email: "ada@example.com", OrgID: org, Address: "192.0.2.1"}
	rename := func(name string, fault error) error {
		return Change(t.Context(), d, a, Owner, func(q db.Querier) (Entry, error) {
			_, err := q.Exec(t.Context(), "UPDATE organizations SET name = $1", name)
			return Entry{"organization.rename", org, map[string]any{"name": "acme"}, map[string]any{"name": name}}, errors.Join(err, fault)
		})
	}
	fault := errors.New("no")
	if err := rename("other", fault); !errors.Is(err, fault) {
		t.Error(err)
	}
	if err := rename("better", nil); err != nil {
		t.Fatal(err)
	}
	a.ID = "opr_9"
	if err := rename("stranger's", nil); !errors.Is(err, ErrForbidden) {
		t.Errorf("without a role: %v", err)
	}
	log, err := Entries(t.Context(), d.Pool, org, "organization.", "ada@example.com", 0, 10)
	if err != nil || len(log) != 1 {
		t.Fatalf("%+v, %v", log, err)
	}
	var after map[string]string
	if e := log[0]; json.Unmarshal(e.After, &after) != nil || after["name"] != "better" || e.Who != "ada@example.com" || e.Address != "192.0.2.1" || time.Since(e.At) > time.Minute {
		t.Errorf("%+v", e)
	}
	for _, sql := range []string{"UPDATE audit_log SET who = ''", "DELETE FROM audit_log"} {
		if _, err = d.Pool.Exec(t.Context(), sql); err == nil {
			t.Errorf("%s is let", sql)
		}
	}
	if more, err := Entries(t.Context(), d.Pool, org, "", "", log[0].ID, 10); err != nil || len(more) != 0 {
		t.Errorf("before the first: %+v, %v", more, err)
	}
}
