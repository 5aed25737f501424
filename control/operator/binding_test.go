package operator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestConcurrentFirstSignIns checks that first sign-ins at the same time bind one account to one person, and one person to
// one account.
func TestConcurrentFirstSignIns(t *testing.T) {
	d, org, _ := newDatabase(t)
	count := func(sql string) (n int) {
		t.Helper()
		if err := d.Pool.QueryRow(t.Context(), sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	sign := func(round, i int, email, subject string) error {
		s := IdentitySignIn{Person: Person{"https://idp.example", subject}, Email: email}
		if round%2 == 1 { // the accounts do not exist
			s.Rules = []Rule{{"g", "x", "acme", Viewer}}
			s.Roles = map[string]Role{"acme": Viewer}
		}
		_, err := SignInIdentity(t.Context(), d.Pool, s)
		if err != nil && !errors.Is(err, ErrOtherPerson) {
			t.Errorf("round %d, sign-in %d: %v", round, i, err)
		}
		return err
	}
	for round := range 4 {
		before := count("SELECT count(*) FROM operators")
		emails := []string{fmt.Sprintf("a%d@example.com", round), fmt.Sprintf("b%d@example.com", round)}
		if round%2 == 0 {
			for _, email := range emails {
				if _, _, err := Create(t.Context(), d.Pool, NewMember{Email: email, OrgID: org, Role: Viewer, NoPassword: true}); err != nil {
					t.Fatal(err)
				}
			}
			before = count("SELECT count(*) FROM operators")
		}
		var all sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			all.Go(func() {
				// Rounds 0 and 1: two persons with one address. Rounds 2 and 3: one person with two addresses.
				email, subject := emails[0], fmt.Sprintf("%d-%d", round, i%2)
				if round >= 2 {
					email, subject = emails[i%2], fmt.Sprint(round)
				}
				errs[i] = sign(round, i, email, subject)
			})
		}
		all.Wait()
		prefix := fmt.Sprintf("SELECT count(*) FROM operator_identities WHERE subject LIKE '%d%%'", round)
		if n := count(prefix); n != 1 {
			t.Errorf("round %d: %d bindings", round, n)
		}
		refused := len(slices.DeleteFunc(errs, func(err error) bool { return err == nil }))
		if want := 4 * (1 - round/2); refused != want {
			t.Errorf("round %d: %d were refused, want %d", round, refused, want)
		}
		if n := count("SELECT count(*) FROM operators") - before; n != round%2 {
			t.Errorf("round %d: %d new accounts", round, n)
		}
	}
}

// TestLongSubject checks that the longest subject of OpenID Connect is stored, and that case matters.
func TestLongSubject(t *testing.T) {
	d, org, _ := newDatabase(t)
	if _, _, err := Create(t.Context(), d.Pool, NewMember{Email: "bob@example.com", OrgID: org, Role: Viewer, NoPassword: true}); err != nil {
		t.Fatal(err)
	}
	sign := func(issuer, subject string) error {
		_, err := SignInIdentity(t.Context(), d.Pool, IdentitySignIn{Person: Person{issuer, subject}, Email: "bob@example.com"})
		return err
	}
	long := strings.Repeat("aB", 127) + "~"
	for range 2 {
		if err := sign("https://idp.example", long); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []Person{{"https://idp.example", strings.ToLower(long)}, {"https://idp.example/", long}, {"https://other.example", long}} {
		if err := sign(p.Issuer, p.Subject); !errors.Is(err, ErrOtherPerson) {
			t.Errorf("%v: %v", p, err)
		}
	}
}

// TestAddress checks that no address becomes that of somebody else in lower case.
func TestAddress(t *testing.T) {
	for given, want := range map[string]string{
		" Kate@Example.com": "kate@example.com", "J\u00d6RG@example.com": "j\u00f6rg@example.com",
		"\u212aate@example.com": "", "l\u0130sa@example.com": "", "ada@example.com, eve@example.com": "", "ada": "",
	} {
		if got, err := Address(given); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", given, got, err)
		}
	}
}

// TestManyNetworks checks that the holder of an IPv6 /48 cannot guess from each of its networks.
func TestManyNetworks(t *testing.T) {
	d, _, _ := newDatabase(t)
	count := func(network string) error {
		_, err := countAttempt(t.Context(), d.Pool, networkLimits(network))
		if _, slow := errors.AsType[*SlowDownError](err); err != nil && !slow {
			t.Fatal(err)
		}
		return err
	}
	passed := 0
	for n := range maxPerSite + 10 {
		if count(fmt.Sprintf("2001:db8:1:%x::/64", n)) == nil {
			passed++
		}
	}
	if passed != maxPerSite || count("2001:db8:2:1::/64") != nil || count("192.0.2.1/32") != nil {
		t.Errorf("%d attempts", passed)
	}
}
