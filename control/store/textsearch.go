package store

import (
	"context"
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
	// beforeIDs is less than any id.
	beforeIDs = " "
)

// A textSearch lists the calls whose transcripts match a text query. It reads span after span, in list order, because an
// index of words has no order: a word may be in most of a million calls. It takes shorter spans where matches are many,
// and longer ones where they are few. If the first span does not fill the page, it reads all matches at once if they
// are few.
type textSearch struct {
	tx        pgx.Tx
	f, rest   Filter
	most      int // matches of a span
	page      Page
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
		span := spanOf(at, l)
		if !f.Ascending {
			span = spanOf(at.Add(-1), l)
		}
		ids, dense, err := s.matches(ctx, orgMark(f.OrgID)+hourMark(span.From, l)+"':*", l)
		if err != nil {
			return Page{}, err
		}
		if dense {
			l = shorter(l)
			continue
		}
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
		if len(ids) < s.most/8 && l > yearLevel {
			l -= 2
		}
	}
}

func shorter(l level) level { return min(l+2, hourLevel) }

// begin finds where the search begins and ends. It returns false if there are no calls.
func (s *textSearch) begin(ctx context.Context) (bool, error) {
	if _, err := s.tx.Exec(ctx, "SET LOCAL enable_seqscan = off"); err != nil {
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

// matches returns the calls that match the query and a mark of a level, and reports whether they are too many. Those of
// an hour never are.
func (s *textSearch) matches(ctx context.Context, mark string, l level) (ids []string, dense bool, err error) {
	most := s.most
	if l == hourLevel {
		most = maxHourMatches
	}
	ids, err = db.Collect(ctx, s.tx, "", pgx.RowTo[string],
		"SELECT call_id FROM call_words WHERE words @@ (websearch_to_tsquery('"+wordConfig+"', $1) && $2::tsquery) LIMIT $3",
		pgx.QueryExecModeExec, lowerText(s.f.Text), "'"+mark, most+1)
	return ids, len(ids) > most && l != hourLevel, err
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
	ids, dense, err := s.matches(ctx, orgMark(s.f.OrgID)+"'", yearLevel)
	if err != nil || dense {
		return false, err
	}
	if err = s.take(ctx, ids); err == nil {
		s.cut()
	}
	return true, err
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
