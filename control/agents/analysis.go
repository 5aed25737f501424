package agents

import (
	"fmt"
	"slices"
	"strings"
)

// Analysis is what a finished call is asked for.
type Analysis struct {
	Summary   bool    `json:"summary"`
	Success   bool    `json:"success"`
	Sentiment bool    `json:"sentiment"`
	Fields    []Field `json:"fields"`
}

// A Field is one more thing to be told about a call.
type Field struct {
	Name        string   `json:"name"                  yaml:"name"`
	Type        string   `json:"type"                  yaml:"type"` // one of FieldTypes
	Description string   `json:"description,omitempty" yaml:"description"`
	Values      []string `json:"values,omitempty"      yaml:"values"` // of an enum
}

// FieldTypes lists the types of fields.
func FieldTypes() []string { return []string{"string", "number", "boolean", "enum"} }

// Own lists the names that every analysis has.
func Own() []string {
	return []string{"summary", "success", "sentiment", "in_voicemail", "opt_out", "custom"}
}

const (
	mostFields = 50
	mostValues = 50
)

// None tells that nothing is to be told.
func (a Analysis) None() bool { return !a.Summary && !a.Success && !a.Sentiment && len(a.Fields) == 0 }

func (a Analysis) check() error {
	if len(a.Fields) > mostFields {
		return fmt.Errorf("analysis.fields: %d; at most %d are accepted", len(a.Fields), mostFields)
	}
	var seen []string
	for i, f := range a.Fields {
		at := fmt.Sprintf("analysis.fields[%d]", i)
		switch {
		case !variable.MatchString(f.Name):
			return fmt.Errorf("%s.name is %q: use a letter or _, and then at most 63 letters, digits and _", at, f.Name)
		case slices.Contains(seen, f.Name):
			return fmt.Errorf("%s.name: there are two called %q", at, f.Name)
		case !slices.Contains(FieldTypes(), f.Type):
			return fmt.Errorf("%s.type is %q: use one of %s", at, f.Type, strings.Join(FieldTypes(), ", "))
		case (f.Type == "enum") != (len(f.Values) > 0) || len(f.Values) > mostValues:
			return fmt.Errorf("%s.values: an enum has 1 to %d of them, and nothing else has any", at, mostValues)
		case len([]rune(f.Description)) > 1000:
			return fmt.Errorf("%s.description: at most 1000 characters are accepted", at)
		}
		seen = append(seen, f.Name)
	}
	return nil
}
