package dnc

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/dnc/registry"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/phonenumber"
)

// ReassignedList is the name of loads of reassigned numbers.
const ReassignedList = "reassigned"

// Results of a query to the FCC's Reassigned Numbers Database.
const (
	ResultYes    = "yes" // permanently disconnected since the date in the query
	ResultNo     = "no"
	ResultNoData = "no data"
)

// Query writes the query for the Reassigned Numbers Database: lines TN,YYYY-MM-DD without a header. They have the
// number and consent date of each contact of the organization that waits or is in a call. Each pair appears once. Pairs
// with a stored result are omitted.
func (s *Catalog) Query(ctx context.Context, orgID string, to io.Writer) (n int, err error) {
	out := csv.NewWriter(to)
	var number, day string
	err = db.Each(ctx, s.Pool, "contacts", []any{&number, &day}, func() error {
		n++
		return out.Write([]string{number, day})
	}, `
		SELECT DISTINCT substr(c.number, 3), to_char(c.consent_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') FROM contacts c
		JOIN campaigns k ON k.id = c.campaign_id AND k.status NOT IN ('completed', 'cancelled')
		WHERE c.org_id = $1 AND c.state IN ('pending', 'in_call', 'awaiting') AND c.consent_at IS NOT NULL AND c.number LIKE '+1%'
		AND NOT EXISTS (SELECT FROM reassigned_numbers r
			WHERE r.org_id = c.org_id AND r.number = c.number AND r.consent_on = (c.consent_at AT TIME ZONE 'UTC')::date)
		ORDER BY 1, 2`, orgID)
	out.Flush()
	return n, errors.Join(err, out.Error())
}

// A ReassignedResult counts loaded results.
type ReassignedResult struct{ Results, Yes, Suppressed int }

// LoadResults loads the response to a Query: TN,YYYY-MM-DD,result. It suppresses
// contacts whose numbers were reassigned since their consent.
func (s *Catalog) LoadResults(ctx context.Context, l Load) (ReassignedResult, error) {
	_, err := l.prepare()
	if err != nil {
		return ReassignedResult{}, err
	}
	var all [][]any
	var done ReassignedResult
	sums, err := l.withSums(ctx, func() error {
		for _, name := range l.Files {
			some, yes, fault := readResults(name, l.OrgID)
			if fault != nil {
				return fmt.Errorf("%s: %w", name, fault)
			}
			all, done.Yes = append(all, some...), done.Yes+yes
		}
		return nil
	})
	if err != nil {
		return ReassignedResult{}, err
	}
	done.Results = len(all)
	err = db.Tx(ctx, s.Pool, func(tx pgx.Tx) error {
		fault := saveResults(ctx, tx, all)
		if fault == nil {
			done.Suppressed, fault = store.SuppressReassigned(ctx, tx, l.OrgID, "")
		}
		if fault == nil {
			fault = record(ctx, tx, l, LoadResult{
				Name: ReassignedList, Added: int64(done.Yes), Deleted: int64(done.Suppressed), Numbers: int64(done.Results),
			}, nil, sums)
		}
		return fault
	})
	if err != nil {
		return ReassignedResult{}, fmt.Errorf("results: %w", err)
	}
	return done, nil
}

// saveResults stores results. If a number and date has several results, yes takes precedence.
func saveResults(ctx context.Context, tx pgx.Tx, all [][]any) error {
	if _, err := tx.Exec(ctx, "CREATE TEMPORARY TABLE incoming (LIKE reassigned_numbers INCLUDING DEFAULTS) ON COMMIT DROP"); err != nil {
		return err
	}
	columns := []string{"org_id", "number", "consent_on", "result"}
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"incoming"}, columns, pgx.CopyFromRows(all)); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO reassigned_numbers SELECT DISTINCT ON (org_id, number, consent_on) * FROM incoming
		ORDER BY org_id, number, consent_on, result DESC
		ON CONFLICT (org_id, number, consent_on) DO UPDATE SET result = excluded.result, at = now()`)
	return err
}

func readResults(name, orgID string) (all [][]any, yes int, err error) {
	f, err := os.Open(name) //nolint:gosec // the operator's own path
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	in := csv.NewReader(f)
	in.FieldsPerRecord, in.ReuseRecord = -1, true
	for line := 1; ; line++ {
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			return all, yes, nil
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%w: line %d: %w", registry.ErrList, line, err)
		}
		fields[0] = strings.TrimPrefix(fields[0], "\ufeff")
		if line == 1 && !strings.ContainsAny(fields[0], "0123456789") {
			continue // the line is a header
		}
		row, err := parseResult(fields, orgID)
		if err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", line, err)
		}
		if row[3] == ResultYes {
			yes++
		}
		all = append(all, row)
	}
}

func parseResult(fields []string, orgID string) ([]any, error) {
	if len(fields) < 3 {
		return nil, fmt.Errorf("%w: %d columns; number, date and result are required", registry.ErrList, len(fields))
	}
	number := phonenumber.SuppressionDigits(fields[0])
	if len(number) == 11 {
		number = strings.TrimPrefix(number, "1")
	}
	if len(number) != 10 {
		return nil, fmt.Errorf("%w: %q is not a number of ten digits", registry.ErrList, fields[0])
	}
	day, err := time.Parse(time.DateOnly, strings.TrimSpace(fields[1]))
	if err != nil {
		return nil, fmt.Errorf("%w: %q is not a date: use YYYY-MM-DD", registry.ErrList, fields[1])
	}
	words := strings.FieldsFunc(fields[2], func(r rune) bool { return r == ' ' || r == '_' })
	switch answer := strings.ToLower(strings.Join(words, " ")); answer {
	case ResultYes, ResultNo, ResultNoData:
		return []any{orgID, "+1" + number, day, answer}, nil
	default:
		return nil, fmt.Errorf("%w: %q is not a result: use yes, no or no data", registry.ErrList, fields[2])
	}
}
