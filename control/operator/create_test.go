package operator

import (
	"errors"
	"testing"

	"github.com/parley-voice/parley/control/apikeys"
)

// TestForeignAccount checks that an owner cannot add an account whose password the owner of another organization may know,
// and that an account with a password is not added as one of the identity provider.
func TestForeignAccount(t *testing.T) {
	d, acme, _ := newDatabase(t)
	other, err := apikeys.EnsureOrganization(t.Context(), d.Pool, "other")
	if err != nil {
		t.Fatal(err)
	}
	create := func(email, org string, by string, noPassword bool) (string, error) {
		id, _, fault := Create(t.Context(), d.Pool, NewMember{
			Email: email, OrgID: org, Role: Owner, NoPassword: noPassword, By: Actor{ID: by, OrgID: org},
		})
		return id, fault
	}
	ada, err := create("ada@acme.example", acme, "", false)
	if err != nil {
		t.Fatal(err)
	}
	mallory, err := create("mallory@other.example", other, "", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = create("bob@acme.example", other, mallory, false); err != nil {
		t.Fatal(err)
	}
	if _, err = create("bob@acme.example", acme, ada, false); !errors.Is(err, ErrElsewhere) {
		t.Errorf("an account of another organization: %v", err)
	}
	for _, by := range []string{ada, ""} {
		if _, err = create("bob@acme.example", acme, by, true); !errors.Is(err, ErrHasPassword) {
			t.Errorf("an account with a password, by %q: %v", by, err)
		}
	}
	if _, err = create("ada@acme.example", acme, ada, false); !errors.Is(err, ErrMember) {
		t.Errorf("the own account: %v", err)
	}
	if _, err = create("bob@acme.example", acme, "", false); err != nil {
		t.Errorf("by the command line: %v", err)
	}
}
