package schema

import (
	"errors"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-voice/parley/api/respond"
)

// A Set holds the schemas of request bodies. It is read-only once built, and
// then safe for concurrent use.
type Set struct{ reg huma.Registry }

// NewSet returns the schemas of the API.
func NewSet() *Set {
	s := &Set{huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)}
	s.addAdmin()
	s.reg.Schema(reflect.TypeFor[PhoneCall](), true, "PhoneCall")
	s.reg.Schema(reflect.TypeFor[WebCall](), true, "WebCall")
	s.reg.Schema(reflect.TypeFor[Campaign](), true, "Campaign")
	s.reg.Schema(reflect.TypeFor[Launch](), true, "Launch")
	s.reg.Schema(reflect.TypeFor[Calls](), true, "Calls")
	s.reg.Schema(reflect.TypeFor[Withdrawal](), true, "Withdrawal")
	// A whole number may be written 60.0, which a Go int does not read; so the
	// fields are floats, and their schemas integers.
	all := s.reg.Map()
	for _, p := range []*huma.Schema{
		all["PhoneCall"].Properties["max_duration_s"], all["WebCall"].Properties["max_duration_s"], all["Campaign"].Properties["calls_per_minute"], all["Shift"].Properties["days"].Items,
		all["RetryConfig"].Properties["attempts"], all["RetryConfig"].Properties["interval_s"],
	} {
		p.Type, p.Format = huma.TypeInteger, ""
	}
	for _, name := range []string{"starts_at", "ends_at"} { // an epoch that Go can hold
		p := all["Campaign"].Properties[name]
		p.Minimum, p.Maximum = new(0.0), new(253402300799.0)
	}
	return s
}

// Registry is for the OpenAPI document.
func (s *Set) Registry() huma.Registry { return s.reg }

// Check fills v with a body that fits the schema of the name, or returns what
// does not, as *respond.InvalidError. Members that the schema does not have,
// spelled exactly so, are ignored.
func (s *Set) Check(b *Body, name string, v any) error {
	if b.bad != nil {
		return b.bad
	}
	all, ok := b.doc.(map[string]any)
	if !ok {
		return &respond.InvalidError{Issues: []respond.Issue{{Type: "dict_type", Loc: []any{"body"}, Msg: "Input should be a valid dictionary", Input: b.doc}}}
	}
	schema := s.reg.Map()[name]
	// The validator and the decoder match keys in any case. They see only
	// the members that are spelled as the schema spells them.
	doc := map[string]any{}
	for key, member := range all {
		if schema.Properties[key] != nil {
			doc[key] = member
		}
	}
	var res huma.ValidateResult
	path := huma.NewPathBuffer([]byte("body"), len("body"))
	huma.Validate(s.reg, schema, path, huma.ModeWriteToServer, doc, &res)
	var issues []respond.Issue
	for _, err := range res.Errors[:min(len(res.Errors), respond.MaxIssues)] {
		issues = append(issues, issue(err))
	}
	issues = nul([]any{"body"}, doc, issues)
	if len(issues) > 0 {
		slices.SortStableFunc(issues, func(a, b respond.Issue) int { return strings.Compare(spot(a), spot(b)) })
		return &respond.InvalidError{Issues: issues}
	}
	return b.decode(doc, v)
}

func spot(i respond.Issue) string {
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

// issue turns the validator's findings into the contract's.
func issue(err error) respond.Issue {
	var detailed huma.ErrorDetailer
	if !errors.As(err, &detailed) {
		return respond.Issue{Type: "value_error", Loc: []any{"body"}, Msg: err.Error()}
	}
	d := detailed.ErrorDetail()
	i := respond.Issue{Loc: location(d.Location), Input: d.Value}
	i.Type, i.Msg = kind(d.Message, d.Value)
	if m := required.FindStringSubmatch(d.Message); m != nil {
		i.Loc = join(i.Loc, m[1])
	}
	return i
}

// kinds are the messages about the type of a value.
var kinds = map[string][2]string{ //nolint:gochecknoglobals // read-only table
	"expected string":  {"string_type", "Input should be a valid string"},
	"expected integer": {"int_type", "Input should be a valid integer"},
	"expected number":  {"float_type", "Input should be a valid number"},
	"expected boolean": {"bool_type", "Input should be a valid boolean"},
	"expected array":   {"list_type", "Input should be a valid list"},
	"expected object":  {"dict_type", "Input should be a valid dictionary"},
}

// kind maps the validator's messages.
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

// location splits a path like body.rows[3].phone.
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
