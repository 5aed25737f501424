package market

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io/fs"
	"strings"
)

// A row is one line of a table, by column.
type row map[string]string

// table reads a file of comma-separated values with a line of names; lines
// that begin with # are remarks.
func table(dir fs.FS, name string, each func(row) error) error {
	f, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	r := csv.NewReader(bufio.NewReader(f))
	r.Comment = '#'
	r.LazyQuotes = false
	all, err := r.ReadAll()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if len(all) == 0 {
		return fmt.Errorf("%s: no line of names", name)
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
