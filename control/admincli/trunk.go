package admincli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/parley-voice/parley/control/apply"
)

// Trunk has the commands for trunks.
type Trunk struct {
	Profiles Profiles `cmd:"" help:"List the carriers that the key carrier of a trunk accepts, or show one with its sources."`
}

// Profiles lists the carrier profiles, or shows one.
type Profiles struct {
	Name string `arg:"" optional:"" help:"Profile to show."`
	JSON bool   `name:"json" help:"As JSON."`
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
	keys, err := p.Settings()
	if err != nil {
		return err
	}
	if c.JSON {
		return WriteJSON(t.Out, struct {
			apply.Carrier

			Trunk map[string]any `json:"trunk"`
		}{p, keys})
	}
	return show(t, p, keys)
}

// show prints a profile for people.
func show(t *Console, p apply.Carrier, keys map[string]any) error {
	w := tabwriter.NewWriter(t.Out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "%s, sources read on %s\n", p.Title, p.Checked)
	fmt.Fprintf(w, "\nSets:\n")
	if p.Proxy != "" {
		fmt.Fprintf(w, "  proxy\tenter %s\n", p.Proxy)
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		value, err := json.Marshal(keys[key])
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "  %s\t%s\n", key, value)
	}
	fmt.Fprintf(w, "\nAt the carrier:\n")
	for _, step := range p.Setup {
		fmt.Fprintf(w, "  - %s\n", step)
	}
	fmt.Fprintf(w, "\nSources:\n")
	for _, f := range p.Facts {
		quoted := ""
		if f.Quoted {
			quoted = ", as quoted by others"
		}
		fmt.Fprintf(w, "  %s: %s\n    %s%s\n", f.Key, f.Text, f.Source, quoted)
	}
	if len(p.Codes) > 0 {
		fmt.Fprintf(w, "\nResponses:\n")
	}
	for _, code := range p.Codes {
		fmt.Fprintf(w, "  %d %s\t%s\n", code.Status, code.Reason, code.Means)
	}
	if len(p.Ask) > 0 {
		fmt.Fprintf(w, "\nAsk the carrier:\n")
	}
	for _, subject := range p.Ask {
		fmt.Fprintf(w, "  - %s\n", subject)
	}
	return w.Flush()
}
