package calls

import (
	"net/http"

	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/idempotency"
)

// begin takes the request's Idempotency-Key, if it has one. Keys are unique
// per API key and endpoint.
func (c *Calls) begin(r *http.Request, key access.Key, body *schema.Body) (*idempotency.Slot, *idempotency.Answer, error) {
	name, err := schema.IdempotencyKey(r)
	if err != nil || name == "" {
		return nil, nil, err
	}
	scope := key.ID + " " + r.Method + " " + r.URL.Path
	return c.Keys.Begin(r.Context(), scope, name, body.Fingerprint())
}
