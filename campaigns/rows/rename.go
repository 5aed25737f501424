package rows

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Columns lists the names of the columns that rows may have, the phone's first.
func Columns() []string {
	return []string{
		colPhone, colName, colTimezone, colState, colZIP, colExternalID, colLanguage, colPriority, colNotBefore, colNotAfter,
		colConsentAt, colVariables, colMetadata,
	}
}

// Means returns what a column of a file is taken for by its name: one of Columns,
// or else a variable; both are empty where it is left out.
func Means(name string) (col, variable string) {
	h := (&reader{names: variableName()}).heading(name)
	if h.column != "" {
		return h.column, ""
	}
	return "", h.variable
}

// Renamed is a source some of whose columns have other names. One whose name is
// to be "" is left out.
func Renamed(s Source, names map[string]string) Source {
	return func(yield func(Record, error) bool) {
		for rec, err := range s {
			cells := make([]Cell, 0, len(rec.Cells))
			for _, c := range rec.Cells {
				name, named := names[c.Column]
				if named {
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

// Of is a source of records that were read before.
func Of(all []Record) Source {
	return func(yield func(Record, error) bool) {
		for _, rec := range all {
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// First is a source of the first n records of another.
func First(s Source, n int) Source {
	return func(yield func(Record, error) bool) {
		for rec, err := range s {
			if n--; n < 0 || !yield(rec, err) {
				return
			}
		}
	}
}

// ErrLong tells that there are more rows than may be.
var ErrLong = errors.New("more rows than may come at a time")

// JSON is a source as rows of the API, most at most: a column that is none of
// ours becomes a variable, as it does in files.
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
			return nil, ErrLong
		}
		text, err := json.Marshal(object(rec))
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, nil
}

// object is a record of a file as the API has it. A value that cannot be what its
// column takes stays a string: the row is refused for it.
func object(rec Record) map[string]any {
	row, variables := map[string]any{}, map[string]any{}
	for _, c := range rec.Cells {
		text := strings.TrimSpace(c.Text)
		col, variable := Means(c.Column)
		switch {
		case text == "" && col != colPhone:
		case slices.Contains([]string{colPriority, colNotBefore, colNotAfter, colConsentAt}, col):
			row[col] = text
			if n, err := strconv.ParseFloat(text, 64); err == nil {
				row[col] = n
			}
		case col == colVariables || col == colMetadata:
			var inner map[string]any
			if json.Unmarshal([]byte(text), &inner) != nil {
				row[col] = text
			} else if col == colVariables {
				maps.Copy(variables, inner)
			} else {
				row[col] = inner
			}
		case col != "":
			row[col] = text
		case variable != "":
			variables[variable] = text
		}
	}
	if len(variables) > 0 && row[colVariables] == nil {
		row[colVariables] = variables
	}
	return row
}
