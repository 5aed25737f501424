// Package operator keeps the people who look after organizations in the
// dashboard: what they may do where, their passwords, their sessions, and the log
// of what they changed.
package operator

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
)

// ErrUnknown is returned where there is no such operator, or none there.
var ErrUnknown = errors.New("no such operator")

// ErrLastOwner is returned where an organization would be left without an owner.
var ErrLastOwner = errors.New("it is the organization's last owner: make somebody else an owner first")

// ErrMember is returned where somebody has a role in the organization already.
var ErrMember = errors.New("an operator of this organization already")

// A Role is what an operator may do in an organization.
type Role string

// The roles, each of which may what those before it may.
const (
	Viewer   Role = "viewer"   // looks
	Operator Role = "operator" // changes what calls are made, and how
	Owner    Role = "owner"    // and who may, and by which keys
)

// Roles lists the roles, the least first.
func Roles() []Role { return []Role{Viewer, Operator, Owner} }

// May reports whether the role is enough for what another is needed for.
func (r Role) May(needed Role) bool {
	return slices.Contains(Roles(), r) && slices.Index(Roles(), r) >= slices.Index(Roles(), needed)
}

// ParseRole reads a role.
func ParseRole(s string) (Role, error) {
	if !slices.Contains(Roles(), Role(s)) {
		return "", fmt.Errorf("role %q: use viewer, operator or owner", s)
	}
	return Role(s), nil
}

// A Member is an operator, as one of an organization.
type Member struct {
	ID, Email string
	OrgName   string
	Role      Role
	CreatedAt time.Time
	SeenAt    *time.Time // nil while not signed in
}

// Address reads an address of mail as operators are known by it: in lower case.
func Address(s string) (string, error) {
	a, err := mail.ParseAddress(strings.TrimSpace(s))
	if err != nil || a.Address != strings.TrimSpace(s) || len(a.Address) > 254 {
		return "", fmt.Errorf("%q is no address of mail: use one like ada@example.com", s)
	}
	return strings.ToLower(a.Address), nil
}

// Members lists the operators of an organization by its id, of all where that is
// empty, by organization and address.
func Members(ctx context.Context, q db.Querier, orgID string) ([]Member, error) {
	rows, err := q.Query(ctx, `
		SELECT p.id, p.email, o.name, r.role, p.created_at, (SELECT max(seen_at) FROM operator_sessions s WHERE s.operator_id = p.id)
		FROM operator_roles r JOIN operators p ON p.id = r.operator_id JOIN organizations o ON o.id = r.org_id
		WHERE $1 = '' OR r.org_id = $1 ORDER BY o.name, p.email`, orgID)
	if err != nil {
		return nil, fmt.Errorf("operators: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Member])
	if err != nil {
		return nil, fmt.Errorf("operators: %w", err)
	}
	return all, nil
}

// A Newcomer is who gets a role in an organization.
type Newcomer struct {
	Email string
	OrgID string
	Role  Role
	// Password is the first one; of an operator who has an account it is not
	// looked at. Empty where one is to be made up.
	Password media.Secret
	Cost     Cost // of its hash
}

// Create gives somebody a role in an organization, and an account where there is
// none of the address yet. It returns the password of a new account, and "" of one
// that was there, which keeps its own. Who has a role there already is refused.
func Create(ctx context.Context, q db.Querier, n Newcomer) (id string, password media.Secret, err error) {
	email, err := Address(n.Email)
	if err != nil {
		return "", "", err
	}
	if _, err = ParseRole(string(n.Role)); err != nil {
		return "", "", err
	}
	err = q.QueryRow(ctx, "SELECT id FROM operators WHERE email = $1", email).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		if password = n.Password; password == "" {
			password = NewPassword()
		}
		id, err = insert(ctx, q, email, password, n.Cost)
	}
	if err != nil {
		return "", "", fmt.Errorf("operator %s: %w", email, err)
	}
	tag, err := q.Exec(ctx, "INSERT INTO operator_roles (operator_id, org_id, role) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", id, n.OrgID, n.Role)
	if err != nil {
		return "", "", fmt.Errorf("operator %s: %w", email, err)
	}
	if tag.RowsAffected() == 0 {
		return "", "", fmt.Errorf("%s: %w", email, ErrMember)
	}
	return id, password, nil
}

func insert(ctx context.Context, q db.Querier, email string, password media.Secret, cost Cost) (string, error) {
	if err := CheckPassword(password); err != nil {
		return "", err
	}
	id := control.NewID("opr_", time.Now())
	_, err := q.Exec(ctx, "INSERT INTO operators (id, email, password_hash) VALUES ($1, $2, $3)", id, email, cost.hash(password))
	return id, err
}

// Find returns the operator of an address in an organization, or ErrUnknown.
func Find(ctx context.Context, q db.Querier, orgID, email string) (Member, error) {
	all, err := Members(ctx, q, orgID)
	if err != nil {
		return Member{}, err
	}
	at := slices.IndexFunc(all, func(m Member) bool { return m.Email == strings.ToLower(strings.TrimSpace(email)) || m.ID == email })
	if at < 0 {
		return Member{}, fmt.Errorf("%s: %w", email, ErrUnknown)
	}
	return all[at], nil
}

// SetRole changes what an operator may do in an organization, from the next page on.
func SetRole(ctx context.Context, q db.Querier, orgID, id string, role Role) error {
	if _, err := ParseRole(string(role)); err != nil {
		return err
	}
	return keepOwner(ctx, q, orgID, id, role == Owner, "UPDATE operator_roles SET role = $3 WHERE org_id = $1 AND operator_id = $2", orgID, id, role)
}

// Remove takes an operator's role in an organization away. An account without any
// role is deleted.
func Remove(ctx context.Context, q db.Querier, orgID, id string) error {
	if err := keepOwner(ctx, q, orgID, id, false, "DELETE FROM operator_roles WHERE org_id = $1 AND operator_id = $2", orgID, id); err != nil {
		return err
	}
	_, err := q.Exec(ctx, "DELETE FROM operators p WHERE id = $1 AND NOT EXISTS (SELECT FROM operator_roles r WHERE r.operator_id = p.id)", id)
	if err != nil {
		return fmt.Errorf("operator %s: %w", id, err)
	}
	return nil
}

// keepOwner does something to a role, and fails where the organization had another
// owner then no more. Two who do it at a time come one after the other.
func keepOwner(ctx context.Context, q db.Querier, orgID, id string, owns bool, sql string, args ...any) error {
	rows, err := q.Query(ctx, "SELECT operator_id FROM operator_roles WHERE org_id = $1 AND role = 'owner' FOR UPDATE", orgID)
	if err != nil {
		return fmt.Errorf("operator %s: %w", id, err)
	}
	owners, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("operator %s: %w", id, err)
	}
	if !owns && len(owners) == 1 && owners[0] == id {
		return ErrLastOwner
	}
	tag, err := q.Exec(ctx, sql, args...)
	if err != nil {
		return fmt.Errorf("operator %s: %w", id, err)
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("%s: %w", id, ErrUnknown)
	}
	return nil
}

// SetPassword changes an operator's password, and ends all sessions of the account.
func SetPassword(ctx context.Context, q db.Querier, id string, password media.Secret) error {
	return setPassword(ctx, q, id, password, "")
}

// setPassword leaves the session of a token.
func setPassword(ctx context.Context, q db.Querier, id string, password, but media.Secret) error {
	if err := CheckPassword(password); err != nil {
		return err
	}
	tag, err := q.Exec(ctx, "UPDATE operators SET password_hash = $2 WHERE id = $1", id, Cost{}.hash(password))
	if err == nil && tag.RowsAffected() == 0 {
		err = ErrUnknown
	}
	if err == nil {
		_, err = q.Exec(ctx, "DELETE FROM operator_sessions WHERE operator_id = $1 AND hash <> $2", id, sum(but))
	}
	if err != nil {
		return fmt.Errorf("operator %s: %w", id, err)
	}
	return nil
}
