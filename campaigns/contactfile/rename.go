package contactfile

import (
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"strings"
)

// Columns returns the names of the known columns, the phone first.
func Columns() []string {
	return []string{
		colPhone, colName, colTimezone, colState, colZIP, colExternalID, colLanguage, colPriority, colNotBefore, colNotAfter,
		colConsentAt, colVariables, colMetadata,
	}
}

// ColumnMeaning returns how a column of a file is read: as one of Columns or as a variable. Both are empty if the
// column is ignored.
func ColumnMeaning(name string) (col, variable string) {
	h := (&reader{names: variableName()}).heading(name)
	if h.column != "" {
		return h.column, ""
	}
	return "", h.variable
}

// ColumnMeanings returns how the columns of a file are read; see ColumnMeaning. One column is the phone number. Other
// phone columns are AsVariable, or "" if their names cannot be variables.
func ColumnMeanings(names []string) []string {
	rd := &reader{names: variableName()}
	cells := make([]Cell, len(names))
	for i, name := range names {
		cells[i].Column = name
	}
	phone, _ := rd.phoneColumn(cells)
	all := make([]string, len(names))
	for i, name := range names {
		h := rd.heading(name)
		switch {
		case h.column != "" && (h.column != colPhone || name == phone):
			all[i] = h.column
		case h.variable != "":
			all[i] = AsVariable
		}
	}
	return all
}

// VariableName returns the name of a column as a variable, "" if it cannot be one.
func VariableName(name string) string { return (&reader{names: variableName()}).heading(name).variable }

// AsVariable maps a column to a variable of its own name; see Rename.
const AsVariable = "="

// Rename returns a source with renamed columns. "" drops a column.
func Rename(s Source, names map[string]string) Source {
	return func(yield func(Record, error) bool) {
		for rec, err := range s {
			cells := make([]Cell, 0, len(rec.Cells))
			for _, c := range rec.Cells {
				name, ok := names[c.Column]
				switch {
				case ok && name == AsVariable:
					c.Variable = true
				case ok:
					c.Column = name
				}
				if c.Column != "" {
					cells = append(cells, c)
				}
			}
			rec.Cells = cells
			if !yield(rec, err) {
				return
			}
		}
	}
}

// FromRecords returns a source of records.
func FromRecords(all []Record) Source {
	return func(yield func(Record, error) bool) {
		for _, rec := range all {
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// Head returns a source of the first n records.
func Head(s Source, n int) Source {
	return func(yield func(Record, error) bool) {
		for rec, err := range s {
			if n--; n < 0 || !yield(rec, err) {
				return
			}
		}
	}
}

// ErrRowLimit is returned for more rows than allowed.
var ErrRowLimit = errors.New("too many rows for one request")

// JSON converts records to API rows. It returns ErrRowLimit if there are more records than most. As in files, an
// unknown column becomes a variable.
func JSON(s Source, most int) ([]json.RawMessage, error) {
	var all []json.RawMessage
	for rec, err := range s {
		if err == nil {
			err = rec.Err
		}
		if err != nil {
			return nil, err
		}
		if len(all) == most {
			return nil, ErrRowLimit
		}
		text, err := json.Marshal(apiRow(rec))
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, nil
}

// apiRow converts a record of a file to an API row. A value that its column does not accept stays a string, and the row
// is rejected later.
func apiRow(rec Record) map[string]any {
	row, variables := map[string]any{}, map[string]any{}
	phone, _ := (&reader{names: variableName()}).phoneColumn(rec.Cells)
	for _, c := range rec.Cells {
		text := strings.TrimSpace(c.Text)
		col, variable := ColumnMeaning(c.Column)
		if c.Variable || col == colPhone && c.Column != phone {
			col, variable = "", VariableName(c.Column)
		}
		switch {
		case text == "" && col != colPhone:
		case col != "":
			if v := apiValue(col, text, variables); v != nil {
				row[col] = v
			}
		case variable != "":
			variables[variable] = text
		}
	}
	if len(variables) > 0 && row[colVariables] == nil {
		row[colVariables] = variables
	}
	return row
}

// apiValue converts the text of a column; nil if it was added to variables.
func apiValue(col, text string, variables map[string]any) any {
	switch col {
	case colPriority, colNotBefore, colNotAfter, colConsentAt:
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return n
		}
	case colVariables, colMetadata:
		var inner map[string]any
		if json.Unmarshal([]byte(text), &inner) != nil {
			return text
		}
		if col == colMetadata {
			return inner
		}
		maps.Copy(variables, inner)
		return nil
	}
	return text
}
