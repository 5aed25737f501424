package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/parley-voice/parley/api/response"
)

// Limits of a call's variables and metadata.
const (
	maxMetadata  = 8 << 10 // bytes as JSON
	maxVariables = 64
	maxValue     = 2000    // characters of one text or number
	maxNested    = 8 << 10 // bytes of all lists and objects as JSON
)

// variableName matches names that {{placeholders}} can use.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

func checkVariables(vars map[string]any) error {
	loc := []any{"body", "variables"}
	if len(vars) > maxVariables {
		return wrong(loc, vars, "at most %d variables", maxVariables)
	}
	nested := 0
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if !variableName.MatchString(name) {
			return wrong(loc, name, "a variable name starts with a letter or _, followed by at most 63 letters, digits or _")
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
		return wrong(loc, vars, "lists and objects may have at most %d bytes in total", maxNested)
	}
	return nil
}

// Missing is the error for variables that the agent requires and the request does not have.
func Missing(names []string) error {
	e := &response.InvalidError{}
	for _, name := range names {
		e.Issues = append(e.Issues, response.Issue{
			Type: "missing", Loc: []any{"body", "variables", name},
			Msg: "Field required: the agent's greeting, prompt or voicemail_message uses this variable", Input: nil,
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

func written(v any) int {
	text, err := json.Marshal(v)
	if err != nil {
		return maxMetadata + maxNested
	}
	return len(text)
}

func wrong(loc []any, input any, format string, args ...any) error {
	return &response.InvalidError{Issues: []response.Issue{{
		Type: "value_error", Loc: loc, Input: input, Msg: "Value error, " + fmt.Sprintf(format, args...),
	}}}
}
