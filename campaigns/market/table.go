package market

import (
	"encoding/csv"
	"fmt"
	"strings"
)

// A row is one line of a table by column.
type row map[string]string

// readTable reads CSV with a header line; lines that begin with # are comments.
func readTable(name, text string, each func(row) error) error {
	r := csv.NewReader(strings.NewReader(text))
	r.Comment = '#'
	r.LazyQuotes = false
	all, err := r.ReadAll()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if len(all) == 0 {
		return fmt.Errorf("%s: the header line is missing", name)
	}
	for i, cells := range all[1:] {
		v := row{}
		for c, cell := range cells {
			v[all[0][c]] = strings.TrimSpace(cell)
		}
		if err := each(v); err != nil {
			return fmt.Errorf("%s, row %d: %w", name, i+1, err)
		}
	}
	return nil
}
