package contactfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// FromJSON returns the rows of an API request, each an object. Numbers keep their
// digits.
func FromJSON(raw []json.RawMessage) Source {
	return func(yield func(Record, error) bool) {
		for i, b := range raw {
			r := Record{Row: i + 1}
			r.Cells, r.Err = parseCells(b)
			if !yield(r, nil) {
				return
			}
		}
	}
}

var errNotObject = errors.New("a row must be an object of columns")

// parseCells reads an object in key order; the last value of a repeated key wins.
func parseCells(b []byte) ([]Cell, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	t, err := d.Token()
	if err != nil || t != json.Delim('{') {
		return nil, errNotObject
	}
	var all []Cell
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("row: %w", err)
		}
		name, _ := key.(string)
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, fmt.Errorf("row: %w", err)
		}
		c := Cell{Column: name, JSON: v}
		if len(v) > 0 && v[0] == '"' {
			if err := json.Unmarshal(v, &c.Text); err != nil {
				return nil, fmt.Errorf("row: %w", err)
			}
		}
		if at := slices.IndexFunc(all, func(x Cell) bool { return x.Column == name }); at >= 0 {
			all[at] = c
		} else {
			all = append(all, c)
		}
	}
	return all, nil
}

// kind returns the JSON type: string, number, bool, null, object or array; "text" for a
// file's value.
func (c Cell) kind() string {
	if c.JSON == nil {
		return "text"
	}
	switch c.JSON[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "bool"
	case 'n':
		return "null"
	default:
		return "number"
	}
}

func (c Cell) asSent() string {
	if c.JSON != nil && c.kind() != "string" {
		return string(c.JSON)
	}
	return c.Text
}
