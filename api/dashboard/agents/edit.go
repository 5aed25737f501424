package agents

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
)

// editor is the page with the form of a draft. id is empty for a new agent.
func (a Agents) editor(r *ui.Request, id string, d agents.Definition, f ui.Form) (ui.Page, error) {
	var choices []agents.Choice
	if a.Choices != nil {
		var err error
		if choices, err = a.Choices(r.Context(), r.DB(), r.Org()); err != nil {
			return ui.Page{}, err
		}
	}
	f.Fields = append(f.Fields, fields(r.Words, d, choices)...)
	f = r.Form(f)
	for _, x := range f.Fields { // a rejected form has newer texts
		switch x.Name {
		case "greeting":
			d.Greeting = x.Value
		case "prompt":
			d.Prompt = x.Value
		case "voicemail_message":
			d.VoicemailMessage = x.Value
		}
	}
	return ui.Page{Template: "edit.html", Data: map[string]any{
		"Form": f, "Agent": id, "Choices": choices, "Variables": variablesOf(d), "Size": sizeOf(d.Prompt), "Sample": a.Tester != nil,
	}}, nil
}

// A variable is a placeholder of an agent's texts, or a default that no text uses.
type variable struct {
	Name, Source string
	Open         bool // each call must set it
	Unused       bool
}

// variablesOf returns the variables in the order of the texts, then unused defaults.
func variablesOf(d agents.Definition) (all []variable) {
	used := d.VariableNames()
	for _, name := range used {
		v, has := d.Variables[name]
		switch {
		case name == "name" && has:
			all = append(all, variable{Name: name, Source: "name of the contact, else the default “" + v + "”"})
		case name == "name":
			all = append(all, variable{Name: name, Source: "name of the contact; no default", Open: true})
		case has:
			all = append(all, variable{Name: name, Source: "the call, else the default “" + v + "”"})
		default:
			all = append(all, variable{Name: name, Source: "the call; no default", Open: true})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Variables)) {
		if !slices.Contains(used, name) {
			all = append(all, variable{Name: name, Source: "default “" + d.Variables[name] + "”", Unused: true})
		}
	}
	return all
}

// A size is the length of a prompt. Four bytes count as one token, as for the limits of calls.
type size struct{ Characters, Tokens int }

func sizeOf(text string) size { return size{utf8.RuneCountInString(text), (len(text) + 3) / 4} }

func (a Agents) askNew(r *ui.Request) (ui.Page, error) {
	name := ui.Field{
		Group: "Conversation", Name: "name", Label: "Name", Help: "Used as agent_id in the API. Cannot be changed later.",
		Placeholder: "sales",
	}
	p, err := a.editor(r, "", agents.Default(), ui.Form{Submit: "Create draft", Cancel: r.URL("agents"), Fields: []ui.Field{name}})
	p.Title, p.Crumbs = "New agent", crumbs()
	return p, err
}

func (Agents) create(r *ui.Request) (ui.Result, error) {
	name, err := ui.ReadName(r)
	if err != nil {
		return ui.Result{}, err
	}
	a, err := readForm(r, name)
	if err != nil {
		return ui.Result{}, err
	}
	id := ""
	err = r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		if _, have := agents.Find(r.Context(), q, r.Org(), name); !errors.Is(have, agents.ErrUnknown) {
			if have == nil {
				have = ui.Invalid("name", "An agent with this name already exists.")
			}
			return operator.Entry{}, have
		}
		e, fault := save(r, q, nil, a)
		id = e.Object
		return e, fault
	})
	return ui.Result{To: "agents/" + id, Notice: "Draft created. Publish it when it is ready."}, err
}

func (a Agents) ask(r *ui.Request) (ui.Page, error) {
	agent, err := find(r, r.DB())
	if err != nil {
		return ui.Page{}, err
	}
	p, err := a.editor(r, agent.ID, agent.Draft, ui.Form{
		Submit: "Save draft", Cancel: r.URL("agents/" + agent.ID), Of: withSecrets(agent),
	})
	p.Title, p.Crumbs = "Edit "+agent.Name, crumbs(agentLink(agent))
	p.Lead = "You are editing the draft. Publish it to use it in calls. Tools and analysis fields have their own forms on the agent’s page."
	return p, err
}

func (Agents) change(r *ui.Request) (ui.Result, error) {
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		have, err := find(r, q)
		if err != nil {
			return operator.Entry{}, err
		}
		a, err := readForm(r, have.Name)
		if err != nil {
			return operator.Entry{}, err
		}
		if err = r.Same(withSecrets(have)); err != nil {
			return operator.Entry{}, err
		}
		return save(r, q, &have, a)
	})
	return ui.Result{To: "agents/" + r.ID(), Notice: "Draft saved. Publish it to use it in new calls."}, err
}

func patiences(words *ui.Words) []ui.Option {
	all := ui.Options(agents.Patiences()...)
	for i := range all {
		all[i].Label = words.Label("ui.patience", all[i].Value)
	}
	return all
}

func machines(words *ui.Words) []ui.Option {
	all := ui.Options(agents.Voicemails()...)
	for i := range all {
		all[i].Label = words.Label("ui.machine", all[i].Value)
	}
	return all
}

// fields are the fields of the form. Tools and analysis fields have their own forms.
func fields(words *ui.Words, d agents.Definition, choices []agents.Choice) []ui.Field {
	recording := ui.CheckboxField("recording", "Record calls", d.Recording)
	recording.Group = "Calls"
	return slices.Concat(speechFields(words, d),
		engineFields("Speech-to-text", "asr", d.Speech.ASR.Provider, d.Speech.ASR.Model, choices),
		engineFields("Language model", "llm", d.Speech.LLM.Provider, d.Speech.LLM.Model, choices),
		engineFields("Voice", "tts", d.Speech.TTS.Provider, d.Speech.TTS.Model, choices),
		[]ui.Field{{
			Name: "speech.tts.voice", Label: "Voice", Value: d.Speech.TTS.Voice, Optional: true, List: "voices-" + d.Speech.TTS.Provider,
			Help: "Name or ID of any voice of the provider. Empty: its default.",
		}},
		[]ui.Field{
			recording,
			{
				Name: "max_duration_s", Label: "Maximum duration", Kind: ui.Number, Unit: "seconds", Value: ui.FormatInt(d.MaxDurationS),
				Optional: true, Min: "30", Max: "7200",
			},
			ui.CheckboxField("summary", "Write a summary after the call", d.Analysis.Summary),
			ui.CheckboxField("success", "Rate success after the call", d.Analysis.Success),
			ui.CheckboxField("sentiment", "Extract caller sentiment", d.Analysis.Sentiment),
		})
}

func speechFields(words *ui.Words, d agents.Definition) []ui.Field {
	return []ui.Field{
		{
			Group: "Conversation", Name: "greeting", Label: "Greeting", Kind: ui.TextArea, Rows: 2, Value: d.Greeting, Optional: true,
			Help: "Opening line. {{name}} is replaced by the call variable.",
		},
		{
			Name: "prompt", Label: "Prompt", Kind: ui.TextArea, Rows: 22, Value: d.Prompt, Optional: true,
			Help: "The agent’s role, its goal, and what it must never do. {{name}} is replaced by a variable.",
		},
		{
			Name: "patience", Label: "Patience", Kind: ui.Select, Value: cmp.Or(d.Patience, agents.DefaultPatience), Options: patiences(words),
			Help: "How long the agent waits in a caller’s pause before it answers.",
		},
		{Name: "language", Label: "Language", Value: d.Language, Optional: true, Placeholder: "en-US", Help: "BCP 47 language tag."},
		{
			Name: "variables", Label: "Variable defaults", Kind: ui.TextArea, Rows: 3, Code: true, Value: ui.FormatPairs(d.Variables),
			Optional: true, Placeholder: "first_name = there", Help: "Used when a call does not set the variable. One per line: name = value.",
		},
		{
			Name: "pronunciation", Label: "Pronunciation", Kind: ui.TextArea, Rows: 2, Code: true, Value: ui.FormatPairs(d.Pronunciation),
			Optional: true, Placeholder: "Acme = ack me", Help: "One per line: word = as spoken.",
		},
		{
			Group: "Answering machines", Name: "voicemail", Label: "When a machine answers", Kind: ui.Select, Value: d.Voicemail,
			Options: machines(words),
		},
		{
			Name: "voicemail_message", Label: "Voicemail message", Kind: ui.TextArea, Rows: 2, Value: d.VoicemailMessage, Optional: true,
			Help: "If empty, the model writes the message.",
		},
	}
}

// engineFields are the fields of one provider: a choice if providers are known, otherwise text.
func engineFields(group, key, provider, model string, choices []agents.Choice) []ui.Field {
	which := ui.Field{Group: group, Name: "speech." + key + ".provider", Label: "Provider", Value: provider}
	if len(choices) > 0 {
		which.Kind, which.Options = ui.Select, options(choices, key, provider)
	}
	return []ui.Field{
		which,
		{Name: "speech." + key + ".model", Label: "Model", Value: model, Optional: true, Help: "Empty: the provider’s default."},
	}
}

// readForm reads the form. It leaves the fallbacks and options of engines unchanged.
func readForm(r *ui.Request, name string) (apply.Agent, error) {
	text := func(field string) *string {
		v := strings.TrimRight(r.Raw(field), " \n")
		return &v
	}
	yes := func(field string) *bool {
		v := r.Ticked(field)
		return &v
	}
	a := apply.Agent{
		Name: name, Greeting: text("greeting"), Prompt: text("prompt"), Language: text("language"), Patience: text("patience"),
		Voicemail: text("voicemail"), Message: text("voicemail_message"),
		Recording: yes("recording"), Analysis: &apply.Analysis{Summary: yes("summary"), Success: yes("success"), Sentiment: yes("sentiment")},
	}
	var err error
	if a.Variables, err = ui.ReadPairs(r, "variables"); err != nil {
		return a, err
	}
	if a.Pronunciation, err = ui.ReadPairs(r, "pronunciation"); err != nil {
		return a, err
	}
	seconds := 0
	if s := r.Text("max_duration_s"); s != "" {
		if seconds, err = strconv.Atoi(s); err != nil {
			return a, ui.Invalid("max_duration_s", "Enter a whole number of seconds, or leave empty.")
		}
	}
	a.MaxDurationS = &seconds
	have, err := agents.Find(r.Context(), r.DB(), r.Org(), name)
	if err != nil && !errors.Is(err, agents.ErrUnknown) {
		return a, err
	}
	was := apply.FromAgent(have).Speech
	engine := func(key string, before *apply.Engine) *apply.Engine {
		e := *before
		e.Provider, e.Model, e.Voice = r.Text("speech."+key+".provider"), r.Text("speech."+key+".model"), r.Text("speech."+key+".voice")
		return &e
	}
	a.Speech = &apply.Speech{ASR: engine("asr", was.ASR), LLM: engine("llm", was.LLM), TTS: engine("tts", was.TTS)}
	return a, nil
}

func (Agents) askText(r *ui.Request) (ui.Page, error) {
	a, err := find(r, r.DB())
	if err != nil {
		return ui.Page{}, err
	}
	text, err := apply.FromAgent(a).YAML()
	return ui.Page{
		Template: "text.html", Title: a.Name + " as YAML", Crumbs: crumbs(agentLink(a)),
		Lead: "The whole draft in the format of parley apply. Omitted keys use defaults. " +
			"Secrets are hidden; " + apply.HiddenSecret + " keeps the stored value.",
		Data: r.Form(ui.Form{Submit: "Save draft", Cancel: r.URL("agents/" + a.ID), Of: withSecrets(a), Fields: []ui.Field{
			{Name: "text", Label: "Draft", Kind: ui.TextArea, Rows: 32, Code: true, Value: text},
		}}),
	}, err
}

func (Agents) changeText(r *ui.Request) (ui.Result, error) {
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		have, err := find(r, q)
		if err != nil {
			return operator.Entry{}, err
		}
		if err = r.Same(withSecrets(have)); err != nil {
			return operator.Entry{}, err
		}
		a, fault := apply.ParseAgent(have.Name, r.Raw("text"))
		if fault == nil {
			fault = a.RestoreSecrets(have.Draft)
		}
		if fault != nil {
			return operator.Entry{}, ui.Invalid("text", fault)
		}
		e, err := save(r, q, &have, a)
		if invalid, ok := errors.AsType[*ui.InvalidError](err); ok {
			err = ui.Invalid("text", invalid.Text())
		}
		return e, err
	})
	return ui.Result{To: "agents/" + r.ID(), Notice: "Draft saved. Publish it to use it in new calls."}, err
}
