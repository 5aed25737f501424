package campaigncli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/simulate"
	"github.com/parley-voice/parley/campaigns/simulate/oracle"
)

// Simulate runs campaigns through years of virtual time, and checks every call with the
// oracle.
type Simulate struct {
	Contacts  int       `help:"Total contacts." default:"100000"`
	Campaigns int       `help:"Campaigns, spread over the period." default:"100"`
	Years     int       `help:"Years, 1 to 4." default:"2"`
	Begin     time.Time `help:"Start of the simulation." default:"2026-11-21T00:00:00Z"`
	Seed      uint64    `help:"Random seed." default:"1"`
	HTML      string    `name:"html" help:"Write an HTML chart of calls by local hour to FILE." type:"path" placeholder:"FILE"`
	JSON      string    `name:"json" help:"Write the results to FILE as JSON." type:"path" placeholder:"FILE"`
	Keep      string    `help:"Keep the rows, campaigns and event log in DIR." type:"path" placeholder:"DIR"`
}

// gcPercent suits a heap that lives until the simulation ends.
const gcPercent = 400

// Run simulates, and fails if the oracle finds a fault.
func (c Simulate) Run(ctx context.Context, t *Terminal) error {
	last := c.Begin.AddDate(c.Years, 0, 0)
	if c.Contacts < 1 || c.Campaigns < 1 || c.Campaigns > 999 || c.Years < 1 || c.Years > 4 || c.Begin.Year() < 2026 || last.Year() > 2030 {
		return fmt.Errorf("use at least 1 contact, 1 to 999 campaigns, and 1 to 4 years from 2026 to 2030")
	}
	dir := c.Keep
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "parley-simulate-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir) //nolint:errcheck // temporary folder
	} else if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	w := simulate.Config{Seed: c.Seed, Contacts: c.Contacts, Campaigns: c.Campaigns, Begin: c.Begin, Years: c.Years}
	days := int(last.Sub(c.Begin).Hours() / 24)
	bar := t.Bar("days")
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	f, err := w.Run(ctx, dir, func(done float64) { bar(int(done*float64(days)), days) })
	if err != nil {
		return err
	}
	laws := map[string]map[string]string{}
	for _, code := range market.Codes() {
		laws[code] = market.Files(code)
	}
	r, err := oracle.Judge(dir, laws)
	if err != nil {
		return err
	}
	if err = c.write(f, r); err != nil {
		return err
	}
	return t.printReport(f, r)
}

func (t *Terminal) printReport(f simulate.Figures, r oracle.Report) error {
	w := t.table()
	for _, line := range []struct {
		name string
		n    int
	}{
		{"contacts", f.Contacts},
		{"calls", r.Dials},
		{"decisions", f.Decisions},
		{"decisions per second", int(float64(f.Decisions) / f.Took.Seconds())},
		{"contacts done, exhausted or suppressed", r.Terminal},
		{"contacts left when their campaign closed", r.Closed},
		{"contacts waiting at the end", r.Waiting},
		{"calls outside a legal window", r.Unlawful},
		{"calls outside working hours", r.Hours},
		{"calls over a cap", r.OverCap},
		{"calls to a suppressed number or contact", r.Forbidden},
		{"calls of a campaign that is not running", r.NotRunning},
		{"calls to a number that was already in a call", r.Doubled},
		{"calls beyond the maximum attempts", r.TooMany},
		{"calls faster than the pace", r.TooFast},
		{"contacts lost", r.Lost},
	} {
		_, _ = fmt.Fprintf(w, "%s\t%d\n", line.name, line.n)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, finding := range r.Findings {
		_, _ = fmt.Fprintln(t.Out, " ", finding)
	}
	if n := r.Wrong(); n > 0 {
		return fmt.Errorf("the oracle found %d faults", n)
	}
	return nil
}

func (c Simulate) write(f simulate.Figures, r oracle.Report) error {
	if c.JSON != "" {
		text, err := json.MarshalIndent(struct {
			simulate.Figures
			Report oracle.Report `json:"report"`
		}{f, r}, "", "  ")
		if err != nil {
			return err
		}
		if err = os.WriteFile(c.JSON, append(text, '\n'), 0o644); err != nil { //nolint:gosec // readable by all
			return err
		}
	}
	if c.HTML == "" {
		return nil
	}
	file, err := os.Create(c.HTML)
	if err != nil {
		return err
	}
	err = simulate.Plot(file, r)
	if fault := file.Close(); err == nil {
		err = fault
	}
	return err
}
