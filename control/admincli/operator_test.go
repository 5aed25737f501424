package admincli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/parley-voice/parley/control/admincli"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/media"
)

func TestOperatorCommands(t *testing.T) {
	d, out := newEnv(t)
	org, err := apikeys.EnsureOrganization(t.Context(), d.Pool, "acme")
	if err != nil {
		t.Fatal(err)
	}
	signs := func(password string) bool {
		t.Helper()
		_, fault := operator.SignIn(t.Context(), d.Pool, operator.SignInAttempt{Email: "ada@example.com", Password: media.Secret(password)})
		return fault == nil
	}
	create := admincli.CreateOperator{Org: "acme", Email: "Ada@example.com", Role: "owner"}
	if err = create.Run(t.Context(), d); err != nil || !signs(strings.TrimSpace(out.String())) {
		t.Fatalf("%v: %q", err, out)
	}
	if create.Run(t.Context(), d) == nil || (admincli.CreateOperator{Org: "nobody", Email: "a@b.c", Role: "owner"}).Run(t.Context(), d) == nil {
		t.Error("a second operator, or an unknown organization, was accepted")
	}
	out.Reset()
	d.In = strings.NewReader("bob's own password\n")
	if err = (admincli.CreateOperator{Org: "acme", Email: "bob@example.com", Role: "viewer", Password: true}).Run(t.Context(), d); err != nil || out.Len() > 0 {
		t.Errorf("%v: %q", err, out)
	}
	d.In = strings.NewReader("short\n")
	if err = (admincli.SetOperator{Org: "acme", Email: "ada@example.com", Password: true}).Run(t.Context(), d); err == nil || strings.Contains(err.Error(), "short") {
		t.Errorf("a short password: %v", err)
	}
	d.In = strings.NewReader("ada's other password")
	if err = (admincli.SetOperator{Org: "acme", Email: "ada@example.com", Password: true}).Run(t.Context(), d); err != nil || !signs("ada's other password") {
		t.Errorf("another password: %v", err)
	}
	if err = (admincli.SetOperator{Org: "acme", Email: "bob@example.com", Role: "operator"}).Run(t.Context(), d); err != nil {
		t.Error(err)
	}
	if (admincli.SetOperator{Org: "acme", Email: "bob@example.com"}).Run(t.Context(), d) == nil {
		t.Error("a command without changes succeeded")
	}
	if err = (admincli.ListOperators{Org: "acme"}).Run(t.Context(), d); err != nil || !strings.Contains(out.String(), "bob@example.com  acme          operator") {
		t.Errorf("%v:\n%s", err, out)
	}
	if err = (admincli.DeleteOperator{Org: "acme", Email: "bob@example.com"}).Run(t.Context(), d); err != nil {
		t.Error(err)
	}
	if (admincli.DeleteOperator{Org: "acme", Email: "ada@example.com"}).Run(t.Context(), d) == nil {
		t.Error("the last owner was deleted")
	}
	releaseOperator(t, d, out)
	log, err := operator.Entries(t.Context(), d.Pool, org, "operator.", "the command line", 0, 9)
	if err != nil || len(log) != 7 {
		t.Errorf("%+v, %v", log, err)
	}
}

// releaseOperator creates an operator without a password, who signs in at a provider, and releases the account.
func releaseOperator(t *testing.T, d *admincli.Env, out *bytes.Buffer) {
	t.Helper()
	if err := (admincli.CreateOperator{Org: "acme", Email: "eve@example.com", Role: "viewer", NoPassword: true}).Run(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	sign := func(subject string) error {
		_, err := operator.SignInIdentity(t.Context(), d.Pool, operator.IdentitySignIn{
			Person: operator.Person{Issuer: "https://old.example", Subject: subject}, Email: "eve@example.com",
		})
		return err
	}
	if err := sign("1"); err != nil || sign("2") == nil {
		t.Fatalf("%v", err)
	}
	out.Reset()
	if err := (admincli.ReleaseOperator{Org: "acme", Issuer: "https://new.example"}).Run(t.Context(), d); err != nil || out.String() != "0 released\n" {
		t.Errorf("%v: %s", err, out)
	}
	if err := (admincli.ReleaseOperator{Org: "acme", Issuer: "https://old.example"}).Run(t.Context(), d); err != nil || !strings.Contains(out.String(), "1 released") {
		t.Errorf("%v: %s", err, out)
	}
	if err := sign("2"); err != nil {
		t.Error(err)
	}
	for _, bad := range []admincli.ReleaseOperator{{Org: "acme"}, {Org: "acme", Email: "ada@example.com"}, {Org: "acme", Email: "nobody@example.com"}} {
		if bad.Run(t.Context(), d) == nil {
			t.Errorf("%+v succeeded", bad)
		}
	}
}
