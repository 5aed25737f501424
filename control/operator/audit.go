package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

// ErrForbidden is returned where an operator's role is not enough.
var ErrForbidden = errors.New("your role in this organization does not allow this")

// An Actor is who changes something, and where.
type Actor struct {
	ID, Email string
	OrgID     string
	Address   string // of the network
}

// An Entry is what was changed. Before and After are what it was and is, as JSON
// writes them: objects, and never with a secret in them. Nil is nothing.
type Entry struct {
	Action, Object string
	Before, After  any
}

// A Logged entry is one of the log.
type Logged struct {
	ID                           int64
	Who, Address, Action, Object string
	Before, After                json.RawMessage
	At                           time.Time
}

// Change does something in one transaction with its entry in the log, where the
// actor's role is still enough for it; else it fails with ErrForbidden. What do returns is the entry; an entry without an action
// is not logged, as nothing was changed.
func Change(ctx context.Context, d *db.DB, a Actor, needed Role, do func(db.Querier) (Entry, error)) error {
	return db.Tx(ctx, d.Pool, func(tx pgx.Tx) error {
		if err := Allowed(ctx, tx, a, needed); err != nil {
			return err
		}
		e, err := do(tx)
		if err != nil || e.Action == "" {
			return err
		}
		return Log(ctx, tx, a, e)
	})
}

// Allowed holds an actor to the role as it is now.
func Allowed(ctx context.Context, q db.Querier, a Actor, needed Role) error {
	var role Role
	err := q.QueryRow(ctx, "SELECT coalesce((SELECT role FROM operator_roles WHERE operator_id = $1 AND org_id = $2), '')", a.ID, a.OrgID).Scan(&role)
	if err != nil {
		return fmt.Errorf("role: %w", err)
	}
	if !role.May(needed) {
		return ErrForbidden
	}
	return nil
}

// Log writes an entry.
func Log(ctx context.Context, q db.Querier, a Actor, e Entry) error {
	before, err := object(e.Before)
	if err != nil {
		return err
	}
	after, err := object(e.After)
	if err != nil {
		return err
	}
	_, err = q.Exec(ctx, "INSERT INTO audit_log (org_id, operator_id, who, address, action, object, before, after) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
		a.OrgID, a.ID, a.Email, a.Address, e.Action, e.Object, before, after)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}

func object(v any) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	return b, nil
}

// Entries returns an organization's entries, the newest first: those before an id,
// or the newest where it is 0, limit of them at most. An action and an address
// that are not empty keep out others.
func Entries(ctx context.Context, q db.Querier, orgID, action, who string, before int64, limit int) ([]Logged, error) {
	rows, err := q.Query(ctx, `
		SELECT id, who, address, action, object, before, after, at FROM audit_log
		WHERE org_id = $1 AND ($2 = 0 OR id < $2) AND ($3 = '' OR action LIKE $3 || '%') AND ($4 = '' OR starts_with(who, $4))
		ORDER BY id DESC LIMIT $5`, orgID, before, action, who, limit)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Logged])
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	return all, nil
}

// Changed returns what differs between two objects: as it was, and as it is. They
// are compared as JSON writes them.
func Changed(was, is map[string]any) (before, after map[string]any) {
	before, after = map[string]any{}, map[string]any{}
	for k, v := range is {
		if a, b := written(was[k]), written(v); !reflect.DeepEqual(a, b) {
			before[k], after[k] = a, b
		}
	}
	return before, after
}

// written is a value as it is read from JSON again.
func written(v any) any {
	var again any
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &again)
	}
	if err != nil {
		return fmt.Sprint(v)
	}
	return again
}
