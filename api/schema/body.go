// Package schema reads request bodies and checks them against the published
// schemas.
package schema

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/parley-voice/parley/api/respond"
	"github.com/parley-voice/parley/control"
)

// MaxBody is the size of a body in bytes.
const MaxBody = 4 << 20

// maxDepth is how deep arrays and objects may stand in each other.
const maxDepth = 64

// A Body is a request's body as it came.
type Body struct {
	Raw []byte
	doc any
	bad *respond.InvalidError // why it is no JSON
}

// Read reads a body. It refuses what is too large, or nested too deep.
func Read(w http.ResponseWriter, r *http.Request) (*Body, error) { return ReadUpTo(w, r, MaxBody) }

// ReadUpTo is Read with a bound of its own, in bytes.
func ReadUpTo(w http.ResponseWriter, r *http.Request, most int64) (*Body, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, control.Refuse(control.CodeRequestTooLarge, fmt.Sprintf("the body is larger than %d MiB", most>>20))
	}
	if err != nil {
		return nil, &respond.PlainError{Status: http.StatusBadRequest, Message: "the body could not be read"}
	}
	return Parse(raw)
}

// Parse reads the text of a body. It refuses what is nested too deep.
func Parse(raw []byte) (*Body, error) {
	if at := tooDeep(raw); at >= 0 {
		return nil, notJSON(at, "nested deeper than 64 levels")
	}
	b := &Body{Raw: raw}
	b.parse()
	return b, nil
}

// maxKey is the length of an Idempotency-Key in characters.
const maxKey = 255

// IdempotencyKey is the key that the sender of a request gave it, empty where it
// gave none.
func IdempotencyKey(r *http.Request) (string, error) {
	name := strings.TrimSpace(r.Header.Get("Idempotency-Key"))
	if !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxKey {
		return "", &respond.InvalidError{Issues: []respond.Issue{{
			Type: "string_too_long", Loc: []any{"header", "Idempotency-Key"}, Msg: "String should have at most 255 characters",
			Input: strings.ToValidUTF8(name, "\ufffd"),
		}}}
	}
	return name, nil
}

func (b *Body) parse() {
	if len(bytes.TrimSpace(b.Raw)) == 0 {
		b.bad = &respond.InvalidError{Issues: []respond.Issue{{Type: "missing", Loc: []any{"body"}, Msg: "Field required"}}}
		return
	}
	err := json.Unmarshal(b.Raw, &b.doc)
	if err == nil {
		return
	}
	at := 0
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = int(syntax.Offset)
	} else if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // a number beyond all measure
		at = int(kind.Offset)
	}
	b.bad = notJSON(at, "JSON decode error: "+err.Error())
}

func notJSON(at int, msg string) *respond.InvalidError {
	return &respond.InvalidError{Issues: []respond.Issue{{Type: "json_invalid", Loc: []any{"body", at}, Msg: msg, Input: map[string]any{}}}}
}

// tooDeep returns where the nesting passes maxDepth, or -1. It looks at
// brackets outside strings alone.
func tooDeep(raw []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return i
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return -1
}

// Fingerprint is the same for bodies that say the same: white space and the
// order of keys do not count, the spelling of numbers does. What is no JSON is
// compared byte by byte.
func (b *Body) Fingerprint() []byte {
	text := b.Raw
	if b.bad == nil {
		d := json.NewDecoder(bytes.NewReader(b.Raw))
		d.UseNumber()
		var doc any
		if d.Decode(&doc) == nil {
			if canon, err := json.Marshal(doc); err == nil {
				text = canon
			}
		}
	}
	sum := sha256.Sum256(text)
	return sum[:]
}

// decode fills v with the members named in known. Numbers keep their spelling
// where their type is open.
func (b *Body) decode(known map[string]any, v any) error {
	var members map[string]json.RawMessage
	err := json.Unmarshal(b.Raw, &members)
	for key := range members {
		if _, ok := known[key]; !ok {
			delete(members, key)
		}
	}
	var text []byte
	if err == nil {
		text, err = json.Marshal(members)
	}
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

// nul finds characters that the database cannot keep, as many as an answer
// tells.
func nul(loc []any, v any, found []respond.Issue) []respond.Issue {
	bad := func(input any) {
		found = append(found, respond.Issue{Type: "value_error", Loc: loc, Msg: "Value error, the character U+0000 is not allowed", Input: input})
	}
	if len(found) >= respond.MaxIssues {
		return found
	}
	switch v := v.(type) {
	case string:
		if strings.ContainsRune(v, 0) {
			bad(v)
		}
	case []any:
		for i, e := range v {
			if found = nul(join(loc, i), e, found); len(found) >= respond.MaxIssues {
				break
			}
		}
	case map[string]any:
		for k, e := range v {
			if strings.ContainsRune(k, 0) {
				bad(k)
			}
			if found = nul(join(loc, k), e, found); len(found) >= respond.MaxIssues {
				break
			}
		}
	}
	return found
}

// join returns a new slice: loc is shared by what stands beside it.
func join(loc []any, more any) []any {
	return append(append(make([]any, 0, len(loc)+1), loc...), more)
}
