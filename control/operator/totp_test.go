package operator

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
)

// TestCodes compares codes with those of RFC 6238, appendix B, and checks the steps that are accepted.
func TestCodes(t *testing.T) {
	for at, want := range map[int64]string{
		59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924", 2000000000: "279037", 20000000000: "353130",
	} {
		if got := code([]byte("12345678901234567890"), at/30); got != want {
			t.Errorf("%d: %s, want %s", at, got, want)
		}
	}
	key, now := NewCodeKey(), time.Unix(1_800_000_000, 0)
	for steps, ok := range map[int64]bool{-2: false, -1: true, 0: true, 1: true, 2: false} {
		given, err := CurrentCode(key, now.Add(time.Duration(steps)*30*time.Second))
		if got := step(key, given, now); err != nil || (got == now.Unix()/30+steps) != ok || got != 0 && !ok {
			t.Errorf("%d steps: %d, %v", steps, got, err)
		}
	}
	for _, bad := range []media.Secret{"", "AAAA", "1", key + "A", media.Secret(strings.ToLower(string(key)))} {
		if _, err := CurrentCode(bad, now); err == nil || step(bad, "000000", now) != 0 {
			t.Errorf("the key %q was accepted", string(bad))
		}
	}
	if got := CodeAddress("Parley (x)", "a+b@example.com", "AAAA"); got != "otpauth://totp/Parley%20%28x%29:a+b@example.com?issuer=Parley%20%28x%29&secret=AAAA" {
		t.Errorf("%s", got)
	}
}

// TestCodeIsUsedOnce uses one code in many sign-ins at once, then earlier codes, other challenges and recovery codes.
func TestCodeIsUsedOnce(t *testing.T) {
	d, _, ada := newDatabase(t)
	key := []byte("key")
	password := func() (string, error) {
		_, err := SignIn(t.Context(), d.Pool, SignInAttempt{Email: "ada@example.com", Password: goodPassword, Network: "192.0.2.1", Key: key})
		asked, ok := errors.AsType[*CodeRequiredError](err)
		if !ok {
			return "", err
		}
		return asked.Challenge, nil
	}
	token, err := SignIn(t.Context(), d.Pool, SignInAttempt{Email: "ada@example.com", Password: goodPassword, Network: "192.0.2.1", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), d.Pool, token)
	if err != nil {
		t.Fatal(err)
	}
	secret := NewCodeKey()
	at := func(steps int) string {
		c, fault := CurrentCode(secret, time.Now().Add(time.Duration(steps)*30*time.Second))
		if fault != nil {
			t.Fatal(fault)
		}
		return c
	}
	if _, err = s.EnableCodes(t.Context(), d.Pool, secret, "000 00"); !errors.Is(err, ErrBadCode) {
		t.Errorf("a wrong code: %v", err)
	}
	recovery, err := s.EnableCodes(t.Context(), d.Pool, secret, at(-1))
	if err != nil || len(recovery) != RecoveryCodes {
		t.Fatalf("%v, %v", recovery, err)
	}
	if _, err = s.EnableCodes(t.Context(), d.Pool, NewCodeKey(), at(0)); !errors.Is(err, ErrBadCode) {
		t.Errorf("another key: %v", err)
	}
	if _, err = s.EnableCodes(t.Context(), d.Pool, secret, at(0)); !errors.Is(err, ErrHasCodes) {
		t.Errorf("twice: %v", err)
	}
	var stored string
	if err = d.Pool.QueryRow(t.Context(), `SELECT p::text || string_agg(c::text, ' ') FROM operators p JOIN operator_recovery_codes c
		ON c.operator_id = p.id GROUP BY p.*`).Scan(&stored); err != nil || strings.Contains(stored, string(secret)) || strings.Contains(stored, recovery[0][:4]) || !strings.Contains(stored, "sealed:v1:") {
		t.Errorf("stored: %s, %v", stored, err)
	}
	challenge, err := password()
	if err != nil || challenge == "" {
		t.Fatal(err)
	}
	device := 0
	enter := func(challenge, code string) error {
		device++ // each attempt has a bound of its own
		n := strings.Repeat("d", device)
		_, email, fault := SignInCode(t.Context(), d.Pool, CodeAttempt{Challenge: challenge, Code: code, Key: key, Device: func(string) string { return n }})
		if fault == nil && email != "ada@example.com" {
			t.Errorf("signed in as %s", email)
		}
		return fault
	}
	for name, bad := range map[string]string{"the code of the enrolment": at(-1), "a wrong one": "x00000", "none": "", "a wrong recovery code": "aaaa-bbbb-cccc-dddd"} {
		if err = enter(challenge, bad); !errors.Is(err, ErrBadCode) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var passed atomic.Int32
	var all sync.WaitGroup
	now := at(0)
	for range 8 {
		all.Go(func() {
			if _, _, fault := SignInCode(t.Context(), d.Pool, CodeAttempt{Challenge: challenge, Code: now, Key: key, Device: func(string) string { return "one" }}); fault == nil {
				passed.Add(1)
			}
		})
	}
	all.Wait()
	if passed.Load() != 1 {
		t.Errorf("a code was used %d times", passed.Load())
	}
	if err = enter(challenge, " "+strings.ToUpper(recovery[3])+" "); err != nil {
		t.Errorf("a recovery code: %v", err)
	}
	if err = enter(challenge, recovery[3]); !errors.Is(err, ErrBadCode) {
		t.Errorf("a recovery code twice: %v", err)
	}
	var entries int
	if err = d.Pool.QueryRow(t.Context(), "SELECT count(*) FROM audit_log WHERE action = 'operator.recovery'").Scan(&entries); err != nil || entries != 1 {
		t.Errorf("%d entries, %v", entries, err)
	}
	parts := strings.Split(challenge, ".")
	late := newChallenge(key, ada, "x", time.Now().Add(-challengeLife-time.Second))
	for name, bad := range map[string]string{
		"another account": "opr_x." + parts[1] + "." + parts[2], "longer": parts[0] + ".9" + parts[1] + "." + parts[2], "no sum": parts[0] + "." + parts[1] + ".",
		"late": late, "none": "", "NUL": "\x00.1.x",
	} {
		if err = enter(bad, recovery[4]); !errors.Is(err, ErrChallengeOver) {
			t.Errorf("challenge, %s: %v", name, err)
		}
	}
	if err = SetPassword(t.Context(), d.Pool, ada, "another good one"); err != nil {
		t.Fatal(err)
	}
	if err = enter(challenge, recovery[4]); !errors.Is(err, ErrChallengeOver) {
		t.Errorf("after a new password: %v", err)
	}
}

// TestCodeGuesses checks the bounds: per device, elsewhere together, and per account.
func TestCodeGuesses(t *testing.T) {
	d, _, _ := newDatabase(t)
	try := func(from string) bool {
		_, err := countCode(t.Context(), d.Pool, "ada@example.com", from)
		slow, many := errors.AsType[*SlowDownError](err)
		if err != nil && !many || many && slow.For < time.Minute {
			t.Fatal(err)
		}
		return err == nil
	}
	passed := map[string]int{}
	for range 12 {
		for _, from := range []string{"elsewhere", "device 1"} {
			if try(from) {
				passed[from]++
			}
		}
	}
	if passed["elsewhere"] != 10 || passed["device 1"] != 10 {
		t.Errorf("%v", passed)
	}
	total := 20
	for n := range 60 {
		if try("device x" + strings.Repeat("x", n)) {
			total++
		}
	}
	if total != maxCodes {
		t.Errorf("%d codes", total)
	}
}
