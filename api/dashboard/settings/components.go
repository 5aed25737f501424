package settings

import (
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
)

// token is a color of style.css, or a phase of work.css, and what it is used for.
type token struct{ Name, Use string }

type sampleRow struct {
	Number, State string
	At            time.Time
	Milliseconds  float64
}

// components shows the tokens and components of which all pages consist. Its data is made up.
func (Settings) components(r *ui.Request) (ui.Page, error) {
	at := time.Now().Add(-time.Hour)
	form := r.Form(ui.Form{Submit: "Save", Cancel: r.URL("settings/components"), Fields: []ui.Field{
		{Group: "General", Name: "name", Label: "Name", Value: "Spring renewals"},
		{Name: "agent", Label: "Agent", Kind: ui.Select, Options: ui.Options("sales", "support"), Help: "The published version is used."},
		{Group: "Times", Name: "start", Label: "From", Kind: ui.TimeOfDay, Value: "09:00"},
		{Name: "days", Label: "Days", Kind: ui.Checkboxes, Options: ui.WeekdayOptions(r.Texts), Values: []string{"0", "1"}},
		{
			Name: "budget", Label: "Budget", Kind: ui.Number, Unit: "USD", Optional: true, Min: "0", Value: "-1",
			Error: "Enter a number of at least 0.",
		},
		{Group: "Prompt", Name: "prompt", Label: "Prompt", Kind: ui.TextArea, Value: "You call about a renewal."},
		{Name: "disclosures", Label: "Say the disclosures", Kind: ui.Checkbox, Value: ui.CheckboxValue(true)},
	}})
	return ui.Page{
		Template: "components.html", Title: "Components", Crumbs: []ui.Link{{Label: "Settings", Path: "settings"}},
		Lead: "Colors and parts of which the pages of the dashboard consist. The data is made up.",
		Data: map[string]any{
			"Form": form,
			"Colors": []token{
				{"--paper", "page"},
				{"--ground", "navigation, hovered rows"},
				{"--raised", "buttons, bars"},
				{"--line", "lines"},
				{"--line-strong", "borders of buttons"},
				{"--field", "borders of fields"},
				{"--ink", "text"},
				{"--ink-2", "secondary text"},
				{"--ink-3", "help, labels"},
				{"--accent", "links, primary button"},
				{"--accent-soft", "selected"},
				{"--ring", "focus"},
				{"--good", "success"},
				{"--good-soft", "its background"},
				{"--busy", "waiting, warnings"},
				{"--busy-soft", "its background"},
				{"--bad", "errors, danger"},
				{"--bad-soft", "its background"},
			},
			"Phases": []token{
				{"net", "network"},
				{"vad", "voice activity"},
				{"asr", "speech-to-text"},
				{"cls", "classifier"},
				{"eou", "endpointing wait"},
				{"llm", "model"},
				{"fun", "tools"},
				{"tts", "voice"},
				{"out", "playout"},
				{"dis", "disclosure"},
			},
			"Rows": []sampleRow{
				{"12025550123", "ended", at, 461}, {"12025550124", "ringing", at, 1204}, {"12025550125", "failed", at, 520},
			},
		},
	}, nil
}
