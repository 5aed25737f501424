package operator

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
)

// IdentityLife is the lifetime of a session that an identity provider started. It is short, because the provider cannot
// end it.
const IdentityLife = 12 * time.Hour

// ErrUsed means that a redirect of the identity provider was used before.
var ErrUsed = errors.New("this sign-in was completed before")

// Rule gives a role to people whose claim has a value, or contains it.
type Rule struct {
	Claim, Value string
	Org          string // name
	Role         Role
}

// ParseRules reads rules of the form CLAIM:VALUE=ORGANIZATION/ROLE, separated by commas.
func ParseRules(text string) ([]Rule, error) {
	var all []Rule
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		claim, rest, _ := strings.Cut(part, ":")
		equals := strings.LastIndex(rest, "=")
		slash := strings.LastIndex(rest, "/")
		if claim == "" || equals < 1 || slash < equals+2 {
			return nil, fmt.Errorf("%q is not such a rule", part)
		}
		role, err := ParseRole(rest[slash+1:])
		if err != nil {
			return nil, err
		}
		all = append(all, Rule{Claim: claim, Value: rest[:equals], Org: rest[equals+1 : slash], Role: role})
	}
	return all, nil
}

// IdentitySignIn is a person whom an identity provider has verified.
type IdentitySignIn struct {
	Person  Person
	Email   string
	Address string // IP address
	// Rules are the rules for roles. In the organizations that they name, the person has the roles in Roles, by the name
	// of the organization, and no others. Without rules the account must exist.
	Rules []Rule
	Roles map[string]Role
	Only  bool // operators cannot sign in with a password
}

// CountIdentity counts an attempt to sign in with an identity provider. It fails with ErrUsed if the state was used
// before, or with a *SlowDownError after too many failures from the network. The caller calls succeeded after success.
func CountIdentity(ctx context.Context, q Database, state, network string) (succeeded func(context.Context) error, err error) {
	used := fmt.Sprintf("identity %x", sha256.Sum256([]byte(state)))
	counted, err := countAttempt(ctx, q, append([]attemptLimit{{used, 1}}, networkLimits(network)...))
	if _, slow := errors.AsType[*SlowDownError](err); slow && len(counted.of) == 1 {
		return nil, ErrUsed
	}
	return func(ctx context.Context) error {
		return countedAttempt{of: counted.of[1:], at: counted.at}.forget(ctx, q)
	}, err
}

// SignInIdentity starts a session and returns its token. It fails with ErrUnknown if the person has no role, with
// ErrOtherPerson, or with a *PasswordRequiredError.
func SignInIdentity(ctx context.Context, q Database, s IdentitySignIn) (token media.Secret, err error) {
	var roles int
	err = pgx.BeginFunc(ctx, q, func(tx pgx.Tx) error {
		if fault := lockPerson(ctx, tx, s.Person, s.Email); fault != nil {
			return fault
		}
		id, e, fault := s.account(ctx, tx)
		if fault != nil || id == "" {
			return fault
		}
		if fault = s.applyRules(ctx, tx, id); fault != nil {
			return fault
		}
		if fault = tx.QueryRow(ctx, "SELECT count(*) FROM operator_roles WHERE operator_id = $1", id).Scan(&roles); fault != nil {
			return fault
		}
		if roles == 0 {
			_, fault = tx.Exec(ctx, "DELETE FROM operators WHERE id = $1", id)
			return fault
		}
		if e.Action != "" {
			fault = logEverywhere(ctx, tx, Actor{ID: id, Email: "identity provider", Address: s.Address}, e)
		}
		a := Actor{ID: id, Address: s.Address}
		if fault == nil {
			fault = tx.QueryRow(ctx, "SELECT email FROM operators WHERE id = $1", id).Scan(&a.Email)
		}
		if fault == nil {
			token, fault = startSession(ctx, tx, a, ByProvider)
		}
		return fault
	})
	if err != nil {
		return "", fmt.Errorf("sign in: %w", err)
	}
	if roles == 0 {
		return "", fmt.Errorf("%s: %w", s.Email, ErrUnknown)
	}
	return token, nil
}

// applyRules sets the roles of the account in the organizations that the rules name.
func (s IdentitySignIn) applyRules(ctx context.Context, tx pgx.Tx, id string) error {
	var names []string
	for _, r := range s.Rules {
		names = append(names, r.Org)
	}
	type managed struct {
		OrgID, Name string
		Has         Role
	}
	all, err := db.Collect(ctx, tx, "roles", pgx.RowToStructByPos[managed], `
		SELECT o.id, o.name, coalesce(r.role, '') FROM organizations o
		LEFT JOIN operator_roles r ON r.org_id = o.id AND r.operator_id = $2 WHERE o.name = ANY ($1) ORDER BY o.id`, names, id)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(m managed) bool { return m.Has == s.Roles[m.Name] })
	for _, m := range all {
		e := Entry{
			Action: "operator.identity", Object: id,
			Before: map[string]any{"email": s.Email, "role": m.Has}, After: map[string]any{"role": s.Roles[m.Name]},
		}
		if role := s.Roles[m.Name]; role == "" {
			_, err = tx.Exec(ctx, "DELETE FROM operator_roles WHERE operator_id = $1 AND org_id = $2", id, m.OrgID)
		} else {
			_, err = tx.Exec(ctx, `INSERT INTO operator_roles (operator_id, org_id, role) VALUES ($1, $2, $3)
				ON CONFLICT (operator_id, org_id) DO UPDATE SET role = excluded.role`, id, m.OrgID, role)
		}
		if err == nil {
			err = Log(ctx, tx, Actor{ID: id, Email: "identity provider", OrgID: m.OrgID, Address: s.Address}, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
