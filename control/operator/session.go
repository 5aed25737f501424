package operator

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
)

// How long a session lasts.
const (
	Idle = 12 * time.Hour     // without a page
	Life = 7 * 24 * time.Hour // at all
)

// How many tries of a quarter of an hour may fail.
const (
	triesOfAccount = 10
	triesOfAddress = 50
	tryWindow      = 15 * time.Minute
)

// ErrWrong is returned where address and password are not those of an operator.
var ErrWrong = errors.New("this address and this password do not belong together")

// ErrSignedOut is returned where nobody is signed in by a token.
var ErrSignedOut = errors.New("nobody is signed in")

// A SlowDownError says that too many tries failed.
type SlowDownError struct{ For time.Duration }

// Error implements error.
func (s *SlowDownError) Error() string {
	return "too many tries to sign in failed; wait " + s.For.Round(time.Minute).String()
}

// sum is what is kept of a token: what a browser shows to be known.
func sum(token media.Secret) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// A Seat is an organization in which somebody has a role.
type Seat struct {
	OrgID    string `json:"id"`
	Name     string `json:"name"`
	Timezone string `json:"timezone"` // of the organization
	Role     Role   `json:"role"`
}

// A Session is who is signed in.
type Session struct {
	ID, Email string
	Seats     []Seat // by name
	LastOrg   string // looked at last; empty at first
	Said      string // to be shown on the next page, once
	token     media.Secret
}

// Seat returns the operator's role in an organization.
func (s Session) Seat(orgID string) (Seat, bool) {
	at := slices.IndexFunc(s.Seats, func(at Seat) bool { return at.OrgID == orgID })
	if at < 0 {
		return Seat{}, false
	}
	return s.Seats[at], true
}

// SignIn begins a session. It fails with ErrWrong or a *SlowDownError where it may
// not; address is the network that tries are counted of.
func SignIn(ctx context.Context, q db.Querier, email string, password media.Secret, address string) (media.Secret, error) {
	email = strings.ToLower(strings.TrimSpace(email))
	if len(password) > mostPassword || len(email) > 254 || strings.ContainsRune(email+string(password), 0) {
		return "", ErrWrong
	}
	account, network := "account "+email, "address "+address
	if err := try(ctx, q, account, network); err != nil {
		return "", err
	}
	id, kept := "", nobody()
	err := q.QueryRow(ctx, "SELECT id, password_hash FROM operators WHERE email = $1", email).Scan(&id, &kept)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", fmt.Errorf("sign in: %w", err)
	}
	if !matches(kept, password) || id == "" {
		return "", ErrWrong
	}
	token := media.Secret(rand.Text() + rand.Text())
	_, err = q.Exec(ctx, "INSERT INTO operator_sessions (hash, operator_id) VALUES ($1, $2)", sum(token), id)
	if err == nil {
		_, err = q.Exec(ctx, "DELETE FROM operator_tries WHERE of = $1", account)
	}
	if err != nil {
		return "", fmt.Errorf("sign in: %w", err)
	}
	return token, nil
}

// try counts a try, and then holds the count to what may be: of any number at a
// time no more than that are let through.
func try(ctx context.Context, q db.Querier, account, network string) error {
	_, err := q.Exec(ctx, "INSERT INTO operator_tries (of, at) VALUES ($1, clock_timestamp()), ($2, clock_timestamp())", account, network)
	var ofAccount, ofNetwork int
	var first time.Time
	if err == nil {
		err = q.QueryRow(ctx, `
			SELECT count(*) FILTER (WHERE of = $1), count(*) FILTER (WHERE of = $2), coalesce(min(at), now())
			FROM operator_tries WHERE of IN ($1, $2) AND at > now() - $3::interval`, account, network, tryWindow).Scan(&ofAccount, &ofNetwork, &first)
	}
	if err != nil {
		return fmt.Errorf("sign in: %w", err)
	}
	if ofAccount > triesOfAccount || ofNetwork > triesOfAddress {
		return &SlowDownError{For: max(time.Minute, time.Until(first.Add(tryWindow)))}
	}
	return nil
}

// Open returns who is signed in by a token, or ErrSignedOut. The time of it counts
// to the minute.
func Open(ctx context.Context, q db.Querier, token media.Secret) (Session, error) {
	s := Session{token: token}
	var seats []byte
	var stale bool
	err := q.QueryRow(ctx, `
		SELECT p.id, p.email, s.org_id, s.said, s.seen_at < now() - interval '1 minute', coalesce((
			SELECT jsonb_agg(jsonb_build_object('id', o.id, 'name', o.name, 'timezone', o.timezone, 'role', r.role) ORDER BY o.name)
			FROM operator_roles r JOIN organizations o ON o.id = r.org_id WHERE r.operator_id = p.id), '[]')
		FROM operator_sessions s JOIN operators p ON p.id = s.operator_id
		WHERE s.hash = $1 AND s.seen_at > now() - $2::interval AND s.created_at > now() - $3::interval`, sum(token), Idle, Life).
		Scan(&s.ID, &s.Email, &s.LastOrg, &s.Said, &stale, &seats)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, ErrSignedOut
	}
	if err == nil {
		err = json.Unmarshal(seats, &s.Seats)
	}
	if err == nil && stale {
		_, err = q.Exec(ctx, "UPDATE operator_sessions SET seen_at = now() WHERE hash = $1", sum(token))
	}
	if err != nil {
		return s, fmt.Errorf("session: %w", err)
	}
	return s, nil
}

// Visit notes which organization is looked at, and that what was said was shown.
func (s Session) Visit(ctx context.Context, q db.Querier, orgID string) error {
	if s.LastOrg == orgID && s.Said == "" {
		return nil
	}
	_, err := q.Exec(ctx, "UPDATE operator_sessions SET org_id = $2, said = '' WHERE hash = $1", sum(s.token), orgID)
	if err != nil {
		return fmt.Errorf("session: %w", err)
	}
	return nil
}

// Say keeps a line for the next page.
func (s Session) Say(ctx context.Context, q db.Querier, line string) error {
	_, err := q.Exec(ctx, "UPDATE operator_sessions SET said = $2 WHERE hash = $1", sum(s.token), line)
	if err != nil {
		return fmt.Errorf("session: %w", err)
	}
	return nil
}

// SetPassword changes the password of who is signed in, who knows the one before.
// All other sessions of the account end.
func (s Session) SetPassword(ctx context.Context, q db.Querier, before, password media.Secret) error {
	var kept string
	if err := q.QueryRow(ctx, "SELECT password_hash FROM operators WHERE id = $1", s.ID).Scan(&kept); err != nil {
		return fmt.Errorf("password: %w", err)
	}
	if !matches(kept, before) {
		return ErrWrong
	}
	return setPassword(ctx, q, s.ID, password, s.token)
}

// SignOut ends a session. One that there is not is none.
func SignOut(ctx context.Context, q db.Querier, token media.Secret) error {
	if _, err := q.Exec(ctx, "DELETE FROM operator_sessions WHERE hash = $1", sum(token)); err != nil {
		return fmt.Errorf("sign out: %w", err)
	}
	return nil
}

// Sweep forgets sessions that are over, and tries that count no more.
func Sweep(ctx context.Context, q db.Querier) error {
	_, err := q.Exec(ctx, "DELETE FROM operator_sessions WHERE seen_at < now() - $1::interval OR created_at < now() - $2::interval", Idle, Life)
	if err == nil {
		_, err = q.Exec(ctx, "DELETE FROM operator_tries WHERE at < now() - $1::interval", tryWindow)
	}
	if err != nil {
		return fmt.Errorf("sessions: %w", err)
	}
	return nil
}
