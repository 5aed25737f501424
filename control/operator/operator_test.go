package operator

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/media"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const goodPassword media.Secret = "correct horse battery"

// newDatabase returns a database with the organization acme, whose owner is ada.
func newDatabase(t *testing.T) (d *db.DB, org, ada string) {
	t.Helper()
	d = dbtest.New(t)
	org, err := apikeys.EnsureOrganization(t.Context(), d.Pool, "acme")
	if err == nil {
		ada, _, err = Create(t.Context(), d.Pool, NewMember{Email: "Ada@Example.com", OrgID: org, Role: Owner, Password: goodPassword, Cost: Cost{Passes: 1, Memory: 8}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return d, org, ada
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
		if got := tt.has.Includes(tt.needed); got != tt.may {
			t.Errorf("%q includes %q: %v", tt.has, tt.needed, got)
		}
	}
}

func TestPasswords(t *testing.T) {
	hash := func(c Cost) string {
		h, err := c.hash(t.Context(), goodPassword)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	is := func(hash string, p media.Secret) bool {
		ok, err := matches(t.Context(), hash, p, false)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	a, b := hash(Cost{}), hash(Cost{})
	if cheap := hash(Cost{Passes: 1, Memory: 8}); !strings.HasPrefix(a, "$argon2id$v=19$m=19456,t=2,p=1$") || !is(cheap, goodPassword) || is(cheap, goodPassword+" ") {
		t.Errorf("%s, %s", a, cheap)
	}
	for _, bad := range []string{"m=4294967295,t=2", "m=19456,t=4294967295", "m=0,t=0", "m=-1,t=x"} {
		if is(strings.Replace(a, "m=19456,t=2", bad, 1), goodPassword) {
			t.Errorf("%s was accepted", bad)
		}
	}
	if a == b || !is(a, goodPassword) || is(a, goodPassword+" ") || is(dummyHash(), "") || is("", goodPassword) || is("$argon2id$", goodPassword) {
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
	d, org, ada := newDatabase(t)
	token, err := SignIn(t.Context(), d.Pool, SignInAttempt{Email: " ADA@example.com ", Password: goodPassword, Network: "192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	open := func(token media.Secret) (Session, error) { return Open(t.Context(), d.Pool, token) }
	s, err := open(token)
	if err != nil || s.ID != ada || s.Email != "ada@example.com" || len(s.Memberships) != 1 || s.Memberships[0] != (Membership{org, "acme", s.Memberships[0].Timezone, "", Owner}) {
		t.Fatalf("%+v, %v", s, err)
	}
	if err = s.SetFlash(t.Context(), d.Pool, "+done"); err != nil {
		t.Fatal(err)
	}
	if s, err = open(token); err != nil || s.Flash != "+done" {
		t.Errorf("%+v, %v", s, err)
	}
	if err = s.Visit(t.Context(), d.Pool, org); err != nil {
		t.Fatal(err)
	}
	if s, err = open(token); err != nil || s.Flash != "" || s.LastOrg != org {
		t.Errorf("%+v, %v", s, err)
	}
	var kept string
	if err = d.Pool.QueryRow(t.Context(), "SELECT string_agg(s::text || p::text, '') FROM operator_sessions s, operators p").Scan(&kept); err != nil || strings.Contains(kept, string(token)) || strings.Contains(kept, string(goodPassword)) {
		t.Errorf("the database holds a secret: %s %v", kept, err)
	}
	for name, at := range map[string]string{"idle": "seen_at = now() - interval '12 hours 1 minute'", "old": "created_at = now() - interval '7 days 1 minute'"} {
		other, fault := SignIn(t.Context(), d.Pool, SignInAttempt{Email: "ada@example.com", Password: goodPassword, Network: "192.0.2.1"})
		if fault != nil {
			t.Fatal(fault)
		}
		dbtest.Exec(t, d, "UPDATE operator_sessions SET "+at+" WHERE hash = $1", sum(other))
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
	if err = SignOut(t.Context(), d.Pool, token, ""); err != nil {
		t.Fatal(err)
	}
	if _, err = open(token); !errors.Is(err, ErrSignedOut) {
		t.Errorf("signed out: %v", err)
	}
}

// TestSetPassword checks that a password change needs the old password and ends the other sessions.
func TestSetPassword(t *testing.T) {
	d, _, _ := newDatabase(t)
	sign := func(p media.Secret) (media.Secret, error) {
		return SignIn(t.Context(), d.Pool, SignInAttempt{Email: "ada@example.com", Password: p, Network: ""})
	}
	here, err := sign(goodPassword)
	if err != nil {
		t.Fatal(err)
	}
	there, err := sign(goodPassword)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), d.Pool, here)
	if err != nil {
		t.Fatal(err)
	}
	if err = s.VerifyPassword(t.Context(), d.Pool, "not the one before"); !errors.Is(err, ErrBadCredentials) {
		t.Errorf("wrong password: %v", err)
	}
	if err = s.SetPassword(t.Context(), d.Pool, "short"); err == nil {
		t.Error("a short password was accepted")
	}
	if err = s.VerifyPassword(t.Context(), d.Pool, goodPassword); err != nil {
		t.Error(err)
	}
	if err = s.SetPassword(t.Context(), d.Pool, "another good one"); err != nil {
		t.Fatal(err)
	}
	if _, err = Open(t.Context(), d.Pool, here); err != nil {
		t.Errorf("this session: %v", err)
	}
	if _, err = Open(t.Context(), d.Pool, there); !errors.Is(err, ErrSignedOut) {
		t.Errorf("the other session: %v", err)
	}
	if _, err = sign(goodPassword); !errors.Is(err, ErrBadCredentials) {
		t.Errorf("old password: %v", err)
	}
}

// TestSignInAttemptsAreBounded checks that concurrent attempts cannot exceed the limit, and that above the limit the
// right password fails too.
func TestSignInAttemptsAreBounded(t *testing.T) {
	d, _, _ := newDatabase(t)
	var wrong, slow atomic.Int64
	var all sync.WaitGroup
	for range 3 * maxPerAccount {
		all.Go(func() {
			_, err := SignIn(t.Context(), d.Pool, SignInAttempt{Email: "ada@example.com", Password: "not her password", Network: "192.0.2.1"})
			if _, many := errors.AsType[*SlowDownError](err); many {
				slow.Add(1)
			} else if errors.Is(err, ErrBadCredentials) {
				wrong.Add(1)
			}
		})
	}
	all.Wait()
	if wrong.Load() > maxPerAccount || wrong.Load()+slow.Load() != 3*maxPerAccount {
		t.Errorf("%d checked, %d refused", wrong.Load(), slow.Load())
	}
	try := func(email string, p media.Secret, address string) error {
		_, err := SignIn(t.Context(), d.Pool, SignInAttempt{Email: email, Password: p, Network: address})
		return err
	}
	if err := try("ada@example.com", goodPassword, "192.0.2.1"); !isSlow(err) {
		t.Errorf("right password after too many attempts: %v", err)
	}
	for range maxPerNetwork {
		_ = try(rand.Text()+"@example.com", "x", "192.0.2.3") // attempts for unknown accounts are counted too
	}
	if err := try("bob@example.com", "whatever it is", "192.0.2.3"); !isSlow(err) {
		t.Errorf("another account from the same network: %v", err)
	}
	dbtest.Exec(t, d, "UPDATE operator_tries SET at = at - interval '16 minutes'")
	if err := try("ada@example.com", goodPassword, "192.0.2.3"); err != nil {
		t.Errorf("after 16 minutes: %v", err)
	}
}

func isSlow(err error) bool { _, many := errors.AsType[*SlowDownError](err); return many }

// TestOwnerCanSignInDuringAttack checks that the owner can sign in while other people try wrong passwords from one or
// many networks.
func TestOwnerCanSignInDuringAttack(t *testing.T) {
	d, _, ada := newDatabase(t)
	sign := func(p media.Secret, network, device string) error {
		_, err := SignIn(t.Context(), d.Pool, SignInAttempt{Email: "ada@example.com", Password: p, Network: network, Device: device})
		return err
	}
	for range maxPerAccount {
		if err := sign("wrong", "192.0.2.66", ""); !errors.Is(err, ErrBadCredentials) {
			t.Fatal(err)
		}
	}
	var before, after int
	number := "SELECT count(*) FROM operator_tries"
	if err := d.Pool.QueryRow(t.Context(), number).Scan(&before); err != nil {
		t.Fatal(err)
	}
	for range 12 {
		if err := sign(goodPassword, "192.0.2.66", ""); !isSlow(err) {
			t.Fatalf("from a refused network: %v", err)
		}
	}
	if err := d.Pool.QueryRow(t.Context(), number).Scan(&after); err != nil || after != before {
		t.Errorf("refused attempts are counted: %d, before %d, %v", after, before, err)
	}
	if err := sign(goodPassword, "192.0.2.1", ""); err != nil {
		t.Errorf("the owner, from elsewhere: %v", err)
	}
	if err := sign(goodPassword, "192.0.2.66", "phone"); err != nil {
		t.Errorf("the owner, from the same network with a known device: %v", err)
	}
	// Failures from many networks slow down attempts on unknown devices, but not on a known device.
	dbtest.Exec(t, d, "INSERT INTO operator_tries (of) SELECT 'account ada@example.com' FROM generate_series(1, $1)", slowdownThreshold)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := SignIn(ctx, d.Pool, SignInAttempt{Email: "ada@example.com", Password: goodPassword, Network: "198.51.100.1"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an unknown device is not slowed down: %v", err)
	}
	if err := sign(goodPassword, "192.0.2.66", "phone"); err != nil {
		t.Errorf("with a known device: %v", err)
	}
	for range maxPerAccount {
		_ = sign("wrong", "192.0.2.1", "phone")
	}
	if err := sign(goodPassword, "192.0.2.1", "phone"); !isSlow(err) {
		t.Errorf("guesses with a known device: %v", err)
	}
	if err := SetPassword(t.Context(), d.Pool, ada, goodPassword); err != nil {
		t.Fatal(err)
	}
	for _, device := range []string{"", "phone"} {
		if err := sign(goodPassword, "192.0.2.66", device); err != nil {
			t.Errorf("after an operator set the password, device %q: %v", device, err)
		}
	}
}

// TestPasswordChecksOfSessionAreBounded checks that password checks within a session are limited.
func TestPasswordChecksOfSessionAreBounded(t *testing.T) {
	d, _, _ := newDatabase(t)
	token, err := SignIn(t.Context(), d.Pool, SignInAttempt{Email: "ada@example.com", Password: goodPassword})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), d.Pool, token)
	if err != nil {
		t.Fatal(err)
	}
	for range maxPerAccount {
		if err = s.VerifyPassword(t.Context(), d.Pool, "wrong"); !errors.Is(err, ErrBadCredentials) {
			t.Fatal(err)
		}
	}
	if err = s.VerifyPassword(t.Context(), d.Pool, goodPassword); !isSlow(err) {
		t.Errorf("one attempt too many: %v", err)
	}
}

func TestDevices(t *testing.T) {
	key, now := []byte("key"), time.Unix(1e9, 0)
	kept := NewDevice(key, "Ada@example.com", now)
	id, ok := KnownDevice(key, kept, "ada@example.com", now.Add(time.Hour))
	if !ok || id == "" || !strings.HasPrefix(kept, id+".") {
		t.Errorf("%q of %q, %v", id, kept, ok)
	}
	for name, known := range map[string]func() (string, bool){
		"another account": func() (string, bool) { return KnownDevice(key, kept, "bob@example.com", now) },
		"another key":     func() (string, bool) { return KnownDevice([]byte("x"), kept, "ada@example.com", now) },
		"too old":         func() (string, bool) { return KnownDevice(key, kept, "ada@example.com", now.Add(DeviceLife)) },
		"changed":         func() (string, bool) { return KnownDevice(key, "x"+kept, "ada@example.com", now) },
		"nothing":         func() (string, bool) { return KnownDevice(key, "", "ada@example.com", now) },
	} {
		if _, ok := known(); ok {
			t.Errorf("%s: device accepted", name)
		}
	}
}

// TestHashingQueue checks that a canceled request leaves the queue for hashing, and that a full queue accepts only
// requests of known devices.
func TestHashingQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &limiter{working: make(chan struct{}, 1), most: 2}
		leave, err := q.enter(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if _, gone := q.enter(ctx, false); !errors.Is(gone, context.Canceled) {
					t.Errorf("canceled request: %v", gone)
				}
			})
		}
		synctest.Wait()
		if _, err = q.enter(t.Context(), false); !isSlow(err) {
			t.Errorf("a third request: %v", err)
		}
		all.Go(func() {
			done, fault := q.enter(t.Context(), true)
			if fault != nil {
				t.Errorf("with a known device: %v", fault)
				return
			}
			done()
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		leave()
		all.Wait()
	})
}

func TestBadCredentials(t *testing.T) {
	d, _, _ := newDatabase(t)
	for _, p := range [][2]string{{"ada@example.com", ""}, {"", string(goodPassword)}, {"bob@example.com", string(goodPassword)}, {"ada@example.com\x00", string(goodPassword)}, {"ada@example.com", strings.Repeat("a", 1000)}} {
		if _, err := SignIn(t.Context(), d.Pool, SignInAttempt{Email: p[0], Password: media.Secret(p[1]), Network: "192.0.2.1"}); !errors.Is(err, ErrBadCredentials) {
			t.Errorf("%q: %v", p[0], err)
		}
	}
	if _, err := Open(t.Context(), d.Pool, "x"); !errors.Is(err, ErrSignedOut) {
		t.Errorf("invalid token: %v", err)
	}
}

// TestLastOwnerStays checks that the last owner cannot be removed, not even by concurrent changes.
func TestLastOwnerStays(t *testing.T) {
	d, org, ada := newDatabase(t)
	if err := SetRole(t.Context(), d.Pool, org, ada, Viewer); !errors.Is(err, ErrLastOwner) {
		t.Errorf("last owner made a viewer: %v", err)
	}
	if err := Remove(t.Context(), d.Pool, org, ada); !errors.Is(err, ErrLastOwner) {
		t.Errorf("last owner removed: %v", err)
	}
	bob, password, err := Create(t.Context(), d.Pool, NewMember{Email: "bob@example.com", OrgID: org, Role: Owner})
	if err != nil || CheckPassword(password) != nil {
		t.Fatalf("%v", err)
	}
	if _, _, err = Create(t.Context(), d.Pool, NewMember{Email: "bob@example.com", OrgID: org, Role: Viewer}); err == nil {
		t.Error("one operator has two roles")
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
		t.Errorf("%d removed, %+v left: %v", gone.Load(), left, err)
	}
	if _, err := Find(t.Context(), d.Pool, org, "carol@example.com"); !errors.Is(err, ErrUnknown) {
		t.Errorf("unknown operator: %v", err)
	}
	if err := Remove(t.Context(), d.Pool, org, "opr_9"); !errors.Is(err, ErrUnknown) {
		t.Errorf("unknown operator: %v", err)
	}
}

// TestChangesAreLogged checks that a change and its entry are stored together or not at all, and that entries cannot
// be changed.
func TestChangesAreLogged(t *testing.T) {
	d, org, ada := newDatabase(t)
	a := Actor{ID: ada, Email: "ada@example.com", OrgID: org, Address: "192.0.2.1"}
	rename := func(name string, fault error) error {
		return Change(t.Context(), d, a, Owner, func(q db.Querier) (Entry, error) {
			_, err := q.Exec(t.Context(), "UPDATE organizations SET name = $1", name)
			return Entry{Action: "organization.rename", Object: org, Before: map[string]any{"name": "acme"}, After: map[string]any{"name": name}}, errors.Join(err, fault)
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
			t.Errorf("%s succeeded", sql)
		}
	}
	if more, err := Entries(t.Context(), d.Pool, org, "", "", log[0].ID, 10); err != nil || len(more) != 0 {
		t.Errorf("before the first entry: %+v, %v", more, err)
	}
}

// TestAuditHasNoGaps reads the log while a transaction has not committed its entry, whose id is lower than that of a
// visible one.
func TestAuditHasNoGaps(t *testing.T) {
	d, org, _ := newDatabase(t)
	write := func(q db.Querier, object string) {
		t.Helper()
		if err := Log(t.Context(), q, CommandLine(org), Entry{Action: "x", Object: object}); err != nil {
			t.Fatal(err)
		}
	}
	read := func() (objects string) {
		t.Helper()
		settled, err := SettledBefore(t.Context(), d.Pool, 0)
		if err != nil {
			t.Fatal(err)
		}
		all, err := EntriesAfter(t.Context(), d.Pool, org, 0, settled, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			objects += e.Object + " "
		}
		return objects
	}
	write(d.Pool, "first")
	slow, err := d.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.Rollback(context.WithoutCancel(t.Context())) }()
	write(slow, "slow")
	write(d.Pool, "last")
	if got := read(); got != "first " {
		t.Errorf("during the transaction: %s", got)
	}
	if err = slow.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := read(); got != "first slow last " {
		t.Errorf("after it: %s", got)
	}
}
