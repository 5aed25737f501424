package agents

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// placeholder matches {{name}}.
var placeholder = regexp.MustCompile(`\{\{\s*([A-Za-z_][A-Za-z0-9_]{0,63})\s*\}\}`)

// maxPlaceholder is the maximum number of characters that an error quotes from an invalid placeholder.
const maxPlaceholder = 64

// variable matches the name of a variable.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// Values returns the variables of a call. A variable in given overrides the callee's name, which overrides the agent's
// default.
func (d Definition) Values(name string, given map[string]any) map[string]any {
	values := map[string]any{}
	for k, v := range d.Variables {
		values[k] = v
	}
	if name != "" {
		values["name"] = name
	}
	maps.Copy(values, given)
	return values
}

// Missing returns the names of the placeholders that have no value, in the order in which they appear.
func (d Definition) Missing(values map[string]any) []string {
	var missing []string
	for _, m := range placeholder.FindAllStringSubmatch(d.Greeting+d.Prompt+d.VoicemailMessage, -1) {
		if values[m[1]] == nil && !slices.Contains(missing, m[1]) {
			missing = append(missing, m[1])
		}
	}
	return missing
}

// checkPlaceholders rejects malformed placeholders, because the voice would read them aloud.
func checkPlaceholders(text string) error {
	for {
		at := strings.Index(text, "{{")
		if at < 0 {
			return nil
		}
		text = text[at:]
		if found := placeholder.FindStringIndex(text); found != nil && found[0] == 0 {
			text = text[found[1]:]
			continue
		}
		if end := strings.Index(text, "}}"); end >= 0 {
			text = text[:end+2]
		}
		if all := []rune(text); len(all) > maxPlaceholder {
			text = string(all[:maxPlaceholder]) + "…"
		}
		return fmt.Errorf(`%q is not a valid placeholder; use {{name}} with letters (a to z), digits and _, not starting with a digit`, text)
	}
}

// Fill replaces placeholders by their values. A placeholder without a value is removed, so that the voice does not
// read it aloud.
func Fill(text string, values map[string]any) string {
	return placeholder.ReplaceAllStringFunc(text, func(m string) string {
		switch v := values[placeholder.FindStringSubmatch(m)[1]].(type) {
		case nil:
			return ""
		case string:
			return v
		default:
			b, err := json.Marshal(v)
			if err != nil {
				return ""
			}
			return string(b)
		}
	})
}
