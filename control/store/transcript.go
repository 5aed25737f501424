package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/pipeline"
)

// line is the stored form of a pipeline.Line. Times are in nanoseconds.
type line struct {
	Role        pipeline.Role   `json:"role"`
	Text        string          `json:"text"`
	Start       time.Duration   `json:"start"`
	End         time.Duration   `json:"end"`
	Turn        int             `json:"turn"`
	Interrupted bool            `json:"interrupted,omitempty"`
	Words       []pipeline.Word `json:"words,omitempty"`
}

// transcriptRows are the stored lines and turns of a call: JSON texts of rows, or a pack of both lists.
type transcriptRows struct {
	lines, turns []string
	pack         []byte // nil if the call has none
}

func (r transcriptRows) transcript() (w control.Transcript, err error) {
	if r.pack != nil {
		return unpackTranscript(r.pack)
	}
	w = control.Transcript{Lines: make([]pipeline.Line, len(r.lines)), Turns: make([]json.RawMessage, len(r.turns))}
	for i, text := range r.lines {
		var l line
		if err = json.Unmarshal([]byte(text), &l); err != nil {
			return control.Transcript{}, err
		}
		w.Lines[i] = pipeline.Line(l)
	}
	for i, text := range r.turns {
		w.Turns[i] = json.RawMessage(text)
	}
	return w, nil
}

// replaceTranscript replaces the stored transcript of a call by its final one: a pack if packs are allowed, or rows.
func replaceTranscript(ctx context.Context, q db.Querier, callID string, lines []pipeline.Line, turns []pipeline.Turn, packed bool) error {
	for _, table := range []string{"call_lines", "call_turns", "call_packs"} {
		if _, err := q.Exec(ctx, "DELETE FROM "+table+" WHERE call_id = $1", callID); err != nil {
			return err
		}
	}
	if !packed || len(lines)+len(turns) == 0 {
		return writeTranscript(ctx, q, callID, lines, turns)
	}
	pack, err := packTranscript(lines, turns)
	if err == nil {
		_, err = q.Exec(ctx, "INSERT INTO call_packs (call_id, pack) VALUES ($1, $2)", callID, pack)
	}
	return db.Wrap(err, "pack")
}

// writeTranscript writes the lines and turns as rows. The call has none.
func writeTranscript(ctx context.Context, q db.Querier, callID string, lines []pipeline.Line, turns []pipeline.Turn) error {
	items, err := marshalLines(lines)
	if err == nil {
		err = writeItems(ctx, q, "call_lines", callID, items)
	}
	if err != nil {
		return fmt.Errorf("lines: %w", err)
	}
	items, err = marshalEach(turns)
	if err == nil {
		err = writeItems(ctx, q, "call_turns", callID, items)
	}
	return db.Wrap(err, "turns")
}

func marshalLines(lines []pipeline.Line) ([][]byte, error) {
	stored := make([]line, len(lines))
	for i, l := range lines {
		stored[i] = line(l)
	}
	return marshalEach(stored)
}

func writeItems(ctx context.Context, q db.Querier, table, callID string, items [][]byte) error {
	if len(items) == 0 {
		return nil
	}
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = string(item)
	}
	_, err := q.Exec(ctx, "INSERT INTO "+table+" (call_id, n, item) "+
		"SELECT $1, u.n - 1, u.item::json FROM unnest($2::text[]) WITH ORDINALITY u (item, n)", callID, texts)
	return err
}
