package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/idempotency"
	"github.com/parley-voice/parley/control/spelling"
)

// settled calls are over, and followed to the end: nothing is added to them.
const settled = `status IN ('ended', 'failed') AND NOT EXISTS (SELECT FROM events WHERE call_id = calls.id AND done_at IS NULL)`

// A Which says which calls of an organization are to be erased: one of the three.
type Which struct {
	Call   string
	Number string // that was called, however it is written
	All    bool
}

// condition is that of calls, $2 the argument.
func (w Which) condition() (string, any, error) {
	digits := control.Digits(w.Number)
	switch {
	case w.Call != "" && w.Number == "" && !w.All:
		return "id = $2", w.Call, nil
	case w.Call == "" && digits != "" && !w.All:
		return "to_number = ANY ($2)", spelling.All(digits), nil
	case w.Call == "" && w.Number == "" && w.All:
		return "$2", true, nil
	}
	return "", nil, errors.New("name one call, one number, or all")
}

// Erase erases calls of an organization: what was said in them and of them is gone
// when it returns, and they are shown no more. What caps count, number and times,
// goes when no cap looks back to it any more. It returns how many it erased, and
// how many it left alone because they are not over, or not settled yet.
func (k *Keeper) Erase(ctx context.Context, orgID string, w Which) (erased, left int, _ error) {
	cond, arg, err := w.condition()
	if err != nil {
		return 0, 0, err
	}
	for more := true; more; {
		n, fault := k.eraseSome(ctx, "org_id = $1 AND "+cond+" AND erased_at IS NULL AND "+settled, orgID, arg)
		if fault != nil {
			return erased, 0, fmt.Errorf("erase: %w", fault)
		}
		erased += n
		more = n == batch
	}
	err = k.Pool.QueryRow(ctx, "SELECT count(*) FROM calls WHERE org_id = $1 AND "+cond+" AND erased_at IS NULL", orgID, arg).Scan(&left)
	if err != nil {
		return erased, 0, fmt.Errorf("erase: %w", err)
	}
	return erased, left, k.erased(ctx)
}

// eraseSome erases a batch of the calls that meet a condition.
func (k *Keeper) eraseSome(ctx context.Context, cond string, args ...any) (n int, _ error) {
	err := db.Tx(ctx, k.Pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, fmt.Sprintf("SELECT id FROM calls WHERE %s LIMIT %d FOR UPDATE", cond, batch), args...)
		if err != nil {
			return err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		n = len(ids)
		if err = forgetWords(ctx, tx, ids); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			UPDATE calls SET erased_at = clock_timestamp(), name = '', metadata = '{}', external_id = NULL, transfer = NULL, sip_reason = NULL
			WHERE id = ANY ($1)`, ids)
		if err == nil { // to whom they were handed over
			_, err = tx.Exec(ctx, "UPDATE attempts SET number = '' WHERE call_id = ANY ($1) AND number <> ''", ids)
		}
		return err
	})
	return n, err
}

// answersSQL blanks the kept answers to the requests that made erased calls, since
// $1. An answer begins with its call's id. The key itself stays: a repeat makes no
// other call.
const answersSQL = `
WITH gone AS MATERIALIZED (SELECT convert_to('{"call_id":"' || id || '"', 'UTF8') AS head, created_at FROM calls WHERE erased_at IS NOT NULL AND created_at > $1)
UPDATE idempotency_keys k SET body = convert_to((convert_from(k.body, 'UTF8')::jsonb || '{"to_number": "", "metadata": {}, "variables": {}}')::text, 'UTF8')
FROM gone WHERE substring(k.body FROM 1 FOR 44) = gone.head AND k.created_at > (SELECT min(created_at) FROM gone) - interval '5 minutes'`

// answers forgets what would be repeated of erased calls.
func (k *Keeper) answers(ctx context.Context) error {
	_, err := k.Pool.Exec(ctx, answersSQL, k.now().Add(-idempotency.Memory-time.Hour))
	return err
}

// forgetWords deletes what was said in calls, what was made of it, and the notices
// that tell it.
func forgetWords(ctx context.Context, tx pgx.Tx, ids []string) error {
	for _, table := range []string{"call_lines", "call_turns", "call_signalling", "webhook_deliveries"} {
		if _, err := tx.Exec(ctx, "DELETE FROM "+table+" WHERE call_id = ANY ($1)", ids); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `
		UPDATE calls SET call_analysis = NULL, analysis_status = 'none', analysis_error = '', variables = '{}'
		WHERE id = ANY ($1)`, ids)
	return err
}
