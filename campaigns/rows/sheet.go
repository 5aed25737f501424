package rows

import (
	"archive/zip"
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/xuri/excelize/v2"
)

// Bounds of spreadsheets. What they unpack to is counted, not believed.
const (
	largestSheet  = 1 << 30  // bytes of all parts, unpacked
	inMemory      = 16 << 20 // bytes of a part over which it is unpacked to a file
	mostExpansion = 200      // times that a part may grow
)

// fromSheet reads the first sheet of a spreadsheet.
func fromSheet(file io.ReaderAt, size int64) (Source, error) {
	if err := weigh(file, size); err != nil {
		return nil, err
	}
	return func(yield func(Record, error) bool) {
		book, err := excelize.OpenReader(io.NewSectionReader(file, 0, size), excelize.Options{
			RawCellValue: true, UnzipSizeLimit: largestSheet, UnzipXMLSizeLimit: inMemory,
		})
		if err != nil {
			yield(Record{}, fmt.Errorf("%w: %w", ErrFile, err))
			return
		}
		defer book.Close() //nolint:errcheck // its temporary files, which it removes
		sheets := book.GetSheetList()
		if len(sheets) == 0 {
			yield(Record{}, fmt.Errorf("%w: it has no sheet", ErrFile))
			return
		}
		made, err := formulas(file, size)
		if err != nil {
			yield(Record{}, fmt.Errorf("%w: %w", ErrFile, err))
			return
		}
		grid, err := book.Rows(sheets[0])
		if err != nil {
			yield(Record{}, fmt.Errorf("%w: %w", ErrFile, err))
			return
		}
		defer grid.Close() //nolint:errcheck // its temporary file
		walk(grid, made, yield)
	}, nil
}

// walk yields the rows below the line of names.
func walk(grid *excelize.Rows, made map[int][]int, yield func(Record, error) bool) {
	var names []string
	for line := 1; grid.Next(); line++ {
		values, err := grid.Columns()
		if err != nil {
			yield(Record{}, fmt.Errorf("%w: line %d: %w", ErrFile, line, err))
			return
		}
		if line == 1 {
			names = values
			if err := named(names); err != nil {
				yield(Record{}, fmt.Errorf("%w: the line of names: %w", ErrFile, err))
				return
			}
			continue
		}
		if strings.TrimSpace(strings.Join(values, "")) == "" {
			continue // people leave lines empty
		}
		for i, v := range values {
			values[i] = whole(v)
		}
		r := record(line-1, names, values)
		for _, c := range made[line] {
			if c < len(names) && names[c] != "" {
				r.Formula = append(r.Formula, names[c])
			}
		}
		if !yield(r, nil) {
			return
		}
	}
	if err := grid.Error(); err != nil {
		yield(Record{}, fmt.Errorf("%w: %w", ErrFile, err))
	}
}

// whole writes a number like 1.2025550123E10, as spreadsheets keep those of
// phones, with its digits.
func whole(v string) string {
	if !strings.ContainsAny(v, "eE") || strings.Trim(v, "0123456789.eE+-") != "" {
		return v
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil || n != float64(int64(n)) || n < 0 || n > 1e15 {
		return v
	}
	return strconv.FormatInt(int64(n), 10)
}

// weigh refuses a file that unpacks to far more than it is.
func weigh(file io.ReaderAt, size int64) error {
	z, err := zip.NewReader(file, size)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	var all uint64
	for _, f := range z.File {
		all += f.UncompressedSize64
		if all > largestSheet || f.UncompressedSize64 > inMemory && f.UncompressedSize64 > mostExpansion*(f.CompressedSize64+1) {
			return fmt.Errorf("%w: it unpacks to more than a list of rows would: %q has %d bytes", ErrFile, f.Name, f.UncompressedSize64)
		}
	}
	return nil
}

// formulas finds the cells of the first sheet that a formula made: by line, the
// columns, both as in the file, columns from 0.
func formulas(file io.ReaderAt, size int64) (map[int][]int, error) {
	z, err := zip.NewReader(file, size)
	if err != nil {
		return nil, err
	}
	found := map[int][]int{}
	for _, f := range z.File {
		if ok, _ := path.Match("xl/worksheets/sheet1.xml", f.Name); !ok {
			continue
		}
		part, err := f.Open()
		if err != nil {
			return nil, err
		}
		err = scan(bufio.NewReaderSize(io.LimitReader(part, largestSheet), 64<<10), found)
		if e := part.Close(); err == nil {
			err = e
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// scan finds <c r="B2"><f>: a cell and the formula in it.
func scan(part io.Reader, found map[int][]int) error {
	d := xml.NewDecoder(part)
	cell := ""
	for {
		t, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		start, ok := t.(xml.StartElement)
		if !ok {
			continue
		}
		switch start.Name.Local {
		case "c":
			cell = ""
			for _, a := range start.Attr {
				if a.Name.Local == "r" {
					cell = a.Value
				}
			}
		case "f":
			if column, line, err := excelize.CellNameToCoordinates(cell); err == nil {
				found[line] = append(found[line], column-1)
			}
		}
	}
}
