package campaigncli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/marketstore"
	"github.com/parley-voice/parley/control/admincli"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db"
)

// Market has the commands of market rules.
type Market struct {
	Install InstallMarket `cmd:"" help:"Assign a market's calling rules to an organization."`
	List    ListMarket    `cmd:"" help:"List market rules and the organizations that use them."`
}

// InstallMarket installs a package.
type InstallMarket struct {
	Org     string `help:"Organization; without it the package is installed only."`
	Package string `arg:"" help:"us or kz for the built-in rules, an installed version, or a folder or zip file of rules."`
}

// Run installs the package.
func (c InstallMarket) Run(ctx context.Context, d *Env) error {
	return db.Tx(ctx, d.Pool, func(tx pgx.Tx) error {
		org := ""
		if c.Org != "" {
			var err error
			if org, err = apikeys.FindOrganization(ctx, tx, c.Org); err != nil {
				return err
			}
		}
		code, version, label, err := c.find(ctx, tx, d)
		if err != nil {
			return err
		}
		if org == "" {
			_, err = fmt.Fprintf(d.Out, "%s is installed\n", label)
			return err
		}
		if err = marketstore.Assign(ctx, tx, org, code, version); err != nil {
			return err
		}
		others, err := marketstore.CountOtherMarkets(ctx, tx, org, code)
		if err != nil {
			return err
		}
		fmt.Fprintf(d.Out, "%s uses %s\n", c.Org, label)
		if others > 0 {
			fmt.Fprintf(d.Out, "%s of another market: they make no calls until the organization uses that market again\n",
				countNoun(int64(others), "campaign", "campaigns"))
		}
		return nil
	})
}

// find returns the package and its label for the operator. If the package is given as files, it
// installs them.
func (c InstallMarket) find(ctx context.Context, q db.Querier, d *Env) (code, version, label string, err error) {
	if slices.Contains(market.Codes(), c.Package) {
		p, fault := market.Load(c.Package)
		if fault != nil {
			return "", "", "", fault
		}
		return p.Code, "", p.Version + " and its updates in later program versions", nil
	}
	all, err := marketstore.List(ctx, q)
	if err != nil {
		return "", "", "", err
	}
	if i := slices.IndexFunc(all, func(k marketstore.Info) bool { return !k.BuiltIn && k.Version == c.Package }); i >= 0 {
		return all[i].Code, all[i].Version, all[i].Version, nil
	}
	files, err := marketstore.Open(c.Package)
	if err != nil {
		return "", "", "", fmt.Errorf("market package not found: use %s, an installed version, a folder or a zip file: %w",
			strings.Join(market.Codes(), " and "), err)
	}
	p, err := marketstore.Install(ctx, q, files, d.By)
	if err != nil {
		return "", "", "", fmt.Errorf("%s: %w", c.Package, err)
	}
	return p.Code, p.Version, p.Version, nil
}

// ListMarket lists packages.
type ListMarket struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run lists the packages.
func (c ListMarket) Run(ctx context.Context, d *Env) error {
	all, err := marketstore.List(ctx, d.Pool)
	if err != nil {
		return err
	}
	t := admincli.NewTable("MARKET", "VERSION", "FROM", "INSTALLED", "ORGANIZATIONS")
	for _, k := range all {
		from, at := "built-in", ""
		if !k.BuiltIn {
			from, at = k.By, day(k.At)
		}
		t.Add(k.Code, k.Version, from, at, k.UsedBy)
	}
	return t.Print(d.Out, c.JSON)
}
