package calls

import (
	"context"
	"net/http"

	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/idempotency"
)

func scope(r *http.Request, key apikeys.Key) string {
	return key.ID + " " + r.Method + " " + r.URL.Path
}

// reserveKey reserves the Idempotency-Key of a request, if any.
func (c *Calls) reserveKey(ctx context.Context, scope, name string, body *schema.Body) (*idempotency.Slot, *idempotency.Answer, error) {
	if name == "" {
		return nil, nil, nil
	}
	return c.Keys.Begin(ctx, scope, name, body.Fingerprint())
}
