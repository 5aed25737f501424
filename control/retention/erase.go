package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/idempotency"
	"github.com/parley-voice/parley/control/phonenumber"
)

// eraseStep is the number of calls that Erase erases in one transaction.
const eraseStep = 100

// settledSQL is true for ended calls whose events are all handled.
const settledSQL = `status IN ('ended', 'failed') AND NOT EXISTS (SELECT FROM events WHERE call_id = calls.id AND done_at IS NULL)`

// Selection selects the calls of an organization to erase. Exactly one field must be set.
type Selection struct {
	Call   string
	Number string // called number, in any form
	All    bool
}

// condition returns the selection as an SQL condition, and the value of parameter $2.
func (w Selection) condition() (string, any, error) {
	digits := phonenumber.SuppressionDigits(w.Number)
	switch {
	case w.Call != "" && w.Number == "" && !w.All:
		return "id = $2", w.Call, nil
	case w.Call == "" && digits != "" && !w.All:
		return "to_number = ANY ($2)", phonenumber.Forms(digits), nil
	case w.Call == "" && w.Number == "" && w.All:
		return "$2", true, nil
	}
	return "", nil, errors.New("select one call, one number, or all calls")
}

// Erase erases calls of an organization. It deletes the content of the calls and hides the calls at once. It leaves the
// numbers and times until no frequency cap counts the calls any more. It returns the number of erased calls, and the
// number of calls that it skipped because they are active or have unhandled events.
func (k *Purger) Erase(ctx context.Context, orgID string, w Selection) (erased, left int, _ error) {
	cond, arg, err := w.condition()
	if err != nil {
		return 0, 0, err
	}
	for more := true; more; {
		n, fault := k.eraseSome(ctx, "org_id = $1 AND "+cond+" AND erased_at IS NULL AND "+settledSQL, orgID, arg)
		if fault != nil {
			return erased, 0, fmt.Errorf("erase: %w", fault)
		}
		erased += n
		more = n == eraseStep
	}
	err = k.Pool.QueryRow(ctx, "SELECT count(*) FROM calls WHERE org_id = $1 AND "+cond+" AND erased_at IS NULL", orgID, arg).Scan(&left)
	if err != nil {
		return erased, 0, fmt.Errorf("erase: %w", err)
	}
	return erased, left, errors.Join(k.erased(ctx), k.segments(ctx))
}

func (k *Purger) eraseSome(ctx context.Context, cond string, args ...any) (n int, _ error) {
	err := db.Tx(ctx, k.Pool, func(tx pgx.Tx) error {
		ids, err := db.Collect(ctx, tx, "", pgx.RowTo[string],
			fmt.Sprintf("SELECT id FROM calls WHERE %s LIMIT %d FOR UPDATE", cond, eraseStep), args...)
		if err != nil {
			return err
		}
		n = len(ids)
		if err = deleteContent(ctx, tx, ids); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			UPDATE calls SET erased_at = clock_timestamp(), name = '', metadata = '{}', external_id = NULL, transfer = NULL, sip_reason = NULL
			WHERE id = ANY ($1)`, ids)
		if err == nil { // the attempts contain transfer targets
			_, err = tx.Exec(ctx, "UPDATE attempts SET number = '' WHERE call_id = ANY ($1) AND number <> ''", ids)
		}
		return err
	})
	return n, err
}

// blankResponsesSQL removes client data from stored responses about calls that were created after $1 and then erased.
// Such a response begins with the id of its call. The Idempotency-Key stays, so that a repeated request creates no
// call.
const blankResponsesSQL = `
WITH erased AS MATERIALIZED (SELECT convert_to('{"call_id":"' || id || '"', 'UTF8') AS head, created_at FROM calls WHERE erased_at IS NOT NULL AND created_at > $1)
UPDATE idempotency_keys k SET body = convert_to((convert_from(k.body, 'UTF8')::jsonb || '{"to_number": "", "metadata": {}, "variables": {}}')::text, 'UTF8')
FROM erased WHERE substring(k.body FROM 1 FOR 44) = erased.head AND k.created_at > (SELECT min(created_at) FROM erased) - interval '5 minutes'`

// blankResponses removes client data from stored responses about erased calls.
func (k *Purger) blankResponses(ctx context.Context) error {
	_, err := k.Pool.Exec(ctx, blankResponsesSQL, k.now().Add(-idempotency.Retention-time.Hour))
	return err
}

// deleteContent deletes the transcripts, analyses, variables, notes and webhook deliveries of calls. The words of the
// transcripts go with them, and tags and scores when a call is erased: triggers do it.
func deleteContent(ctx context.Context, tx pgx.Tx, ids []string) error {
	for _, table := range []string{"call_lines", "call_turns", "call_packs", "call_signalling", "call_notes", "webhook_deliveries"} {
		if _, err := tx.Exec(ctx, "DELETE FROM "+table+" WHERE call_id = ANY ($1)", ids); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `
		UPDATE calls SET call_analysis = NULL, analysis_status = 'none', analysis_error = '', variables = '{}'
		WHERE id = ANY ($1)`, ids)
	return err
}
