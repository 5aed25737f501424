package analysis

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/jsonschema"
)

// memoryCalls implements Calls for a single call, in memory.
type memoryCalls struct {
	call  control.Call
	d     agents.Definition
	lines []pipeline.Line

	status, reason string
	result         json.RawMessage
}

func (d *memoryCalls) Call(context.Context, string, string) (control.Call, error) { return d.call, nil }

func (d *memoryCalls) Transcript(context.Context, string) (control.Transcript, error) {
	return control.Transcript{Lines: d.lines}, nil
}

func (d *memoryCalls) AgentDefinition(context.Context, string) (agents.Definition, error) {
	return d.d, nil
}

func (d *memoryCalls) SetAnalysis(_ context.Context, _, status string, result json.RawMessage, reason string) error {
	d.status, d.result, d.reason = status, result, reason
	d.call.AnalysisStatus = status
	return nil
}

// model is a language model that returns prepared answers and records its prompts.
type model struct {
	arguments string
	fails     error
	asked     []pipeline.Prompt
}

func (m *model) Reply(_ context.Context, p pipeline.Prompt) iter.Seq2[pipeline.Delta, error] {
	m.asked = append(m.asked, p)
	return func(yield func(pipeline.Delta, error) bool) {
		if m.fails != nil {
			yield(pipeline.Delta{}, m.fails)
			return
		}
		if yield(pipeline.Delta{Text: "here you are"}, nil) && m.arguments != "" {
			yield(pipeline.Delta{Calls: []pipeline.ToolCall{{Name: tool, Arguments: json.RawMessage(m.arguments)}}}, nil)
		}
	}
}

func definition() agents.Definition {
	d := agents.Default()
	d.Prompt = "Sell tea to {{name}}."
	d.Analysis.Fields = []agents.Field{
		{Name: "cups", Type: "number"},
		{Name: "kind", Type: "enum", Values: []string{"green", "black"}},
		{Name: "again", Type: "boolean"},
		{Name: "note", Type: "string"},
	}
	return d
}

func transcript() []pipeline.Line {
	return []pipeline.Line{
		{Role: pipeline.RoleAgent, Text: "Tea?"},
		{Role: pipeline.RoleCaller, Text: "Two green ones."},
		{Role: pipeline.RoleTool, Text: "order {}: done"},
	}
}

const good = `{"summary":"Two cups were sold.","success":true,"sentiment":"positive","in_voicemail":false,"opt_out":false,"custom":{"cups":2,"kind":"green","again":null,"note":null}}`

func TestHandleEvent(t *testing.T) {
	silent := `{"custom":{"again":null,"cups":null,"kind":null,"note":null},"in_voicemail":null,"opt_out":null,"sentiment":null,"success":null,"summary":"The callee said nothing."}`
	for name, tt := range map[string]struct {
		call           control.Call
		change         func(*memoryCalls)
		model          model
		tries          int
		status, reason string
		result         string
		asked          int
		again          string // error that HandleEvent returns, so that the outbox repeats the event
	}{
		"report": {model: model{arguments: good}, status: Complete, result: good, asked: 1},
		"answered_by overrides the model": {
			call: control.Call{AnsweredBy: "voicemail"}, model: model{arguments: good}, status: Complete,
			result: strings.Replace(good, `"in_voicemail":false`, `"in_voicemail":true`, 1), asked: 1,
		},
		"silent callee": {
			change: func(d *memoryCalls) { d.lines = d.lines[:1] }, status: Complete, result: silent,
		},
		"no words in a voicemail": {
			call: control.Call{Reason: "voicemail_dropped"}, change: func(d *memoryCalls) { d.lines = nil }, status: Complete,
			result: strings.Replace(silent, `"in_voicemail":null`, `"in_voicemail":true`, 1),
		},
		"no analysis configured": {change: func(d *memoryCalls) { d.d.Analysis = agents.Analysis{} }},
		"failed call":            {call: control.Call{Status: control.Failed}},
		"analyzed before":        {call: control.Call{AnalysisStatus: Complete}},
		"the model fails":        {model: model{fails: errors.New("503")}, asked: 1, again: "model: 503"},
		"the model fails again and again": {
			model: model{fails: errors.New("503")}, tries: 10, asked: 1, again: "model: 503",
		},
		"the model fails for a quarter of an hour": {
			model: model{fails: errors.New("503")}, tries: 11, asked: 1, status: Failed, reason: "unreachable",
		},
		"no report": {model: model{}, tries: 2, asked: 1, status: Failed, reason: "unreadable answer"},
		"value outside the enum": {
			model: model{arguments: strings.Replace(good, `"green"`, `"red"`, 1)}, tries: 2, asked: 1,
			status: Failed, reason: "unreadable answer",
		},
		"text for a number": {
			model: model{arguments: strings.Replace(good, `"cups":2`, `"cups":"2"`, 1)}, tries: 2, asked: 1,
			status: Failed, reason: "unreadable answer",
		},
		"missing fields": {
			model: model{arguments: `{"summary":"x"}`}, tries: 2, asked: 1, status: Failed, reason: "unreadable answer",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := &memoryCalls{call: tt.call, d: definition(), lines: transcript()}
			d.call.Name = "Ada"
			if d.call.Status == "" {
				d.call.Status = control.Ended
			}
			if tt.change != nil {
				tt.change(d)
			}
			a := &Analyst{Calls: d, Model: func(pipeline.Engine, *pipeline.UsageMeter) (pipeline.Model, error) { return &tt.model, nil }}
			err := a.HandleEvent(t.Context(), control.Event{Kind: control.CallEnded, Tries: tt.tries})
			if (err == nil) != (tt.again == "") || err != nil && err.Error() != tt.again {
				t.Errorf("%v, want %q", err, tt.again)
			}
			if d.status != tt.status || d.reason != tt.reason || len(tt.model.asked) != tt.asked {
				t.Errorf("status %q, reason %q, asked %d times", d.status, d.reason, len(tt.model.asked))
			}
			if !same(t, d.result, tt.result) {
				t.Errorf("result %s, want %s", d.result, tt.result)
			}
		})
	}
}

func same(t *testing.T, got json.RawMessage, want string) bool {
	t.Helper()
	if want == "" {
		return len(got) == 0
	}
	var a, b any
	if err := errors.Join(json.Unmarshal(got, &a), json.Unmarshal([]byte(want), &b)); err != nil {
		return false
	}
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && string(x) == string(y)
}

// TestPrompt checks that the prompt contains the transcript and the agent's task in this call, and that the model gets
// a schema.
func TestPrompt(t *testing.T) {
	d := &memoryCalls{call: control.Call{Status: control.Ended, Name: "Ada"}, d: definition(), lines: transcript()}
	d.lines[1].Text = strings.Repeat("tea ", 20_000) + "enough"
	m := &model{arguments: good}
	a := &Analyst{Calls: d, Model: func(pipeline.Engine, *pipeline.UsageMeter) (pipeline.Model, error) { return m, nil }}
	if err := a.HandleEvent(t.Context(), control.Event{Kind: control.CallEnded}); err != nil {
		t.Fatal(err)
	}
	p := m.asked[0]
	text := p.Messages[0].Text
	for _, want := range []string{"Sell tea to Ada.", "agent: Tea?", "callee: tea", "enough", "tool: order {}: done", "[cut: the middle is too long]"} {
		if !strings.Contains(text, want) {
			t.Errorf("the prompt lacks %q", want)
		}
	}
	if n := len(text); n > maxTranscript+maxTask || p.ToolChoice != p.Tools[0].Name || p.MaxTokens == 0 {
		t.Errorf("%d characters, choice %q of %q", n, p.ToolChoice, p.Tools[0].Name)
	}
	if _, err := jsonschema.Parse(p.Tools[0].Parameters); err != nil {
		t.Error(err)
	}
}

// usageLog is a UsageStore that records usage by call id.
type usageLog map[string][]pipeline.EngineUsage

func (u usageLog) AddUsage(_ context.Context, callID string, usage []pipeline.EngineUsage) error {
	u[callID] = append(u[callID], usage...)
	return nil
}

// TestUsage checks that the usage of each try is stored, even if the try fails.
func TestUsage(t *testing.T) {
	for name, m := range map[string]*model{"report": {arguments: good}, "no report": {}} {
		d := &memoryCalls{call: control.Call{ID: "c", Status: control.Ended}, d: definition(), lines: transcript()}
		log := usageLog{}
		a := &Analyst{Calls: d, Usage: log, Model: func(_ pipeline.Engine, meter *pipeline.UsageMeter) (pipeline.Model, error) {
			meter.Add(pipeline.EngineUsage{Serves: "llm", Provider: "p", Requests: 1, PromptTokens: 5})
			meter.Add(pipeline.EngineUsage{Serves: "llm", Provider: "unreachable", Requests: 1})
			return m, nil
		}}
		_ = a.HandleEvent(t.Context(), control.Event{Kind: control.CallEnded})
		want := []pipeline.EngineUsage{{Serves: "llm", Purpose: pipeline.ForAnalysis, Provider: "p", Requests: 1, PromptTokens: 5}}
		if !slices.Equal(log["c"], want) {
			t.Errorf("%s: %+v, want %+v", name, log["c"], want)
		}
	}
}
