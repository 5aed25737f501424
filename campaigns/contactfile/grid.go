package contactfile

import (
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A grid converts the XML tokens of a sheet to records.
type grid struct {
	do     func(Record) bool
	shared []string // strings that several cells share
	names  []string
	header func(names []string) // receives the header line
	all    int                  // bytes of text so far

	line, column int // line of the current cell, counted from 1
	size         int // bytes of the row so far
	values       []string
	formulas     []int // columns with a formula, counted from 0
	kind         string
	value        strings.Builder
	inValue      bool // within <v>
	inline       stringText
}

// token processes the next token. It returns false at the end of the rows.
func (g *grid) token(t xml.Token) (more bool, err error) {
	switch t := t.(type) {
	case xml.StartElement:
		err = g.start(t)
	case xml.CharData:
		if g.inValue {
			g.value.Write(t)
		}
	case xml.EndElement:
		g.inValue = false
		switch t.Name.Local {
		case "c":
			err = g.cell()
		case "row":
			return g.row()
		case "sheetData":
			return false, nil
		}
	}
	g.inline.token(t)
	if g.value.Len()+g.inline.Len() > maxRecord {
		err = errLongCell
	}
	return err == nil, err
}

func (g *grid) start(t xml.StartElement) error {
	switch t.Name.Local {
	case "row":
		line := g.line + 1
		if r := attribute(t, "r"); r != "" {
			n, err := strconv.Atoi(r)
			if err != nil || n < line || n > lastLine {
				return fmt.Errorf("row number %q is invalid or out of order", r)
			}
			line = n
		}
		if g.line == 0 && line > 1 { // the file has no header line
			g.names = []string{}
		}
		g.line, g.column, g.size, g.values, g.formulas = line, 0, 0, nil, nil
	case "c":
		return g.startCell(t)
	case "f":
		g.formulas = append(g.formulas, g.column-1)
		if len(g.formulas) > lastColumn {
			return errors.New("a row has too many formulas")
		}
	case "v":
		g.inValue = true
	}
	return nil
}

func (g *grid) startCell(t xml.StartElement) error {
	g.column++
	if r := attribute(t, "r"); r != "" {
		column, ok := columnOf(r)
		if !ok || column < g.column {
			return fmt.Errorf("cell %q is invalid or out of order", r)
		}
		g.column = column
	}
	if g.column > lastColumn {
		return errors.New("a row has too many cells")
	}
	g.kind = attribute(t, "t")
	g.value.Reset()
	g.inline.Reset()
	return nil
}

// columnOf returns the column of a cell like AB12, from 1.
func columnOf(cell string) (int, bool) {
	column, i := 0, 0
	for ; i < len(cell) && i < 4 && cell[i]|0x20 >= 'a' && cell[i]|0x20 <= 'z'; i++ {
		column = column*26 + int(cell[i]|0x20-'a') + 1
	}
	return column, i > 0 && i < len(cell) && column <= lastColumn && strings.Trim(cell[i:], "0123456789") == ""
}

// cell completes the current cell.
func (g *grid) cell() error {
	var v string
	switch g.kind {
	case "inlineStr":
		v = g.inline.take()
	case "s":
		v = strings.TrimSpace(g.value.String())
		if v == "" {
			break
		}
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 || n >= len(g.shared) {
			return fmt.Errorf("a cell refers to shared string %q, which the file does not contain", v)
		}
		v = g.shared[n]
	default:
		v = g.value.String()
	}
	if v == "" {
		return nil
	}
	g.size += len(v)
	g.all += len(v)
	switch {
	case g.size > maxRecord:
		return errLongCell
	case g.all > maxSheet:
		return fmt.Errorf("the cells have more than %d MiB of text", maxSheet>>20)
	}
	column := g.column
	if g.names != nil {
		if strings.TrimSpace(v) == "" {
			return nil
		}
		// One extra value is enough to reject the row.
		column = min(column, len(g.names)+1)
	}
	for len(g.values) < column {
		g.values = append(g.values, "")
	}
	g.values[column-1] = v
	return nil
}

// row completes the current row, and reports whether to continue.
func (g *grid) row() (more bool, err error) {
	if g.names == nil {
		if err := checkNames(g.values); err != nil {
			return false, fmt.Errorf("header line: %w", err)
		}
		g.names = append([]string{}, g.values...)
		g.header(g.names)
		return true, nil
	}
	if !slices.ContainsFunc(g.values, func(v string) bool { return strings.TrimSpace(v) != "" }) {
		return true, nil // skips empty lines
	}
	for i, v := range g.values {
		g.values[i] = expandInteger(v)
	}
	r := record(g.line-1, g.names, g.values)
	for _, c := range g.formulas {
		if c < len(g.names) && g.names[c] != "" {
			r.Formula = append(r.Formula, g.names[c])
		}
	}
	return g.do(r), nil
}

// expandInteger writes an integer like 1.2025550123E10 with all digits. Spreadsheets store phone numbers in this
// form.
func expandInteger(v string) string {
	if !strings.ContainsAny(v, "eE") || strings.Trim(v, "0123456789.eE+-") != "" {
		return v
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil || n != float64(int64(n)) || n < 0 || n > 1e15 {
		return v
	}
	return strconv.FormatInt(int64(n), 10)
}
