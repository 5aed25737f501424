package analysis

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/jsonschema"
)

const patient = 60 * time.Second // with one try

// Statuses of an analysis.
const (
	None     = "none"
	Complete = "complete"
	Failed   = "failed"
)

// Calls are where calls are read and their analyses written; *store.Store is it.
type Calls interface {
	Call(ctx context.Context, orgID, id string) (control.Call, error)
	Words(ctx context.Context, callID string) (control.Words, error)
	// Definition is what the call's agent was when the call was accepted.
	Definition(ctx context.Context, callID string) (agents.Definition, error)
	// Analysed writes an analysis, or why there is none.
	Analysed(ctx context.Context, callID, status string, result json.RawMessage, reason string) error
}

// An Analyst is the follower that has finished calls judged.
type Analyst struct {
	Calls Calls
	// Model returns what thinks for an agent.
	Model func(e pipeline.Engine) (pipeline.Model, error)
	Log   *slog.Logger
}

// Follow implements control.Follower. What fails is tried again, with the event,
// and is then said to have failed: no value is made up.
func (a *Analyst) Follow(ctx context.Context, e control.Event) error {
	if e.Kind != control.CallEnded {
		return nil
	}
	c, err := a.Calls.Call(ctx, "", e.CallID)
	if err != nil || c.Status != control.Ended || c.AnalysisStatus == Complete || c.AnalysisStatus == Failed {
		return err
	}
	d, err := a.Calls.Definition(ctx, c.ID)
	if err != nil || d.Analysis.None() {
		return err
	}
	words, err := a.Calls.Words(ctx, c.ID)
	if err != nil {
		return err
	}
	result, err := a.judge(ctx, c, d, words.Lines)
	if err == nil {
		return a.Calls.Analysed(ctx, c.ID, Complete, result, "")
	}
	if ctx.Err() != nil || !final(err, e.Tries) {
		return err
	}
	if a.Log != nil {
		a.Log.WarnContext(ctx, "a call is not analysed", "call", c.ID, "err", err)
	}
	return a.Calls.Analysed(ctx, c.ID, Failed, nil, reason(err))
}

// judge asks the model, or nobody where there is nothing to judge.
func (a *Analyst) judge(ctx context.Context, c control.Call, d agents.Definition, lines []pipeline.Line) (json.RawMessage, error) {
	out := nothing(d.Analysis)
	if slices.ContainsFunc(lines, func(l pipeline.Line) bool { return l.Role == pipeline.RoleCaller && l.Text != "" }) {
		answer, err := a.ask(ctx, question(d, agents.Fill(d.Prompt, d.Values(c.Name, c.Variables)), lines), d.Speech.LLM)
		if err != nil {
			return nil, err
		}
		if out = nil; json.Unmarshal(answer, &out) != nil {
			return nil, fmt.Errorf("%w: it cannot be read", pipeline.ErrUseless)
		}
	}
	if machine, known := voicemail(c); known {
		out["in_voicemail"] = machine // what the line showed is worth more than a guess
	} else if _, told := out["in_voicemail"]; !told {
		out["in_voicemail"] = nil
	}
	if _, told := out["opt_out"]; !told {
		out["opt_out"] = nil
	}
	return json.Marshal(out)
}

// voicemail is what is known of who answered.
func voicemail(c control.Call) (machine, known bool) {
	switch {
	case c.AnsweredBy == "voicemail", c.Reason == control.Reason(pipeline.VoicemailLeft), c.Reason == "voicemail_reached":
		return true, true
	case c.AnsweredBy == "human":
		return false, true
	}
	return false, false
}

// ask returns the arguments of the one call that the model is to make, which
// fit the schema.
func (a *Analyst) ask(ctx context.Context, p pipeline.Prompt, e pipeline.Engine) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	model, err := a.Model(e)
	if err != nil {
		return nil, err
	}
	shape, err := jsonschema.Parse(p.Tools[0].Parameters)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	for d, err := range model.Reply(ctx, p) {
		if err != nil {
			return nil, fmt.Errorf("model: %w", err)
		}
		for _, call := range d.Calls {
			if call.Name != tool {
				continue
			}
			if err := shape.Check(call.Arguments); err != nil {
				return nil, fmt.Errorf("%w: %w", pipeline.ErrUseless, err)
			}
			return call.Arguments, nil
		}
	}
	return nil, fmt.Errorf("%w: the model did not report", pipeline.ErrUseless)
}
