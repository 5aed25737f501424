package registry

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/parley-voice/parley/control/phonenumber"
)

// ErrList is returned for a list in an unknown form.
var ErrList = errors.New("not a list of numbers")

// Limits of lists.
const (
	maxLine     = 256
	maxListSize = 16 << 30 // bytes of one list when unpacked

	minExpansionCheck = 16 << 20 // the expansion of larger parts of a zip file is checked
	maxExpansion      = 100      // accepted ratio of expansion; sorted numbers expand tenfold
)

// A Sink receives the contents of a list.
type Sink interface {
	// Number receives the digits of a number without a plus, and whether the list adds or removes it. The slice is
	// reused.
	Number(digits []byte, listed bool) error
	// Area receives an area code that the list covers.
	Area(code string) error
	// Nationwide reports that the list covers the whole country.
	Nationwide() error
}

// Read reads a list into a sink. Accepted forms are text with one number per line
// (2025550123, 202-555-0123, 202,5550123), changes (202,5550123,A,2026-11-01: A adds, D
// removes; other fields are ignored), XML (<ac val="202"><ph val="5550123"/>), and zip
// files of these. progress, if not nil, receives the bytes read. changes reports
// whether the list is a list of changes.
//
// One bad line rejects the list; the error names the line. A first line without a digit
// is a header.
func Read(name string, to Sink, progress func(n int64)) (changes bool, err error) {
	f, err := os.Open(name) //nolint:gosec // the operator's own path
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	r := &reader{to: to}
	counted := &counter{r: f, progress: progress}
	head := make([]byte, 4)
	if n, _ := f.ReadAt(head, 0); string(head[:n]) == "PK\x03\x04" {
		err = r.readZip(counted.readerAt(f), info.Size())
	} else {
		err = r.readList(counted)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	return r.changes, nil
}

// A reader reads one file.
type reader struct {
	to      Sink
	changes bool // a line has A or D, for added or deleted
	digits  [64]byte
}

func (r *reader) readZip(f io.ReaderAt, size int64) error {
	z, err := zip.NewReader(f, size)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrList, err)
	}
	for _, part := range z.File {
		if err := r.readPart(part); err != nil {
			return fmt.Errorf("%s: %w", part.Name, err)
		}
	}
	return nil
}

func (r *reader) readPart(part *zip.File) error {
	if part.FileInfo().IsDir() {
		return nil
	}
	if n := part.UncompressedSize64; n > maxListSize || n > minExpansionCheck && n > maxExpansion*part.CompressedSize64 {
		return fmt.Errorf("%w: it unpacks to %d bytes, more than expected of a list", ErrList, n)
	}
	in, err := part.Open()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrList, err)
	}
	err = r.readList(&bounded{r: in, left: int64(part.UncompressedSize64)})
	if errors.Is(err, zip.ErrChecksum) || errors.Is(err, zip.ErrFormat) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w: the zip is damaged: %w", ErrList, err)
	}
	return errors.Join(err, in.Close())
}

// A bounded reader fails beyond the size that the zip file declares.
type bounded struct {
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("%w: it unpacks to more than its declared size", ErrList)
	}
	return n, err
}

// readList reads one list in any form.
func (r *reader) readList(from io.Reader) error {
	in := bufio.NewReaderSize(from, 1<<20)
	head, err := in.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return fmt.Errorf("%w: it is not UTF-8 text: save it as UTF-8", ErrList)
	}
	head = bytes.TrimPrefix(head, []byte("\ufeff"))
	if bytes.HasPrefix(bytes.TrimSpace(head), []byte("<")) {
		return r.readXML(in)
	}
	return r.readLines(in)
}

func (r *reader) readLines(in *bufio.Reader) error {
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		if len(line) > maxLine || errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("%w: line %d is longer than %d bytes", ErrList, n, maxLine)
		}
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if n > 1 || bytes.ContainsAny(line, "0123456789") {
			if e := r.readLine(line); e != nil {
				return fmt.Errorf("line %d: %w", n, e)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// readLine reads one line. A line of ten digits takes the fast path.
func (r *reader) readLine(line []byte) error {
	line = bytes.TrimRight(line, "\r\n \t")
	if len(line) == 0 {
		return nil
	}
	if len(line) == 10 && isDigits(line) {
		return r.to.Number(line, true)
	}
	number, listed, err := r.parseFields(line)
	if err != nil {
		return err
	}
	if len(number) < 7 {
		return fmt.Errorf("%w: %q has no number of ten digits", ErrList, line)
	}
	return r.to.Number(number, listed)
}

// parseFields returns the digits of the number in a line, and whether the line lists it.
func (r *reader) parseFields(line []byte) (number []byte, listed bool, err error) {
	listed, number = true, r.digits[:0]
	for field := range bytes.SplitSeq(line, []byte(separator(line))) {
		field = bytes.Trim(bytes.TrimSpace(field), `"`)
		switch d := phoneDigits(field); {
		case len(number) < 10 && d != nil:
			number = append(number, d...)
		case len(field) != 1:
		case bytes.EqualFold(field, []byte("A")):
			listed, r.changes = true, true
		case bytes.EqualFold(field, []byte("D")):
			listed, r.changes = false, true
		default:
			return nil, false, fmt.Errorf("%w: %q is not a change: A adds a number, D removes it", ErrList, field)
		}
	}
	return number, listed, nil
}

// separator returns the field separator of a line.
func separator(line []byte) string {
	for _, s := range []string{",", ";", "\t", "|"} {
		if bytes.Contains(line, []byte(s)) {
			return s
		}
	}
	return ","
}

func isDigits(s []byte) bool {
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// phoneDigits returns the digits of a field that is a number or a part of one: digits with
// dashes, dots, spaces, brackets and an extension, which is dropped. It returns nil for dates
// and other text.
func phoneDigits(field []byte) []byte {
	if isDigits(field) && len(field) != 0 {
		return field
	}
	number, _ := phonenumber.Base(strings.TrimPrefix(string(field), "tel:"))
	field = []byte(strings.TrimLeft(number, "+"))
	if len(field) == 10 && (field[4] == '-' && field[7] == '-' || field[2] == '/' && field[5] == '/') {
		return nil // the field is a date
	}
	var d []byte
	for _, c := range string(field) {
		switch {
		case c >= '0' && c <= '9':
			d = append(d, byte(c))
		case !unicode.In(c, unicode.Zs, unicode.Pd) && !strings.ContainsRune(".()\"", c):
			return nil
		}
	}
	return d
}

func (r *reader) readXML(in io.Reader) error {
	d := xml.NewDecoder(in)
	area := ""
	for {
		t, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrList, err)
		}
		start, ok := t.(xml.StartElement)
		if !ok {
			continue
		}
		tag := attributes(start)
		switch start.Name.Local {
		case "list":
			r.changes = r.changes || strings.EqualFold(tag.change, "change")
			if strings.EqualFold(tag.change, "full") && strings.EqualFold(tag.level, "national") {
				err = r.to.Nationwide()
			}
		case "ac":
			area = tag.val
			err = r.to.Area(area)
		case "ph":
			listed := !strings.EqualFold(tag.change, "D")
			r.changes = r.changes || tag.change != ""
			if area == "" || len(area)+len(tag.val) > len(r.digits) {
				return fmt.Errorf("%w: %q in area code %q is not a number", ErrList, tag.val, area)
			}
			err = r.to.Number(append(append(r.digits[:0], area...), tag.val...), listed)
		}
		if err != nil {
			return err
		}
	}
}

// A tag holds the attributes of an element.
type tag struct{ val, change, level string }

func attributes(start xml.StartElement) (t tag) {
	for _, a := range start.Attr {
		switch a.Name.Local {
		case "val":
			t.val = a.Value
		case "chg", "action", "type":
			t.change = a.Value
		case "level":
			t.level = a.Value
		}
	}
	return t
}

// A counter reports how much of a file was read.
type counter struct {
	r        io.Reader
	n        int64
	progress func(int64)
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.add(n)
	return n, err
}

func (c *counter) add(n int) {
	c.n += int64(n)
	if c.progress != nil {
		c.progress(c.n)
	}
}

// readerAt counts the reads of a file.
func (c *counter) readerAt(f io.ReaderAt) io.ReaderAt { return countingReaderAt{c, f} }

type countingReaderAt struct {
	c *counter
	f io.ReaderAt
}

func (a countingReaderAt) ReadAt(p []byte, off int64) (int, error) {
	n, err := a.f.ReadAt(p, off)
	a.c.add(n)
	return n, err
}
