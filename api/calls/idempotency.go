package calls

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/parley-voice/parley/api/respond"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/idempotency"
)

// maxKey is the length of an Idempotency-Key in characters.
const maxKey = 255

// begin takes the request's Idempotency-Key, if it has one. Keys are unique
// per API key and endpoint.
func (c *Calls) begin(r *http.Request, key access.Key, body *schema.Body) (*idempotency.Slot, *idempotency.Answer, error) {
	name := strings.TrimSpace(r.Header.Get("Idempotency-Key"))
	if name == "" {
		return nil, nil, nil
	}
	if !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxKey {
		return nil, nil, &respond.InvalidError{Issues: []respond.Issue{{
			Type: "string_too_long", Loc: []any{"header", "Idempotency-Key"}, Msg: "String should have at most 255 characters",
			Input: strings.ToValidUTF8(name, "\ufffd"),
		}}}
	}
	scope := key.ID + " " + r.Method + " " + r.URL.Path
	return c.Keys.Begin(r.Context(), scope, name, body.Fingerprint())
}
