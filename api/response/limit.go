package response

import "encoding/json"

// Limits of request content that error responses repeat.
const (
	// MaxIssues limits the issues of an error.
	MaxIssues = 50
	maxText   = 256  // characters of a text
	maxInput  = 1024 // approximate bytes of a list or an object
)

func bounded(issues []Issue) []Issue {
	issues = issues[:min(len(issues), MaxIssues)]
	short := make([]Issue, len(issues))
	for n, i := range issues {
		i.Msg, i.Input = cut(i.Msg), echo(i.Input)
		loc := make([]any, len(i.Loc))
		for at, l := range i.Loc {
			loc[at] = echo(l)
		}
		i.Loc = loc
		short[n] = i
	}
	return short
}

// echo shortens a text and empties a list or object that is too large to repeat.
func echo(v any) any {
	switch v := v.(type) {
	case string:
		return cut(v)
	case json.Number:
		if len(v) > maxText {
			return cut(string(v))
		}
	case []any:
		if size(v, maxInput) > maxInput {
			return []any{}
		}
	case map[string]any:
		if size(v, maxInput) > maxInput {
			return map[string]any{}
		}
	}
	return v
}

func cut(s string) string {
	n := 0
	for at := range s {
		if n++; n > maxText {
			return s[:at] + "…"
		}
	}
	return s
}

// size estimates the JSON size of v and stops counting beyond limit.
func size(v any, limit int) int {
	n := 0
	if limit < 0 {
		return n
	}
	switch v := v.(type) {
	case string:
		n = len(v)
	case json.Number:
		n = len(v)
	case []any:
		for _, e := range v {
			if n += 1 + size(e, limit-n); n > limit {
				break
			}
		}
	case map[string]any:
		for k, e := range v {
			if n += 4 + len(k) + size(e, limit-n-len(k)); n > limit {
				break
			}
		}
	default:
		n = 8
	}
	return n
}
