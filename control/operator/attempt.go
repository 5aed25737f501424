package operator

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
)

// Failed attempts to sign in that are allowed within 15 minutes.
const (
	maxPerAccount     = 10  // for one account from one network, for one device, or in one session
	maxPerNetwork     = 50  // for all accounts from one network
	maxPerSite        = 500 // for all accounts from one /48 of IPv6: a single customer may have all of its networks
	slowdownThreshold = 100
	attemptWindow     = 15 * time.Minute
)

// slowSignIn is the delay of an attempt if the account had more than slowdownThreshold failed attempts from all
// networks together. The account is not locked, because a lock would also keep its owner out.
const slowSignIn = 5 * time.Second

// DeviceLife is the time for which a device stays known after a sign-in on it.
const DeviceLife = 90 * 24 * time.Hour

// Database is a pool or a transaction.
type Database interface {
	db.Querier
	Begin(ctx context.Context) (pgx.Tx, error)
}

// SlowDownError means that too many attempts failed or are running.
type SlowDownError struct{ For time.Duration }

// Error implements error.
func (s *SlowDownError) Error() string {
	return "too many sign-in attempts; wait " + s.For.Round(time.Second).String()
}

// SignInAttempt is an attempt to sign in.
type SignInAttempt struct {
	Email    string
	Password media.Secret
	Network  string // network of the client, for the limit per network
	Address  string // IP address, for the audit log
	// Device is the id of a device on which the account has signed in before (see KnownDevice), or empty. Attempts on a
	// known device are counted separately, so that failed attempts of other people cannot lock its owner out.
	Device string
	Key    []byte // signs the challenge of accounts with one-time codes; shared by all servers
}

// attemptLimit limits the failed attempts of one kind.
type attemptLimit struct {
	of   string
	most int
}

// countedAttempt identifies an attempt in its counters.
type countedAttempt struct {
	of []string
	at time.Time
}

// count counts the attempt, and delays it if the account had too many attempts. It returns a *SlowDownError if a limit
// is reached. A refused attempt is not counted, so it does not prolong the refusal.
func (t SignInAttempt) count(ctx context.Context, q Database) (countedAttempt, error) {
	account := "account " + t.Email
	if t.Device != "" {
		return countAttempt(ctx, q, []attemptLimit{{account + " device " + t.Device, maxPerAccount}})
	}
	limits := append(networkLimits(t.Network), attemptLimit{account + " from " + t.Network, maxPerAccount}, attemptLimit{account, 0})
	counted, err := countAttempt(ctx, q, limits)
	if err != nil {
		return counted, err
	}
	var all int
	err = q.QueryRow(ctx, "SELECT count(*) FROM operator_tries WHERE of = $1 AND at > now() - $2::interval", account, attemptWindow).
		Scan(&all)
	if err != nil {
		return counted, fmt.Errorf("sign in: %w", err)
	}
	if all <= slowdownThreshold {
		return counted, nil
	}
	wait := time.NewTimer(slowSignIn)
	defer wait.Stop()
	select {
	case <-wait.C:
		return counted, nil
	case <-ctx.Done():
		return counted, ctx.Err()
	}
}

// networkLimits returns the limits of a network, an IPv4 address or an IPv6 /64.
func networkLimits(network string) []attemptLimit {
	all := []attemptLimit{{"address " + network, maxPerNetwork}}
	if p, err := netip.ParsePrefix(network); err == nil && p.Addr().Is6() {
		all = append(all, attemptLimit{"address " + netip.PrefixFrom(p.Addr(), 48).Masked().String(), maxPerSite})
	}
	return all
}

// countAttempt counts a sign-in attempt. If a limit is reached, it counts nothing and returns a *SlowDownError. A limit of
// 0 refuses nothing. Concurrent attempts cannot exceed the first limit.
func countAttempt(ctx context.Context, q Database, limits []attemptLimit) (t countedAttempt, err error) {
	leave, err := counting.enter(ctx, false)
	if err != nil {
		return t, err
	}
	defer leave()
	var slow *SlowDownError
	err = pgx.BeginFunc(ctx, q, func(tx pgx.Tx) (fault error) {
		// Lock only the first limit, so that a client can delay only its own attempts.
		if _, fault = tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 170))", limits[0].of); fault != nil {
			return fault
		}
		for _, b := range limits {
			t.of = append(t.of, b.of)
			if b.most == 0 {
				continue
			}
			var n int
			var first time.Time
			if fault = tx.QueryRow(ctx, `
				SELECT count(*), coalesce(min(at), now()) FROM operator_tries
				WHERE of = $1 AND at > clock_timestamp() - $2::interval`, b.of, attemptWindow).Scan(&n, &first); fault != nil {
				return fault
			}
			if n >= b.most {
				slow = &SlowDownError{For: max(time.Minute, time.Until(first.Add(attemptWindow)))}
				return nil
			}
		}
		return tx.QueryRow(ctx, `
			WITH now AS (SELECT clock_timestamp() AS at), kept AS (
				INSERT INTO operator_tries (of, at) SELECT unnest($1::text[]), at FROM now)
			SELECT at FROM now`, t.of).Scan(&t.at)
	})
	switch {
	case err != nil:
		return t, fmt.Errorf("sign in: %w", err)
	case slow != nil:
		return t, slow
	}
	return t, nil
}

func (t countedAttempt) forget(ctx context.Context, q db.Querier) error {
	_, err := q.Exec(ctx, "DELETE FROM operator_tries WHERE of = ANY($1) AND at = $2", t.of, t.at)
	return err
}

// clear deletes the attempts with the same counters after a successful sign-in. It keeps attempts for other accounts
// from the same network.
func (t countedAttempt) clear(ctx context.Context, q db.Querier) error {
	_, err := q.Exec(ctx, "DELETE FROM operator_tries WHERE of = ANY($1) AND (at = $2 OR of NOT LIKE 'address %')", t.of, t.at)
	return err
}

// clearAttempts deletes all failed attempts of an account after its password was set.
func clearAttempts(ctx context.Context, q db.Querier, id string) error {
	_, err := q.Exec(ctx, `
		DELETE FROM operator_tries t USING operators p
		WHERE p.id = $1 AND (t.of = 'account ' || p.email OR starts_with(t.of, 'account ' || p.email || ' '))`, id)
	return err
}

// NewDevice returns a value for the browser to store. The value identifies the browser as a known device of the account
// until DeviceLife has passed.
func NewDevice(key []byte, email string, now time.Time) string {
	id := rand.Text()
	until := strconv.FormatInt(now.Add(DeviceLife).Unix(), 10)
	return id + "." + until + "." + deviceSum(key, email, id, until)
}

// KnownDevice returns the id of a device from the value that NewDevice made. ok is false if the value is expired,
// invalid or of another account.
func KnownDevice(key []byte, value, email string, now time.Time) (id string, ok bool) {
	parts := strings.Split(value, ".")
	if len(parts) != 3 || !hmac.Equal([]byte(parts[2]), []byte(deviceSum(key, email, parts[0], parts[1]))) {
		return "", false
	}
	until, err := strconv.ParseInt(parts[1], 10, 64)
	return parts[0], err == nil && now.Unix() < until
}

func deviceSum(key []byte, email, id, until string) string {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "device\x00%s\x00%s\x00%s", strings.ToLower(strings.TrimSpace(email)), id, until)
	return hex.EncodeToString(h.Sum(nil))
}
