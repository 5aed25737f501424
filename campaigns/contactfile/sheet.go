package contactfile

import (
	"archive/zip"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Limits of spreadsheets.
const (
	maxSheet          = 128 << 20 // bytes of all unpacked parts, and of the text of all cells
	minExpansionCheck = 16 << 20  // bytes of a part above which maxExpansion applies
	maxExpansion      = 200
	maxDirectory      = 1 << 20 // bytes of the zip directory
	maxStrings        = 2_000_000
	maxText           = 64 << 20 // bytes of the shared strings
	lastColumn        = 16384    // column XFD
	lastLine          = 1 << 20
)

// fromSheet reads the first sheet of a spreadsheet (ECMA-376). It reads only the parts that lead to the sheet, the
// sheet itself, and the shared strings.
func fromSheet(file io.ReaderAt, size int64, header func(names []string)) (Source, error) {
	p, err := openParts(file, size)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	return func(yield func(Record, error) bool) {
		if err := p.records(header, func(r Record) bool { return yield(r, nil) }); err != nil {
			yield(Record{}, fmt.Errorf("%w: %w", ErrFile, err))
		}
	}, nil
}

// parts are the parts of a spreadsheet by lower-case name.
type parts map[string]*zip.File

// A directory bounds how much zip.NewReader reads of a file, because zip.Reader keeps the whole zip directory in
// memory.
type directory struct {
	io.ReaderAt

	left int
}

var errDirectory = errors.New("the file has too many parts")

// ReadAt implements io.ReaderAt.
func (d *directory) ReadAt(p []byte, off int64) (int, error) {
	if d.left < len(p) {
		return 0, errDirectory
	}
	d.left -= len(p)
	return d.ReaderAt.ReadAt(p, off)
}

// openParts lists the parts. It rejects a file that expands too much.
func openParts(file io.ReaderAt, size int64) (parts, error) {
	d := &directory{file, maxDirectory}
	z, err := zip.NewReader(d, size)
	if err != nil {
		return nil, err
	}
	d.left = int(^uint(0) >> 1)
	p, all := parts{}, uint64(0)
	for _, f := range z.File {
		all += f.UncompressedSize64
		if all > maxSheet || f.UncompressedSize64 > minExpansionCheck && f.UncompressedSize64 > maxExpansion*(f.CompressedSize64+1) {
			return nil, fmt.Errorf("the file unpacks to more than %d MiB or %d times its size", maxSheet>>20, maxExpansion)
		}
		p[partName(f.Name)] = f
	}
	return p, nil
}

func partName(name string) string {
	return strings.ToLower(strings.TrimPrefix(path.Clean(strings.ReplaceAll(name, `\`, "/")), "/"))
}

// walk reads a part until its end or until do returns false. A missing part is empty.
func (p parts) walk(name string, do func(t xml.Token) (more bool, err error)) error {
	f := p[partName(name)]
	if f == nil {
		return nil
	}
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	in := newBounded(io.LimitReader(r, maxSheet))
	d := xml.NewDecoder(in)
	for {
		t, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		in.since = 0
		if more, err := do(t); err != nil || !more {
			return err
		}
	}
}

func attribute(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// relationships returns the targets of a part's relationships by id and by the last segment
// of the type.
func (p parts) relationships(part string) (map[string]string, error) {
	dir, base := path.Split(part)
	to := map[string]string{}
	err := p.walk(dir+"_rels/"+base+".rels", func(t xml.Token) (bool, error) {
		e, ok := t.(xml.StartElement)
		if !ok || e.Name.Local != "Relationship" {
			return true, nil
		}
		target := strings.ReplaceAll(attribute(e, "Target"), `\`, "/")
		if !strings.HasPrefix(target, "/") {
			target = dir + target
		}
		to["id "+attribute(e, "Id")] = target
		to["type "+path.Base(attribute(e, "Type"))] = target
		if len(to) > lastColumn {
			return false, errors.New("the file has too many relationships")
		}
		return true, nil
	})
	return to, err
}

// firstSheet returns the names of the first sheet and of the shared strings.
func (p parts) firstSheet() (sheet, shared string, err error) {
	root, err := p.relationships("")
	if err != nil {
		return "", "", err
	}
	workbook := root["type officeDocument"]
	if workbook == "" {
		workbook = "xl/workbook.xml"
	}
	to, err := p.relationships(workbook)
	if err != nil {
		return "", "", err
	}
	err = p.walk(workbook, func(t xml.Token) (bool, error) {
		if e, ok := t.(xml.StartElement); ok && e.Name.Local == "sheet" {
			sheet = to["id "+attribute(e, "id")]
			return false, nil
		}
		return true, nil
	})
	if err == nil && p[partName(sheet)] == nil {
		err = errors.New("the file has no sheet")
	}
	return sheet, to["type sharedStrings"], err
}

// records yields the rows below the header line until do returns false.
func (p parts) records(header func(names []string), do func(Record) bool) error {
	sheet, shared, err := p.firstSheet()
	if err != nil {
		return err
	}
	g := grid{header: header, do: do}
	if g.shared, err = p.strings(shared); err != nil {
		return err
	}
	if err := p.walk(sheet, g.token); err != nil {
		return fmt.Errorf("line %d: %w", g.line, err)
	}
	return nil
}

// strings reads the shared strings into a few large blocks of memory.
func (p parts) strings(name string) ([]string, error) {
	const block = 1 << 20
	var all []string
	var in stringText
	var b strings.Builder
	left := maxText
	return all, p.walk(name, func(t xml.Token) (bool, error) {
		in.token(t)
		if e, ok := t.(xml.EndElement); !ok || e.Name.Local != "si" {
			if in.Len() > maxRecord {
				return false, errLongCell
			}
			return true, nil
		}
		s := in.take()
		if left -= len(s); left < 0 || len(all) == maxStrings {
			return false, fmt.Errorf("the file has more than %d shared strings or %d MiB of them: save it as .csv", maxStrings, maxText>>20)
		}
		if b.Cap()-b.Len() < len(s) {
			b = strings.Builder{}
			b.Grow(max(block, len(s)))
		}
		at := b.Len()
		b.WriteString(s)
		all = append(all, b.String()[at:])
		return true, nil
	})
}

var errLongCell = fmt.Errorf("a cell or a row is longer than %d bytes", maxRecord)

// stringText collects the <t> elements of a string, except phonetic readings (<rPh>).
type stringText struct {
	strings.Builder

	inside   bool // within <t>
	phonetic bool // within <rPh>
}

func (x *stringText) token(t xml.Token) {
	switch t := t.(type) {
	case xml.StartElement:
		x.inside = t.Name.Local == "t" && !x.phonetic
		x.phonetic = x.phonetic || t.Name.Local == "rPh"
	case xml.EndElement:
		x.inside = false
		x.phonetic = x.phonetic && t.Name.Local != "rPh"
	case xml.CharData:
		if x.inside {
			_, _ = x.Write(t) // writing to memory never fails
		}
	}
}

// escapes matches the escapes of characters that XML cannot contain, like _x000D_.
var escapes = regexp.MustCompile(`_x[0-9A-Fa-f]{4}_`)

// take returns the text and resets x.
func (x *stringText) take() string {
	s := x.String()
	x.Reset()
	if !strings.Contains(s, "_x") {
		return s
	}
	return escapes.ReplaceAllStringFunc(s, func(e string) string {
		n, _ := strconv.ParseUint(e[2:6], 16, 16)
		return string(rune(n))
	})
}

// A bounded reader fails if one XML token is longer than a row may be.
type bounded struct {
	r        io.Reader
	buf      [32 << 10]byte
	at, have int
	since    int // bytes of the token so far
}

func newBounded(r io.Reader) *bounded { return &bounded{r: r} }

// ReadByte implements io.ByteReader. xml.Decoder calls only this method.
func (b *bounded) ReadByte() (byte, error) {
	if b.since++; b.since > maxRecord {
		return 0, errLongCell
	}
	for b.at == b.have {
		n, err := b.r.Read(b.buf[:])
		if b.at, b.have = 0, n; n == 0 && err != nil {
			return 0, err
		}
	}
	b.at++
	return b.buf[b.at-1], nil
}

// Read implements io.Reader.
func (b *bounded) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }
