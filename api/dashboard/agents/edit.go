package agents

import (
	"errors"
	"strconv"
	"strings"

	"github.com/parley-voice/parley/api/dashboard/field"
	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/api/dashboard/words"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
)

func (Agents) askNew(r *frame.Request) (frame.Page, error) {
	name := frame.Field{Name: "name", Label: "Name", Help: "Programs name the agent by it: it cannot be changed later.", Placeholder: "sales"}
	return frame.Page{Template: "form.html", Title: "New agent", Crumbs: above(), Data: r.Form(frame.Form{
		Submit: "Create the draft", Cancel: r.URL("agents"), Fields: append([]frame.Field{name}, fields(agents.Default())...),
	})}, nil
}

func (Agents) create(r *frame.Request) (frame.Done, error) {
	name, err := field.Name(r)
	if err != nil {
		return frame.Done{}, err
	}
	a, err := given(r, name)
	if err != nil {
		return frame.Done{}, err
	}
	id := ""
	err = r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		if _, have := agents.Find(r.Context(), q, r.Org(), name); !errors.Is(have, agents.ErrUnknown) {
			if have == nil {
				have = frame.Invalid("name", "There is an agent of this name already.")
			}
			return operator.Entry{}, have
		}
		e, fault := save(r, q, nil, a)
		id = e.Object
		return e, fault
	})
	return frame.Done{To: "agents/" + id, Say: "The draft is there. Publish it once it says what it should."}, err
}

func (Agents) ask(r *frame.Request) (frame.Page, error) {
	a, err := find(r, r.DB())
	return frame.Page{
		Template: "form.html", Title: "Edit " + a.Name, Crumbs: above(of(a)), Lead: "This is the draft: calls use it once it is published. Tools and fields of the analysis are edited as YAML.",
		Data: r.Form(frame.Form{Submit: "Save the draft", Cancel: r.URL("agents/" + a.ID), Fields: fields(a.Draft), Of: sealed(a)}),
	}, err
}

func (Agents) change(r *frame.Request) (frame.Done, error) {
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		have, err := find(r, q)
		if err != nil {
			return operator.Entry{}, err
		}
		a, err := given(r, have.Name)
		if err != nil {
			return operator.Entry{}, err
		}
		if err = r.Same(sealed(have)); err != nil {
			return operator.Entry{}, err
		}
		return save(r, q, &have, a)
	})
	return frame.Done{To: "agents/" + r.ID(), Say: "The draft is saved. Calls use it once it is published."}, err
}

// machines are what an agent may do when a machine answers.
func machines() []frame.Option {
	all := frame.Options(agents.Voicemails()...)
	for i := range all {
		all[i].Label = words.Machine(all[i].Value)
	}
	return all
}

// fields ask for what most agents need.
func fields(d agents.Definition) []frame.Field {
	var all []frame.Field
	usual := map[string]string{"asr": "deepgram", "llm": "openai", "tts": "cartesia"}
	engine := func(group, key, provider, model, voice, help string) {
		all = append(all,
			frame.Field{Group: group, Name: "speech." + key + ".provider", Label: "Provider", Value: provider, Help: help, Placeholder: usual[key]},
			frame.Field{Name: "speech." + key + ".model", Label: "Model", Value: model, Optional: true})
		if key == "tts" {
			all = append(all, frame.Field{Name: "speech.tts.voice", Label: "Voice", Value: voice, Optional: true})
		}
	}
	all = append(all,
		frame.Field{Group: "What it says", Name: "greeting", Label: "Greeting", Kind: frame.Area, Rows: 2, Value: d.Greeting, Optional: true, Help: "Its first words. {{name}} is a place that a call’s variable fills."},
		frame.Field{Name: "prompt", Label: "Prompt", Kind: frame.Area, Rows: 14, Value: d.Prompt, Optional: true, Help: "Who it is, what it is to reach, and what it must not do."},
		frame.Field{Name: "language", Label: "Language", Value: d.Language, Optional: true, Placeholder: "en-US", Help: "BCP 47."},
		frame.Field{Name: "variables", Label: "Variables", Kind: frame.Area, Rows: 3, Code: true, Value: field.Lines(d.Variables), Optional: true, Placeholder: "first_name = there", Help: "What fills a place that a call gives nothing for, one a line: name = value."},
		frame.Field{Name: "pronunciation", Label: "Pronunciation", Kind: frame.Area, Rows: 2, Code: true, Value: field.Lines(d.Pronunciation), Optional: true, Placeholder: "Acme = ack me", Help: "How words are spoken, one a line: word = as it sounds."},
		frame.Field{Group: "Answering machines", Name: "voicemail", Label: "When a machine answers", Kind: frame.Select, Value: d.Voicemail, Options: machines()},
		frame.Field{Name: "voicemail_message", Label: "Message to leave", Kind: frame.Area, Rows: 2, Value: d.VoicemailMessage, Optional: true, Help: "Left empty the model says what to leave."},
	)
	engine("It hears by", "asr", d.Speech.ASR.Provider, d.Speech.ASR.Model, "", "")
	engine("It thinks by", "llm", d.Speech.LLM.Provider, d.Speech.LLM.Model, "", "")
	engine("It speaks by", "tts", d.Speech.TTS.Provider, d.Speech.TTS.Model, d.Speech.TTS.Voice, "")
	recording := field.Box("recording", "Calls are recorded", d.Recording)
	recording.Group = "Calls"
	return append(all, recording,
		frame.Field{Name: "max_duration_s", Label: "Longest conversation", Kind: frame.Number, Unit: "seconds", Value: field.Whole(d.MaxDurationS), Optional: true, Min: "30", Max: "7200"},
		field.Box("summary", "Told after a call: a summary", d.Analysis.Summary), field.Box("success", "Told after a call: whether it succeeded", d.Analysis.Success), field.Box("sentiment", "Told after a call: the mood", d.Analysis.Sentiment))
}

// given reads the form. A fallback of an engine stays.
func given(r *frame.Request, name string) (apply.Agent, error) {
	text := func(field string) *string {
		v := strings.TrimRight(r.Raw(field), " \n")
		return &v
	}
	yes := func(field string) *bool {
		v := r.Ticked(field)
		return &v
	}
	a := apply.Agent{
		Name: name, Greeting: text("greeting"), Prompt: text("prompt"), Language: text("language"), Voicemail: text("voicemail"), Message: text("voicemail_message"),
		Recording: yes("recording"), Analysis: &apply.Analysis{Summary: yes("summary"), Success: yes("success"), Sentiment: yes("sentiment")},
	}
	var err error
	if a.Variables, err = field.Pairs(r, "variables"); err != nil {
		return a, err
	}
	if a.Pronunciation, err = field.Pairs(r, "pronunciation"); err != nil {
		return a, err
	}
	seconds := 0
	if s := r.Text("max_duration_s"); s != "" {
		if seconds, err = strconv.Atoi(s); err != nil {
			return a, frame.Invalid("max_duration_s", "Use a whole number of seconds, or leave it empty.")
		}
	}
	a.MaxDurationS = &seconds
	have, err := agents.Find(r.Context(), r.DB(), r.Org(), name)
	if err != nil && !errors.Is(err, agents.ErrUnknown) {
		return a, err
	}
	was := apply.Written(have).Speech
	engine := func(key string, before *apply.Engine) *apply.Engine {
		return &apply.Engine{
			Provider: r.Text("speech." + key + ".provider"), Model: r.Text("speech." + key + ".model"), Voice: r.Text("speech." + key + ".voice"), Fallback: before.Fallback,
		}
	}
	a.Speech = &apply.Speech{ASR: engine("asr", was.ASR), LLM: engine("llm", was.LLM), TTS: engine("tts", was.TTS)}
	return a, nil
}

func (Agents) askText(r *frame.Request) (frame.Page, error) {
	a, err := find(r, r.DB())
	if err != nil {
		return frame.Page{}, err
	}
	text, err := apply.Written(a).Text()
	return frame.Page{
		Template: "text.html", Title: a.Name + " as YAML", Crumbs: above(of(a)),
		Lead: "The whole draft, in the words of parley apply: what is left out is as it is by default. Secrets are not shown; " + apply.Hidden + " keeps what is there.",
		Data: r.Form(frame.Form{Submit: "Save the draft", Cancel: r.URL("agents/" + a.ID), Of: sealed(a), Fields: []frame.Field{
			{Name: "text", Label: "Draft", Kind: frame.Area, Rows: 32, Code: true, Value: text},
		}}),
	}, err
}

func (Agents) changeText(r *frame.Request) (frame.Done, error) {
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		have, err := find(r, q)
		if err != nil {
			return operator.Entry{}, err
		}
		if err = r.Same(sealed(have)); err != nil {
			return operator.Entry{}, err
		}
		a, fault := apply.ParseAgent(have.Name, r.Raw("text"))
		if fault == nil {
			fault = a.Unhide(have.Draft)
		}
		if fault != nil {
			return operator.Entry{}, frame.Invalid("text", fault)
		}
		e, err := save(r, q, &have, a)
		if invalid, ok := errors.AsType[*frame.InvalidError](err); ok {
			err = frame.Invalid("text", invalid.Told())
		}
		return e, err
	})
	return frame.Done{To: "agents/" + r.ID(), Say: "The draft is saved. Calls use it once it is published."}, err
}
