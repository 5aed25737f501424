package calls

import (
	"context"
	"net/http"

	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/idempotency"
)

// scope is what the keys of requests are unique in: API key and endpoint.
func scope(r *http.Request, key access.Key) string {
	return key.ID + " " + r.Method + " " + r.URL.Path
}

// begin takes the Idempotency-Key of a request, if it has one.
func (c *Calls) begin(ctx context.Context, scope, name string, body *schema.Body) (*idempotency.Slot, *idempotency.Answer, error) {
	if name == "" {
		return nil, nil, nil
	}
	return c.Keys.Begin(ctx, scope, name, body.Fingerprint())
}
