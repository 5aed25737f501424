package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
)

// Person identifies a person at an identity provider. Only both members together do: an email address may be given to
// another person (OpenID Connect Core 1.0, section 5.7).
type Person struct {
	Issuer, Subject string
}

// ErrOtherPerson is returned if the account of an email address is bound to another person.
var ErrOtherPerson = errors.New("the account with this address belongs to another person at the identity provider")

// ErrOtherAccount is returned if the password of an account other than that of the email address was entered.
var ErrOtherAccount = errors.New("the password belongs to another account")

// ErrOwnAccount is returned for a change that would weaken the actor's own account.
var ErrOwnAccount = errors.New("you cannot do this for your own account; ask another owner")

// PasswordRequiredError means that the account has a password, and that the person must enter it once. Otherwise the holder
// of a mailbox could take over an account that passwords and one-time codes protect.
type PasswordRequiredError struct{ Email string }

// Error implements error.
func (e *PasswordRequiredError) Error() string { return "the password of the account is required once" }

// lockPerson makes sign-ins of one person, and those with one email address, wait for each other. The order of the locks
// excludes deadlocks.
func lockPerson(ctx context.Context, tx pgx.Tx, p Person, email string) error {
	for _, of := range []string{"person " + p.Issuer + " " + p.Subject, "identity " + email} {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 170))", of); err != nil {
			return err
		}
	}
	return nil
}

// account returns the id of the person's account, and the entry for the audit log. It binds the account of the email
// address if the person has none, and creates it if a rule gives it a role. Without an account, id is "".
func (s IdentitySignIn) account(ctx context.Context, tx pgx.Tx) (id string, e Entry, err error) {
	var has string
	err = tx.QueryRow(ctx, `
		SELECT p.id, p.email FROM operator_identities i JOIN operators p ON p.id = i.operator_id
		WHERE i.issuer = $1 AND i.subject = $2`, s.Person.Issuer, s.Person.Subject).Scan(&id, &has)
	if err == nil && has != s.Email {
		e, err = setAddress(ctx, tx, id, has, s.Email)
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return id, e, err
	}
	var password, bound bool
	err = tx.QueryRow(ctx, `
		SELECT p.id, p.password_hash <> '', i.operator_id IS NOT NULL
		FROM operators p LEFT JOIN operator_identities i ON i.operator_id = p.id WHERE p.email = $1`, s.Email).Scan(&id, &password, &bound)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		if len(s.Roles) == 0 {
			return "", e, nil
		}
		id, err = insert(ctx, tx, s.Email, "", Cost{})
	case err != nil:
	case bound:
		err = ErrOtherPerson
	case password && !s.Only:
		err = &PasswordRequiredError{s.Email}
	}
	if err == nil {
		e, err = bind(ctx, tx, id, s.Email, s.Person)
	}
	return id, e, err
}

// setAddress gives an account the address that the provider sends now, unless another account has it.
func setAddress(ctx context.Context, q db.Querier, id, has, email string) (e Entry, err error) {
	n, err := db.Exec(ctx, q, "operator", `
		UPDATE operators SET email = $2 WHERE id = $1 AND NOT EXISTS (SELECT FROM operators WHERE email = $2)`, id, email)
	if n > 0 {
		e = Entry{Action: "operator.email", Object: id, Before: map[string]any{"email": has}, After: map[string]any{"email": email}}
	}
	return e, err
}

// bind binds an account to a person. It fails with ErrOtherPerson if the account or the person is bound already.
func bind(ctx context.Context, q db.Querier, id, email string, p Person) (Entry, error) {
	n, err := db.Exec(ctx, q, "operator", `
		INSERT INTO operator_identities (operator_id, issuer, subject) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, id, p.Issuer, p.Subject)
	if err == nil && n == 0 {
		err = ErrOtherPerson
	}
	return Entry{Action: "operator.bind", Object: id, After: map[string]any{"email": email, "issuer": p.Issuer, "subject": p.Subject}}, err
}

// Binding connects the account of a session, which a password started, to a person at an identity provider.
type Binding struct {
	Token   media.Secret // of the session
	Person  Person
	Email   string // address that the provider has verified
	Address string // IP address
}

// Bind binds the account. It fails with ErrOtherAccount or ErrOtherPerson.
func Bind(ctx context.Context, q Database, b Binding) error {
	err := pgx.BeginFunc(ctx, q, func(tx pgx.Tx) error {
		if err := lockPerson(ctx, tx, b.Person, b.Email); err != nil {
			return err
		}
		s, err := Open(ctx, tx, b.Token)
		if err != nil {
			return err
		}
		if s.Email != b.Email {
			return ErrOtherAccount
		}
		var done bool // by the same form
		err = tx.QueryRow(ctx, `
			SELECT EXISTS (SELECT FROM operator_identities WHERE operator_id = $1 AND issuer = $2 AND subject = $3)`,
			s.ID, b.Person.Issuer, b.Person.Subject).Scan(&done)
		if err != nil || done {
			return err
		}
		e, err := bind(ctx, tx, s.ID, s.Email, b.Person)
		if err != nil {
			return err
		}
		return logEverywhere(ctx, tx, Actor{ID: s.ID, Email: s.Email, Address: b.Address}, e)
	})
	return db.Wrap(err, "identity")
}

// Release removes the binding of another operator's account, and ends the sessions that the provider started. The next
// person who signs in at the provider with the account's address gets the account. An actor with an id must own all
// organizations of the operator.
func Release(ctx context.Context, q db.Querier, a Actor, m Member) (Entry, error) {
	if m.Person == (Person{}) {
		return Entry{}, fmt.Errorf("%s is not bound to an identity provider", m.Email)
	}
	if err := mayWeaken(ctx, q, a, m.ID); err != nil {
		return Entry{}, err
	}
	_, err := db.Exec(ctx, q, "identity", "DELETE FROM operator_identities WHERE operator_id = $1", m.ID)
	if err == nil {
		_, err = db.Exec(ctx, q, "identity", "DELETE FROM operator_sessions WHERE operator_id = $1 AND identity", m.ID)
	}
	return Entry{
		Action: "operator.release", Object: m.ID,
		Before: map[string]any{"email": m.Email, "issuer": m.Person.Issuer, "subject": m.Person.Subject},
	}, err
}

// RemovePassword removes the password of another operator, with its one-time codes, and ends the sessions of the account. The
// operator signs in with the identity provider then. An actor with an id must own all organizations of the operator.
func RemovePassword(ctx context.Context, q db.Querier, a Actor, m Member) (Entry, error) {
	e := Entry{
		Action: "operator.password", Object: m.ID,
		Before: map[string]any{"email": m.Email, "password": m.HasPassword}, After: map[string]any{"password": false},
	}
	if err := mayWeaken(ctx, q, a, m.ID); err != nil {
		return e, err
	}
	if _, err := db.Exec(ctx, q, "password", "UPDATE operators SET password_hash = '' WHERE id = $1", m.ID); err != nil {
		return e, err
	}
	return e, removeCodes(ctx, q, m.ID)
}

// mayWeaken returns an error if the actor must not remove what protects an account. An owner could otherwise add an operator of
// another organization and weaken that account.
func mayWeaken(ctx context.Context, q db.Querier, a Actor, id string) error {
	if id == a.ID {
		return ErrOwnAccount
	}
	var elsewhere bool
	err := q.QueryRow(ctx, `
		SELECT $1 <> '' AND EXISTS (SELECT FROM operator_roles t WHERE t.operator_id = $2 AND NOT EXISTS (
			SELECT FROM operator_roles a WHERE a.operator_id = $1 AND a.org_id = t.org_id AND a.role = 'owner'))`, a.ID, id).Scan(&elsewhere)
	if err == nil && elsewhere {
		return ErrElsewhere
	}
	return db.Wrap(err, "operator")
}
