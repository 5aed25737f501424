package store

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/pipeline"
)

// An Excerpt is the line of a transcript that matches a text query best.
type Excerpt struct {
	Line  int // index in the transcript
	Role  pipeline.Role
	Start time.Duration // from the beginning of the recording
	Parts []ExcerptPart
}

// An ExcerptPart is text that matches the query, or text between matches.
type ExcerptPart struct {
	Text string
	Hit  bool
}

// Excerpts reads at most maxExcerptText bytes of the spoken lines of each call. An excerpt has excerptLen characters.
const (
	maxExcerptText = 64 << 10
	excerptLen     = 160
	hitStart       = "\x02"
	hitEnd         = "\x03"
)

// spokenLine is a line that may become an excerpt.
type spokenLine struct {
	pipeline.Line

	n int
}

// Excerpts returns the best line of each of a few calls, by id. A call has none if its words are too far apart to be
// in its first lines, or if its transcript was deleted.
func Excerpts(ctx context.Context, pool *pgxpool.Pool, ids []string, query string) (map[string]Excerpt, error) {
	rows, err := readTranscriptRows(ctx, pool, ids, "")
	if err != nil {
		return nil, db.Wrap(err, "excerpts")
	}
	texts, lines := make([]string, len(ids)), make([][]spokenLine, len(ids))
	for i, id := range ids {
		said, fault := rows[id].transcript()
		if fault != nil {
			continue // the page of the call shows the error
		}
		lines[i], texts[i] = excerptLines(said.Lines)
	}
	all := map[string]Excerpt{}
	var at int
	var marked string
	// The position of the text begins at 1. Each line of the answer is one line of the transcript.
	err = db.Each(ctx, pool, "excerpts", []any{&at, &marked}, func() error {
		if best, ok := bestLine(lines[at-1], strings.Split(marked, "\n")); ok {
			all[ids[at-1]] = best
		}
		return nil
	}, `SELECT n, ts_headline('`+wordConfig+`', said, websearch_to_tsquery('`+wordConfig+`', $2), $3)
		FROM unnest($1::text[]) WITH ORDINALITY u (said, n) WHERE said <> ''`,
		texts, lowerText(query), `HighlightAll=true, StartSel="`+hitStart+`", StopSel="`+hitEnd+`"`)
	return all, err
}

// excerptLines returns the spoken lines, and their text in lower case with a line each.
func excerptLines(all []pipeline.Line) (kept []spokenLine, text string) {
	clean := strings.NewReplacer("\n", " ", "\r", " ", hitStart, " ", hitEnd, " ")
	var b strings.Builder
	for i, l := range all {
		if !isSpoken(l) || b.Len()+len(l.Text) > maxExcerptText {
			continue
		}
		if len(kept) > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(lowerText(clean.Replace(l.Text)))
		kept = append(kept, spokenLine{l, i})
	}
	return kept, b.String()
}

// bestLine returns the line with the most matches; the first of them. It returns false if no line has one.
func bestLine(lines []spokenLine, marked []string) (best Excerpt, ok bool) {
	most := 0
	for i, text := range marked[:min(len(lines), len(marked))] {
		if n := strings.Count(text, hitStart); n > most {
			most = n
			best = Excerpt{Line: lines[i].n, Role: lines[i].Role, Start: lines[i].Start, Parts: excerptParts([]rune(lines[i].Text), text)}
		}
	}
	return best, most > 0
}

// excerptParts cuts a line around its first match. The marked text has the same characters, in lower case, and the marks.
func excerptParts(line []rune, marked string) (parts []ExcerptPart) {
	at, left := 0, excerptLen
	add := func(n int, hit bool) {
		text := line[min(at, len(line)):min(at+n, len(line))]
		if at += n; len(text) == 0 || left <= 0 {
			return
		}
		end := ""
		if len(text) > left {
			text, end = text[:left], "…"
		}
		left -= len(text)
		parts = append(parts, ExcerptPart{string(text) + end, hit})
	}
	before, rest, _ := strings.Cut(marked, hitStart)
	n := utf8.RuneCountInString(before)
	if skip := n - excerptLen/3; skip > 0 {
		at, n = skip, n-skip
		parts = append(parts, ExcerptPart{Text: "…"})
	}
	add(n, false)
	for piece := range strings.SplitSeq(rest, hitStart) {
		hit, after, _ := strings.Cut(piece, hitEnd)
		add(utf8.RuneCountInString(hit), true)
		add(utf8.RuneCountInString(after), false)
	}
	return parts
}
