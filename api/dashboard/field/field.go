// Package field writes and reads fields of forms that several rooms have.
package field

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-voice/parley/api/dashboard/frame"
)

// Name reads the name of something new.
func Name(r *frame.Request) (string, error) {
	name := r.Text("name")
	if name == "" || len(name) > 100 {
		return "", frame.Invalid("name", "Give it a name of 1 to 100 characters.")
	}
	return name, nil
}

// Box is a field that is ticked or not.
func Box(name, label string, on bool) frame.Field {
	return frame.Field{Name: name, Label: label, Kind: frame.Box, Value: Ticked(on)}
}

// Ticked is the value of a box.
func Ticked(on bool) string {
	if on {
		return "on"
	}
	return ""
}

// Whole writes a number that may be left out.
func Whole(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// Decimal writes a number that may be left out.
func Decimal(f float64) string {
	if f == 0 {
		return ""
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// Lines writes a map, an entry a line.
func Lines(m map[string]string) string {
	all := []string{}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, k+" = "+m[k])
	}
	return strings.Join(all, "\n")
}

// Pairs reads what Lines writes.
func Pairs(r *frame.Request, name string) (*map[string]string, error) {
	m := map[string]string{}
	for i, line := range strings.Split(r.Raw(name), "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		k, v, ok := strings.Cut(line, "=")
		if k = strings.TrimSpace(k); !ok || k == "" {
			return nil, frame.Invalid(name, fmt.Sprintf("Line %d: write it as name = value.", i+1))
		}
		if _, twice := m[k]; twice {
			return nil, frame.Invalid(name, fmt.Sprintf("Line %d: %s is there twice.", i+1, k))
		}
		m[k] = strings.TrimSpace(v)
	}
	return &m, nil
}

// Days are those of a week, from Monday, by their number.
func Days() []frame.Option {
	var all []frame.Option
	for i, name := range Weekdays() {
		all = append(all, frame.Option{Value: strconv.Itoa(i), Label: name})
	}
	return all
}

// Weekdays are their names.
func Weekdays() []string { return []string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"} }

// Moment is how a date and a time of the day are typed.
const Moment = "2006-01-02T15:04"
