package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/parley-voice/parley/control/callview"
)

// funcs returns the functions of templates; view adds methods.
func funcs(a assets) template.FuncMap {
	return template.FuncMap{
		"asset": a.path, "count": Count, "next": func(n int) int { return n + 1 }, "span": span, "plural": Plural,
		"lower": strings.ToLower, "join": func(sep string, all []string) string { return strings.Join(all, sep) }, "names": JoinNames,
		"pretty": pretty, "dict": dict, "class": class, "stateLabel": stateLabel, "deref": deref,
		"ending": TurnOutcome, "cause": EndOfTurnCause, "number": FormatNumber, "machine": MachineAction, "patience": PatienceLabel,
	}
}

// toTime converts the time types of the data; ok is false for nil and the zero time.
func toTime(v any) (time.Time, bool) {
	var t time.Time
	switch v := v.(type) {
	case time.Time:
		t = v
	case *time.Time:
		if v != nil {
			t = *v
		}
	case callview.Epoch:
		t = time.Time(v)
	}
	return t, !t.IsZero()
}

// Count formats a number with commas: 1,234,567.
func Count(v any) string {
	text := fmt.Sprint(v)
	digits := strings.TrimPrefix(text, "-")
	if _, err := strconv.ParseUint(digits, 10, 64); err != nil {
		return text
	}
	var b strings.Builder
	b.WriteString(text[:len(text)-len(digits)])
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

func span(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return strings.TrimSuffix(fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second), " 0 s")
	case d < 48*time.Hour:
		return strings.TrimSuffix(fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute), " 0 min")
	default:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
}

// Plural formats a number and its noun: "1 key", "2 keys".
func Plural(n any, one, more string) string {
	if fmt.Sprint(n) == "1" {
		return "1 " + one
	}
	return Count(n) + " " + more
}

// pretty indents JSON; other text is returned as it is.
func pretty(v []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, v, "", "  ") != nil {
		return string(v)
	}
	return b.String()
}

// dict passes several named values to a template.
func dict(pairs ...any) (map[string]any, error) {
	d := map[string]any{}
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("dict: %d arguments: expected name and value pairs", len(pairs))
	}
	for i := 0; i < len(pairs); i += 2 {
		d[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return d, nil
}

func stateLabel(state any) string {
	switch code := fmt.Sprint(state); code {
	case "dead":
		return "failed"
	case "cancelled":
		return "canceled"
	default:
		return strings.ReplaceAll(code, "_", " ")
	}
}

// class returns the CSS class of a state: good, busy, bad or plain.
func class(state any) string {
	switch fmt.Sprint(state) {
	case "accepted", "active", "published", "running", "delivered", "ended", "ok", "up", "answered", "done", "completed":
		return "good"
	case "pending", "waiting", "scheduled", "queued", "ongoing", "ringing", "draft", "paused", "degraded", "in_call", "half-open", "half_open":
		return "busy"
	case "revoked", "expired", "dead", "failed", "disabled", "down", "cancelled", "open":
		return "bad"
	default:
		return "plain"
	}
}

// join joins the parts of a path. The template escapes the result.
func join(parts []any) string {
	all := make([]string, len(parts))
	for i, p := range parts {
		all[i] = fmt.Sprint(p)
	}
	return strings.Join(all, "/")
}

func deref(v any) any { return reflect.Indirect(reflect.ValueOf(v)).Interface() }

// CSVText keeps a spreadsheet program from reading a text, or a part of it, as a formula. Programs of some languages
// begin a cell after a semicolon or a tab, even within quotes.
func CSVText(s string) string {
	var b strings.Builder
	if s != "" && strings.IndexByte("\t\r\n", s[0]) >= 0 {
		b.WriteByte('\'')
	}
	begins := true
	for i := range len(s) {
		if begins && strings.IndexByte("=+-@", s[i]) >= 0 {
			b.WriteByte('\'')
		}
		b.WriteByte(s[i])
		begins = strings.IndexByte(";\t\r\n", s[i]) >= 0 || begins && (s[i] == ' ' || s[i] == '"')
	}
	return b.String()
}
