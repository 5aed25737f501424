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
)

// ErrList tells that a list is not in a form that is known.
var ErrList = errors.New("no list of numbers")

// Bounds of lists.
const (
	longestLine = 256
	largest     = 16 << 30 // bytes of one list, unpacked
)

// Load reads a list of numbers into b: text with a number a line (2025550123,
// 202-555-0123, 202,5550123), changes (202,5550123,A,2026-11-01: A lists, D
// takes off; what else stands in the line in any order is left), XML
// (<ac val="202"><ph val="5550123"/>), or a zip of such. Read is told how many
// bytes of the file were read, now and then; nil is nobody.
//
// A list with one bad line is no list: the error names the line.
func (b *Builder) Load(name string, read func(n int64)) error {
	f, err := os.Open(name) //nolint:gosec // the operator's own path
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	counted := &counter{r: f, told: read}
	head := make([]byte, 4)
	if n, _ := f.ReadAt(head, 0); string(head[:n]) == "PK\x03\x04" {
		err = b.zipped(counted.at(f), info.Size())
	} else {
		err = b.list(counted)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (b *Builder) zipped(f io.ReaderAt, size int64) error {
	z, err := zip.NewReader(f, size)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrList, err)
	}
	for _, part := range z.File {
		if err := b.part(part); err != nil {
			return fmt.Errorf("%s: %w", part.Name, err)
		}
	}
	return nil
}

func (b *Builder) part(part *zip.File) error {
	if part.FileInfo().IsDir() {
		return nil
	}
	r, err := part.Open()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrList, err)
	}
	return errors.Join(b.list(io.LimitReader(r, largest)), r.Close())
}

// list reads one list, whatever its form.
func (b *Builder) list(r io.Reader) error {
	in := bufio.NewReaderSize(r, 1<<20)
	head, err := in.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	head = bytes.TrimPrefix(head, []byte("\ufeff"))
	if bytes.HasPrefix(bytes.TrimSpace(head), []byte("<")) {
		return b.tagged(in)
	}
	return b.lines(in)
}

// lines reads text.
func (b *Builder) lines(in *bufio.Reader) error {
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		if len(line) > longestLine || errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("%w: line %d is longer than %d bytes", ErrList, n, longestLine)
		}
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if e := b.line(line); e != nil {
			return fmt.Errorf("line %d: %w", n, e)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// line reads one line. The quick path is ten digits and the end.
func (b *Builder) line(line []byte) error {
	line = bytes.TrimRight(line, "\r\n \t")
	if len(line) == 0 {
		return nil
	}
	if len(line) == 10 {
		if area, number, ok := split(string(line)); ok {
			return b.number(area, number, true)
		}
	}
	digits, listed, err := fields(line)
	if err != nil {
		return err
	}
	area, number, ok := split(strings.TrimPrefix(digits, "1"))
	if !ok {
		return fmt.Errorf("%w: %q has no number of ten digits", ErrList, line)
	}
	return b.number(area, number, listed)
}

// fields are the digits of the number in a line, and whether it lists it.
func fields(line []byte) (digits string, listed bool, err error) {
	listed = true
	for field := range bytes.SplitSeq(line, []byte(",")) {
		field = bytes.TrimSpace(field)
		switch d := phone(field); {
		case len(digits) < 10 && d != nil:
			digits += string(d)
		case len(field) != 1:
		case bytes.EqualFold(field, []byte("A")):
			listed = true
		case bytes.EqualFold(field, []byte("D")):
			listed = false
		default:
			return "", false, fmt.Errorf("%w: %q is no change: A lists a number, D takes it off", ErrList, field)
		}
	}
	return digits, listed, nil
}

// phone is the digits of a field that is a number or a part of one: digits with
// dashes, dots, spaces, brackets; nil for a date and for anything else.
func phone(field []byte) []byte {
	field = bytes.TrimPrefix(field, []byte("+"))
	if len(field) == 10 && (field[4] == '-' && field[7] == '-' || field[2] == '/' && field[5] == '/') {
		return nil // a date
	}
	var d []byte
	for _, c := range field {
		switch {
		case c >= '0' && c <= '9':
			d = append(d, c)
		case !strings.ContainsRune("-.() \"", rune(c)):
			return nil
		}
	}
	return d
}

func (b *Builder) number(area, number int, listed bool) error {
	if area < 200 || number < 2_000_000 {
		return fmt.Errorf("%w: %03d %07d is no North American number", ErrList, area, number)
	}
	return b.put(area, number, listed)
}

// tagged reads XML.
func (b *Builder) tagged(in io.Reader) error {
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
		val, change := attributes(start)
		switch start.Name.Local {
		case "ac":
			area = val
			if err := b.Area(val); err != nil {
				return fmt.Errorf("%w: %w", ErrList, err)
			}
		case "ph":
			a, number, ok := split(area + val)
			if !ok {
				return fmt.Errorf("%w: %q in area code %q is no number", ErrList, val, area)
			}
			if err := b.number(a, number, !strings.EqualFold(change, "D")); err != nil {
				return err
			}
		}
	}
}

// attributes are the value of a tag and the change that it tells.
func attributes(start xml.StartElement) (val, change string) {
	for _, a := range start.Attr {
		switch a.Name.Local {
		case "val":
			val = a.Value
		case "chg", "action", "type":
			change = a.Value
		}
	}
	return val, change
}

// counter tells how far a file was read.
type counter struct {
	r    io.Reader
	n    int64
	told func(int64)
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.tell(n)
	return n, err
}

func (c *counter) tell(n int) {
	c.n += int64(n)
	if c.told != nil {
		c.told(c.n)
	}
}

// at is a file of which what is read is counted.
func (c *counter) at(f io.ReaderAt) io.ReaderAt { return countedAt{c, f} }

type countedAt struct {
	c *counter
	f io.ReaderAt
}

func (a countedAt) ReadAt(p []byte, off int64) (int, error) {
	n, err := a.f.ReadAt(p, off)
	a.c.tell(n)
	return n, err
}
