package frame

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/parley-voice/parley/control/idempotency"
)

// outcome is what is kept of what came of a form that does something once.
type outcome struct {
	To, Say string
	Wrong   bool
}

// Kept is what a form that comes again is answered.
func (d Done) Kept() idempotency.Answer {
	body, _ := json.Marshal(outcome{d.To, d.Say, d.Wrong}) // of texts alone
	return idempotency.Answer{Status: http.StatusSeeOther, Body: body}
}

// Repeated is what came of a form that was sent before.
func Repeated(a idempotency.Answer) (Done, error) {
	var o outcome
	if err := json.Unmarshal(a.Body, &o); err != nil {
		return Done{}, fmt.Errorf("what came of a form: %w", err)
	}
	return Done{To: o.To, Say: o.Say, Wrong: o.Wrong}, nil
}
