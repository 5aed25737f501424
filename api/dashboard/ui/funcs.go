package ui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/callview"
)

// funcs returns the functions of templates; view adds methods.
func funcs(a assets, texts *Texts) template.FuncMap {
	return template.FuncMap{
		"asset": a.path, "amount": Amount, "count": Count, "ms": Milliseconds,
		"next": func(n int) int { return n + 1 }, "number": FormatNumber, "names": JoinNames,
		"capitalize": Capitalize, "breakable": breakable, "join": func(sep string, all []string) string { return strings.Join(all, sep) },
		"sentence": texts.Sentence, "complete": texts.Complete, "pretty": pretty, "dict": dict, "class": class, "deref": deref,
		"t": texts.T, "plural": func(key string, n any) string { return texts.T(key, "count", n) },
		"label":    func(prefix string, code any) string { return texts.Label(prefix, fmt.Sprint(code)) },
		"span":     func(d time.Duration) string { return span(texts, d) },
		"language": texts.language.String, "httpStatus": httpStatus,
	}
}

// httpStatus returns a status code of HTTP with its standard text: "503 Service Unavailable".
func httpStatus(code int) string {
	return strings.TrimSpace(strconv.Itoa(code) + " " + http.StatusText(code))
}

// breakable allows line breaks in addresses: after @ and slashes.
func breakable(text string) template.HTML {
	breaks := strings.NewReplacer("@", "@<wbr>", "//", "//<wbr>", "/", "/<wbr>")
	return template.HTML(breaks.Replace(template.HTMLEscapeString(text))) //nolint:gosec // escaped
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

// Milliseconds formats a duration in milliseconds.
func Milliseconds(ms float64) string { return Count(int(math.Round(ms))) + " ms" }

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

// Amount formats an amount of money in currency units: with two decimals, or with four if it is below one unit, as the
// cost of a call is.
func Amount(units float64) string {
	digits := 2
	switch {
	case 0 < units && units < 0.00005:
		return "<0.0001"
	case 0 < units && units < 1:
		digits = 4
	}
	whole, decimals, _ := strings.Cut(strconv.FormatFloat(units, 'f', digits, 64), ".")
	return Count(whole) + "." + decimals
}

func span(texts *Texts, d time.Duration) string {
	s := int(d.Round(time.Second) / time.Second)
	switch {
	case s < 60:
		return texts.T("ui.span.seconds", "seconds", s)
	case s < 3600 && s%60 == 0:
		return texts.T("ui.span.minutes", "minutes", s/60)
	case s < 3600:
		return texts.T("ui.span.minutes_seconds", "minutes", s/60, "seconds", s%60)
	case s < 48*3600 && s%3600 < 60:
		return texts.T("ui.span.hours", "hours", s/3600)
	case s < 48*3600:
		return texts.T("ui.span.hours_minutes", "hours", s/3600, "minutes", s%3600/60)
	default:
		return texts.T("ui.span.days", "count", s/(24*3600))
	}
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

// class returns the CSS class of a state: good, busy, bad or plain.
func class(state any) string {
	switch fmt.Sprint(state) {
	case "accepted", "active", "published", "running", "delivered", "ended", "ok", "up", "answered", "done", "completed", "on":
		return "good"
	case "pending", "scheduled", "queued", "ongoing", "ringing", "draft", "paused", "degraded":
		return "busy"
	case "revoked", "expired", "dead", "failed", "disabled", "down", "cancelled":
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

// FormatNumber formats the digits of a telephone number.
func FormatNumber(number string) string {
	digits := strings.TrimPrefix(number, "+")
	if len(digits) == 11 && digits[0] == '1' {
		return "+1 " + digits[1:4] + " " + digits[4:7] + " " + digits[7:]
	}
	if len(digits) >= 11 && len(digits) <= 15 && digits[0] != '0' && digits[0] != '8' && strings.Trim(digits, "0123456789") == "" {
		return "+" + digits
	}
	return number
}

// JoinNames joins names as HTML; each keeps the direction of its own script.
func JoinNames(all []string) template.HTML {
	apart := make([]string, len(all))
	for i, name := range all {
		apart[i] = "<bdi>" + template.HTMLEscapeString(name) + "</bdi>"
	}
	return template.HTML(strings.Join(apart, ", ")) //nolint:gosec // escaped
}

// ErrorText returns the message of an error for its user.
func ErrorText(err error) string {
	if e, ok := errors.AsType[*control.Error](err); ok {
		return e.Message
	}
	return err.Error()
}
