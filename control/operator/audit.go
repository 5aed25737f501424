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

// ErrForbidden is returned if the role of an operator does not suffice.
var ErrForbidden = errors.New("your role in this organization does not allow this")

// An Actor is the operator that changes something, and the organization.
type Actor struct {
	ID, Email string
	OrgID     string
	Address   string // IP address
}

// An Entry describes a change. Before and After are JSON objects without secrets; nil means nothing.
type Entry struct {
	Action, Object string
	Before, After  any
}

// A LogEntry is a stored entry.
type LogEntry struct {
	ID                           int64
	Who, Address, Action, Object string
	Before, After                json.RawMessage
	At                           time.Time
}

// Change runs do and writes its entry in one transaction. It returns ErrForbidden if the actor's role does not suffice.
// An entry without an action is not logged.
func Change(ctx context.Context, d *db.DB, a Actor, needed Role, do func(db.Querier) (Entry, error)) error {
	return db.Tx(ctx, d.Pool, func(tx pgx.Tx) error {
		if err := CheckRole(ctx, tx, a, needed); err != nil {
			return err
		}
		e, err := do(tx)
		if err != nil || e.Action == "" {
			return err
		}
		return Log(ctx, tx, a, e)
	})
}

// CheckRole checks the actor's current role.
func CheckRole(ctx context.Context, q db.Querier, a Actor, needed Role) error {
	var role Role
	err := q.QueryRow(ctx, "SELECT coalesce((SELECT role FROM operator_roles WHERE operator_id = $1 AND org_id = $2), '')", a.ID, a.OrgID).
		Scan(&role)
	if err != nil {
		return fmt.Errorf("role: %w", err)
	}
	if !role.Includes(needed) {
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
	_, err = db.Exec(ctx, q, "audit log",
		"INSERT INTO audit_log (org_id, operator_id, who, address, action, object, before, after) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
		a.OrgID, a.ID, a.Email, a.Address, e.Action, e.Object, before, after)
	return err
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

// Entries returns up to limit entries of an organization before an id, the newest first. A before of 0 means the newest,
// an empty action or who means all.
func Entries(ctx context.Context, q db.Querier, orgID, action, who string, before int64, limit int) ([]LogEntry, error) {
	return db.Collect(ctx, q, "audit log", pgx.RowToStructByPos[LogEntry], `
		SELECT id, who, address, action, object, before, after, at FROM audit_log
		WHERE org_id = $1 AND ($2 = 0 OR id < $2) AND ($3 = '' OR action LIKE $3 || '%') AND ($4 = '' OR starts_with(who, $4))
		ORDER BY id DESC LIMIT $5`, orgID, before, action, who, limit)
}

// Diff returns the members that differ between two objects, before and after. They are compared as JSON.
func Diff(was, is map[string]any) (before, after map[string]any) {
	before, after = map[string]any{}, map[string]any{}
	for k, v := range is {
		if a, b := normalize(was[k]), normalize(v); !reflect.DeepEqual(a, b) {
			before[k], after[k] = a, b
		}
	}
	return before, after
}

// normalize returns a value after a round trip through JSON.
func normalize(v any) any {
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
