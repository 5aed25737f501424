package rows

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// Bounds of files.
const (
	longestRecord = 1 << 20 // bytes of a row of a text file
	mostColumns   = 256
)

// ErrFile tells that a file is no list of rows.
var ErrFile = errors.New("the file cannot be read")

// FromFile is the rows of a file: a spreadsheet (.xlsx) or values separated by
// commas, semicolons, tabs or bars, in UTF-8 or UTF-16, the first line of which
// are the names of the columns. What it is is told by its content.
func FromFile(r io.ReaderAt, size int64) (Source, error) {
	head := make([]byte, min(size, 64<<10))
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return fromSheet(r, size)
	case bytes.HasPrefix(head, []byte("\xd0\xcf\x11\xe0")):
		return nil, fmt.Errorf("%w: it is an old or an encrypted spreadsheet: save it as .xlsx or .csv", ErrFile)
	case len(bytes.TrimSpace(head)) == 0:
		return nil, fmt.Errorf("%w: it is empty", ErrFile)
	default:
		return fromText(io.NewSectionReader(r, 0, size)), nil
	}
}

// fromText reads separated values.
func fromText(file io.Reader) Source {
	return func(yield func(Record, error) bool) {
		text := bufio.NewReaderSize(transform.NewReader(file, unicode.BOMOverride(transform.Nop)), 64<<10)
		head, err := text.Peek(32 << 10)
		if err != nil && !errors.Is(err, io.EOF) {
			yield(Record{}, fmt.Errorf("%w: %w", ErrFile, err))
			return
		}
		if bytes.IndexByte(head, 0) >= 0 {
			yield(Record{}, fmt.Errorf("%w: it is no text: send .csv in UTF-8, or .xlsx", ErrFile))
			return
		}
		bounded := &lines{r: text}
		c := csv.NewReader(bounded)
		c.Comma, c.FieldsPerRecord, c.LazyQuotes, c.ReuseRecord = separator(head), -1, true, false
		names, err := c.Read()
		if err == nil {
			err = named(names)
		}
		if err != nil {
			yield(Record{}, fmt.Errorf("%w: the line of names: %w", ErrFile, err))
			return
		}
		for row := 1; ; row++ {
			values, err := c.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Record{}, fmt.Errorf("%w: row %d: %w", ErrFile, row, err))
				return
			}
			bounded.since = 0
			if !yield(record(row, names, values), nil) {
				return
			}
		}
	}
}

// lines bounds how much is read for one record: a quote that is never closed
// would take the whole file.
type lines struct {
	r     io.Reader
	since int
}

func (l *lines) Read(p []byte) (int, error) {
	if l.since > longestRecord {
		return 0, fmt.Errorf("longer than %d bytes: is a quote left open?", longestRecord)
	}
	n, err := l.r.Read(p)
	l.since += n
	return n, err
}

// separator is the one that stands most often in the first line, outside of quotes.
func separator(head []byte) rune {
	best, most := ',', 0
	line, _, _ := bytes.Cut(head, []byte("\n"))
	for _, sep := range []rune{',', ';', '\t', '|'} {
		n, quoted := 0, false
		for _, r := range string(line) {
			switch {
			case r == '"':
				quoted = !quoted
			case r == sep && !quoted:
				n++
			}
		}
		if n > most {
			best, most = sep, n
		}
	}
	return best
}

// named tells whether names can be those of columns.
func named(names []string) error {
	seen := map[string]bool{}
	if len(names) > mostColumns {
		return fmt.Errorf("%d columns, at most %d can be read", len(names), mostColumns)
	}
	for i, name := range names {
		name = strings.TrimSpace(name)
		names[i] = name
		switch {
		case !utf8.ValidString(name):
			return fmt.Errorf("column %d has a name that is no UTF-8 text: save the file as UTF-8", i+1)
		case name != "" && seen[name]:
			return fmt.Errorf("two columns are called %q", name)
		}
		seen[name] = true
	}
	return nil
}

// record pairs values with their columns. Columns without a name are left out.
func record(row int, names, values []string) Record {
	r := Record{Row: row, Cells: make([]Cell, 0, len(names))}
	for i, v := range values {
		switch {
		case !utf8.ValidString(v):
			r.Err = errors.New("it is no UTF-8 text: save the file as UTF-8")
		case i >= len(names) && strings.TrimSpace(v) != "":
			r.Err = fmt.Errorf("it has %d values, the line of names has %d", len(values), len(names))
		case i < len(names) && names[i] != "":
			r.Cells = append(r.Cells, Cell{Column: names[i], Text: v})
		}
	}
	return r
}
