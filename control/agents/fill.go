package agents

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// place is a variable's place in a text: {{name}}.
var place = regexp.MustCompile(`\{\{\s*([A-Za-z_][A-Za-z0-9_]{0,63})\s*\}\}`)

// longestPlace is how many characters are repeated of a place that is none.
const longestPlace = 64

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

// checkPlaces tells what in a text looks like a place and is none: it would be
// read aloud as it stands.
func checkPlaces(text string) error {
	for {
		at := strings.Index(text, "{{")
		if at < 0 {
			return nil
		}
		text = text[at:]
		if found := place.FindStringIndex(text); found != nil && found[0] == 0 {
			text = text[found[1]:]
			continue
		}
		if end := strings.Index(text, "}}"); end >= 0 {
			text = text[:end+2]
		}
		if all := []rune(text); len(all) > longestPlace {
			text = string(all[:longestPlace]) + "…"
		}
		return fmt.Errorf(`%q is no place of a variable: use {{name}}, of letters (a to z), digits and _, not beginning with a digit`, text)
	}
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
