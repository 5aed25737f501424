// Package schema parses request bodies and validates them against the published schemas.
package schema

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/control"
)

// MaxBody limits a body, in bytes.
const MaxBody = 4 << 20

// A Body is a request body as received.
type Body struct {
	Raw []byte
	bad *response.InvalidError // why the body is not JSON; nil if it is
}

// Read reads a body. It stops at the first exceeded limit of size, values or nesting.
func Read(w http.ResponseWriter, r *http.Request) (*Body, error) { return ReadUpTo(w, r, MaxBody) }

// chunk is the size of one read.
const chunk = 64 << 10

// ReadUpTo is Read with another size limit, in bytes.
func ReadUpTo(w http.ResponseWriter, r *http.Request, most int64) (*Body, error) {
	if r.ContentLength > most {
		return nil, tooLarge(fmt.Sprintf("the body is larger than %d MiB", most>>20))
	}
	from := http.MaxBytesReader(w, r.Body, most)
	var c counter
	raw := make([]byte, 0, min(chunk, max(r.ContentLength, 0)+bytes.MinRead))
	for {
		if cap(raw)-len(raw) < bytes.MinRead { // the budget has reserved the declared length
			raw = slices.Grow(raw, max(int(r.ContentLength)-len(raw)+bytes.MinRead, len(raw)/2))
		}
		n, err := from.Read(raw[len(raw):min(cap(raw), len(raw)+chunk)])
		if over := c.add(raw[len(raw) : len(raw)+n]); over != nil {
			return nil, over.refusal()
		}
		raw = raw[:len(raw)+n]
		switch refusal, refused := errors.AsType[*control.Error](err); {
		case errors.Is(err, io.EOF):
			return parse(raw), nil
		case refused:
			return nil, refusal
		case err != nil:
			return nil, broken(err, most)
		}
	}
}

func tooLarge(message string) error { return control.Refuse(control.CodeRequestTooLarge, message) }

// broken is the error of a body that could not be read.
func broken(err error, most int64) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(fmt.Sprintf("the body is larger than %d MiB", most>>20))
	}
	return &response.PlainError{Status: http.StatusBadRequest, Message: "the body could not be read"}
}

func (e *excess) refusal() error {
	if e.deep {
		return notJSON(e.at, e.what)
	}
	return tooLarge(e.what)
}

// Parse parses the text of a body with the limits of Read.
func Parse(raw []byte) (*Body, error) {
	var c counter
	if over := c.add(raw); over != nil {
		return nil, over.refusal()
	}
	return parse(raw), nil
}

// maxKey limits an Idempotency-Key, in characters.
const maxKey = 255

// IdempotencyKey returns the header of a request; "" without one.
func IdempotencyKey(r *http.Request) (string, error) {
	name := strings.TrimSpace(r.Header.Get("Idempotency-Key"))
	if !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxKey {
		return "", &response.InvalidError{Issues: []response.Issue{{
			Type: "string_too_long", Loc: []any{"header", "Idempotency-Key"}, Msg: "String should have at most 255 characters",
			Input: strings.ToValidUTF8(name, "\ufffd"),
		}}}
	}
	return name, nil
}

func parse(raw []byte) *Body {
	b := &Body{Raw: raw}
	switch {
	case len(bytes.TrimSpace(raw)) == 0:
		b.bad = &response.InvalidError{Issues: []response.Issue{{Type: "missing", Loc: []any{"body"}, Msg: "Field required"}}}
	case !json.Valid(raw):
		at, err := 0, json.Unmarshal(raw, &json.RawMessage{})
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = int(syntax.Offset)
		}
		b.bad = notJSON(at, fmt.Sprintf("JSON decode error: %v", err))
	default:
		if at := unbounded(raw); at >= 0 {
			b.bad = notJSON(at, "JSON decode error: a number is too large")
		}
	}
	return b
}

func notJSON(at int, msg string) *response.InvalidError {
	return &response.InvalidError{Issues: []response.Issue{{Type: "json_invalid", Loc: []any{"body", at}, Msg: msg, Input: map[string]any{}}}}
}

// Fingerprint returns the same value for equivalent bodies. White space and the order of keys do not affect it, but the
// notation of numbers does. Invalid JSON is compared byte by byte.
func (b *Body) Fingerprint() []byte {
	if b.bad != nil {
		sum := sha256.Sum256(b.Raw)
		return sum[:]
	}
	h := sha256.New() // hashes the output of json.Marshal in pieces
	text := b.Raw[space(b.Raw, 0):]
	if text[0] != '{' {
		h.Write(canonical(nil, text))
		return h.Sum(nil)
	}
	all := b.members()
	var piece []byte
	put := func(value []byte) {
		piece = canonical(piece[:0], value)
		h.Write(piece)
	}
	for n, name := range slices.Sorted(maps.Keys(all)) {
		h.Write([]byte{"{,"[min(n, 1)]})
		piece = appendString(piece[:0], quoted(name))
		h.Write(append(piece, ':'))
		if value := all[name]; value[0] != '[' {
			put(value)
			continue
		}
		h.Write([]byte{'['})
		for i, e := range elements(all[name]) {
			if i > 0 {
				h.Write([]byte{','})
			}
			put(e)
		}
		h.Write([]byte{']'})
	}
	if len(all) == 0 {
		h.Write([]byte{'{'})
	}
	h.Write([]byte{'}'})
	return h.Sum(nil)
}

func quoted(s string) []byte {
	text, err := json.Marshal(s)
	if err != nil { // strings can always be encoded
		return nil
	}
	return text
}

// members returns the members of an object. Of duplicate names, the last one counts.
func (b *Body) members() map[string]json.RawMessage {
	return maps.Collect(members(b.Raw[space(b.Raw, 0):]))
}

// decode decodes the members known into v. A number in a field of type any becomes a json.Number.
func decode(known map[string]json.RawMessage, v any) error {
	text, err := json.Marshal(known)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		err = d.Decode(v)
	}
	if err != nil {
		return notJSON(0, "JSON decode error: "+err.Error())
	}
	return nil
}

// nul finds NUL characters, which Postgres cannot store. It returns at most MaxIssues issues.
func nul(loc []any, v any, found []response.Issue) []response.Issue {
	bad := func(input any) {
		found = append(
			found,
			response.Issue{Type: "value_error", Loc: loc, Msg: "Value error, the character U+0000 is not allowed", Input: input},
		)
	}
	if len(found) >= response.MaxIssues {
		return found
	}
	switch v := v.(type) {
	case string:
		if strings.ContainsRune(v, 0) {
			bad(v)
		}
	case []any:
		for i, e := range v {
			if found = nul(join(loc, i), e, found); len(found) >= response.MaxIssues {
				break
			}
		}
	case map[string]any:
		for k, e := range v {
			if strings.ContainsRune(k, 0) {
				bad(k)
			}
			if found = nul(join(loc, k), e, found); len(found) >= response.MaxIssues {
				break
			}
		}
	}
	return found
}

// join returns a new slice, because loc is shared by its siblings.
func join(loc []any, more any) []any {
	return append(append(make([]any, 0, len(loc)+1), loc...), more)
}
