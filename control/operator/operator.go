// Package operator stores the operators of the dashboard: roles, passwords, sessions and the audit log.
package operator

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
)

// ErrUnknown is returned if the operator does not exist, or has no role in the organization.
var ErrUnknown = errors.New("no such operator")

// ErrLastOwner is returned for a change that would leave an organization without an owner.
var ErrLastOwner = errors.New("this is the organization's last owner; make another operator an owner first")

// ErrMember is returned if the operator already has a role in the organization.
var ErrMember = errors.New("already an operator of this organization")

// ErrHasPassword is returned for a new operator without a password whose account exists and has one.
var ErrHasPassword = errors.New("the account exists and has a password; add the operator with a password")

// Role says what an operator may do in an organization.
type Role string

// The roles, in ascending order of permissions. Each role includes the permissions of the roles before it.
const (
	Viewer   Role = "viewer"   // may read
	Operator Role = "operator" // may change calls, agents and campaigns
	Owner    Role = "owner"    // may also manage operators and API keys
)

// Roles lists the roles, starting with the fewest permissions.
func Roles() []Role { return []Role{Viewer, Operator, Owner} }

// Includes reports whether the role has the permissions of the role needed.
func (r Role) Includes(needed Role) bool {
	return slices.Contains(Roles(), r) && slices.Index(Roles(), r) >= slices.Index(Roles(), needed)
}

// ParseRole parses a role.
func ParseRole(s string) (Role, error) {
	if !slices.Contains(Roles(), Role(s)) {
		return "", fmt.Errorf("role %q: use viewer, operator or owner", s)
	}
	return Role(s), nil
}

// Member is an operator with a role in an organization.
type Member struct {
	ID, Email string
	OrgName   string
	Role      Role
	CreatedAt time.Time
	SeenAt    *time.Time // nil if the operator has never signed in
	HasCodes  bool       // the account requires one-time codes
	Person    Person     // owner of the account at the identity provider; empty if the account is not bound

	HasPassword bool
}

// Address parses an email address and returns it in lower case, the form that is stored.
func Address(s string) (string, error) {
	a, err := mail.ParseAddress(strings.TrimSpace(s))
	// The Kelvin sign and the dotted I become ASCII letters in lower case, and thus the address of somebody else.
	foreign := func(r rune) bool { return r > unicode.MaxASCII && unicode.ToLower(r) <= unicode.MaxASCII }
	if err != nil || a.Address != strings.TrimSpace(s) || len(a.Address) > 254 || strings.ContainsFunc(a.Address, foreign) {
		return "", fmt.Errorf("%q is not an email address; use one like ada@example.com", s)
	}
	return strings.ToLower(a.Address), nil
}

// Members returns the operators of an organization, or of all organizations if orgID is empty. They are ordered by
// organization and email address.
func Members(ctx context.Context, q db.Querier, orgID string) ([]Member, error) {
	return db.Collect(ctx, q, "operators", scanMember, `
		SELECT p.id, p.email, o.name, r.role, p.created_at, (SELECT max(seen_at) FROM operator_sessions s WHERE s.operator_id = p.id),
			p.totp_secret <> '', coalesce(i.issuer, ''), coalesce(i.subject, ''), p.password_hash <> ''
		FROM operator_roles r JOIN operators p ON p.id = r.operator_id JOIN organizations o ON o.id = r.org_id
		LEFT JOIN operator_identities i ON i.operator_id = p.id
		WHERE $1 = '' OR r.org_id = $1 ORDER BY o.name, p.email`, orgID)
}

func scanMember(row pgx.CollectableRow) (m Member, err error) {
	err = row.Scan(
		&m.ID, &m.Email, &m.OrgName, &m.Role, &m.CreatedAt, &m.SeenAt, &m.HasCodes, &m.Person.Issuer, &m.Person.Subject, &m.HasPassword,
	)
	return m, err
}

// NewMember describes an operator who gets a role in an organization.
type NewMember struct {
	Email string
	OrgID string
	Role  Role
	// Password is the first password of a new account. If it is empty, a random password is chosen. It is ignored if
	// the account exists.
	Password media.Secret
	// NoPassword creates a new account without a password, for an operator who signs in with an identity provider.
	NoPassword bool
	Cost       Cost // cost of hashing the password
	// By adds the operator. An actor with an ID must own all organizations of an existing account: its password may be known
	// to the owner of another one.
	By Actor
}

// Create gives an operator a role in an organization. If no account exists, it creates one and returns its password, if it
// has one; otherwise password is "". It fails with ErrMember if the operator already has a role in the organization, with
// ErrElsewhere if By does not own all organizations of the account, and with ErrHasPassword.
func Create(ctx context.Context, q db.Querier, n NewMember) (id string, password media.Secret, err error) {
	email, err := Address(n.Email)
	if err != nil {
		return "", "", err
	}
	if _, err = ParseRole(string(n.Role)); err != nil {
		return "", "", err
	}
	var member, hasPassword bool
	err = q.QueryRow(ctx, `
		SELECT id, password_hash <> '', EXISTS (SELECT FROM operator_roles r WHERE r.operator_id = p.id AND r.org_id = $2)
		FROM operators p WHERE email = $1`, email, n.OrgID).Scan(&id, &hasPassword, &member)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		if password = n.Password; password == "" && !n.NoPassword {
			password = NewPassword()
		}
		id, err = insert(ctx, q, email, password, n.Cost)
	case err != nil:
	case member:
		err = ErrMember
	case n.NoPassword && hasPassword:
		err = ErrHasPassword
	default:
		err = mayWeaken(ctx, q, n.By, id)
	}
	if err != nil {
		return "", "", fmt.Errorf("operator %s: %w", email, err)
	}
	tag, err := q.Exec(
		ctx, "INSERT INTO operator_roles (operator_id, org_id, role) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", id,
		n.OrgID, n.Role,
	)
	if err != nil {
		return "", "", fmt.Errorf("operator %s: %w", email, err)
	}
	if tag.RowsAffected() == 0 {
		return "", "", fmt.Errorf("%s: %w", email, ErrMember)
	}
	return id, password, nil
}

// insert adds an account. An empty password means that no password signs in.
func insert(ctx context.Context, q db.Querier, email string, password media.Secret, cost Cost) (string, error) {
	hash := ""
	if password != "" {
		err := CheckPassword(password)
		if err == nil {
			hash, err = cost.hash(ctx, password)
		}
		if err != nil {
			return "", err
		}
	}
	id := control.NewID("opr_", time.Now())
	_, err := q.Exec(ctx, "INSERT INTO operators (id, email, password_hash) VALUES ($1, $2, $3)", id, email, hash)
	return id, err
}

// Find returns the operator with an email address in an organization, or ErrUnknown.
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

// SetRole changes an operator's role in an organization. The operator's next request uses the new role.
func SetRole(ctx context.Context, q db.Querier, orgID, id string, role Role) error {
	if _, err := ParseRole(string(role)); err != nil {
		return err
	}
	return keepOwner(
		ctx, q, orgID, id, role == Owner, "UPDATE operator_roles SET role = $3 WHERE org_id = $1 AND operator_id = $2",
		orgID, id, role,
	)
}

// Remove removes an operator from an organization. If the account has no role left, it is deleted.
func Remove(ctx context.Context, q db.Querier, orgID, id string) error {
	if err := keepOwner(ctx, q, orgID, id, false, "DELETE FROM operator_roles WHERE org_id = $1 AND operator_id = $2", orgID, id); err != nil {
		return err
	}
	_, err := q.Exec(ctx, "DELETE FROM operators p WHERE id = $1 AND NOT EXISTS (SELECT FROM operator_roles r WHERE r.operator_id = p.id)", id)
	return db.Wrap(err, fmt.Sprintf("operator %s", id))
}

// keepOwner runs sql, which changes a role, and fails with ErrLastOwner if the organization would have no owner left.
// Only one such change runs at a time.
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

// SetPassword changes an operator's password, ends all sessions of the account, and deletes its failed attempts.
func SetPassword(ctx context.Context, q db.Querier, id string, password media.Secret) error {
	if err := setPassword(ctx, q, id, password, ""); err != nil {
		return err
	}
	if err := clearAttempts(ctx, q, id); err != nil {
		return fmt.Errorf("operator %s: %w", id, err)
	}
	return nil
}

// setPassword changes the password and ends all sessions of the account except the session with the token but. It keeps
// failed attempts.
func setPassword(ctx context.Context, q db.Querier, id string, password, but media.Secret) error {
	if err := CheckPassword(password); err != nil {
		return err
	}
	hash, err := Cost{}.hash(ctx, password)
	if err != nil {
		return err
	}
	tag, err := q.Exec(ctx, "UPDATE operators SET password_hash = $2 WHERE id = $1", id, hash)
	if err == nil && tag.RowsAffected() == 0 {
		err = ErrUnknown
	}
	if err == nil {
		_, err = q.Exec(ctx, "DELETE FROM operator_sessions WHERE operator_id = $1 AND hash <> $2", id, sum(but))
	}
	return db.Wrap(err, fmt.Sprintf("operator %s", id))
}
