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
	f.Fields = append(f.Fields, fields(r.Texts, d, choices)...)
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
		"Form": f, "Agent": id, "Choices": choices, "Variables": variablesOf(r.Texts, d), "Size": sizeOf(d.Prompt), "Sample": a.Tester != nil,
	}}, nil
}

// A variable is a placeholder of an agent's texts, or a default that no text uses.
type variable struct {
	Name, Source string
	Open         bool // each call must set it
	Unused       bool
}

// variablesOf returns the variables in the order of the texts, then unused defaults.
func variablesOf(texts *ui.Texts, d agents.Definition) (all []variable) {
	used := d.VariableNames()
	for _, name := range used {
		v, has := d.Variables[name]
		switch {
		case name == "name" && has:
			all = append(all, variable{Name: name, Source: texts.T("agents.variable.name.default", "default", v)})
		case name == "name":
			all = append(all, variable{Name: name, Source: texts.T("agents.variable.name.open"), Open: true})
		case has:
			all = append(all, variable{Name: name, Source: texts.T("agents.variable.call.default", "default", v)})
		default:
			all = append(all, variable{Name: name, Source: texts.T("agents.variable.call.open"), Open: true})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Variables)) {
		if !slices.Contains(used, name) {
			all = append(all, variable{Name: name, Source: texts.T("agents.variable.unused", "default", d.Variables[name]), Unused: true})
		}
	}
	return all
}

// A size is the length of a prompt. Four bytes count as one token, as for the limits of calls.
type size struct{ Characters, Tokens int }

func sizeOf(text string) size { return size{utf8.RuneCountInString(text), (len(text) + 3) / 4} }

func (a Agents) askNew(r *ui.Request) (ui.Page, error) {
	name := ui.Field{
		Group: r.Texts.T("agents.new.group.conversation"), Name: "name", Label: r.Texts.T("agents.new.name.label"),
		Help:        r.Texts.T("agents.new.name.help"),
		Placeholder: "sales",
	}
	p, err := a.editor(r, "", agents.Default(),
		ui.Form{Submit: r.Texts.T("agents.new.submit"), Cancel: r.URL("agents"), Fields: []ui.Field{name}})
	p.Title, p.Crumbs = r.Texts.T("agents.new.title"), crumbs(r.Texts)
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
				have = ui.Invalid("name", r.Texts.T("agents.new.invalid.name"))
			}
			return operator.Entry{}, have
		}
		e, fault := save(r, q, nil, a)
		id = e.Object
		return e, fault
	})
	return ui.Result{To: "agents/" + id, Notice: r.Texts.T("agents.new.notice")}, err
}

func (a Agents) ask(r *ui.Request) (ui.Page, error) {
	agent, err := find(r, r.DB())
	if err != nil {
		return ui.Page{}, err
	}
	p, err := a.editor(r, agent.ID, agent.Draft, ui.Form{
		Submit: r.Texts.T("agents.draft.submit"), Cancel: r.URL("agents/" + agent.ID), Of: withSecrets(agent),
	})
	p.Title, p.Crumbs = r.Texts.T("agents.edit.title", "name", agent.Name), crumbs(r.Texts, agentLink(agent))
	p.Lead = r.Texts.T("agents.edit.lead")
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
	return ui.Result{To: "agents/" + r.ID(), Notice: r.Texts.T("agents.draft.notice")}, err
}

func patiences(texts *ui.Texts) []ui.Option {
	all := ui.Options(agents.Patiences()...)
	for i := range all {
		all[i].Label = texts.Label("ui.patience", all[i].Value)
	}
	return all
}

func machines(texts *ui.Texts) []ui.Option {
	all := ui.Options(agents.Voicemails()...)
	for i := range all {
		all[i].Label = texts.Label("ui.machine", all[i].Value)
	}
	return all
}

// fields are the fields of the form. Tools and analysis fields have their own forms.
func fields(texts *ui.Texts, d agents.Definition, choices []agents.Choice) []ui.Field {
	recording := ui.CheckboxField("recording", texts.T("agents.form.recording.label"), d.Recording)
	recording.Group = texts.T("agents.form.group.calls")
	return slices.Concat(speechFields(texts, d),
		engineFields(texts, texts.T("ui.provider.asr"), "asr", d.Speech.ASR.Provider, d.Speech.ASR.Model, choices),
		engineFields(texts, texts.T("ui.provider.llm"), "llm", d.Speech.LLM.Provider, d.Speech.LLM.Model, choices),
		engineFields(texts, texts.T("agents.form.speech_tts_voice.label"), "tts", d.Speech.TTS.Provider, d.Speech.TTS.Model, choices),
		[]ui.Field{{
			Name: "speech.tts.voice", Label: texts.T("agents.form.speech_tts_voice.label"), Value: d.Speech.TTS.Voice, Optional: true,
			List: "voices-" + d.Speech.TTS.Provider,
			Help: texts.T("agents.form.speech_tts_voice.help"),
		}},
		[]ui.Field{
			recording,
			{
				Name: "max_duration_s", Label: texts.T("agents.form.max_duration_s.label"), Kind: ui.Number,
				Unit: texts.T("agents.form.unit.seconds"), Value: ui.FormatInt(d.MaxDurationS),
				Optional: true, Min: "30", Max: "7200",
			},
			ui.CheckboxField("summary", texts.T("agents.form.summary.label"), d.Analysis.Summary),
			ui.CheckboxField("success", texts.T("agents.form.success.label"), d.Analysis.Success),
			ui.CheckboxField("sentiment", texts.T("agents.form.sentiment.label"), d.Analysis.Sentiment),
		})
}

func speechFields(texts *ui.Texts, d agents.Definition) []ui.Field {
	return []ui.Field{
		{
			Group: texts.T("agents.form.group.conversation"), Name: "greeting", Label: texts.T("agents.form.greeting.label"), Kind: ui.TextArea,
			Rows: 2, Value: d.Greeting, Optional: true,
			Help: texts.T("agents.form.greeting.help"),
		},
		{
			Name: "prompt", Label: texts.T("agents.form.prompt.label"), Kind: ui.TextArea, Rows: 22, Value: d.Prompt, Optional: true,
			Help: texts.T("agents.form.prompt.help"),
		},
		{
			Name: "patience", Label: texts.T("agents.form.patience.label"), Kind: ui.Select, Value: cmp.Or(d.Patience, agents.DefaultPatience),
			Options: patiences(texts),
			Help:    texts.T("agents.form.patience.help"),
		},
		{
			Name: "language", Label: texts.T("agents.form.language.label"), Value: d.Language, Optional: true, Placeholder: "en-US",
			Help: texts.T("agents.form.language.help"),
		},
		{
			Name: "variables", Label: texts.T("agents.form.variables.label"), Kind: ui.TextArea, Rows: 3, Code: true,
			Value:    ui.FormatPairs(d.Variables),
			Optional: true, Placeholder: texts.T("agents.form.variables.placeholder"), Help: texts.T("agents.form.variables.help"),
		},
		{
			Name: "pronunciation", Label: texts.T("agents.form.pronunciation.label"), Kind: ui.TextArea, Rows: 2, Code: true,
			Value:    ui.FormatPairs(d.Pronunciation),
			Optional: true, Placeholder: texts.T("agents.form.pronunciation.placeholder"), Help: texts.T("agents.form.pronunciation.help"),
		},
		{
			Group: texts.T("agents.form.group.answering_machines"), Name: "voicemail", Label: texts.T("agents.form.voicemail.label"),
			Kind: ui.Select, Value: d.Voicemail,
			Options: machines(texts),
		},
		{
			Name: "voicemail_message", Label: texts.T("agents.form.voicemail_message.label"), Kind: ui.TextArea, Rows: 2,
			Value: d.VoicemailMessage, Optional: true,
			Help: texts.T("agents.form.voicemail_message.help"),
		},
	}
}

// engineFields are the fields of one provider: a choice if providers are known, otherwise text.
func engineFields(texts *ui.Texts, group, key, provider, model string, choices []agents.Choice) []ui.Field {
	which := ui.Field{Group: group, Name: "speech." + key + ".provider", Label: texts.T("agents.form.provider.label"), Value: provider}
	if len(choices) > 0 {
		which.Kind, which.Options = ui.Select, options(texts, choices, key, provider)
	}
	return []ui.Field{
		which,
		{
			Name: "speech." + key + ".model", Label: texts.T("agents.form.model.label"), Value: model, Optional: true,
			Help: texts.T("agents.form.model.help"),
		},
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
			return a, ui.Invalid("max_duration_s", r.Texts.T("agents.form.invalid.max_duration_s"))
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
		Template: "text.html", Title: r.Texts.T("agents.text.title", "name", a.Name), Crumbs: crumbs(r.Texts, agentLink(a)),
		Lead: r.Texts.T("agents.text.lead", "hidden_secret", apply.HiddenSecret),
		Data: r.Form(ui.Form{Submit: r.Texts.T("agents.draft.submit"), Cancel: r.URL("agents/" + a.ID), Of: withSecrets(a), Fields: []ui.Field{
			{Name: "text", Label: r.Texts.T("agents.text.text.label"), Kind: ui.TextArea, Rows: 32, Code: true, Value: text},
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
	return ui.Result{To: "agents/" + r.ID(), Notice: r.Texts.T("agents.draft.notice")}, err
}
