package admincli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Table is the output of a command that lists objects: text for people, or JSON for programs.
type Table struct {
	columns []string
	rows    [][]any
}

// NewTable returns an empty table with columns.
func NewTable(columns ...string) *Table { return &Table{columns: columns} }

// Add adds a row. Cells are strings, numbers, booleans, times, pointers to times, or lists of strings.
func (t *Table) Add(cells ...any) { t.rows = append(t.rows, cells) }

// Print prints the table. As JSON it is a list of objects, whose keys are the columns in lower case.
func (t *Table) Print(out io.Writer, asJSON bool) error {
	if asJSON {
		all := make([]map[string]any, len(t.rows))
		for n, row := range t.rows {
			all[n] = map[string]any{}
			for i, cell := range row {
				all[n][strings.ReplaceAll(strings.ToLower(t.columns[i]), " ", "_")] = cell
			}
		}
		return WriteJSON(out, all)
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(t.columns, "\t"))
	for _, row := range t.rows {
		texts := make([]string, len(row))
		for i, cell := range row {
			texts[i] = cellText(cell)
		}
		fmt.Fprintln(w, strings.Join(texts, "\t"))
	}
	return w.Flush()
}

func cellText(cell any) string {
	text := ""
	switch c := cell.(type) {
	case nil:
	case time.Time:
		return formatTime(&c)
	case *time.Time:
		return formatTime(c)
	case []string:
		text = strings.Join(c, ",")
	default:
		text = fmt.Sprint(c)
	}
	if text == "" {
		return "–"
	}
	return text
}

// WriteJSON writes a value as indented JSON.
func WriteJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
