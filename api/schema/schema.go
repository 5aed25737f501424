package schema

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-voice/parley/api/response"
)

// A Set holds the schemas of request bodies. It is immutable and safe for concurrent use.
type Set struct {
	// MaxRows limits the planned calls of a campaign; 0 means 50,000. Further rows are
	// counted but not parsed.
	MaxRows int

	reg huma.Registry
}

// NewSet returns the schemas of the API.
func NewSet() *Set {
	s := &Set{reg: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)}
	s.addAdmin()
	s.reg.Schema(reflect.TypeFor[PhoneCall](), true, "PhoneCall")
	s.reg.Schema(reflect.TypeFor[WebCall](), true, "WebCall")
	s.reg.Schema(reflect.TypeFor[Campaign](), true, "Campaign")
	s.reg.Schema(reflect.TypeFor[Launch](), true, "Launch")
	s.reg.Schema(reflect.TypeFor[Budget](), true, "Budget")
	s.reg.Schema(reflect.TypeFor[Calls](), true, "Calls")
	s.reg.Schema(reflect.TypeFor[Withdrawal](), true, "Withdrawal")
	// Integers may be written as 60.0, which encoding/json rejects for an int; so the
	// fields are floats with integer schemas.
	all := s.reg.Map()
	for _, p := range []*huma.Schema{
		all["PhoneCall"].Properties["max_duration_s"], all["WebCall"].Properties["max_duration_s"],
		all["Campaign"].Properties["calls_per_minute"], all["Shift"].Properties["days"].Items,
		all["RetryConfig"].Properties["attempts"], all["RetryConfig"].Properties["interval_s"],
	} {
		p.Type, p.Format = huma.TypeInteger, ""
	}
	for _, name := range []string{"starts_at", "ends_at"} { // range of time.Time
		p := all["Campaign"].Properties[name]
		p.Minimum, p.Maximum = new(0.0), new(253402300799.0)
	}
	return s
}

// Registry returns the schemas for the OpenAPI document.
func (s *Set) Registry() huma.Registry { return s.reg }

// Check decodes a body into v if it matches the named schema; otherwise it returns a
// *response.InvalidError. Members whose names are not spelled exactly as in the schema are
// ignored. Lists of open values are validated but not decoded; see elements.
func (s *Set) Check(b *Body, name string, v any) error {
	if b.bad != nil {
		return b.bad
	}
	if text := b.Raw[space(b.Raw, 0):]; text[0] != '{' {
		return &response.InvalidError{
			Issues: []response.Issue{{Type: "dict_type", Loc: []any{"body"}, Msg: "Input should be a valid dictionary", Input: brief(text)}},
		}
	}
	schema := s.reg.Map()[name]
	// The validator and the decoder ignore the case of keys, so only members with the exact
	// spelling are passed to them.
	known, doc := map[string]json.RawMessage{}, map[string]any{}
	var issues, zeros []response.Issue
	for key, value := range b.members() {
		p := schema.Properties[key]
		loc := []any{"body", key}
		switch {
		case p == nil:
		case openList(p) && value[0] == '[':
			doc[key] = []any{}
			issues = append(issues, checkElements(p, loc, value)...)
		case count(value) > maxMemberValues:
			issues = append(issues, tooMany(loc, value))
		default:
			known[key], doc[key] = value, tree(value)
			zeros = nul(loc, doc[key], zeros)
		}
	}
	var res huma.ValidateResult
	path := huma.NewPathBuffer([]byte("body"), len("body"))
	huma.Validate(s.reg, schema, path, huma.ModeWriteToServer, doc, &res)
	for _, err := range res.Errors[:min(len(res.Errors), response.MaxIssues)] {
		issues = append(issues, issue(err))
	}
	issues = append(issues, zeros...)
	if len(issues) > 0 {
		slices.SortStableFunc(issues, func(a, b response.Issue) int { return strings.Compare(spot(a), spot(b)) })
		return &response.InvalidError{Issues: issues[:min(len(issues), response.MaxIssues)]}
	}
	return decode(known, v)
}

func spot(i response.Issue) string {
	var b strings.Builder
	for _, p := range i.Loc {
		switch p := p.(type) {
		case string:
			b.WriteString("." + p)
		case int:
			b.WriteString("." + strconv.Itoa(p))
		}
	}
	return b.String()
}

var (
	required = regexp.MustCompile(`^expected required property (\S+) to be present$`)
	index    = regexp.MustCompile(`\[(\d+)\]`)
	bound    = regexp.MustCompile(`^expected (?:number|length|array length) ([<>]=?) (.+)$`)
	oneOf    = regexp.MustCompile(`^expected value to be one of "(.*)"$`)
)

func issue(err error) response.Issue {
	var detailed huma.ErrorDetailer
	if !errors.As(err, &detailed) {
		return response.Issue{Type: "value_error", Loc: []any{"body"}, Msg: err.Error()}
	}
	d := detailed.ErrorDetail()
	i := response.Issue{Loc: location(d.Location), Input: d.Value}
	i.Type, i.Msg = kind(d.Message, d.Value)
	if m := required.FindStringSubmatch(d.Message); m != nil {
		i.Loc = join(i.Loc, m[1])
	}
	return i
}

// kinds maps types of values to the messages about them.
var kinds = map[string][2]string{ //nolint:gochecknoglobals // read-only table
	"expected string":  {"string_type", "Input should be a valid string"},
	"expected integer": {"int_type", "Input should be a valid integer"},
	"expected number":  {"float_type", "Input should be a valid number"},
	"expected boolean": {"bool_type", "Input should be a valid boolean"},
	"expected array":   {"list_type", "Input should be a valid list"},
	"expected object":  {"dict_type", "Input should be a valid dictionary"},
}

func kind(msg string, value any) (typ, text string) {
	if f, ok := value.(float64); ok && msg == "expected integer" && f != math.Trunc(f) {
		return "int_from_float", "Input should be a valid integer, got a number with a fractional part"
	}
	if k, ok := kinds[msg]; ok {
		return k[0], k[1]
	}
	if required.MatchString(msg) {
		return "missing", "Field required"
	}
	if m := oneOf.FindStringSubmatch(msg); m != nil {
		return "literal_error", "Input should be one of: " + m[1]
	}
	m := bound.FindStringSubmatch(msg)
	if m == nil {
		return "value_error", "Value error, " + msg
	}
	switch _, isText := value.(string); {
	case isText && m[1] == ">=":
		return "string_too_short", "String should have at least " + m[2] + " characters"
	case isText:
		return "string_too_long", "String should have at most " + m[2] + " characters"
	case m[1] == ">=":
		return "greater_than_equal", "Input should be greater than or equal to " + m[2]
	default:
		return "less_than_equal", "Input should be less than or equal to " + m[2]
	}
}

func location(path string) []any {
	loc := []any{}
	for p := range strings.SplitSeq(index.ReplaceAllString(path, ".$1"), ".") {
		if n, err := strconv.Atoi(p); err == nil {
			loc = append(loc, n)
		} else if p != "" {
			loc = append(loc, p)
		}
	}
	return loc
}
