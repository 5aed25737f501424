package schema

import (
	"bytes"
	"encoding/json"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The functions below walk over valid JSON without building a tree.

// space returns the index of the first character that is not white space.
func space(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r') {
		at++
	}
	return at
}

func skip(text []byte, at int) int {
	switch text[at] {
	case '"':
		return skipString(text, at)
	case '{', '[':
		for depth := 0; ; at++ {
			switch text[at] {
			case '"':
				at = skipString(text, at) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return at + 1
				}
			}
		}
	default:
		for ; at < len(text); at++ {
			switch text[at] {
			case ',', ']', '}', ' ', '\n', '\t', '\r':
				return at
			}
		}
		return at
	}
}

func skipString(text []byte, at int) int {
	for at++; ; at++ {
		switch text[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
}

// elements returns the raw values of an array.
func elements(array []byte) iter.Seq2[int, json.RawMessage] {
	return func(yield func(int, json.RawMessage) bool) {
		at := space(array, 1)
		for i := 0; array[at] != ']'; i++ {
			end := skip(array, at)
			if !yield(i, array[at:end:end]) {
				return
			}
			if at = space(array, end); array[at] == ',' {
				at = space(array, at+1)
			}
		}
	}
}

// members returns the members of an object in order with raw values; names may repeat.
func members(object []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		at := space(object, 1)
		for object[at] != '}' {
			end := skipString(object, at)
			name := unquote(object[at:end])
			at = space(object, space(object, end)+1) // after the colon
			end = skip(object, at)
			if !yield(name, object[at:end:end]) {
				return
			}
			if at = space(object, end); object[at] == ',' {
				at = space(object, at+1)
			}
		}
	}
}

func unquote(text []byte) string {
	if plain(text) {
		return string(text[1 : len(text)-1])
	}
	var s string
	_ = json.Unmarshal(text, &s) // it is valid JSON
	return s
}

// plain reports whether a string equals its form in json.Marshal.
func plain(text []byte) bool {
	ascii := true
	for _, b := range text {
		switch {
		case b == '\\' || b == '<' || b == '>' || b == '&':
			return false
		case b >= utf8.RuneSelf:
			ascii = false
		}
	}
	return ascii || utf8.Valid(text) && !bytes.Contains(text, []byte("\u2028")) && !bytes.Contains(text, []byte("\u2029"))
}

// canonical appends a value in the form of json.Marshal: without white space, with sorted
// members, and with the last of duplicate names. Numbers keep their notation.
func canonical(to, value []byte) []byte {
	to, _ = appendValue(to, value, space(value, 0))
	return to
}

func appendValue(to, text []byte, at int) ([]byte, int) {
	switch text[at] {
	case '{':
		return appendObject(to, text, at)
	case '[':
		to = append(to, '[')
		for at = space(text, at+1); text[at] != ']'; {
			to, at = appendValue(to, text, at)
			if at = space(text, at); text[at] == ',' {
				to, at = append(to, ','), space(text, at+1)
			}
		}
		return append(to, ']'), at + 1
	case '"':
		end := skipString(text, at)
		return appendString(to, text[at:end]), end
	default:
		end := skip(text, at)
		return append(to, text[at:end]...), end
	}
}

func appendString(to, text []byte) []byte {
	if plain(text) {
		return append(to, text...)
	}
	written, err := json.Marshal(unquote(text))
	if err != nil { // strings can always be encoded
		return append(to, text...)
	}
	return append(to, written...)
}

type member struct {
	name     string
	from, to int
}

func appendObject(to, text []byte, at int) ([]byte, int) {
	to = append(to, '{')
	began, sorted := len(to), true
	var all []member
	for at = space(text, at+1); text[at] != '}'; {
		if len(all) > 0 {
			to = append(to, ',')
		}
		end := skipString(text, at)
		m := member{name: unquote(text[at:end]), from: len(to)}
		to = append(appendString(to, text[at:end]), ':')
		to, at = appendValue(to, text, space(text, space(text, end)+1))
		m.to = len(to)
		sorted = sorted && (len(all) == 0 || all[len(all)-1].name < m.name)
		all = append(all, m)
		if at = space(text, at); text[at] == ',' {
			at = space(text, at+1)
		}
	}
	if !sorted {
		to = inOrder(to, began, all)
	}
	return append(to, '}'), at + 1
}

func inOrder(to []byte, began int, all []member) []byte {
	slices.SortStableFunc(all, func(a, b member) int { return strings.Compare(a.name, b.name) })
	was := bytes.Clone(to[began:])
	to = to[:began]
	for i, m := range all {
		if i+1 < len(all) && all[i+1].name == m.name {
			continue
		}
		if len(to) > began {
			to = append(to, ',')
		}
		to = append(to, was[m.from-began:m.to-began]...)
	}
	return to
}

func count(value []byte) int {
	c := counter{}
	if c.add(value) != nil {
		return maxValues
	}
	return c.values + 1
}

// unbounded returns the position of the first number that overflows float64, or -1.
func unbounded(text []byte) int {
	for at := 0; at < len(text); at++ {
		switch b := text[at]; {
		case b == '"':
			at = skipString(text, at) - 1
		case b == '-' || b >= '0' && b <= '9':
			end := skip(text, at)
			if number := text[at:end]; len(number) > 300 || bytes.ContainsAny(number, "eE") {
				if f, err := strconv.ParseFloat(string(number), 64); err != nil || math.IsInf(f, 0) {
					return end
				}
			}
			at = end - 1
		}
	}
	return -1
}
