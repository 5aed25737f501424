package agents

import (
	"fmt"
	"slices"
	"strings"
)

// Analysis selects the results that are extracted from a call after it ended.
type Analysis struct {
	Summary   bool    `json:"summary"`
	Success   bool    `json:"success"`
	Sentiment bool    `json:"sentiment"`
	Fields    []Field `json:"fields"`
}

// Field is a result that the organization defined.
type Field struct {
	Name        string   `json:"name"                  yaml:"name"`
	Type        string   `json:"type"                  yaml:"type"` // one of FieldTypes
	Description string   `json:"description,omitempty" yaml:"description"`
	Values      []string `json:"values,omitempty"      yaml:"values"` // accepted values if Type is "enum"
}

// FieldTypes lists the accepted types of fields.
func FieldTypes() []string { return []string{"string", "number", "boolean", "enum"} }

// StandardFields lists the names of the results that every analysis contains.
func StandardFields() []string {
	return []string{"summary", "success", "sentiment", "in_voicemail", "opt_out", "custom"}
}

const (
	maxFields = 50
	maxValues = 50
)

// IsEmpty reports whether the analysis extracts nothing.
func (a Analysis) IsEmpty() bool {
	return !a.Summary && !a.Success && !a.Sentiment && len(a.Fields) == 0
}

func (a Analysis) check() error {
	if len(a.Fields) > maxFields {
		return fmt.Errorf("analysis.fields: %d; at most %d are accepted", len(a.Fields), maxFields)
	}
	var seen []string
	for i, f := range a.Fields {
		at := fmt.Sprintf("analysis.fields[%d]", i)
		switch {
		case !variable.MatchString(f.Name):
			return fmt.Errorf("%s.name is %q: use a letter or _, then at most 63 letters, digits and _", at, f.Name)
		case slices.Contains(seen, f.Name):
			return fmt.Errorf("%s.name: %q is used twice", at, f.Name)
		case !slices.Contains(FieldTypes(), f.Type):
			return fmt.Errorf("%s.type is %q: use one of %s", at, f.Type, strings.Join(FieldTypes(), ", "))
		case (f.Type == "enum") != (len(f.Values) > 0) || len(f.Values) > maxValues:
			return fmt.Errorf("%s.values: an enum needs 1 to %d values; other types need none", at, maxValues)
		case len([]rune(f.Description)) > 1000:
			return fmt.Errorf("%s.description: at most 1000 characters are accepted", at)
		}
		seen = append(seen, f.Name)
	}
	return nil
}
