package admincli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/media"
)

// Operator groups the commands for dashboard operators.
type Operator struct {
	Create CreateOperator `cmd:"" help:"Add an operator to an organization. A new account gets a generated password, printed once."`
	List   ListOperators  `cmd:"" help:"List the operators."`
	Set    SetOperator    `cmd:"" help:"Change an operator's role or password."`
	Delete DeleteOperator `cmd:"" help:"Remove an operator from an organization."`

	Release ReleaseOperator `cmd:"" help:"Release accounts that belong to persons at an identity provider."`
}

// CreateOperator adds an operator.
type CreateOperator struct {
	Org      string `required:"" help:"Name of the organization."`
	Email    string `required:"" help:"Email address of the operator."`
	Role     string `default:"owner" help:"viewer, operator or owner." enum:"viewer,operator,owner"`
	Password bool   `help:"Read the password from standard input, at least 12 characters." xor:"password"`

	NoPassword bool `help:"Create a new account without a password, for the identity provider." xor:"password"`
}

// Run creates the operator. It prints the password if it generated one.
func (c CreateOperator) Run(ctx context.Context, d *Env) error {
	n := operator.NewMember{Email: c.Email, Role: operator.Role(c.Role), NoPassword: c.NoPassword}
	var err error
	if n.OrgID, err = apikeys.FindOrganization(ctx, d.Pool, c.Org); err != nil {
		return err
	}
	if c.Password {
		if n.Password, err = d.password(); err != nil {
			return err
		}
	}
	var password media.Secret
	err = d.change(ctx, n.OrgID, func(q db.Querier) (operator.Entry, error) {
		id, generated, fault := operator.Create(ctx, q, n)
		password = generated
		return operator.Entry{Action: "operator.create", Object: id, After: map[string]any{"email": n.Email, "role": n.Role}}, fault
	})
	if err != nil {
		return err
	}
	switch {
	case c.NoPassword:
		_, err = fmt.Fprintf(d.Out, "%s has the role %s and signs in with the identity provider\n", c.Email, c.Role)
	case password == "":
		_, err = fmt.Fprintf(d.Out, "%s has the role %s; the account keeps its password\n", c.Email, c.Role)
	case !c.Password:
		_, err = fmt.Fprintln(d.Out, string(password))
	}
	return err
}

// ListOperators lists operators.
type ListOperators struct {
	Org  string `help:"List only this organization."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run lists operators with their roles.
func (c ListOperators) Run(ctx context.Context, d *Env) error {
	org := ""
	if c.Org != "" {
		var err error
		if org, err = apikeys.FindOrganization(ctx, d.Pool, c.Org); err != nil {
			return err
		}
	}
	all, err := operator.Members(ctx, d.Pool, org)
	if err != nil {
		return err
	}
	t := NewTable("EMAIL", "ORGANIZATION", "ROLE", "CREATED", "SEEN", "ISSUER", "SUBJECT")
	for _, m := range all {
		t.Add(m.Email, m.OrgName, m.Role, m.CreatedAt, m.SeenAt, m.Person.Issuer, m.Person.Subject)
	}
	return t.Print(d.Out, c.JSON)
}

// SetOperator changes an operator.
type SetOperator struct {
	Org      string `required:"" help:"Name of the organization."`
	Email    string `arg:"" help:"Email address of the operator."`
	Role     string `help:"viewer, operator or owner." enum:",viewer,operator,owner" default:""`
	Password bool   `help:"Read a new password from standard input. Ends all sessions of the account." xor:"password"`

	NoPassword bool `help:"Remove password and one-time codes, for the identity provider. Ends all sessions." xor:"password"`
	ResetCodes bool `help:"Turn off one-time codes, for an operator who lost the app. Ends all sessions of the account."`
}

// Run changes the role and the password. The next page that the operator opens uses the new role.
func (c SetOperator) Run(ctx context.Context, d *Env) error {
	if c.Role == "" && !c.Password && !c.NoPassword && !c.ResetCodes {
		return errors.New("nothing to change: use --role, --password, --no-password or --reset-codes")
	}
	m, org, err := d.operator(ctx, c.Org, c.Email)
	if err != nil {
		return err
	}
	var password media.Secret
	if c.Password {
		if password, err = d.password(); err != nil {
			return err
		}
	}
	return d.change(ctx, org, func(q db.Querier) (operator.Entry, error) {
		e := operator.Entry{
			Action: "operator.set",
			Object: m.ID,
			Before: map[string]any{"role": m.Role},
			After: map[string]any{
				"role": cmp.Or(c.Role, string(m.Role)), "password": c.Password, "no_password": c.NoPassword, "reset_codes": c.ResetCodes,
			},
		}
		if c.NoPassword {
			if _, err := operator.RemovePassword(ctx, q, operator.CommandLine(org), m); err != nil {
				return e, err
			}
		}
		if c.Role != "" {
			if err := operator.SetRole(ctx, q, org, m.ID, operator.Role(c.Role)); err != nil {
				return e, err
			}
		}
		if c.ResetCodes {
			if err := operator.ResetCodes(ctx, q, operator.CommandLine(org), m.ID); err != nil {
				return e, err
			}
		}
		if c.Password {
			return e, operator.SetPassword(ctx, q, m.ID, password)
		}
		return e, nil
	})
}

// DeleteOperator removes an operator from an organization.
type DeleteOperator struct {
	Org   string `required:"" help:"Name of the organization."`
	Email string `arg:"" help:"Email address of the operator."`
}

// Run removes the operator's role in the organization, and the account if it has no other role.
func (c DeleteOperator) Run(ctx context.Context, d *Env) error {
	m, org, err := d.operator(ctx, c.Org, c.Email)
	if err != nil {
		return err
	}
	return d.change(ctx, org, func(q db.Querier) (operator.Entry, error) {
		return operator.Entry{
			Action: "operator.delete",
			Object: m.ID,
			Before: map[string]any{"email": m.Email, "role": m.Role},
		}, operator.Remove(ctx, q, org, m.ID)
	})
}

// ReleaseOperator releases accounts.
type ReleaseOperator struct {
	Org    string `required:"" help:"Name of the organization."`
	Email  string `arg:"" optional:"" help:"Email address of the operator." xor:"of"`
	Issuer string `help:"Release all operators of the organization whose accounts belong to persons at this former provider." xor:"of"`
}

// Run releases the accounts. Each belongs to the next person who signs in at the provider with its email address.
func (c ReleaseOperator) Run(ctx context.Context, d *Env) error {
	org, err := apikeys.FindOrganization(ctx, d.Pool, c.Org)
	if err != nil {
		return err
	}
	var all []operator.Member
	switch {
	case c.Email != "":
		var m operator.Member
		m, err = operator.Find(ctx, d.Pool, org, c.Email)
		all = append(all, m)
	case c.Issuer != "":
		all, err = operator.Members(ctx, d.Pool, org)
		all = slices.DeleteFunc(all, func(m operator.Member) bool { return m.Person.Issuer != c.Issuer })
	default:
		err = errors.New("nothing to release: give an email address or --issuer")
	}
	for _, m := range all {
		if err == nil {
			err = d.change(ctx, org, func(q db.Querier) (operator.Entry, error) {
				return operator.Release(ctx, q, operator.CommandLine(org), m)
			})
		}
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.Out, "%d released\n", len(all))
	return err
}

func (d *Env) operator(ctx context.Context, orgName, email string) (m operator.Member, org string, err error) {
	if org, err = apikeys.FindOrganization(ctx, d.Pool, orgName); err == nil {
		m, err = operator.Find(ctx, d.Pool, org, email)
	}
	return m, org, err
}

// change runs do and stores the audit log entry that do returns, in one transaction. The entry names the command line
// as the actor.
func (d *Env) change(ctx context.Context, org string, do func(db.Querier) (operator.Entry, error)) error {
	return operator.ChangeAs(ctx, d.Pool, operator.CommandLine(org), do)
}

// password reads one line from standard input. It turns off the echo of a terminal.
func (d *Env) password() (media.Secret, error) {
	if f, ok := d.In.(*os.File); ok {
		show, err := disableEcho(f)
		if err != nil {
			return "", err
		}
		defer show()
	}
	line, err := bufio.NewReader(io.LimitReader(d.In, 4<<10)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("failed to read the password: %w", err)
	}
	p := media.Secret(strings.TrimRight(line, "\r\n"))
	return p, operator.CheckPassword(p)
}
