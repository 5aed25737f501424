package outcome

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-voice/parley/control"
)

// An OptOutFollower records opt-outs that the analysis of a call found. It follows
// calls without a campaign too.
type OptOutFollower struct {
	Recorder control.OptOutStore
	Calls    Calls
}

// HandleEvent implements control.Follower.
func (o *OptOutFollower) HandleEvent(ctx context.Context, e control.Event) error {
	if e.Kind != control.CallEnded {
		return nil
	}
	c, err := o.Calls.Call(ctx, "", e.CallID)
	if err != nil || len(c.Analysis) == 0 || c.To == "" {
		return err
	}
	var analysis struct {
		OptOut *bool `json:"opt_out"`
	}
	if err = json.Unmarshal(c.Analysis, &analysis); err != nil {
		return fmt.Errorf("analysis of call %s: %w", c.ID, err)
	}
	if analysis.OptOut == nil || !*analysis.OptOut {
		return nil
	}
	return o.Recorder.OptOut(ctx, control.OptOut{OrgID: c.OrgID, Number: c.To, CallID: c.ID, Source: control.OptOutAnalysis, At: e.At})
}
