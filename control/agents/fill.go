package agents

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
)

// place is a variable's place in a text: {{name}}.
var place = regexp.MustCompile(`\{\{\s*([A-Za-z_][A-Za-z0-9_]{0,63})\s*\}\}`)

// variable is the name of one.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// Values are the values of a call's variables: the agent's own, then the name of
// whom is called, then what the call was given.
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

// Missing names the places of greeting and prompt that have no value, in their
// order.
func (d Definition) Missing(values map[string]any) []string {
	var missing []string
	for _, m := range place.FindAllStringSubmatch(d.Greeting+d.Prompt+d.VoicemailMessage, -1) {
		if values[m[1]] == nil && !slices.Contains(missing, m[1]) {
			missing = append(missing, m[1])
		}
	}
	return missing
}

// Fill puts the values of variables at their places in a text. A place without
// a value becomes empty: nobody wants to hear a placeholder read out.
func Fill(text string, values map[string]any) string {
	return place.ReplaceAllStringFunc(text, func(m string) string {
		switch v := values[place.FindStringSubmatch(m)[1]].(type) {
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
