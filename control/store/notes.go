package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// note is a part of the transcript of an attempt's call, with its lines and turns in JSON.
type note struct {
	lease                control.Lease
	begins               bool
	lines, turns         [][]byte
	firstLine, firstTurn int
}

// Note implements control.AttemptStore.
func (s *Store) Note(ctx context.Context, l control.Lease, n control.Notes) error {
	x := note{lease: l, begins: n.Begins, firstLine: n.FirstLine, firstTurn: n.FirstTurn}
	var err error
	if x.lines, err = marshalLines(n.Lines); err == nil {
		x.turns, err = marshalEach(n.Turns)
	}
	if err == nil {
		err = s.writers().note.Do(ctx, x)
	}
	return db.Wrap(err, "note")
}

// notesSQL writes parts of the transcripts of calls whose attempts are leased and active. The calls of $4 begin with it. $5 to
// $7 are the attempt's index, the line's index and the text of each line; $8 to $10 are those of each turn.
const notesSQL = `
WITH` + heldSQL + `,
fit AS (
	SELECT n, call_id FROM held WHERE state IN ` + ActiveStates + `
), begun AS (
	UPDATE calls c SET status = 'ongoing' FROM fit f WHERE c.id = f.call_id AND c.status = 'queued' AND f.n = ANY ($4::bigint[])
), lines AS (
	INSERT INTO call_lines (call_id, n, item)
	SELECT f.call_id, x.at, x.item::json FROM fit f JOIN unnest($5::bigint[], $6::int[], $7::text[]) AS x (n, at, item) USING (n)
	ON CONFLICT (call_id, n) DO UPDATE SET item = excluded.item
), turns AS (
	INSERT INTO call_turns (call_id, n, item)
	SELECT f.call_id, x.at, x.item::json FROM fit f JOIN unnest($8::bigint[], $9::int[], $10::text[]) AS x (n, at, item) USING (n)
	ON CONFLICT (call_id, n) DO UPDATE SET item = excluded.item
)
SELECT n FROM fit`

// items are the columns of the lines or turns of several notes.
type items struct {
	notes []int64 // index of the note, from 1
	at    []int
	texts []string
}

func (x *items) add(note int64, first int, texts [][]byte) {
	for i, text := range texts {
		x.notes, x.at, x.texts = append(x.notes, note), append(x.at, first+i), append(x.texts, string(text))
	}
}

func writeNotes(ctx context.Context, q db.Querier, notes []note) ([]error, error) {
	var begins []int64
	var lines, turns items
	for i, x := range notes {
		n := int64(i + 1)
		if x.begins {
			begins = append(begins, n)
		}
		lines.add(n, x.firstLine, x.lines)
		turns.add(n, x.firstTurn, x.turns)
	}
	args := append(leaseArgs(notes, func(x note) control.Lease { return x.lease }),
		begins, lines.notes, lines.at, lines.texts, turns.notes, turns.at, turns.texts)
	return queryEach(ctx, q, len(notes), notesSQL, args, func(row pgx.Row, n *int) error { return row.Scan(n) })
}
