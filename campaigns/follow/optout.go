package follow

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-voice/parley/control"
)

// OptOuts is the follower that keeps what the analysis of a call says: that the
// callee asked not to be called again. It follows calls of no campaign too.
type OptOuts struct {
	Keep  control.OptOuts
	Calls Calls
}

// Follow implements control.Follower.
func (o *OptOuts) Follow(ctx context.Context, e control.Event) error {
	if e.Kind != control.CallEnded {
		return nil
	}
	c, err := o.Calls.Call(ctx, "", e.CallID)
	if err != nil || len(c.Analysis) == 0 || c.To == "" {
		return err
	}
	var says struct {
		OptOut *bool `json:"opt_out"`
	}
	if err = json.Unmarshal(c.Analysis, &says); err != nil {
		return fmt.Errorf("analysis of call %s: %w", c.ID, err)
	}
	if says.OptOut == nil || !*says.OptOut {
		return nil
	}
	return o.Keep.OptOut(ctx, control.OptOut{OrgID: c.OrgID, Number: c.To, CallID: c.ID, Source: control.OptOutAnalysis, At: e.At})
}
