package openapi

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A style is how a language writes values.
type style struct {
	object, list string    // what opens each
	words        [3]string // true, false and null
	step         string    // indentation
	pad          string    // inside the brackets of an object in one line
	last         string    // after the last of several lines
	key          func(string) string
}

func jsonStyle() style {
	return style{"{", "[", [3]string{"true", "false", "null"}, "  ", "", "", quote}
}

func typescriptStyle() style {
	plain := regexp.MustCompile(`^[A-Za-z_]\w*$`)
	return style{"{", "[", [3]string{"true", "false", "null"}, "  ", " ", ",", func(name string) string {
		if plain.MatchString(name) {
			return name
		}
		return quote(name)
	}}
}

func pythonStyle() style {
	return style{"{", "[", [3]string{"True", "False", "None"}, "    ", "", ",", quote}
}

func goStyle() style {
	return style{"map[string]any{", "[]any{", [3]string{"true", "false", "nil"}, "\t", "", ",", quote}
}

func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // never fails
	return strings.TrimSuffix(b.String(), "\n")
}

// literal returns a value that was decoded from JSON.
func (s style) literal(v any) string {
	var parts []string
	switch v := v.(type) {
	case bool:
		if v {
			return s.words[0]
		}
		return s.words[1]
	case string:
		return quote(v)
	case json.Number:
		return v.String()
	case []any:
		for _, e := range v {
			parts = append(parts, s.literal(e))
		}
		return s.join(s.list, parts, "]", "")
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, s.key(name)+": "+s.literal(v[name]))
		}
		return s.join(s.object, parts, "}", s.pad)
	}
	return s.words[2]
}

// join returns the parts between brackets: in one line if it is short, otherwise each in lines of its own.
func (s style) join(open string, parts []string, end, pad string) string {
	if strings.HasSuffix(open, "{") {
		end = "}" // also of lists in Go
	}
	if line := strings.Join(parts, ", "); len(line) == 0 {
		return open + end
	} else if len(line) <= 60 && !strings.Contains(line, "\n") {
		return open + pad + line + pad + end
	}
	text := strings.ReplaceAll(strings.Join(parts, ",\n"), "\n", "\n"+s.step)
	return open + "\n" + s.step + text + s.last + "\n" + end
}
