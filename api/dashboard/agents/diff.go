package agents

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apply"
)

// draftVersion is the value of the draft in the query of a comparison.
const draftVersion = "draft"

// A fieldChange is a field that differs between two versions.
type fieldChange struct {
	Label  string
	Secret bool // only that it differs is shown
	Lines  []apply.DiffLine
}

// diff compares two versions of an agent: the published one, or the newest, with the draft unless the query says otherwise.
func (Agents) diff(r *ui.Request) (ui.Page, error) {
	a, err := find(r, r.DB())
	if err != nil {
		return ui.Page{}, err
	}
	versions, err := agents.Versions(r.Context(), r.DB(), a.ID, mostVersions)
	if err != nil {
		return ui.Page{}, err
	}
	usual := a.Published
	if usual == 0 && len(versions) > 0 {
		usual = versions[0].Number
	}
	options := []ui.Option{{Value: draftVersion, Label: r.Texts.T("agents.diff.option.draft")}}
	for _, v := range versions {
		label := r.Texts.T("agents.version.title", "number", strconv.Itoa(v.Number))
		if v.Number == a.Published {
			label = r.Texts.T("agents.diff.option.in_use", "version", label)
		}
		options = append(options, ui.Option{Value: strconv.Itoa(v.Number), Label: label})
	}
	from, err := versionIn(r, "from", usual)
	if err != nil {
		return ui.Page{}, err
	}
	to, err := versionIn(r, "to", 0)
	if err != nil {
		return ui.Page{}, err
	}
	data := map[string]any{"A": a, "Any": len(versions) > 0, "Fields": []ui.Field{
		{Name: "from", Label: r.Texts.T("agents.diff.from.label"), Kind: ui.Select, Options: options, Value: versionValue(from)},
		{Name: "to", Label: r.Texts.T("agents.diff.to.label"), Kind: ui.Select, Options: options, Value: versionValue(to)},
	}}
	if len(versions) > 0 {
		changes, err := apply.DiffAgent(r.Context(), r.DB(), a, from, to)
		if err != nil {
			return ui.Page{}, err
		}
		data["Changes"] = shownChanges(r.Texts, changes)
	}
	return ui.Page{
		Template: "diff.html", Title: r.Texts.T("agents.diff.title"), Crumbs: crumbs(r.Texts, agentLink(a)), Data: data,
		Lead: r.Texts.T("agents.diff.lead"),
	}, nil
}

// versionIn reads a version from the query; 0 is the draft.
func versionIn(r *ui.Request, name string, usual int) (int, error) {
	switch v := r.Query(name); v {
	case "":
		return usual, nil
	case draftVersion:
		return 0, nil
	default:
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > 1<<30 {
			return 0, ui.ErrNotFound
		}
		return n, nil
	}
}

func versionValue(n int) string {
	if n == 0 {
		return draftVersion
	}
	return strconv.Itoa(n)
}

func shownChanges(texts *ui.Texts, all []apply.Change) (shown []fieldChange) {
	for _, c := range all {
		f := fieldChange{Label: fieldLabel(texts, c.Path)}
		if f.Secret = c.Before == apply.HiddenSecret || c.After == apply.HiddenSecret; !f.Secret {
			f.Lines = apply.DiffLines(valueText(texts, c.Before), valueText(texts, c.After))
		}
		shown = append(shown, f)
	}
	return shown
}

// valueText returns a value as lines of text.
func valueText(texts *ui.Texts, v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		if v {
			return texts.T("agents.diff.on")
		}
		return texts.T("agents.diff.off")
	case map[string]any, []any:
		text, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return fmt.Sprint(v)
		}
		return string(text)
	default:
		return fmt.Sprint(v)
	}
}

// labeledPaths are the paths with a label, longer paths first.
func labeledPaths() []string {
	return []string{
		"speech.asr", "speech.llm", "speech.tts", "analysis.fields", "analysis", "tools", "variables", "pronunciation", "limits",
		"max_duration_s",
	}
}

// fieldLabel names the field of a path such as speech.tts.voice or tools[look_up].url.
func fieldLabel(texts *ui.Texts, path string) string {
	for _, prefix := range labeledPaths() {
		rest, ok := strings.CutPrefix(path, prefix)
		switch {
		case !ok:
		case rest == "":
			return texts.Label("agents.diff.field", prefix)
		case rest[0] == '.' || rest[0] == '[':
			return texts.Label("agents.diff.field", prefix) + " " +
				strings.NewReplacer("].", ": ", "[", "", "]", "").Replace(strings.TrimPrefix(rest, "."))
		}
	}
	return strings.ToUpper(path[:1]) + strings.ReplaceAll(path[1:], "_", " ")
}
