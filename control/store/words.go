package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/pipeline"
)

// WordIndexer keeps the words of transcripts up to date for the search of calls. A transaction takes ended calls from a
// queue and stores the words of their transcripts. One process at a time does it.
//
// The transcripts stay locked until their words are stored. So whoever deletes a transcript deletes its words too: a
// trigger does it, in the same transaction.
type WordIndexer struct {
	Pool *pgxpool.Pool
	// Poll is the interval of checks; 0 means 2 s.
	Poll time.Duration
	Log  *slog.Logger // nil discards
}

const (
	// wordCallsAtOnce is the maximum number of calls in a transaction.
	wordCallsAtOnce = 200
	// maxWordText is the length of a transcript in bytes, from its beginning, whose words can be found.
	maxWordText = 256 << 10
	// wordConfig finds stems: English in ASCII, Russian in Cyrillic. Words of other languages, for example Kazakh,
	// stay as they are, except for endings that look Russian, which a query loses too. Frequent English and Russian
	// words ("the", "и") are left out.
	wordConfig = "pg_catalog.russian"
)

// Run stores words until ctx ends.
func (x *WordIndexer) Run(ctx context.Context) {
	db.Follower{
		Step: x.Step, Full: wordCallsAtOnce, Poll: x.Poll, Failure: "failed to update the search of transcripts", Log: x.Log,
	}.Run(ctx)
}

// Step stores the words of the next calls, and returns how many there were. It returns 0 while another process does.
func (x *WordIndexer) Step(ctx context.Context) (n int, err error) {
	var changed bool
	err = x.Pool.QueryRow(ctx, "SELECT (SELECT id FROM call_word_changes ORDER BY id LIMIT 1) IS NOT NULL").Scan(&changed)
	if err != nil || !changed { // most often nothing changed, which needs no transaction
		return 0, db.Wrap(err, "words of transcripts")
	}
	err = db.Tx(ctx, x.Pool, func(tx pgx.Tx) error {
		var mine bool
		fault := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock(hashtextextended('words of transcripts', 0))").Scan(&mine)
		if fault != nil || !mine {
			return fault
		}
		ids, fault := db.Collect(ctx, tx, "", pgx.RowTo[string], `
			DELETE FROM call_word_changes WHERE id IN (SELECT id FROM call_word_changes ORDER BY id LIMIT $1) RETURNING call_id`, wordCallsAtOnce)
		if n = len(ids); fault != nil || n == 0 {
			return fault
		}
		slices.Sort(ids)
		return x.index(ctx, tx, slices.Compact(ids))
	})
	return n, db.Wrap(err, "words of transcripts")
}

// index replaces the words of calls. The locks are taken in the order in which Purger takes them.
func (x *WordIndexer) index(ctx context.Context, tx pgx.Tx, ids []string) error {
	var found, marks []string
	var id, org string
	var at time.Time
	each := func() error {
		found, marks = append(found, id), append(marks, orgMark(org)+" "+orgMark(org)+hourMark(at, hourLevel))
		return nil
	}
	err := db.Each(ctx, tx, "", []any{&id, &org, &at}, each,
		"SELECT id, org_id, created_at FROM calls WHERE id = ANY ($1) AND erased_at IS NULL ORDER BY id FOR KEY SHARE", ids)
	if err != nil {
		return err
	}
	all, err := readTranscriptRows(ctx, tx, found, " FOR SHARE")
	if err != nil {
		return err
	}
	texts := make([]string, len(found))
	for i, id := range found {
		t, fault := all[id].transcript()
		if fault != nil && x.Log != nil {
			x.Log.WarnContext(ctx, "a transcript cannot be searched", "call", id, "err", fault)
		}
		texts[i] = spokenText(t.Lines)
	}
	if _, err = tx.Exec(ctx, "DELETE FROM call_words WHERE call_id = ANY ($1)", ids); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO call_words (call_id, words)
		SELECT id, to_tsvector('`+wordConfig+`', said) || array_to_tsvector(string_to_array(marks, ' '))
		FROM unnest($1::text[], $2::text[], $3::text[]) u (id, said, marks) WHERE said <> ''`, found, texts, marks)
	return err
}

// readTranscriptRows reads the lines of several calls, without turns.
func readTranscriptRows(ctx context.Context, q db.Querier, ids []string, lock string) (map[string]transcriptRows, error) {
	all := map[string]transcriptRows{}
	var id, item string
	var pack []byte
	err := db.Each(ctx, q, "", []any{&id, &item}, func() error {
		r := all[id]
		r.lines = append(r.lines, item)
		all[id] = r
		return nil
	}, "SELECT call_id, item::text FROM call_lines WHERE call_id = ANY ($1) ORDER BY call_id, n"+lock, ids)
	if err != nil {
		return nil, err
	}
	return all, db.Each(ctx, q, "", []any{&id, &pack}, func() error {
		all[id] = transcriptRows{pack: slices.Clone(pack)}
		return nil
	}, "SELECT call_id, pack FROM call_packs WHERE call_id = ANY ($1) ORDER BY call_id"+lock, ids)
}

// isSpoken reports whether caller or agent said the line.
func isSpoken(l pipeline.Line) bool { return l.Role == "caller" || l.Role == "agent" }

// lowerText returns the text in lower case, with as many characters. Postgres does not know the letters of all scripts if
// the locale of the database is C.
func lowerText(s string) string { return strings.Map(unicode.ToLower, s) }

// spokenText returns what caller and agent said, a line each, in lower case.
func spokenText(lines []pipeline.Line) string {
	var b strings.Builder
	for _, l := range lines {
		if isSpoken(l) && b.Len()+len(l.Text) < maxWordText {
			b.WriteString(lowerText(l.Text))
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// orgMark returns the word that all transcripts of an organization have. No text contains it, because words of texts
// do not begin with "@". Two organizations may share a mark, so a search compares the organization of the call too.
func orgMark(orgID string) string {
	sum := sha256.Sum256([]byte(orgID))
	return "@" + hex.EncodeToString(sum[:4])
}

// A level is the length of a span of time, as the number of characters of its mark.
type level int

// Levels, in UTC. The span of a level with ten in its name has the months, days or hours with the same first digit.
const (
	yearLevel level = 2 + iota
	tenMonthsLevel
	monthLevel
	tenDaysLevel
	dayLevel
	tenHoursLevel
	hourLevel
)

// hourMark returns the mark of the span of a level that contains a time. It is the beginning of the marks of the
// shorter spans.
func hourMark(at time.Time, l level) string { return at.UTC().Format("06010215")[:l] }

// spanOf returns the span of a level that contains a time.
func spanOf(at time.Time, l level) Span {
	at = at.UTC()
	y, m, d := at.Date()
	h := at.Hour()
	begin := func(m time.Month, d, h int) time.Time { return time.Date(y, m, d, h, 0, 0, 0, time.UTC) }
	switch l {
	case yearLevel:
		return Span{begin(1, 1, 0), begin(13, 1, 0)}
	case tenMonthsLevel:
		from := m / 10 * 10
		return Span{begin(max(from, 1), 1, 0), begin(min(from+10, 13), 1, 0)}
	case monthLevel:
		return Span{begin(m, 1, 0), begin(m+1, 1, 0)}
	case tenDaysLevel:
		from := d / 10 * 10
		to := begin(m, from+10, 0)
		if next := begin(m+1, 1, 0); next.Before(to) {
			to = next
		}
		return Span{begin(m, max(from, 1), 0), to}
	case dayLevel:
		return Span{begin(m, d, 0), begin(m, d+1, 0)}
	case tenHoursLevel:
		from := h / 10 * 10
		return Span{begin(m, d, from), begin(m, d, min(from+10, 24))}
	case hourLevel:
	}
	return Span{begin(m, d, h), begin(m, d, h+1)}
}
