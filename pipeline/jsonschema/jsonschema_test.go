package jsonschema

import (
	"encoding/json"
	"strings"
	"testing"
)

const booking = `{"type":"object","required":["day","people"],"additionalProperties":false,"properties":{
	"day":{"type":"string","pattern":"^[0-9]{4}-[0-9]{2}-[0-9]{2}$","description":"of the visit"},
	"people":{"type":"integer","minimum":1,"maximum":8},
	"seat":{"enum":["inside","outside",1]},
	"names":{"type":"array","items":{"type":"string","minLength":1,"maxLength":3},"minItems":1,"maxItems":2},
	"note":{"type":["string","null"]}, "tip":{"type":"number"}, "smoke":{"type":"boolean"}}}`

func TestCheck(t *testing.T) {
	s, err := Parse([]byte(booking))
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{ // an empty error means that the value is valid
		`{"day":"2026-01-02","people":2}`:                                      "",
		`{"day":"2026-01-02","people":2.0,"seat":1.0}`:                         "",
		`{"day":"2026-01-02","people":2,"seat":"inside","names":["Ada","Bo"]}`: "",
		`{"day":"2026-01-02","people":2,"note":null,"tip":1.5,"smoke":false}`:  "",
		`{"people":2}`:                                          "day: missing",
		`{"day":"tomorrow","people":2}`:                         "day: does not match",
		`{"day":2,"people":2}`:                                  "day: want string, got number",
		`{"day":"2026-01-02","people":0}`:                       "people: 0 is less than 1",
		`{"day":"2026-01-02","people":9}`:                       "people: 9 is more than 8",
		`{"day":"2026-01-02","people":1.5}`:                     "people: want integer",
		`{"day":"2026-01-02","people":1e999999999}`:             "people: want integer",
		`{"day":"2026-01-02","people":2,"seat":"roof"}`:         `seat: want one of ["inside","outside",1]`,
		`{"day":"2026-01-02","people":2,"names":[]}`:            "names: number of items 0",
		`{"day":"2026-01-02","people":2,"names":["a","b","c"]}`: "names: number of items 3",
		`{"day":"2026-01-02","people":2,"names":["a",""]}`:      "names[1]: 0 characters",
		`{"day":"2026-01-02","people":2,"names":["абвг"]}`:      "names[0]: 4 characters",
		`{"day":"2026-01-02","people":2,"hat":1}`:               "hat: unknown property; accepted: day, names",
		`[]`:                                 "the value: want object, got array",
		`{"day":`:                            "not JSON",
		`{"day":"2026-01-02","people":2} {}`: "unexpected data",
		``:                                   "not JSON",
	} {
		err := s.Check([]byte(value))
		if got := errText(err); got == "" != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestParse(t *testing.T) {
	for schema, want := range map[string]string{
		`{}`: "", `{"type":["string","null"],"title":"x","default":1,"format":"date"}`: "",
		`{"type":"text"}`: `unknown type "text"; accepted: object`, `{"type":3}`: "type: use a name",
		`{"properties":{"a":{"items":{"$ref":"#/x"}}}}`: `a[]: json: unknown field "$ref"`,
		`{"anyOf":[]}`: "anyOf", `{"pattern":"("}`: "pattern:", `[]`: "the value:", ``: "EOF",
		`{"minLength":"x"}`: "minLength",
		strings.Repeat(`{"items":`, 20) + `{}` + strings.Repeat(`}`, 20): "levels",
		`{"title":"` + strings.Repeat("x", maxSize) + `"}`:               "bytes",
	} {
		_, err := Parse([]byte(schema))
		if got := errText(err); got == "" != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%.80s: %q, want %q", schema, got, want)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(booking, `{"day":"2026-01-02","people":2,"names":["a"]}`)
	f.Add(`{"enum":[1e3,null]}`, `1000`)
	f.Fuzz(func(t *testing.T, schema, value string) {
		s, err := Parse([]byte(schema))
		if err != nil {
			return
		}
		if s.Check([]byte(value)) == nil && !json.Valid([]byte(value)) {
			t.Errorf("%q is no JSON and passes %s", value, schema)
		}
	})
}

// TestObjectsAreClosed checks that properties not in the schema are rejected unless
// additionalProperties is true.
func TestObjectsAreClosed(t *testing.T) {
	const extra = `{"order":"123456","account_id":"someone-else","admin":true}`
	for schema, closed := range map[string]bool{
		`{"type":"object","properties":{"order":{"type":"string"}}}`: true,
		`{"properties":{"order":{"type":"string"}}}`:                 true,
		`{"type":"object"}`: true,
		`{"type":"object","properties":{"order":{"type":"string"}},"additionalProperties":false}`: true,
		`{"type":"object","properties":{"order":{"type":"string"}},"additionalProperties":true}`:  false,
		`{}`: false,
	} {
		s, err := Parse(json.RawMessage(schema))
		if err != nil {
			t.Fatal(err)
		}
		if err = s.Check(json.RawMessage(extra)); (err != nil) != closed {
			t.Errorf("%s: %v", schema, err)
		}
	}
}
