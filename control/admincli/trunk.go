package admincli

import (
	"fmt"
	"io"
	"strings"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apply"
)

// Trunk has the commands for trunks.
type Trunk struct {
	Profiles Profiles `cmd:"" help:"List carrier profiles, or show one."`
}

// Profiles lists the carrier profiles, or shows one.
type Profiles struct {
	Name string `arg:"" optional:"" help:"Carrier to show, such as twilio."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run needs no database.
func (c Profiles) Run(t *Console) error {
	all, err := apply.AllCarriers()
	if err != nil {
		return err
	}
	if c.Name == "" {
		table := NewTable("NAME", "TITLE", "CHECKED")
		for _, p := range all {
			table.Add(p.Name, p.Title, p.Checked)
		}
		return table.Print(t.Out, c.JSON)
	}
	p, err := all.Find(c.Name)
	if err != nil {
		return fmt.Errorf("profile %w", err)
	}
	if c.JSON {
		keys, err := p.Settings()
		if err != nil {
			return err
		}
		return WriteJSON(t.Out, struct {
			apply.Carrier

			Trunk map[string]any `json:"trunk"`
		}{p, keys})
	}
	return show(t.Out, p)
}

// show prints a profile for people. Its YAML can be pasted into the operator's file.
func show(out io.Writer, p apply.Carrier) error {
	keys, err := p.TrunkYAML()
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nSources read on %s.\n", p.Title, p.Checked)
	fmt.Fprintf(&b, "\nIn the operator's file, under trunks:\n\n  - name: %s\n    %s\n", p.Name, strings.Join(p.YAML(), "\n    "))
	fmt.Fprintf(&b, "    caller_numbers: [%s]\n", control.Placeholder)
	fmt.Fprint(&b, "    subgroups:\n    - {name: default, allowed_destinations: [US], agents: [assistant]}\n")
	fmt.Fprintf(&b, "\nThe line \"carrier: %s\" sets these keys. The same key in the file replaces it:\n\n%s", p.Name, indent(keys))
	section(&b, "At the carrier", p.Setup)
	var codes, facts []string
	for _, code := range p.Codes {
		codes = append(codes, strings.TrimSpace(fmt.Sprintf("%d %s", code.Status, strings.Join(code.Reasons, ", ")))+": "+code.Means)
	}
	section(&b, "Responses that refuse a call", codes)
	section(&b, "Ask the carrier about", p.Ask)
	for _, f := range p.Facts {
		quoted := ""
		if f.Quoted {
			quoted = ", as quoted by others"
		}
		facts = append(facts, fmt.Sprintf("%s: %s\n    %s%s", f.Key, f.Text, f.Source, quoted))
	}
	section(&b, "Sources", facts)
	_, err = io.WriteString(out, b.String())
	return err
}

// section writes a title and a list. It writes nothing for an empty list.
func section(b *strings.Builder, title string, lines []string) {
	if len(lines) > 0 {
		fmt.Fprintf(b, "\n%s:\n  - %s\n", title, strings.Join(lines, "\n  - "))
	}
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n    ") + "\n"
}
