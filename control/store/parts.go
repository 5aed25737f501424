package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// transcriptPart is a part of the transcript of an attempt's call, with its lines and turns in JSON. The group holds at most
// one for each call. If it is not written within partTimeout, it is lost until Finish writes the whole transcript.
type transcriptPart struct {
	lease                control.Lease
	begins               bool // the call becomes ongoing
	lines, turns         [][]byte
	firstLine, firstTurn int
}

// partTimeout bounds the write of parts. The end of a call may wait for it.
const partTimeout = 2 * time.Second

// Note implements control.AttemptStore.
func (s *Store) Note(ctx context.Context, l control.Lease, n control.Notes) error {
	x := transcriptPart{lease: l, begins: n.Begins, firstLine: n.FirstLine, firstTurn: n.FirstTurn}
	var err error
	if x.lines, err = marshalLines(n.Lines); err == nil {
		x.turns, err = marshalEach(n.Turns)
	}
	if err == nil {
		err = s.writers().part.Do(ctx, x)
	}
	return db.Wrap(err, "note")
}

// partsSQL writes parts of the transcripts of calls whose attempts are leased and active. $4 lists the parts whose call becomes
// ongoing. $5 to $7 are, for each line, its part, its index within the call, and its text; $8 to $10 are those of each turn.
const partsSQL = `
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

// items are the columns of the lines or turns of several parts.
type items struct {
	parts []int64 // number of the part, from 1
	at    []int
	texts []string
}

func (x *items) add(part int64, first int, texts [][]byte) {
	for i, text := range texts {
		x.parts, x.at, x.texts = append(x.parts, part), append(x.at, first+i), append(x.texts, string(text))
	}
}

func (w *groupWriter) parts(ctx context.Context, all []transcriptPart) ([]error, error) {
	var begins []int64
	var lines, turns items
	for i, x := range all {
		n := int64(i + 1)
		if x.begins {
			begins = append(begins, n)
		}
		lines.add(n, x.firstLine, x.lines)
		turns.add(n, x.firstTurn, x.turns)
	}
	args := append(leaseArgs(all, func(x transcriptPart) control.Lease { return x.lease }),
		begins, lines.parts, lines.at, lines.texts, turns.parts, turns.at, turns.texts)
	return queryEach(ctx, w.pool, len(all), partsSQL, args, func(row pgx.Row, n *int) error { return row.Scan(n) })
}
