package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/parley-voice/parley/pipeline"
)

// builtin is a tool whose action the conversation performs as a follow-up.
type builtin struct {
	spec pipeline.Tool
	run  func(arguments json.RawMessage) (pipeline.ToolResult, error)
}

func (b builtin) Spec() pipeline.Tool { return b.spec }
func (builtin) Filler() string        { return "" }

func (b builtin) Run(_ context.Context, arguments json.RawMessage) (pipeline.ToolResult, error) {
	return b.run(arguments)
}

// lastWords returns a result with text for the model and the follow-up then. The follow-up first says
// the argument "say".
func lastWords(arguments json.RawMessage, then pipeline.FollowUp, text string) (pipeline.ToolResult, error) {
	var a struct {
		Say string `json:"say"`
	}
	if err := json.Unmarshal(arguments, &a); err != nil {
		return pipeline.ToolResult{}, errors.New("the arguments cannot be read")
	}
	then.Say = a.Say
	return pipeline.ToolResult{Text: text, FollowUp: then}, nil
}

const sayFirst = `"say":{"type":"string","maxLength":1000,"description":"The last words to the caller, unless you have said them already."}`

func endCall(d Definition) builtin {
	return builtin{
		spec: pipeline.Tool{
			Name: EndCall, Description: cmp.Or(d.Description, "Ends the call once the caller has heard your last words."),
			Parameters: json.RawMessage(`{"type":"object","properties":{` + sayFirst + `},"additionalProperties":false}`),
		},
		run: func(arguments json.RawMessage) (pipeline.ToolResult, error) {
			return lastWords(arguments, pipeline.FollowUp{Step: pipeline.Hangup, Reason: pipeline.AgentHungUp},
				"the call ends once the caller has heard you; if the caller speaks first, it goes on")
		},
	}
}

func sendDTMF(d Definition) builtin {
	return builtin{
		spec: pipeline.Tool{
			Name: SendDTMF, Description: cmp.Or(d.Description, "Presses keys on the phone, for a menu that asks for them."),
			Parameters: json.RawMessage(
				`{"type":"object","required":["keys"],"properties":{"keys":{"type":"string","pattern":"^[0-9*#A-D,]{1,32}$",` +
					`"description":"0-9 * # A-D; a comma waits 2 seconds"}},"additionalProperties":false}`,
			),
		},
		run: func(arguments json.RawMessage) (pipeline.ToolResult, error) {
			var a struct {
				Keys string `json:"keys"`
			}
			if err := json.Unmarshal(arguments, &a); err != nil {
				return pipeline.ToolResult{}, errors.New("the arguments cannot be read")
			}
			return pipeline.ToolResult{
				Text:     "the keys will be pressed when the caller has heard what you said",
				FollowUp: pipeline.FollowUp{Step: pipeline.Press, Keys: a.Keys},
			}, nil
		},
	}
}

// WithoutKeys returns the tools for a call that cannot send keys. Their send_dtmf only returns an error
// to the model.
func WithoutKeys(all []pipeline.Function) []pipeline.Function {
	all = slices.Clone(all)
	for i, f := range all {
		if b, ok := f.(builtin); ok && b.spec.Name == SendDTMF {
			b.run = func(json.RawMessage) (pipeline.ToolResult, error) {
				return pipeline.ToolResult{}, errors.New("no keys were pressed: this call cannot press keys")
			}
			all[i] = b
		}
	}
	return all
}

func leaveVoicemail(d Definition) builtin {
	return builtin{
		spec: pipeline.Tool{
			Name: LeaveVoicemail,
			Description: cmp.Or(
				d.Description,
				"Leaves a message on an answering machine and ends the call. Only where a machine answered, after its beep.",
			),
			Parameters: json.RawMessage(`{"type":"object","required":["say"],"properties":{"say":{"type":"string","minLength":1,"maxLength":2000,` +
				`"description":"The whole message."}},"additionalProperties":false}`),
		},
		run: func(arguments json.RawMessage) (pipeline.ToolResult, error) {
			return lastWords(
				arguments,
				pipeline.FollowUp{Step: pipeline.Hangup, Reason: pipeline.VoicemailLeft},
				"the message is being left, and then the call ends",
			)
		},
	}
}

// transfer returns the tool that transfers the call to one of the destinations.
func (d Definition) transfer() (pipeline.Function, error) {
	if n := len(d.Destinations); n == 0 || n > maxDestinations {
		return nil, fmt.Errorf("destinations: got %d; 1 to %d are accepted", n, maxDestinations)
	}
	numbers, names := map[string]string{}, []string{}
	for i, to := range d.Destinations {
		if !numberPattern.MatchString(to.Number) {
			return nil, fmt.Errorf("destinations[%d].number: %q: use + and 3 to 15 digits", i, to.Number)
		}
		if len(to.Label) > 64 {
			return nil, fmt.Errorf("destinations[%d].label: at most 64 bytes are accepted", i)
		}
		if numbers[to.name()] != "" {
			return nil, fmt.Errorf("destinations[%d]: duplicate name %q", i, to.name())
		}
		numbers[to.name()] = to.Number
		names = append(names, to.name())
	}
	accepted, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	return builtin{
		spec: pipeline.Tool{
			Name: TransferCall, Description: cmp.Or(d.Description, "Hands the caller over to somebody else once they have heard you say so."),
			Parameters: json.RawMessage(`{"type":"object","required":["to"],"properties":{"to":{"type":"string","enum":` + string(accepted) + `},` +
				sayFirst + `},"additionalProperties":false}`),
		},
		run: func(arguments json.RawMessage) (pipeline.ToolResult, error) {
			var a struct {
				To string `json:"to"`
			}
			if err := json.Unmarshal(arguments, &a); err != nil {
				return pipeline.ToolResult{}, errors.New("the arguments cannot be read")
			}
			return lastWords(arguments, pipeline.FollowUp{Step: pipeline.Transfer, Number: numbers[a.To]},
				"the caller is handed over once they have heard you; if they speak first, you go on talking")
		},
	}, nil
}

// OptOut returns the tool that the model calls when the caller asks not to be called again. keep stores
// that request. The agent then says line and hangs up.
func OptOut(line string, keep func(ctx context.Context) error) pipeline.Function {
	return optOut{
		builtin: builtin{spec: pipeline.Tool{
			Name: OptOutName, Description: "Call this at once, whatever else is said, when the caller asks not to be called again, " +
				"to be taken off the list, or withdraws consent to calls. " +
				"Not for a caller who only has no time now. The number is then never called again, and the call ends with a goodbye.",
			Parameters: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
		}},
		line: line, store: keep,
	}
}

// OptOutName is the name of the opt-out tool.
const OptOutName = "opt_out"

type optOut struct {
	builtin

	line  string
	store func(ctx context.Context) error
}

func (o optOut) Run(ctx context.Context, _ json.RawMessage) (pipeline.ToolResult, error) {
	if err := o.store(ctx); err != nil {
		return pipeline.ToolResult{}, errors.New("the opt-out is not stored yet; the call ends anyway")
	}
	return pipeline.ToolResult{
		Text:     "the number will not be called again; the call ends when the caller has heard your answer",
		FollowUp: pipeline.FollowUp{Step: pipeline.Hangup, Reason: pipeline.AgentHungUp, Say: o.line},
	}, nil
}
