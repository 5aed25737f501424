package campaigncli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/parley-voice/parley/campaigns/dnc"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/admincli"
	"github.com/parley-voice/parley/control/apikeys"
)

// DNC has the commands of do-not-call lists.
type DNC struct {
	Load       LoadDNC    `cmd:"" help:"Load a registry or an organization's suppression list."`
	List       ListDNC    `cmd:"" help:"List past loads, newest first."`
	Status     StatusDNC  `cmd:"" help:"Show the registries in use, or look up a number."`
	Reassigned Reassigned `cmd:"" help:"Query and import reassigned numbers."`
}

// LoadDNC loads a list.
type LoadDNC struct {
	Org        string    `xor:"list" required:"" help:"Organization whose suppression list to load."`
	Registry   string    `xor:"list" required:"" help:"us_national, or us_state_ with the two letters of a state."`
	AreaCodes  []string  `help:"Area codes that the files cover, or all." placeholder:"CODE"`
	Replace    bool      `help:"Replace the previous list. Without it, numbers are added; a list of changes also removes some."`
	Downloaded time.Time `help:"Download date; default: modification date of the oldest file." format:"2006-01-02" placeholder:"YYYY-MM-DD"`
	Files      []string  `arg:"" help:"Text, CSV, XML, or zip files of these." type:"path"`
}

// Run loads the list.
func (c LoadDNC) Run(ctx context.Context, d *Env) error {
	l := dnc.Load{
		Name: c.Registry, Files: c.Files, Areas: c.AreaCodes, Replace: c.Replace, Downloaded: c.Downloaded,
		By: d.By, Now: time.Now().UTC(), Progress: d.byteBar(),
	}
	if c.Org != "" {
		return c.loadOwn(ctx, d, l)
	}
	code, _, _ := strings.Cut(c.Registry, "_")
	if err := dnc.CheckName(c.Registry); err != nil {
		return err
	}
	pkg, err := market.Load(code)
	if err != nil {
		return err
	}
	if l.Country = pkg.Areas(); len(l.Areas) == 1 && l.Areas[0] == "all" {
		l.Areas = l.Country
	}
	done, err := d.Lists.Load(ctx, l)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.Out, "%s version %s: %s in %s, %d added, %d removed, data of %s\n", done.Name, done.Version,
		countNoun(done.Numbers, "number", "numbers"), countNoun(int64(done.Areas), "area code", "area codes"),
		done.Added, done.Deleted, day(done.Downloaded))
	return err
}

func (c LoadDNC) loadOwn(ctx context.Context, d *Env, l dnc.Load) (err error) {
	if len(c.AreaCodes) > 0 {
		return errors.New("--area-codes requires --registry")
	}
	if l.OrgID, err = apikeys.FindOrganization(ctx, d.Pool, c.Org); err != nil {
		return err
	}
	done, err := d.Lists.LoadOwn(ctx, l)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.Out, "suppression list of %s: %s, %d added, %d removed\n",
		c.Org, countNoun(done.Numbers, "number", "numbers"), done.Added, done.Deleted)
	return err
}

// byteBar returns a progress bar for bytes read.
func (t *Terminal) byteBar() func(done, all int) {
	draw := t.Bar("KiB")
	last := -1
	return func(done, all int) {
		if done, all = done>>10, (all+1023)>>10; done != last && (done == all || done-last >= all/200) {
			last = done
			draw(done, all)
		}
	}
}

// ListDNC lists loads.
type ListDNC struct {
	Limit int  `help:"Number of loads." default:"50"`
	JSON  bool `name:"json" help:"Print JSON."`
}

// Run lists past loads.
func (c ListDNC) Run(ctx context.Context, d *Env) error {
	past, err := d.Lists.History(ctx, c.Limit)
	if err != nil {
		return err
	}
	t := admincli.NewTable("LOADED", "LIST", "ORGANIZATION", "FILES", "ADDED", "REMOVED", "NUMBERS", "DATA OF", "BY")
	for _, p := range past {
		files := strings.Join(p.Files, " ")
		if p.Replaced {
			files += " (replaced)"
		}
		t.Add(p.At, p.Name, p.Org, files, p.Added, p.Deleted, p.Numbers, day(p.Downloaded), p.By)
	}
	return t.Print(d.Out, c.JSON)
}

// StatusDNC shows the do-not-call lists in use.
type StatusDNC struct {
	Org    string `help:"Organization whose suppression list and market to include."`
	Number string `arg:"" optional:"" help:"Number to look up."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Run shows the registries in use, or looks up a number.
func (c StatusDNC) Run(ctx context.Context, d *Env) error {
	if c.Number != "" {
		return c.lookup(ctx, d)
	}
	copies, err := d.Lists.Copies(ctx)
	if err != nil {
		return err
	}
	t := admincli.NewTable("LIST", "VERSION", "NUMBERS", "AREA CODES", "DATA OF", "DAYS OLD", "NOTE")
	for _, r := range copies {
		code, _, _ := strings.Cut(r.Name, "_")
		pkg, fault := market.Load(code)
		if fault != nil {
			return fault
		}
		age := time.Since(r.Downloaded)
		note := ""
		if pkg.StaleAfter > 0 && age > pkg.StaleAfter {
			note = "stale: load a new copy"
		}
		t.Add(r.Name, r.Version, r.Numbers, len(r.Areas), day(r.Downloaded), int(age.Hours()/24), note)
	}
	if c.Org != "" {
		id, fault := apikeys.FindOrganization(ctx, d.Pool, c.Org)
		if fault != nil {
			return fault
		}
		var n int64
		if err = d.Pool.QueryRow(ctx, "SELECT count(*) FROM suppressions WHERE org_id = $1", id).Scan(&n); err != nil {
			return fmt.Errorf("suppression list: %w", err)
		}
		t.Add(c.Org+"'s own", nil, n, nil, nil, nil, nil)
	}
	return t.Print(d.Out, c.JSON)
}

// lookup shows which lists contain a number.
func (c StatusDNC) lookup(ctx context.Context, d *Env) error {
	code, own := "us", map[string]bool{}
	s := &store.Store{Pool: d.Pool}
	var org store.Organization
	if c.Org != "" {
		id, err := apikeys.FindOrganization(ctx, d.Pool, c.Org)
		if err != nil {
			return err
		}
		if org, err = s.Organization(ctx, d.Pool, id); err != nil {
			return err
		}
		if code = org.Market; code == "" {
			return fmt.Errorf("organization %q has no market rules", c.Org)
		}
	}
	pkg, err := market.Load(code)
	if err != nil {
		return err
	}
	n, err := pkg.Read(c.Number)
	if err != nil {
		return fmt.Errorf("%q: %w", c.Number, err)
	}
	found, err := d.Lists.Lookup(ctx, code, n.E164)
	if err != nil {
		return err
	}
	if org.ID != "" {
		if own, err = s.Suppressed(ctx, d.Pool, org.ID, []string{n.E164}); err != nil {
			return err
		}
	}
	t := admincli.NewTable("NUMBER", "LIST", "RESULT", "NOTE")
	addList := func(list string, listed bool, note string) {
		t.Add(n.E164, list, map[bool]string{true: "listed", false: "not listed"}[listed], note)
	}
	if org.ID != "" {
		addList(c.Org+"'s own", own[n.E164], "")
	}
	for _, l := range found {
		note := ""
		if !l.Loaded {
			note = "its area code is not loaded"
		}
		addList(l.Registry+" "+l.Version, l.Listed, note)
	}
	if len(found) == 0 {
		t.Add(n.E164, "–", "no registry is loaded", "")
	}
	return t.Print(d.Out, c.JSON)
}

// Reassigned has the commands of the FCC's Reassigned Numbers Database.
type Reassigned struct {
	Export ExportReassigned `cmd:"" help:"Export the query: numbers and consent dates of waiting contacts."`
	Import ImportReassigned `cmd:"" help:"Import the FCC response; contacts with reassigned numbers are suppressed."`
}

// ExportReassigned writes a query.
type ExportReassigned struct {
	Org  string `required:"" help:"Name of the organization."`
	File string `short:"o"   help:"Output file; default: standard output." type:"path"`
}

// Run writes the query.
func (c ExportReassigned) Run(ctx context.Context, d *Env) (err error) {
	org, err := apikeys.FindOrganization(ctx, d.Pool, c.Org)
	if err != nil {
		return err
	}
	to := d.Out
	if c.File != "" {
		f, fault := os.OpenFile(c.File, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if fault != nil {
			return fault
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		to = f
	}
	n, err := d.Lists.Query(ctx, org, to)
	if err == nil {
		_, err = fmt.Fprintln(d.Errs, countNoun(int64(n), "number to query", "numbers to query"))
	}
	return err
}

// ImportReassigned imports a response.
type ImportReassigned struct {
	Org   string   `required:"" help:"Name of the organization."`
	Files []string `arg:""      help:"CSV: number, consent date, and yes, no or no data." type:"path"`
}

// Run imports the response.
func (c ImportReassigned) Run(ctx context.Context, d *Env) error {
	org, err := apikeys.FindOrganization(ctx, d.Pool, c.Org)
	if err != nil {
		return err
	}
	done, err := d.Lists.LoadResults(ctx, dnc.Load{OrgID: org, Files: c.Files, By: d.By, Now: time.Now().UTC()})
	if err == nil {
		_, err = fmt.Fprintf(d.Out, "%s, %d reassigned, %s suppressed\n",
			countNoun(int64(done.Results), "result", "results"), done.Yes, countNoun(int64(done.Suppressed), "contact", "contacts"))
	}
	return err
}
