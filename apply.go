package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admincli"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/safedial"
	"github.com/parley-voice/parley/sip"
)

type applyCmd struct {
	File   string `short:"f" required:"" help:"YAML file; - for standard input." placeholder:"FILE"`
	Prune  bool   `help:"Delete objects that the file does not name."`
	DryRun bool   `help:"Print what would change, and change nothing. Providers of published agents are tested."`
	JSON   bool   `name:"json" help:"With --dry-run: as JSON."`
}

// Run applies the file to the database.
func (c applyCmd) Run(e *env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	spec, err := readSpec(c.File)
	if err != nil {
		return err
	}
	if left := apply.Placeholders(spec); len(left) > 0 {
		return configError{fmt.Errorf("%s still contains %s; enter your values:\n  %s", c.File, control.Placeholder, strings.Join(left, "\n  "))}
	}
	if left := cfg.Placeholders; len(left) > 0 {
		fmt.Fprintf(e.errs, "warning: these settings are still %s: %s\n", control.Placeholder, strings.Join(left, ", "))
	}
	d, end, err := c.open(e, cfg)
	if err != nil {
		return err
	}
	defer end()
	options := applyOptions(cfg)
	checks, err := e.providerChecks(cfg, d.Pool)
	if err != nil {
		return err
	}
	options.Prune, options.Providers, options.Endpoints = c.Prune, checks, checks.use
	options.Warn = func(text string) { fmt.Fprintf(e.errs, "warning: %s\n", text) }
	var planned []apply.Change
	if c.DryRun {
		options.Plan = func(all []apply.Change) { planned = all }
	}
	err = apply.Apply(e, d.Pool, spec, options)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	if c.DryRun {
		return admincli.PrintChanges(e.out, planned, c.JSON)
	}
	if err = checks.warnUnusable(e, d.Pool, spec, options.Warn); err != nil {
		return err
	}
	providers := ""
	if spec.Providers != nil {
		providers = fmt.Sprintf(", providers: %d", len(*spec.Providers))
	}
	_, err = fmt.Fprintf(e.errs, "applied organizations: %d%s\n", len(spec.Organizations), providers)
	return err
}

// open opens the database. For a plan it changes nothing: without a database it opens an empty one, which end deletes.
func (c applyCmd) open(e *env, cfg config.Config) (d *db.DB, end func(), err error) {
	if !c.DryRun {
		d, err = openDatabase(e, cfg, db.MinConns, 0, e.log("error"))
		return d, d.Close, err
	}
	if databaseConfig(cfg, nil).Exists() {
		if d, err = e.readDatabase(cfg); !errors.Is(err, errNoTables) {
			return d, d.Close, err
		}
	}
	fmt.Fprintln(e.errs, "The database is new. This is the plan for an empty one:")
	return e.emptyDatabase(cfg)
}

// readSpec reads an operator's file; - stands for standard input.
func readSpec(name string) (spec apply.Spec, err error) {
	if name == "-" {
		spec, err = apply.Parse(os.Stdin)
	} else {
		spec, err = admincli.ReadSpec(name)
	}
	if err != nil {
		return spec, configError{fmt.Errorf("%s: %w", name, err)}
	}
	return spec, nil
}

// applyOptions returns the options that follow from the settings.
func applyOptions(c config.Config) apply.Options {
	check := sip.CheckTrunk
	if listen, public, err := c.MediaAddrs(); err == nil { // no server starts with invalid settings
		check = func(t media.Trunk) error { return sip.CheckTrunkReachable(t, listen, public) }
	}
	return apply.Options{
		AllowInsecure: c.AllowInsecureWebhooks, ConcurrentCalls: c.SubgroupConcurrency, CallsPerMinute: c.SubgroupRate, CheckTrunk: check,
		Egress: safedial.Rules{Hosts: c.ToolHosts},
	}
}

func (e *env) open() (*db.DB, error) {
	c, err := e.config()
	if err != nil {
		return nil, err
	}
	return e.database(c)
}

// database opens the database of c. No server needs to run. It creates no database.
func (e *env) database(c config.Config) (*db.DB, error) {
	if !databaseConfig(c, nil).Exists() {
		return nil, missingDatabase(c)
	}
	return openDatabase(e, c, db.MinConns, 0, e.log("error"))
}
