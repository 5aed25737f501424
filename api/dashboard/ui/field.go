package ui

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ReadName reads the required field "name".
func ReadName(r *Request) (string, error) {
	name := r.Text("name")
	if name == "" || len(name) > 100 {
		return "", Invalid("name", r.Texts.T("ui.field.name.invalid"))
	}
	return name, nil
}

// CheckboxField returns a checkbox.
func CheckboxField(name, label string, on bool) Field {
	return Field{Name: name, Label: label, Kind: Checkbox, Value: CheckboxValue(on)}
}

// CheckboxValue is the value of a checkbox.
func CheckboxValue(on bool) string {
	if on {
		return "on"
	}
	return ""
}

// FormatInt formats an optional number; 0 gives "".
func FormatInt(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// FormatFloat formats an optional number; 0 gives "".
func FormatFloat(f float64) string {
	if f == 0 {
		return ""
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// FormatPairs writes a map as lines of name = value.
func FormatPairs(m map[string]string) string {
	all := []string{}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, k+" = "+m[k])
	}
	return strings.Join(all, "\n")
}

// ReadPairs parses lines of name = value.
func ReadPairs(r *Request, name string) (*map[string]string, error) {
	m := map[string]string{}
	for i, line := range strings.Split(r.Raw(name), "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		k, v, ok := strings.Cut(line, "=")
		if k = strings.TrimSpace(k); !ok || k == "" {
			return nil, Invalid(name, r.Texts.T("ui.field.pairs.invalid", "line", i+1))
		}
		if _, twice := m[k]; twice {
			return nil, Invalid(name, r.Texts.T("ui.field.pairs.duplicate", "line", i+1, "name", k))
		}
		m[k] = strings.TrimSpace(v)
	}
	return &m, nil
}

// WeekdayOptions returns the days from Monday, which is 0.
func WeekdayOptions(texts *Texts) []Option {
	var all []Option
	for i, name := range Weekdays(texts) {
		all = append(all, Option{Value: strconv.Itoa(i), Label: name})
	}
	return all
}

// Weekdays returns short names of the days from Monday.
func Weekdays(texts *Texts) []string {
	names := make([]string, 7)
	for i := range names {
		names[i] = texts.Label("ui.weekday", strconv.Itoa(i))
	}
	return names
}

// DateTimeLayout is the format of datetime-local inputs.
const DateTimeLayout = "2006-01-02T15:04"
