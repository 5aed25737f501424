package contactfile

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// Limits of files.
const (
	maxRecord  = 1 << 20 // bytes of a row of a text file
	maxColumns = 256
)

// ErrFile is returned for a file that is not a list of rows.
var ErrFile = errors.New("the file cannot be read")

// A Table has the rows of a file below its header line.
type Table struct {
	Source
	// Names are the column names. They are set once the rows are read.
	Names []string
}

// Open reads a file: XLSX, or text with values separated by commas, semicolons, tabs or
// bars, in UTF-8, UTF-16, Windows-1252 or Windows-1251. The first line has the column
// names. The content decides the format.
func Open(r io.ReaderAt, size int64) (*Table, error) {
	t := &Table{}
	var err error
	t.Source, err = fromFile(r, size, func(names []string) {
		t.Names = slices.DeleteFunc(slices.Clone(names), func(s string) bool { return s == "" })
	})
	return t, err
}

// FromFile returns the rows of a file; see Open.
func FromFile(r io.ReaderAt, size int64) (Source, error) {
	return fromFile(r, size, func([]string) {})
}

// fromFile reads a file and passes its header line to header.
func fromFile(r io.ReaderAt, size int64, header func(names []string)) (Source, error) {
	head := make([]byte, min(size, 64<<10))
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return fromSheet(r, size, header)
	case bytes.HasPrefix(head, []byte("\xd0\xcf\x11\xe0")):
		return nil, fmt.Errorf("%w: old or encrypted spreadsheet: save it as .xlsx or .csv", ErrFile)
	case len(bytes.TrimSpace(head)) == 0:
		return nil, fmt.Errorf("%w: the file is empty", ErrFile)
	default:
		return fromText(r, size, header), nil
	}
}

func fromText(file io.ReaderAt, size int64, header func(names []string)) Source {
	return func(yield func(Record, error) bool) {
		text := bufio.NewReaderSize(transform.NewReader(io.NewSectionReader(file, 0, size), unicode.BOMOverride(transform.Nop)), 64<<10)
		head, err := text.Peek(32 << 10)
		if err != nil && !errors.Is(err, io.EOF) {
			yield(Record{}, fmt.Errorf("%w: %w", ErrFile, err))
			return
		}
		if isBinary(head) {
			yield(Record{}, fmt.Errorf("%w: not a text file: upload .csv or .xlsx", ErrFile))
			return
		}
		limiter := &recordLimiter{r: text}
		c := csv.NewReader(limiter)
		c.Comma, c.FieldsPerRecord, c.LazyQuotes, c.ReuseRecord = separator(head), -1, true, false
		names, err := c.Read()
		var d decoder
		encoding := d.decode(names)
		if err == nil {
			err = checkNames(names)
		}
		if err != nil {
			yield(Record{}, fmt.Errorf("%w: header line: %w", ErrFile, err))
			return
		}
		header(names)
		for row := 1; ; row++ {
			values, err := c.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Record{}, fmt.Errorf("%w: row %d: %w", ErrFile, row, err))
				return
			}
			limiter.since = 0
			encoding = cmp.Or(d.decode(values), encoding)
			rec := record(row, names, values)
			rec.Encoding, encoding = encoding, ""
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// isBinary reports whether a file starts with a zero byte or many control characters.
func isBinary(head []byte) bool {
	const maxControl = 0.02 // largest share of control characters
	control := 0
	for _, c := range head {
		switch {
		case c == 0:
			return true
		case c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != '\v':
			control++
		}
	}
	return float64(control) > maxControl*float64(len(head))
}

// A decoder decodes values that are not UTF-8. Some spreadsheet programs save such .csv files.
type decoder struct{ cyrillic bool }

// decode decodes values in place and returns the name of their encoding, "" if all are
// UTF-8. Three adjacent letters beyond ASCII select Windows-1251.
func (d *decoder) decode(values []string) (encoding string) {
	for _, v := range values {
		d.cyrillic = d.cyrillic || !utf8.ValidString(v) && hasLetterRun(v)
	}
	table, name := charmap.Windows1252, "Windows-1252"
	if d.cyrillic {
		table, name = charmap.Windows1251, "Windows-1251"
	}
	for i, v := range values {
		if utf8.ValidString(v) {
			continue
		}
		if text, err := table.NewDecoder().String(v); err == nil {
			values[i], encoding = text, name
		}
	}
	return encoding
}

// hasLetterRun reports whether three adjacent bytes are letters beyond ASCII.
func hasLetterRun(s string) bool {
	run := 0
	for i := range len(s) {
		if s[i] < 0xC0 {
			run = 0
		} else if run++; run == 3 {
			return true
		}
	}
	return false
}

// A recordLimiter bounds the bytes of one record. Without it, a quote that is not closed would make the reader read the
// whole file.
type recordLimiter struct {
	r     io.Reader
	since int
}

func (l *recordLimiter) Read(p []byte) (int, error) {
	if l.since > maxRecord {
		return 0, fmt.Errorf("longer than %d bytes: check for an unclosed quote", maxRecord)
	}
	n, err := l.r.Read(p)
	l.since += n
	return n, err
}

// separator returns the most frequent separator of the first line, outside of quotes.
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

// checkNames trims and validates column names.
func checkNames(names []string) error {
	seen := map[string]bool{}
	if len(names) > maxColumns {
		return fmt.Errorf("%d columns; at most %d are accepted", len(names), maxColumns)
	}
	for i, name := range names {
		name = strings.TrimSpace(name)
		names[i] = name
		switch {
		case !utf8.ValidString(name):
			return fmt.Errorf("the name of column %d is not UTF-8: save the file as UTF-8", i+1)
		case name != "" && seen[name]:
			return fmt.Errorf("two columns are named %q", name)
		}
		seen[name] = true
	}
	return nil
}

// record pairs values with their columns. A missing value is empty; unnamed columns are
// dropped.
func record(row int, names, values []string) Record {
	r := Record{Row: row, Cells: make([]Cell, 0, len(names))}
	for i, name := range names {
		c := Cell{Column: name}
		if i < len(values) {
			c.Text = values[i]
		}
		if name != "" {
			r.Cells = append(r.Cells, c)
		}
	}
	for _, v := range values[min(len(names), len(values)):] {
		if strings.TrimSpace(v) != "" {
			r.Err = fmt.Errorf("the row has %d values, the header line %d columns", len(values), len(names))
		}
	}
	return r
}
