package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-voice/parley/api/response"
)

// Limits of values that are parsed into a tree. Lists of rows are walked instead, without a
// tree.
const (
	maxMemberValues = 10_000 // values of one member of a body, or of one row
	usualRows       = 50_000
	maxAddresses    = 100_000
	maxEcho         = 8 << 10 // bytes of a value that an error repeats
)

// openList reports whether a member is a list of rows or of arbitrary values. Such lists may be
// long, and their elements have no schema.
func openList(p *huma.Schema) bool {
	return p.Type == huma.TypeArray && p.Items != nil && p.Items.Ref == "" && (p.Items.Type == "" || isRow(p.Items))
}

func isRow(s *huma.Schema) bool { return s.Type == huma.TypeObject && len(s.Properties) == 0 }

func checkElements(p *huma.Schema, loc []any, list json.RawMessage) (issues []response.Issue) {
	for i, e := range elements(list) {
		switch {
		case isRow(p.Items) && e[0] != '{':
			issues = append(issues, response.Issue{Type: "dict_type", Loc: join(loc, i), Msg: "Input should be a valid dictionary", Input: brief(e)})
		case len(e) > maxMemberValues && count(e) > maxMemberValues:
			issues = append(issues, tooMany(join(loc, i), e))
		case isRow(p.Items) && bytes.Contains(e, []byte(`\u0000`)): // other values are read one by one, and never stored as sent
			issues = nul(join(loc, i), tree(e), issues)
		}
		if len(issues) >= response.MaxIssues {
			return issues
		}
	}
	return issues
}

func tooMany(loc []any, value json.RawMessage) response.Issue {
	return response.Issue{
		Type: "too_long", Loc: loc, Msg: fmt.Sprintf("Value should have at most %d values", maxMemberValues),
		Input: brief(value),
	}
}

// elements returns the elements of a checked list as raw JSON, up to a limit.
func (b *Body) elements(name string, most int) (all []json.RawMessage) {
	list := b.members()[name]
	if len(list) == 0 || list[0] != '[' {
		return nil
	}
	for i, e := range elements(list) {
		if i == most {
			break
		}
		all = append(all, e)
	}
	return all
}

// rows returns the rows of a list, at most one more than allowed, with numbers as they are
// written and with sorted keys.
func (s *Set) rows(b *Body, name string) []json.RawMessage {
	all := b.elements(name, cmp.Or(s.MaxRows, usualRows)+1)
	var text []byte
	for i, row := range all {
		text = canonical(text[:0], row)
		all[i] = bytes.Clone(text)
	}
	return all
}

func tree(value json.RawMessage) (v any) {
	_ = json.Unmarshal(value, &v) // it is valid JSON
	return v
}

// brief returns a value shortened for an error.
func brief(value json.RawMessage) any {
	switch {
	case len(value) <= maxEcho || value[0] != '{' && value[0] != '[':
		return tree(value)
	case value[0] == '{':
		return map[string]any{}
	default:
		return []any{}
	}
}
