package desk

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/media"
)

// Operator holds the commands of the dashboard's operators.
type Operator struct {
	Create CreateOperator `cmd:"" help:"Give somebody a role in an organization. Of a new account the password is made up, and printed once."`
	List   ListOperators  `cmd:"" help:"List the operators."`
	Set    SetOperator    `cmd:"" help:"Change an operator's role or password."`
	Delete DeleteOperator `cmd:"" help:"Take an operator's role in an organization away."`
}

// CreateOperator gives somebody a role.
type CreateOperator struct {
	Org      string `required:"" help:"Name of the organization."`
	Email    string `required:"" help:"The operator's address."`
	Role     string `default:"owner" help:"viewer, operator or owner." enum:"viewer,operator,owner"`
	Password bool   `help:"Read the password from standard input, one line of 12 characters at least."`
}

// Run prints the password that was made up.
func (c CreateOperator) Run(ctx context.Context, d *Desk) error {
	n := operator.Newcomer{Email: c.Email, Role: operator.Role(c.Role)}
	var err error
	if n.OrgID, err = access.FindOrganization(ctx, d.Pool, c.Org); err != nil {
		return err
	}
	if c.Password {
		if n.Password, err = d.password(); err != nil {
			return err
		}
	}
	var password media.Secret
	err = d.change(ctx, n.OrgID, func(q db.Querier) (operator.Entry, error) {
		id, made, fault := operator.Create(ctx, q, n)
		password = made
		return operator.Entry{Action: "operator.create", Object: id, After: map[string]any{"email": n.Email, "role": n.Role}}, fault
	})
	if err != nil {
		return err
	}
	switch {
	case password == "":
		_, err = fmt.Fprintf(d.Out, "%s has the role %s; the password is the one of the account\n", c.Email, c.Role)
	case !c.Password:
		_, err = fmt.Fprintln(d.Out, string(password))
	}
	return err
}

// ListOperators lists operators.
type ListOperators struct {
	Org string `help:"Of this organization alone."`
}

// Run lists who has which role where.
func (c ListOperators) Run(ctx context.Context, d *Desk) error {
	org := ""
	if c.Org != "" {
		var err error
		if org, err = access.FindOrganization(ctx, d.Pool, c.Org); err != nil {
			return err
		}
	}
	all, err := operator.Members(ctx, d.Pool, org)
	if err != nil {
		return err
	}
	t := d.table()
	fmt.Fprintln(t, "EMAIL\tORGANIZATION\tROLE\tCREATED\tSEEN")
	for _, m := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", m.Email, m.OrgName, m.Role, day(&m.CreatedAt), day(m.SeenAt))
	}
	return t.Flush()
}

// SetOperator changes an operator.
type SetOperator struct {
	Org      string `required:"" help:"Name of the organization."`
	Email    string `arg:"" help:"The operator's address."`
	Role     string `help:"viewer, operator or owner." enum:",viewer,operator,owner" default:""`
	Password bool   `help:"Read a new password from standard input. All sessions of the account end."`
}

// Run changes what is named, from the operator's next page on.
func (c SetOperator) Run(ctx context.Context, d *Desk) error {
	if c.Role == "" && !c.Password {
		return errors.New("nothing to change: use --role, --password, or both")
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
		e := operator.Entry{Action: "operator.set", Object: m.ID, Before: map[string]any{"role": m.Role}, After: map[string]any{"role": m.Role, "password": c.Password}}
		if c.Role != "" {
			e.After = map[string]any{"role": c.Role, "password": c.Password}
			if err := operator.SetRole(ctx, q, org, m.ID, operator.Role(c.Role)); err != nil {
				return e, err
			}
		}
		if c.Password {
			return e, operator.SetPassword(ctx, q, m.ID, password)
		}
		return e, nil
	})
}

// DeleteOperator takes a role away.
type DeleteOperator struct {
	Org   string `required:"" help:"Name of the organization."`
	Email string `arg:"" help:"The operator's address."`
}

// Run takes the role away, and an account that has no other.
func (c DeleteOperator) Run(ctx context.Context, d *Desk) error {
	m, org, err := d.operator(ctx, c.Org, c.Email)
	if err != nil {
		return err
	}
	return d.change(ctx, org, func(q db.Querier) (operator.Entry, error) {
		return operator.Entry{Action: "operator.delete", Object: m.ID, Before: map[string]any{"email": m.Email, "role": m.Role}}, operator.Remove(ctx, q, org, m.ID)
	})
}

func (d *Desk) operator(ctx context.Context, orgName, email string) (m operator.Member, org string, err error) {
	if org, err = access.FindOrganization(ctx, d.Pool, orgName); err == nil {
		m, err = operator.Find(ctx, d.Pool, org, email)
	}
	return m, org, err
}

// change does something and says in the audit log that a command did.
func (d *Desk) change(ctx context.Context, org string, do func(db.Querier) (operator.Entry, error)) error {
	return db.Tx(ctx, d.Pool, func(tx pgx.Tx) error {
		e, err := do(tx)
		if err != nil {
			return err
		}
		return operator.Log(ctx, tx, operator.Actor{Email: "the command line", OrgID: org}, e)
	})
}

// password reads a line from standard input, unseen where it is typed.
func (d *Desk) password() (media.Secret, error) {
	if f, ok := d.In.(*os.File); ok {
		show, err := unseen(f)
		if err != nil {
			return "", err
		}
		defer show()
	}
	line, err := bufio.NewReader(io.LimitReader(d.In, 4<<10)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the password: %w", err)
	}
	p := media.Secret(strings.TrimRight(line, "\r\n"))
	return p, operator.CheckPassword(p)
}
