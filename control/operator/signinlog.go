package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

// Ways to sign in.
const (
	ByPassword = "password"
	ByCode     = "password and one-time code"
	ByRecovery = "password and recovery code"
	ByProvider = "identity provider"
)

// Refused sign-ins that the audit log keeps. The log of the process has all of them.
const (
	maxRefusals   = 10 // in refusalWindow: of one account, of all unknown operators, and of all unknown persons of the provider
	refusalWindow = time.Hour
	maxReason     = 200 // characters
)

// Refusal is a refused sign-in.
type Refusal struct {
	Email    string // address of the account; it may be empty or unknown
	Verified bool   // an identity provider has verified Email
	Address  string // IP address
	Way      string
	Err      error
	Root     string // name of the organization whose audit log has the refusals of unknown operators
}

func (r Refusal) reason(known bool) string {
	_, slow := errors.AsType[*SlowDownError](r.Err)
	switch {
	case slow:
		return "too many attempts"
	case errors.Is(r.Err, ErrBadCredentials) && known:
		return "wrong password"
	case errors.Is(r.Err, ErrBadCredentials), errors.Is(r.Err, ErrUnknown):
		return "unknown operator"
	case errors.Is(r.Err, ErrBadCode):
		return "wrong code"
	}
	return fmt.Sprintf("%.*s", maxReason, r.Err)
}

// LogRefusal writes a refused sign-in to the audit logs of the operator's organizations. It leaves out what an unknown
// operator typed, because that may be a password. The entry that reaches the bound says so; further ones are left out.
func LogRefusal(ctx context.Context, q Database, r Refusal) error {
	leave, err := refusing.enter(ctx, false)
	if err != nil {
		return err
	}
	defer leave()
	email := strings.ToLower(strings.TrimSpace(r.Email))
	if !isStorable(email) {
		email = ""
	}
	err = pgx.BeginFunc(ctx, q, func(tx pgx.Tx) (fault error) {
		a := Actor{Email: "unknown operator", Address: r.Address}
		fault = tx.QueryRow(ctx, "SELECT id, email FROM operators WHERE email = $1", email).Scan(&a.ID, &a.Email)
		if fault != nil && !errors.Is(fault, pgx.ErrNoRows) {
			return fault
		}
		of := "refused " + a.ID
		if a.ID == "" && r.Verified {
			a.Email, of = r.Email, "refused verified"
		}
		n, fault := countRefusal(ctx, tx, of)
		if fault != nil || n >= maxRefusals {
			return fault
		}
		after := map[string]any{"way": r.Way, "reason": r.reason(a.ID != "")}
		if n == maxRefusals-1 {
			after["further"] = "not logged for up to " + refusalWindow.String()
		}
		e := Entry{Action: "sign-in.refused", Object: a.ID, After: after}
		if a.ID != "" {
			return logEverywhere(ctx, tx, a, e)
		}
		fault = tx.QueryRow(ctx, "SELECT id FROM organizations WHERE name = $1", r.Root).Scan(&a.OrgID)
		if errors.Is(fault, pgx.ErrNoRows) {
			return nil
		}
		if fault != nil {
			return fault
		}
		return Log(ctx, tx, a, e)
	})
	return db.Wrap(err, "audit log")
}

// countRefusal counts a refusal, and returns how many were counted before in refusalWindow, at most maxRefusals. The transaction
// does not wait for the disk: the time of a response would tell whether a refusal was logged, and thus whether an account exists.
func countRefusal(ctx context.Context, tx pgx.Tx, of string) (n int, err error) {
	_, err = tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 170)), set_config('synchronous_commit', 'off', true)", of)
	if err == nil {
		err = tx.QueryRow(ctx, "SELECT count(*) FROM operator_tries WHERE of = $1 AND at > now() - $2::interval", of, refusalWindow).Scan(&n)
	}
	if err == nil && n < maxRefusals {
		_, err = tx.Exec(ctx, "INSERT INTO operator_tries (of) VALUES ($1)", of)
	}
	return n, err
}

// isStorable reports whether Postgres can store and compare a text.
func isStorable(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
