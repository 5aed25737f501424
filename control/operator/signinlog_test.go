package operator

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/parley-voice/parley/control/apikeys"
)

// TestRefusalsAreBounded checks that the audit log keeps a bounded number of refusals: of one account, and of all unknown
// operators together, whatever their addresses.
func TestRefusalsAreBounded(t *testing.T) {
	d, org, _ := newDatabase(t)
	root, err := apikeys.EnsureOrganization(t.Context(), d.Pool, "root")
	if err != nil {
		t.Fatal(err)
	}
	refuse := func() {
		t.Helper()
		var all sync.WaitGroup
		for i := range 15 {
			for _, email := range []string{"Ada@example.com ", fmt.Sprintf("secret word %d", i), "ada@example.com\x00", "\xff@example.com", ""} {
				all.Go(func() {
					r := Refusal{Email: email, Way: ByPassword, Err: ErrBadCredentials, Root: "root", Address: fmt.Sprintf("192.0.2.%d", i)}
					if err := LogRefusal(t.Context(), d.Pool, r); err != nil {
						t.Errorf("%q: %v", email, err)
					}
				})
			}
		}
		all.Wait()
	}
	check := func(when string, want int) {
		t.Helper()
		for id, reason := range map[string]string{org: `"wrong password"`, root: `"unknown operator"`} {
			log, err := Entries(t.Context(), d.Pool, id, "sign-in.refused", "", 0, 100)
			if err != nil || len(log) != want || !strings.Contains(string(log[0].After), "not logged for up to 1h") {
				t.Fatalf("%s: %d entries, %v", when, len(log), err)
			}
			for _, e := range log {
				if !strings.Contains(string(e.After), reason) || strings.Contains(fmt.Sprint(e), "secret") || !strings.HasPrefix(e.Address, "192.0.2.") {
					t.Errorf("%+v", e)
				}
			}
		}
	}
	refuse()
	check("at first", maxRefusals)
	move := func(by string) {
		t.Helper()
		_, err := d.Pool.Exec(t.Context(), "UPDATE operator_tries SET at = at - $1::interval", by)
		if err == nil {
			err = Sweep(t.Context(), d.Pool)
		}
		if err != nil {
			t.Fatal(err)
		}
		refuse()
	}
	move("50 minutes")
	check("50 minutes later", maxRefusals)
	move("11 minutes")
	check("an hour later", 2*maxRefusals)
}

// TestRefusalReasons checks the reasons, which contain nothing that was typed.
func TestRefusalReasons(t *testing.T) {
	for _, tt := range []struct {
		err   error
		known bool
		want  string
	}{
		{ErrBadCredentials, true, "wrong password"},
		{ErrBadCredentials, false, "unknown operator"},
		{fmt.Errorf("x: %w", ErrUnknown), false, "unknown operator"},
		{ErrBadCode, true, "wrong code"},
		{&SlowDownError{For: 1}, true, "too many attempts"},
		{errors.Join(ErrOtherPerson), true, ErrOtherPerson.Error()},
		{errors.New(strings.Repeat("é", 300)), true, strings.Repeat("é", maxReason)},
	} {
		if got := (Refusal{Err: tt.err}).reason(tt.known); got != tt.want {
			t.Errorf("%v: %s", tt.err, got)
		}
	}
}

// TestVerifiedRefusals checks that refusals of unknown operators do not use up the entries of persons whom the identity
// provider verified.
func TestVerifiedRefusals(t *testing.T) {
	d, _, _ := newDatabase(t)
	root, err := apikeys.EnsureOrganization(t.Context(), d.Pool, "root")
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(r Refusal) {
		t.Helper()
		r.Root, r.Err, r.Address = "root", ErrUnknown, "192.0.2.1"
		if err = LogRefusal(t.Context(), d.Pool, r); err != nil {
			t.Fatal(err)
		}
	}
	for range maxRefusals + 1 {
		refuse(Refusal{Way: ByPassword})
	}
	refuse(Refusal{Way: ByProvider, Email: "eve@example.com", Verified: true})
	log, err := Entries(t.Context(), d.Pool, root, "sign-in.refused", "eve@example.com", 0, 100)
	if err != nil || len(log) != 1 {
		t.Errorf("entries of the verified person: %+v, %v", log, err)
	}
}
