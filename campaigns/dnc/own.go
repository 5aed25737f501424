package dnc

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/dnc/registry"
	"github.com/parley-voice/parley/campaigns/dnc/screening"
	"github.com/parley-voice/parley/control/db"
)

// numbers has the numbers of a list by digits; a later line replaces an earlier one.
type numbers map[string]bool // true if the number is listed

// maxOwnNumbers bounds the numbers of one load of an organization's list.
const maxOwnNumbers = 20_000_000

// Number implements registry.Sink.
func (n numbers) Number(digits []byte, listed bool) error {
	if len(digits) < 7 || len(digits) > 15 {
		return fmt.Errorf("%w: %q is not a telephone number of 7 to 15 digits", registry.ErrList, digits)
	}
	if n[string(digits)] = listed; len(n) > maxOwnNumbers {
		return fmt.Errorf("%w: more than %d numbers", registry.ErrList, maxOwnNumbers)
	}
	return nil
}

// Area implements registry.Sink. It does nothing: an organization's list applies to every area code.
func (numbers) Area(string) error { return nil }

// Nationwide implements registry.Sink.
func (numbers) Nationwide() error { return nil }

// LoadOwn adds numbers to an organization's list or removes them. With Replace, the list afterwards has the numbers
// of the files and those of people who opted out.
func (s *Catalog) LoadOwn(ctx context.Context, l Load) (LoadResult, error) {
	size, err := l.prepare()
	if err != nil {
		return LoadResult{}, err
	}
	all := numbers{}
	sums, err := l.withSums(ctx, func() error { return all.read(l, size) })
	if err != nil {
		return LoadResult{}, err
	}
	if l.Replace && !all.hasListed() {
		return LoadResult{}, fmt.Errorf("%w: the files list no number, so they cannot replace the list", registry.ErrList)
	}
	done := LoadResult{Name: screening.OwnList, Downloaded: l.Downloaded}
	err = db.Tx(ctx, s.Pool, func(tx pgx.Tx) error {
		fault := all.apply(ctx, tx, l, &done)
		if fault == nil {
			fault = tx.QueryRow(ctx, "SELECT count(*) FROM suppressions WHERE org_id = $1", l.OrgID).Scan(&done.Numbers)
		}
		if fault == nil {
			fault = record(ctx, tx, l, done, nil, sums)
		}
		return fault
	})
	if err != nil {
		return LoadResult{}, fmt.Errorf("load suppression list: %w", err)
	}
	return done, nil
}

// hasListed reports whether the files add at least one number to the list.
func (n numbers) hasListed() bool {
	for _, listed := range n {
		if listed {
			return true
		}
	}
	return false
}

func (n numbers) read(l Load, size int64) error {
	return l.readFiles(size, func(name string, progress func(int64)) error {
		_, err := registry.Read(name, n, progress)
		return err
	})
}

func (n numbers) apply(ctx context.Context, tx pgx.Tx, l Load, done *LoadResult) error {
	const create = "CREATE TEMPORARY TABLE incoming (number text PRIMARY KEY, listed boolean NOT NULL) ON COMMIT DROP"
	if _, err := tx.Exec(ctx, create); err != nil {
		return err
	}
	next := make([][]any, 0, len(n))
	for number, listed := range n {
		next = append(next, []any{number, listed})
	}
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"incoming"}, []string{"number", "listed"}, pgx.CopyFromRows(next)); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `
		DELETE FROM suppressions s WHERE org_id = $1 AND (
			EXISTS (SELECT FROM incoming i WHERE i.number = s.number AND NOT i.listed)
			OR $2 AND NOT EXISTS (SELECT FROM incoming i WHERE i.number = s.number AND i.listed)
				AND NOT EXISTS (SELECT FROM opt_outs o WHERE o.org_id = s.org_id AND o.number = s.number))`, l.OrgID, l.Replace)
	if err != nil {
		return err
	}
	done.Deleted = tag.RowsAffected()
	const insert = "INSERT INTO suppressions (org_id, number) SELECT $1, number FROM incoming WHERE listed ON CONFLICT DO NOTHING"
	tag, err = tx.Exec(ctx, insert, l.OrgID)
	done.Added = tag.RowsAffected()
	return err
}
