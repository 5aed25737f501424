package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/parley-voice/parley/api/respond"
)

// Limits of a call's variables and metadata.
const (
	maxMetadata  = 8 << 10 // bytes, written as JSON
	maxVariables = 64
	maxValue     = 2000    // characters of one text or number
	maxNested    = 8 << 10 // bytes of all lists and objects, written as JSON
)

// variableName is what {{places}} can name.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// checkVariables returns the first thing that is wrong with variables.
func checkVariables(vars map[string]any) error {
	loc := []any{"body", "variables"}
	if len(vars) > maxVariables {
		return wrong(loc, vars, "at most %d variables", maxVariables)
	}
	nested := 0
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if !variableName.MatchString(name) {
			return wrong(loc, name, "the name of a variable is a letter or _, and then at most 63 letters, digits and _")
		}
		length := 0
		switch v := vars[name].(type) {
		case string:
			length = utf8.RuneCountInString(v)
		case json.Number:
			length = len(v)
		case []any, map[string]any:
			nested += written(v)
		}
		if length > maxValue {
			return wrong(join(loc, name), vars[name], "a value has at most %d characters", maxValue)
		}
	}
	if nested > maxNested {
		return wrong(loc, vars, "lists and objects have at most %d bytes together", maxNested)
	}
	return nil
}

// Missing is the error of variables that the agent's texts need.
func Missing(names []string) error {
	e := &respond.InvalidError{}
	for _, name := range names {
		e.Issues = append(e.Issues, respond.Issue{
			Type: "missing", Loc: []any{"body", "variables", name}, Msg: "Field required: the agent's greeting or prompt names it", Input: nil,
		})
	}
	return e
}

func checkMetadata(m map[string]any) error {
	if written(m) > maxMetadata {
		return wrong([]any{"body", "metadata"}, m, "metadata has at most %d bytes", maxMetadata)
	}
	return nil
}

// written is how long a value is as JSON. What was decoded from JSON can be
// written as JSON.
func written(v any) int {
	text, err := json.Marshal(v)
	if err != nil {
		return maxMetadata + maxNested
	}
	return len(text)
}

func wrong(loc []any, input any, format string, args ...any) error {
	return &respond.InvalidError{Issues: []respond.Issue{{
		Type: "value_error", Loc: loc, Input: input, Msg: "Value error, " + fmt.Sprintf(format, args...),
	}}}
}
