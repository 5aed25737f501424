package store

import (
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

const (
	// maxTextQuery is the maximum length of a text query in characters.
	maxTextQuery = 200
	// matchesPerScan times Store.Scan is the number of matching calls of a span above which a search takes shorter
	// spans. maxHourMatches is the number of matches that it reads of one hour; further ones are not found.
	matchesPerScan, maxHourMatches = 2, 50_000
	// fewMatches times the matches of a span is the expected number of all matches up to which a search tries to read all.
	fewMatches = 5
	// quickSpan is the time that a span may take before a longer one. The time grows with the calls of the span.
	quickSpan = 20 * time.Millisecond
	// beforeIDs is less than any id.
	beforeIDs = " "
)

// A textSearch lists the calls whose transcripts match a text query. It reads span after span, in list order, because an
// index of words has no order: a word may be in most of a million calls. It takes shorter spans where matches are many,
// and longer ones where they are few and are found quickly. If the first span does not fill the page, it reads all matches
// at once if they are few.
type textSearch struct {
	tx        pgx.Tx
	f, rest   Filter
	most      int // matches of a span
	page      Page
	dense     []Span    // spans with too many matches
	from, end time.Time // the search begins at from and ends at end; it is earlier than from in descending order
}

// checkText returns an error if a text query selects nothing in particular.
func checkText(ctx context.Context, tx pgx.Tx, text string) error {
	if utf8.RuneCountInString(text) > maxTextQuery {
		return control.Refuse(control.CodeInvalidFilter, "Said: use at most 200 characters")
	}
	var tree string
	if err := tx.QueryRow(ctx, "SELECT querytree(websearch_to_tsquery('"+wordConfig+"', $1))", lowerText(text)).Scan(&tree); err != nil {
		return err
	}
	if tree == "" || tree == "T" {
		return control.Refuse(control.CodeInvalidFilter, "Said: enter at least one word that is less common")
	}
	return nil
}

// listText lists calls by Filter.Text.
func listText(ctx context.Context, tx pgx.Tx, f Filter, scan int, began time.Time) (Page, error) {
	s := textSearch{tx: tx, f: f, rest: f, most: matchesPerScan * scan}
	s.rest.Limit++ // one more than the page, to know whether there are more
	if ok, err := s.begin(ctx); err != nil || !ok {
		return Page{}, err
	}
	at, l, tried := s.from, dayLevel, false
	for {
		span, asked := s.spanAt(at, l), time.Now()
		ids, err := s.matchesOf(ctx, span, l)
		if err != nil {
			return Page{}, err
		}
		if len(ids) > s.most && l < hourLevel {
			s.dense = append(s.dense, span)
			l = shorter(l)
			continue
		}
		quick := time.Since(asked) < quickSpan
		if err = s.take(ctx, ids); err != nil {
			return Page{}, err
		}
		if at = s.next(span); s.done(at, began) {
			return s.page, nil
		}
		if !tried {
			tried = true
			if whole, fault := s.takeAll(ctx); fault != nil || whole {
				return s.page, fault
			}
		}
		if quick && len(ids) < s.most/8 {
			l = s.longer(at, l)
		}
	}
}

func shorter(l level) level { return min(l+1, hourLevel) }

// longer returns the next longer level, unless its next span is known to have too many matches.
func (s *textSearch) longer(at time.Time, l level) level {
	if l == yearLevel {
		return l
	}
	next := s.spanAt(at, l-1)
	if slices.ContainsFunc(s.dense, func(d Span) bool { return !d.From.Before(next.From) && !d.To.After(next.To) }) {
		return l
	}
	return l - 1
}

// spanAt returns the next span of a level from a time on, in list order.
func (s *textSearch) spanAt(at time.Time, l level) Span {
	if !s.f.Ascending {
		at = at.Add(-1)
	}
	return spanOf(at, l)
}

// begin finds where the search begins and ends. It returns false if there are no calls.
func (s *textSearch) begin(ctx context.Context) (bool, error) {
	// With little memory, the index finds pages instead of rows, and all rows of these pages are read.
	if _, err := s.tx.Exec(ctx, "SET LOCAL enable_seqscan = off; SET LOCAL work_mem = '64MB'"); err != nil {
		return false, err
	}
	from, to, ok, err := createdBetween(ctx, s.tx, s.f)
	if err != nil || !ok {
		return false, err
	}
	if s.f.AfterID != "" {
		switch t := s.f.AfterTime; {
		case s.f.Ascending && t.After(from):
			from = t
		case !s.f.Ascending && t.Before(to):
			to = t.Add(time.Microsecond) // a call of the same moment may follow
		}
	}
	if s.from, s.end = to, from; s.f.Ascending {
		s.from, s.end = from, to
	}
	return from.Before(to), nil
}

// matchesOf returns the matches of a span. If they are more than s.most, it returns not all of them, except for an hour.
func (s *textSearch) matchesOf(ctx context.Context, span Span, l level) ([]string, error) {
	mark := "'" + orgMark(s.f.OrgID) + hourMark(span.From, l) + "'"
	if l == hourLevel {
		return s.matches(ctx, mark, maxHourMatches)
	}
	return s.matches(ctx, mark+":*", s.most+1) // the marks of the span's hours begin so
}

// matches returns calls that match the query and a mark.
func (s *textSearch) matches(ctx context.Context, mark string, most int) ([]string, error) {
	return db.Collect(ctx, s.tx, "", pgx.RowTo[string],
		"SELECT call_id FROM call_words WHERE words @@ (websearch_to_tsquery('"+wordConfig+"', $1) && $2::tsquery) LIMIT $3",
		pgx.QueryExecModeExec, lowerText(s.f.Text), mark, most)
}

// take adds the calls that also meet the other conditions.
func (s *textSearch) take(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	s.rest.ids = ids
	found, err := listOnce(ctx, s.tx, s.rest, len(ids))
	s.page.Calls = append(s.page.Calls, found.Calls...)
	s.rest.Limit -= len(found.Calls)
	return err
}

// takeAll takes all matches at once. It returns false if they are many.
func (s *textSearch) takeAll(ctx context.Context) (bool, error) {
	expected, err := s.expected(ctx)
	if err != nil || expected > float64(fewMatches*s.most) {
		return false, err
	}
	ids, err := s.matches(ctx, "'"+orgMark(s.f.OrgID)+"'", s.most+1)
	if err != nil || len(ids) > s.most {
		return false, err
	}
	if err = s.take(ctx, ids); err == nil {
		s.cut()
	}
	return true, err
}

// expected returns the number of matches that the planner expects, from its statistics of words. A count would read what
// the index has of frequent words.
func (s *textSearch) expected(ctx context.Context) (float64, error) {
	var plan []struct {
		Plan struct {
			Rows float64 `json:"Plan Rows"`
		}
	}
	err := s.tx.QueryRow(ctx, "EXPLAIN (FORMAT json) SELECT FROM call_words WHERE words @@ websearch_to_tsquery('"+wordConfig+"', $1)",
		pgx.QueryExecModeExec, lowerText(s.f.Text)).Scan(&plan)
	if err != nil || len(plan) == 0 {
		return 0, err
	}
	return plan[0].Plan.Rows, nil
}

// next returns where the next span begins.
func (s *textSearch) next(span Span) time.Time {
	at := span.From
	if s.f.Ascending {
		at = span.To
	}
	s.rest.AfterTime, s.rest.AfterID = at, beforeIDs
	return at
}

// done reports whether the search ends before at: the page is full, or no calls are left, or it took long.
func (s *textSearch) done(at, began time.Time) bool {
	if s.cut(); s.page.More {
		return true
	}
	if s.f.Ascending && !at.Before(s.end) || !s.f.Ascending && !at.After(s.end) {
		return true
	}
	if time.Since(began) > listTimeout {
		s.page.More, s.page.EndTime, s.page.EndID = true, at, beforeIDs
	}
	return s.page.More
}

// cut ends a page that has more calls than asked for.
func (s *textSearch) cut() {
	if n := s.f.Limit; len(s.page.Calls) > n {
		s.page.Calls, s.page.More = s.page.Calls[:n], true
		s.page.EndTime, s.page.EndID = s.page.Calls[n-1].CreatedAt, s.page.Calls[n-1].ID
	}
}
