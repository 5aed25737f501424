package provider

import "github.com/parley-voice/parley/pipeline"

// bytesPerToken estimates tokens if the provider does not report them.
const bytesPerToken = 4

// answerUsage counts the tokens of one answer of a model.
type answerUsage struct {
	prompt   pipeline.Prompt
	reported *pipeline.Usage
	answered int  // bytes of the answer
	failed   bool // the request failed before any response; the provider charges nothing
}

// add counts a delta. err is an error of the provider, not of a cancellation.
func (u *answerUsage) add(d pipeline.Delta, err error) {
	if u.answered += len(d.Text); d.Usage != nil {
		u.reported = d.Usage
	}
	u.failed = err != nil && u.answered == 0 && u.reported == nil
}

// report adds the answer to a meter. If the provider has not reported the tokens, for example
// of a canceled answer, they are estimated.
func (u *answerUsage) report(meter *pipeline.UsageMeter, e pipeline.Engine) {
	all := pipeline.EngineUsage{Serves: "llm", Provider: e.Provider, OrgID: e.OrgID, Model: e.Model, Requests: 1}
	switch {
	case u.reported != nil:
		all.PromptTokens, all.CachedTokens, all.CompletionTokens = u.reported.PromptTokens, u.reported.CachedTokens, u.reported.CompletionTokens
	case !u.failed:
		all.PromptTokens, all.CompletionTokens = promptBytes(u.prompt)/bytesPerToken, u.answered/bytesPerToken
	}
	meter.Add(all)
}

func promptBytes(p pipeline.Prompt) int {
	n := len(p.Instructions)
	for _, m := range p.Messages {
		n += len(m.Text)
		for _, c := range m.Calls {
			n += len(c.Name) + len(c.Arguments)
		}
	}
	for _, t := range p.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	return n
}
