package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/packages"
	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/db"
)

// Market holds the commands of market packages.
type Market struct {
	Install InstallMarket `cmd:"" help:"Have an organization go by the rules of a market."`
	List    ListMarket    `cmd:"" help:"List the packages there are, and who goes by them."`
}

// InstallMarket installs a package.
type InstallMarket struct {
	Org     string `help:"Name of the organization; without one the package is kept for later."`
	Package string `arg:"" help:"us or kz: the rules of this program; a version that was installed; or a folder or zip of rules."`
}

// Run installs the package.
func (c InstallMarket) Run(ctx context.Context, d *Desk) error {
	return db.Tx(ctx, d.Pool, func(tx pgx.Tx) error {
		org := ""
		if c.Org != "" {
			var err error
			if org, err = access.FindOrganization(ctx, tx, c.Org); err != nil {
				return err
			}
		}
		code, version, shown, err := c.find(ctx, tx, d)
		if err != nil {
			return err
		}
		if org == "" {
			_, err = fmt.Fprintf(d.Out, "%s can be used\n", shown)
			return err
		}
		if err = packages.Use(ctx, tx, org, code, version); err != nil {
			return err
		}
		others, err := packages.Others(ctx, tx, org, code)
		if err != nil {
			return err
		}
		fmt.Fprintf(d.Out, "%s goes by %s\n", c.Org, shown)
		if others > 0 {
			fmt.Fprintf(d.Out, "It has %s of another market: they call nobody until it goes by that one again\n", many(int64(others), "campaign", "campaigns"))
		}
		return nil
	})
}

// find finds the package, or keeps it.
func (c InstallMarket) find(ctx context.Context, q db.Querier, d *Desk) (code, version, shown string, err error) {
	if slices.Contains(market.Codes(), c.Package) {
		p, fault := market.Load(c.Package)
		if fault != nil {
			return "", "", "", fault
		}
		return p.Code, "", p.Version + ", and what later versions of this program bring", nil
	}
	all, err := packages.List(ctx, q)
	if err != nil {
		return "", "", "", err
	}
	if i := slices.IndexFunc(all, func(k packages.Kept) bool { return !k.OfProgram && k.Version == c.Package }); i >= 0 {
		return all[i].Code, all[i].Version, all[i].Version, nil
	}
	files, err := packages.Open(c.Package)
	if err != nil {
		return "", "", "", fmt.Errorf("no such market package: there are %s, versions that were installed, folders and zips: %w",
			strings.Join(market.Codes(), " and "), err)
	}
	p, err := packages.Install(ctx, q, files, d.By)
	if err != nil {
		return "", "", "", fmt.Errorf("%s: %w", c.Package, err)
	}
	return p.Code, p.Version, p.Version, nil
}

// ListMarket lists packages.
type ListMarket struct{}

// Run lists the packages.
func (ListMarket) Run(ctx context.Context, d *Desk) error {
	all, err := packages.List(ctx, d.Pool)
	if err != nil {
		return err
	}
	t := d.table()
	fmt.Fprintln(t, "market\tversion\tfrom\tinstalled\torganizations")
	for _, k := range all {
		from, at := "the program", "–"
		if !k.OfProgram {
			from, at = k.By, day(k.At)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", k.Code, k.Version, from, at, strings.Join(k.UsedBy, " "))
	}
	return t.Flush()
}
