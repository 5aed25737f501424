package operator

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
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

// Lifetime of a session.
const (
	Idle = 12 * time.Hour     // time after the last request
	Life = 7 * 24 * time.Hour // time after the sign-in
)

// ErrBadCredentials is returned if the email address or the password is wrong.
var ErrBadCredentials = errors.New("wrong email address or password")

// ErrSignedOut is returned if a token has no valid session.
var ErrSignedOut = errors.New("not signed in")

// sum returns the hash of a token. The database stores only the hash.
func sum(token media.Secret) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// Membership is an organization in which an operator has a role.
type Membership struct {
	OrgID    string `json:"id"`
	Name     string `json:"name"`
	Timezone string `json:"timezone"` // time zone of the organization
	Market   string `json:"market"`   // market of the organization; empty if it has none
	Role     Role   `json:"role"`
}

// Session is an operator who is signed in.
type Session struct {
	ID, Email   string
	Memberships []Membership // ordered by name
	LastOrg     string       // last visited organization; empty at first
	Identity    bool         // an identity provider started the session
	HasPassword bool
	HasCodes    bool   // the account requires one-time codes after its password
	Flash       string // message that the next page shows once
	token       media.Secret
}

// Ref returns an identifier of the session, for example for counting its streams. It cannot be used to sign in.
func (s Session) Ref() string { return hex.EncodeToString(sum(s.token)) }

// Membership returns the operator's role in an organization.
func (s Session) Membership(orgID string) (Membership, bool) {
	at := slices.IndexFunc(s.Memberships, func(at Membership) bool { return at.OrgID == orgID })
	if at < 0 {
		return Membership{}, false
	}
	return s.Memberships[at], true
}

// SignIn starts a session and returns its token. It fails with ErrBadCredentials, a *SlowDownError, or a
// *CodeRequiredError if the account requires a code.
func SignIn(ctx context.Context, q Database, t SignInAttempt) (media.Secret, error) {
	t.Email = strings.ToLower(strings.TrimSpace(t.Email))
	if len(t.Password) > maxPassword || len(t.Email) > 254 || !isStorable(t.Email+string(t.Password)) {
		return "", ErrBadCredentials
	}
	counted, err := t.count(ctx, q)
	if err != nil {
		return "", err
	}
	id, hash := "", dummyHash()
	var key media.Secret
	err = q.QueryRow(ctx, "SELECT id, password_hash, totp_secret FROM operators WHERE email = $1", t.Email).Scan(&id, &hash, &key)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", fmt.Errorf("sign in: %w", err)
	}
	ok, err := matches(ctx, hash, t.Password, t.Device != "")
	if err != nil {
		return "", errors.Join(err, counted.forget(context.WithoutCancel(ctx), q))
	}
	if !ok || id == "" {
		return "", ErrBadCredentials
	}
	if key != "" {
		if err = counted.clear(ctx, q); err != nil {
			return "", fmt.Errorf("sign in: %w", err)
		}
		return "", &CodeRequiredError{newChallenge(t.Key, id, hash, time.Now())}
	}
	var token media.Secret
	err = pgx.BeginFunc(ctx, q, func(tx pgx.Tx) (fault error) {
		token, fault = startSession(ctx, tx, Actor{ID: id, Email: t.Email, Address: t.Address}, ByPassword)
		return fault
	})
	if err == nil {
		err = counted.clear(ctx, q)
	}
	if err != nil {
		return "", fmt.Errorf("sign in: %w", err)
	}
	return token, nil
}

// startSession starts a session of an operator, logs the way of the sign-in, and returns the token.
func startSession(ctx context.Context, tx pgx.Tx, a Actor, way string) (media.Secret, error) {
	token := media.Secret(rand.Text() + rand.Text())
	_, err := tx.Exec(
		ctx, "INSERT INTO operator_sessions (hash, operator_id, identity) VALUES ($1, $2, $3)", sum(token), a.ID, way == ByProvider,
	)
	if err != nil {
		return "", err
	}
	return token, logEverywhere(ctx, tx, a, Entry{Action: "sign-in", Object: a.ID, After: map[string]any{"way": way}})
}

// Open returns the session of a token, or ErrSignedOut. It records the time of use to the minute.
func Open(ctx context.Context, q db.Querier, token media.Secret) (Session, error) {
	s := Session{token: token}
	var memberships []byte
	var stale bool
	err := q.QueryRow(ctx, `
		SELECT p.id, p.email, s.org_id, s.said, s.identity, p.password_hash <> '', p.totp_secret <> '', s.seen_at < now() - interval '1 minute', coalesce((
			SELECT jsonb_agg(jsonb_build_object('id', o.id, 'name', o.name, 'timezone', o.timezone,
				'market', coalesce(o.settings ->> 'market', ''), 'role', r.role) ORDER BY o.name)
			FROM operator_roles r JOIN organizations o ON o.id = r.org_id WHERE r.operator_id = p.id), '[]')
		FROM operator_sessions s JOIN operators p ON p.id = s.operator_id
		WHERE s.hash = $1 AND s.seen_at > now() - $2::interval AND s.created_at > now() - CASE WHEN s.identity THEN $4::interval ELSE $3::interval END`,
		sum(token), Idle, Life, IdentityLife).
		Scan(&s.ID, &s.Email, &s.LastOrg, &s.Flash, &s.Identity, &s.HasPassword, &s.HasCodes, &stale, &memberships)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, ErrSignedOut
	}
	if err == nil {
		err = json.Unmarshal(memberships, &s.Memberships)
	}
	if err == nil && stale {
		_, err = q.Exec(ctx, "UPDATE operator_sessions SET seen_at = now() WHERE hash = $1", sum(token))
	}
	return s, db.Wrap(err, "session")
}

// Visit stores the organization that the operator visits, and clears the message for the next page.
func (s Session) Visit(ctx context.Context, q db.Querier, orgID string) error {
	if s.LastOrg == orgID && s.Flash == "" {
		return nil
	}
	_, err := db.Exec(ctx, q, "session", "UPDATE operator_sessions SET org_id = $2, said = '' WHERE hash = $1", sum(s.token), orgID)
	return err
}

// SetFlash stores a message for the next page.
func (s Session) SetFlash(ctx context.Context, q db.Querier, text string) error {
	_, err := db.Exec(ctx, q, "session", "UPDATE operator_sessions SET said = $2 WHERE hash = $1", sum(s.token), text)
	return err
}

// VerifyPassword checks the operator's password. It fails with ErrBadCredentials, or with a *SlowDownError after too
// many failures in this session.
func (s Session) VerifyPassword(ctx context.Context, q Database, password media.Secret) error {
	counted, err := countAttempt(ctx, q, []attemptLimit{{fmt.Sprintf("account %s session %x", s.Email, sum(s.token)), maxPerAccount}})
	if err != nil {
		return err
	}
	var hash string
	if err = q.QueryRow(ctx, "SELECT password_hash FROM operators WHERE id = $1", s.ID).Scan(&hash); err != nil {
		return fmt.Errorf("password: %w", err)
	}
	ok, err := matches(ctx, hash, password, true)
	switch {
	case err != nil:
		return errors.Join(err, counted.forget(context.WithoutCancel(ctx), q))
	case !ok:
		return ErrBadCredentials
	default:
		return counted.clear(ctx, q)
	}
}

// SetPassword changes the operator's password and ends all other sessions of the account. The caller must check the
// old password first, with VerifyPassword.
func (s Session) SetPassword(ctx context.Context, q db.Querier, password media.Secret) error {
	return setPassword(ctx, q, s.ID, password, s.token)
}

// SignOut ends the session of a token, from an IP address. It ignores an unknown token.
func SignOut(ctx context.Context, q Database, token media.Secret, address string) error {
	err := pgx.BeginFunc(ctx, q, func(tx pgx.Tx) error {
		a := Actor{Address: address}
		err := tx.QueryRow(ctx, `
			DELETE FROM operator_sessions s USING operators p WHERE s.hash = $1 AND p.id = s.operator_id RETURNING p.id, p.email`, sum(token)).
			Scan(&a.ID, &a.Email)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		return logEverywhere(ctx, tx, a, Entry{Action: "sign-out", Object: a.ID})
	})
	return db.Wrap(err, "sign out")
}

// Sweep deletes expired sessions and old sign-in attempts.
func Sweep(ctx context.Context, q db.Querier) error {
	_, err := q.Exec(
		ctx, "DELETE FROM operator_sessions WHERE seen_at < now() - $1::interval OR created_at < now() - $2::interval",
		Idle, Life,
	)
	if err == nil {
		_, err = q.Exec(ctx, `
			DELETE FROM operator_tries WHERE at < now() - CASE WHEN starts_with(of, 'refused ') THEN $2::interval ELSE $1::interval END`,
			attemptWindow, refusalWindow)
	}
	return db.Wrap(err, "sessions")
}
