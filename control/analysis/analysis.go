package analysis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/jsonschema"
)

const modelTimeout = 60 * time.Second // limit for one request to the model

// Values of a call's analysis status.
const (
	None     = "none"
	Complete = "complete"
	Failed   = "failed"
)

// Calls reads calls and stores their analyses. *store.Store implements it.
type Calls interface {
	Call(ctx context.Context, orgID, id string) (control.Call, error)
	Transcript(ctx context.Context, callID string) (control.Transcript, error)
	// AgentDefinition returns the version of the agent's definition that was current when the call was accepted.
	AgentDefinition(ctx context.Context, callID string) (agents.Definition, error)
	// SetAnalysis stores the result of an analysis, or why it failed.
	SetAnalysis(ctx context.Context, callID, status string, result json.RawMessage, reason string) error
}

// UsageStore adds usage to a call that has ended. *store.Costs implements it.
type UsageStore interface {
	AddUsage(ctx context.Context, callID string, usage []pipeline.EngineUsage) error
}

// Analyst is an event handler that analyzes ended calls.
type Analyst struct {
	Calls Calls
	// Model returns the language model of an agent. Its usage is added to meter.
	Model func(e pipeline.Engine, meter *pipeline.UsageMeter) (pipeline.Model, error)
	// Usage stores the usage of each try; nil discards it.
	Usage UsageStore
	Log   *slog.Logger
}

// HandleEvent implements control.EventHandler. The outbox repeats the event after an error. After the last try,
// HandleEvent stores the status Failed. It never invents a value.
func (a *Analyst) HandleEvent(ctx context.Context, e control.Event) error {
	if e.Kind != control.CallEnded {
		return nil
	}
	c, err := a.Calls.Call(ctx, "", e.CallID)
	if err != nil || c.Status != control.Ended || c.AnalysisStatus == Complete || c.AnalysisStatus == Failed {
		return err
	}
	d, err := a.Calls.AgentDefinition(ctx, c.ID)
	if err != nil || d.Analysis.IsEmpty() {
		return err
	}
	words, err := a.Calls.Transcript(ctx, c.ID)
	if err != nil {
		return err
	}
	var meter pipeline.UsageMeter
	result, err := a.analyze(ctx, c, d, words.Lines, &meter)
	if unstored := a.addUsage(ctx, c.ID, &meter); unstored != nil {
		return errors.Join(err, unstored)
	}
	if err == nil {
		return a.Calls.SetAnalysis(ctx, c.ID, Complete, result, "")
	}
	if ctx.Err() != nil || !isFinalTry(err, e.Tries) {
		return err
	}
	if a.Log != nil {
		a.Log.WarnContext(ctx, "failed to analyze a call", "call", c.ID, "err", err)
	}
	return a.Calls.SetAnalysis(ctx, c.ID, Failed, nil, reason(err))
}

// addUsage stores the usage of one try to analyze a call.
func (a *Analyst) addUsage(ctx context.Context, callID string, meter *pipeline.UsageMeter) error {
	if a.Usage == nil {
		return nil
	}
	usage := slices.DeleteFunc(meter.Total(), func(u pipeline.EngineUsage) bool { return u.PromptTokens+u.CompletionTokens == 0 })
	for n := range usage {
		usage[n].Purpose = pipeline.ForAnalysis
	}
	return a.Usage.AddUsage(ctx, callID, usage)
}

// analyze returns the result for a call. It asks the model only if the callee said something.
func (a *Analyst) analyze(
	ctx context.Context, c control.Call, d agents.Definition, lines []pipeline.Line, meter *pipeline.UsageMeter,
) (json.RawMessage, error) {
	out := emptyResult(d.Analysis)
	if slices.ContainsFunc(lines, func(l pipeline.Line) bool { return l.Role == pipeline.RoleCaller && l.Text != "" }) {
		answer, err := a.ask(ctx, question(d, agents.Fill(d.Prompt, d.Values(c.Name, c.Variables)), lines), d.Speech.For(c.OrgID).LLM, meter)
		if err != nil {
			return nil, err
		}
		if out = nil; json.Unmarshal(answer, &out) != nil {
			return nil, fmt.Errorf("%w: invalid JSON", pipeline.ErrUnusable)
		}
	}
	if machine, known := voicemail(c); known {
		out["in_voicemail"] = machine // the detector's result overrides the model's guess
	} else if _, ok := out["in_voicemail"]; !ok {
		out["in_voicemail"] = nil
	}
	if _, ok := out["opt_out"]; !ok {
		out["opt_out"] = nil
	}
	return json.Marshal(out)
}

// voicemail reports whether a machine answered. known is false if the call does not say.
func voicemail(c control.Call) (machine, known bool) {
	switch {
	case c.AnsweredBy == "voicemail", c.Reason == control.Reason(pipeline.VoicemailLeft), c.Reason == "voicemail_reached":
		return true, true
	case c.AnsweredBy == "human":
		return false, true
	}
	return false, false
}

// ask makes the model call the reporting tool. It checks the arguments against the schema and returns them.
func (a *Analyst) ask(ctx context.Context, p pipeline.Prompt, e pipeline.Engine, meter *pipeline.UsageMeter) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, modelTimeout)
	defer cancel()
	model, err := a.Model(e, meter)
	if err != nil {
		return nil, err
	}
	shape, err := jsonschema.Parse(p.Tools[0].Parameters)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	var answer json.RawMessage
	for d, err := range model.Reply(ctx, p) { // read to the end, because the usage comes last
		if err != nil && answer == nil {
			return nil, fmt.Errorf("model: %w", err)
		}
		for _, call := range d.Calls {
			if call.Name == tool && answer == nil {
				answer = call.Arguments
			}
		}
	}
	if answer == nil {
		return nil, fmt.Errorf("%w: the model did not report", pipeline.ErrUnusable)
	}
	if err := shape.Check(answer); err != nil {
		return nil, fmt.Errorf("%w: %w", pipeline.ErrUnusable, err)
	}
	return answer, nil
}
