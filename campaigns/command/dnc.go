package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/parley-voice/parley/campaigns/lists"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/access"
)

// DNC holds the commands of do-not-call lists.
type DNC struct {
	Load       LoadDNC    `cmd:"" help:"Load a registry, or an organization's own list."`
	List       ListDNC    `cmd:"" help:"List what was loaded, the newest first."`
	Status     StatusDNC  `cmd:"" help:"Show the registries in use, or what they say of a number."`
	Reassigned Reassigned `cmd:"" help:"Numbers that were reassigned since somebody consented."`
}

// LoadDNC loads a list.
type LoadDNC struct {
	Org        string    `xor:"list" required:"" help:"Name of the organization whose own list it is."`
	Registry   string    `xor:"list" required:"" help:"us_national, or us_state_ and the two letters of a state."`
	AreaCodes  []string  `help:"Area codes that the files are about; all is every one." placeholder:"CODE"`
	Replace    bool      `help:"What was listed before is not any more; else numbers are added, and those of changes taken off."`
	Downloaded time.Time `help:"Day on which the files were downloaded; else the one on which the oldest was written." format:"2006-01-02" placeholder:"YYYY-MM-DD"`
	Files      []string  `arg:"" help:"Text, CSV, XML, or zips of such." type:"path"`
}

// Run loads the list.
func (c LoadDNC) Run(ctx context.Context, d *Desk) error {
	l := lists.Load{
		Name: c.Registry, Files: c.Files, Areas: c.AreaCodes, Replace: c.Replace, Downloaded: c.Downloaded,
		By: d.By, Now: time.Now().UTC(), Progress: d.bytes(),
	}
	if c.Org != "" {
		return c.own(ctx, d, l)
	}
	code, _, _ := strings.Cut(c.Registry, "_")
	if err := lists.CheckName(c.Registry); err != nil {
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
	_, err = fmt.Fprintf(d.Out, "%s version %s: %s in %s, %d added, %d taken off, data of %s\n", done.Name, done.Version,
		many(done.Numbers, "number", "numbers"), many(int64(done.Areas), "area code", "area codes"), done.Added, done.Deleted, day(done.Downloaded))
	return err
}

func (c LoadDNC) own(ctx context.Context, d *Desk, l lists.Load) (err error) {
	if len(c.AreaCodes) > 0 {
		return errors.New("--area-codes goes with --registry")
	}
	if l.OrgID, err = access.FindOrganization(ctx, d.Pool, c.Org); err != nil {
		return err
	}
	done, err := d.Lists.LoadOwn(ctx, l)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.Out, "%s's own list: %s, %d added, %d taken off\n", c.Org, many(done.Numbers, "number", "numbers"), done.Added, done.Deleted)
	return err
}

// bytes draws how much of files is read.
func (t *Terminal) bytes() func(done, all int) {
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
	Limit int `help:"How many." default:"50"`
}

// Run lists what was loaded.
func (c ListDNC) Run(ctx context.Context, d *Desk) error {
	past, err := d.Lists.History(ctx, c.Limit)
	if err != nil {
		return err
	}
	t := d.table()
	fmt.Fprintln(t, "loaded\tlist\torganization\tfiles\tadded\ttaken off\tnumbers\tdata of\tby")
	for _, p := range past {
		files := strings.Join(p.Files, " ")
		if p.Replaced {
			files += " (replaced)"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", p.At.UTC().Format("2006-01-02 15:04"), p.Name, p.Org, files,
			p.Added, p.Deleted, p.Numbers, day(p.Downloaded), p.By)
	}
	return t.Flush()
}

// StatusDNC shows what is in use.
type StatusDNC struct {
	Org    string `help:"Name of an organization whose own list and market count too."`
	Number string `arg:"" optional:"" help:"A number to look for."`
}

// Run shows the registries in use, or what is known of a number.
func (c StatusDNC) Run(ctx context.Context, d *Desk) error {
	if c.Number != "" {
		return c.look(ctx, d)
	}
	copies, err := d.Lists.Copies(ctx)
	if err != nil {
		return err
	}
	t := d.table()
	fmt.Fprintln(t, "list\tversion\tnumbers\tarea codes\tdata of\tage")
	for _, r := range copies {
		code, _, _ := strings.Cut(r.Name, "_")
		pkg, fault := market.Load(code)
		if fault != nil {
			return fault
		}
		age := time.Since(r.Downloaded)
		note := ""
		if pkg.StaleAfter > 0 && age > pkg.StaleAfter {
			note = ": too old, load a new one"
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%d days%s\n", r.Name, r.Version, r.Numbers, len(r.Areas), day(r.Downloaded), int(age.Hours()/24), note)
	}
	if c.Org != "" {
		id, fault := access.FindOrganization(ctx, d.Pool, c.Org)
		if fault != nil {
			return fault
		}
		var n int64
		if err = d.Pool.QueryRow(ctx, "SELECT count(*) FROM suppressions WHERE org_id = $1", id).Scan(&n); err != nil {
			return fmt.Errorf("suppression list: %w", err)
		}
		fmt.Fprintf(t, "%s's own\t\t%d\t\t\t\n", c.Org, n)
	}
	return t.Flush()
}

// look tells on which lists a number is.
func (c StatusDNC) look(ctx context.Context, d *Desk) error {
	code, own := "us", map[string]bool{}
	s := &store.Store{Pool: d.Pool}
	var org store.Organization
	if c.Org != "" {
		id, err := access.FindOrganization(ctx, d.Pool, c.Org)
		if err != nil {
			return err
		}
		if org, err = s.Organization(ctx, d.Pool, id); err != nil {
			return err
		}
		if code = org.Market; code == "" {
			return fmt.Errorf("organization %q has no market package", c.Org)
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
	looks, err := d.Lists.Look(ctx, code, n.E164)
	if err != nil {
		return err
	}
	if org.ID != "" {
		if own, err = s.Suppressed(ctx, d.Pool, org.ID, []string{n.E164}); err != nil {
			return err
		}
	}
	t := d.table()
	say := func(list string, listed bool, note string) {
		fmt.Fprintf(t, "%s\t%s\t%s\n", n.E164, list, map[bool]string{true: "listed", false: "not listed"}[listed]+note)
	}
	if org.ID != "" {
		say(c.Org+"'s own", own[n.E164], "")
	}
	for _, l := range looks {
		note := ""
		if !l.Loaded {
			note = ": nothing of its area code was loaded"
		}
		say(l.Registry+" "+l.Version, l.Listed, note)
	}
	if len(looks) == 0 {
		fmt.Fprintf(t, "%s\tno registry is loaded\t\n", n.E164)
	}
	return t.Flush()
}

// Reassigned holds the commands of the FCC's Reassigned Numbers Database.
type Reassigned struct {
	Export ExportReassigned `cmd:"" help:"Write the query: number and day of consent of the contacts that wait."`
	Import ImportReassigned `cmd:"" help:"Take the answer: who has another's number by now is not called."`
}

// ExportReassigned writes a query.
type ExportReassigned struct {
	Org  string `required:"" help:"Name of the organization."`
	File string `short:"o"   help:"File to write; else standard output." type:"path"`
}

// Run writes the query.
func (c ExportReassigned) Run(ctx context.Context, d *Desk) (err error) {
	org, err := access.FindOrganization(ctx, d.Pool, c.Org)
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
		_, err = fmt.Fprintln(d.Errs, many(int64(n), "number to ask about", "numbers to ask about"))
	}
	return err
}

// ImportReassigned takes an answer.
type ImportReassigned struct {
	Org   string   `required:"" help:"Name of the organization."`
	Files []string `arg:""      help:"CSV: number, day of consent, and yes, no or no data." type:"path"`
}

// Run takes the answer.
func (c ImportReassigned) Run(ctx context.Context, d *Desk) error {
	org, err := access.FindOrganization(ctx, d.Pool, c.Org)
	if err != nil {
		return err
	}
	done, err := d.Lists.LoadResults(ctx, lists.Load{OrgID: org, Files: c.Files, By: d.By, Now: time.Now().UTC()})
	if err == nil {
		_, err = fmt.Fprintf(d.Out, "%s, %d reassigned since: %s kept from being called\n",
			many(int64(done.Results), "result", "results"), done.Yes, many(int64(done.Suppressed), "contact is", "contacts are"))
	}
	return err
}
