package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// Limits of what operators add to a call.
const (
	MaxTags      = 20
	MaxTagLen    = 40 // characters
	MaxNotes     = 100
	MaxNoteLen   = 4000 // characters
	maxTagChoice = 200
)

// Marks are what operators have added to a call. Score is 0 if there is none.
type Marks struct {
	Tags    []Mark
	Score   int
	ScoreBy Mark
	Notes   []Mark // oldest first
}

// A Mark is a tag or a note.
type Mark struct {
	ID, Text, Author string
	At               time.Time
}

// ReadMarks returns the marks of a call.
func ReadMarks(ctx context.Context, q db.Querier, callID string) (m Marks, err error) {
	read := func(sql string) ([]Mark, error) {
		return db.Collect(ctx, q, "marks", pgx.RowToStructByPos[Mark], sql, callID)
	}
	if m.Tags, err = read("SELECT tag, tag, author, created_at FROM call_tags WHERE call_id = $1 ORDER BY tag"); err != nil {
		return m, err
	}
	if m.Notes, err = read("SELECT id, note, author, created_at FROM call_notes WHERE call_id = $1 ORDER BY created_at, id"); err != nil {
		return m, err
	}
	err = q.QueryRow(ctx, "SELECT score, author, created_at FROM call_scores WHERE call_id = $1", callID).
		Scan(&m.Score, &m.ScoreBy.Author, &m.ScoreBy.At)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return m, db.Wrap(err, "marks")
}

// A Label is the tags and the score of a call in a list.
type Label struct {
	Tags  []string
	Score int
}

// Labels returns the labels of calls by id. Calls without tags and score may be missing.
func Labels(ctx context.Context, q db.Querier, ids []string) (map[string]Label, error) {
	all := map[string]Label{}
	var id string
	var l Label
	return all, db.Each(ctx, q, "labels", []any{&id, &l.Tags, &l.Score}, func() error {
		all[id] = Label{slices.Clone(l.Tags), l.Score}
		return nil
	}, `
		SELECT id, ARRAY(SELECT tag FROM call_tags WHERE call_id = id ORDER BY tag), coalesce((SELECT score FROM call_scores WHERE call_id = id), 0)
		FROM unnest($1::text[]) x (id)`, ids)
}

// Tags returns tags that an organization uses, in order. It reads one row of the index for each tag.
func Tags(ctx context.Context, q db.Querier, orgID string) ([]string, error) {
	return db.Collect(ctx, q, "tags", pgx.RowTo[string], `
		WITH RECURSIVE used AS (
			(SELECT tag FROM call_tags WHERE org_id = $1 ORDER BY tag LIMIT 1)
			UNION ALL
			SELECT (SELECT t.tag FROM call_tags t WHERE t.org_id = $1 AND t.tag > used.tag ORDER BY t.tag LIMIT 1)
			FROM used WHERE used.tag IS NOT NULL)
		SELECT tag FROM used WHERE tag IS NOT NULL LIMIT $2`, orgID, maxTagChoice)
}

// HoldCall locks the marks of a call, and returns an error if the organization does not have the call. An erasure waits
// for the transaction. The functions that change marks need this lock.
func HoldCall(ctx context.Context, q db.Querier, orgID, callID string) error {
	if _, err := q.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('marks ' || $1, 0))", callID); err != nil {
		return db.Wrap(err, "marks")
	}
	var id string
	err := q.QueryRow(ctx, "SELECT id FROM calls WHERE id = $1 AND org_id = $2 AND erased_at IS NULL FOR KEY SHARE", callID, orgID).Scan(&id)
	return db.RowError(err, "marks", control.Refuse(control.CodeCallNotFound, "call not found"))
}

// NormalizeTag returns a tag in lower case with single spaces, or an error.
func NormalizeTag(text string) (string, error) {
	tag := strings.Join(strings.Fields(strings.ToLower(text)), " ")
	if n := utf8.RuneCountInString(tag); n == 0 || n > MaxTagLen || strings.ContainsFunc(tag, isHidden) {
		return "", fmt.Errorf("enter a tag of 1 to %d characters", MaxTagLen)
	}
	return tag, nil
}

func isHidden(r rune) bool { return !unicode.IsGraphic(r) }

// AddTag adds a normalized tag to a call, and reports whether the call did not have it.
func AddTag(ctx context.Context, q db.Querier, orgID, callID, tag, author string) (bool, error) {
	var has bool
	var n int
	err := q.QueryRow(ctx, "SELECT coalesce(bool_or(tag = $2), false), count(*) FROM call_tags WHERE call_id = $1", callID, tag).Scan(&has, &n)
	switch {
	case err != nil || has:
		return false, db.Wrap(err, "tag")
	case n >= MaxTags:
		return false, fmt.Errorf("%w: a call has at most %d tags", ErrFull, MaxTags)
	}
	_, err = db.Exec(ctx, q, "tag", "INSERT INTO call_tags (call_id, tag, org_id, author) VALUES ($1, $2, $3, $4)", callID, tag, orgID, author)
	return err == nil, err
}

// ErrFull means that a call has as many tags or notes as it can have, or that its notes have expired.
var ErrFull = errors.New("no more can be added")

// RemoveTag removes a tag from a call, and reports whether the call had it.
func RemoveTag(ctx context.Context, q db.Querier, callID, tag string) (bool, error) {
	n, err := db.Exec(ctx, q, "tag", "DELETE FROM call_tags WHERE call_id = $1 AND tag = $2", callID, tag)
	return n > 0, err
}

// SetScore sets the score of a call, and returns the score before. Scores are 1 to 5; 0 is none.
func SetScore(ctx context.Context, q db.Querier, orgID, callID string, score int, author string) (before int, err error) {
	err = q.QueryRow(ctx, "SELECT coalesce((SELECT score FROM call_scores WHERE call_id = $1), 0)", callID).Scan(&before)
	switch {
	case err != nil || score == before:
	case score == 0:
		_, err = q.Exec(ctx, "DELETE FROM call_scores WHERE call_id = $1", callID)
	default:
		_, err = q.Exec(ctx, `
			INSERT INTO call_scores (call_id, score, org_id, author) VALUES ($1, $2, $3, $4)
			ON CONFLICT (call_id) DO UPDATE SET score = excluded.score, author = excluded.author, created_at = now()`, callID, score, orgID, author)
	}
	return before, db.Wrap(err, "score")
}

// AddNote adds a note to a call and returns its id. It refuses notes that retention would not delete: retention looks at
// the transcript and the notes of a call once. The two hours cover the transaction, clocks and daylight saving time.
func AddNote(ctx context.Context, q db.Querier, callID, note, author string) (id string, err error) {
	var n int
	var expired bool
	err = q.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM call_notes WHERE call_id = c.id), c.created_at < greatest(o.forgotten_until,
			now() + interval '2 hours' - make_interval(days => nullif((o.settings #>> '{retention,transcripts_days}')::int, 0)))
		FROM calls c JOIN organizations o ON o.id = c.org_id WHERE c.id = $1`, callID).Scan(&n, &expired)
	switch {
	case err != nil:
		return "", db.Wrap(err, "note")
	case expired:
		return "", fmt.Errorf("%w: the retention period of the call's notes is over", ErrFull)
	case n >= MaxNotes:
		return "", fmt.Errorf("%w: a call has at most %d notes", ErrFull, MaxNotes)
	}
	id = control.NewID("note_", time.Now())
	_, err = db.Exec(ctx, q, "note", "INSERT INTO call_notes (id, call_id, note, author) VALUES ($1, $2, $3, $4)", id, callID, note, author)
	return id, err
}

// DeleteNote deletes a note of a call, and reports whether the call had it.
func DeleteNote(ctx context.Context, q db.Querier, callID, id string) (bool, error) {
	n, err := db.Exec(ctx, q, "note", "DELETE FROM call_notes WHERE call_id = $1 AND id = $2", callID, id)
	return n > 0, err
}
