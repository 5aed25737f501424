package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

// ErrForbidden is returned if the operator's role does not permit the action.
var ErrForbidden = errors.New("your role in this organization does not allow this")

// Actor is the operator who makes a change, with the organization that the change concerns.
type Actor struct {
	ID, Email string
	OrgID     string
	Address   string // IP address
}

// Entry describes a change. Before and After are JSON objects without secrets. Nil means that the object did not
// exist.
type Entry struct {
	Action, Object string
	Before, After  any
	// OrgID is the organization if the actor has none.
	OrgID string
}

// LogEntry is a stored entry of the audit log.
type LogEntry struct {
	ID                           int64
	Who, Address, Action, Object string
	Before, After                json.RawMessage
	At                           time.Time
}

// Change runs do and writes the entry that do returns, in one transaction. It does not write an entry without an
// action. It returns ErrForbidden if the actor's role does not permit the change.
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

// ChangeAs runs do and writes the entry that do returns, in one transaction, for an actor without a role: an API key or a
// command.
func ChangeAs(ctx context.Context, d Database, a Actor, do func(db.Querier) (Entry, error)) error {
	return pgx.BeginFunc(ctx, d, func(tx pgx.Tx) error {
		e, err := do(tx)
		if err != nil {
			return err
		}
		return Log(ctx, tx, a, e)
	})
}

// CommandLine is the actor of changes by commands.
func CommandLine(orgID string) Actor { return Actor{Email: "the command line", OrgID: orgID} }

// CheckRole returns ErrForbidden unless the actor's current role includes the role needed.
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

// Log writes an entry to the audit log.
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
		cmp.Or(a.OrgID, e.OrgID), a.ID, a.Email, a.Address, e.Action, e.Object, before, after)
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

// Entries returns at most limit entries of an organization with ids less than before, newest first. If before is 0, it
// starts with the newest entry. action and who select entries by prefix; an empty prefix selects all.
func Entries(ctx context.Context, q db.Querier, orgID, action, who string, before int64, limit int) ([]LogEntry, error) {
	return db.Collect(ctx, q, "audit log", pgx.RowToStructByPos[LogEntry], `
		SELECT id, who, address, action, object, before, after, at FROM audit_log
		WHERE org_id = $1 AND ($2 = 0 OR id < $2) AND ($3 = '' OR action LIKE $3 || '%') AND ($4 = '' OR starts_with(who, $4))
		ORDER BY id DESC LIMIT $5`, orgID, before, action, who, limit)
}

// SettledBefore returns a time, at least age ago, before which no entry will be added any more. Entries carry the time at
// which their transaction began, so a transaction in progress may still add one with a lower id than those that are
// visible. A database may hide the transactions of other roles; age covers those that are short.
func SettledBefore(ctx context.Context, q db.Querier, age time.Duration) (at time.Time, err error) {
	err = q.QueryRow(ctx, `
		SELECT least(now() - $1::interval, min(xact_start)) FROM pg_stat_activity
		WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`, age).Scan(&at)
	return at, db.Wrap(err, "audit log")
}

// EntriesAfter returns at most limit entries of an organization with ids greater than after and times before settled,
// oldest first.
func EntriesAfter(ctx context.Context, q db.Querier, orgID string, after int64, settled time.Time, limit int) ([]LogEntry, error) {
	return db.Collect(ctx, q, "audit log", pgx.RowToStructByPos[LogEntry], `
		SELECT id, who, address, action, object, before, after, at FROM audit_log
		WHERE org_id = $1 AND id > $2 AND at < $3 ORDER BY id LIMIT $4`,
		orgID, after, settled, limit)
}

// Diff compares two objects as JSON. It returns the members that differ, with their values before and after.
func Diff(was, is map[string]any) (before, after map[string]any) {
	before, after = map[string]any{}, map[string]any{}
	for k, v := range is {
		if a, b := normalize(was[k]), normalize(v); !reflect.DeepEqual(a, b) {
			before[k], after[k] = a, b
		}
	}
	return before, after
}

// normalize converts a value to JSON and back.
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
