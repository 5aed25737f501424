package main

import (
	"fmt"
	"io"
	"os"

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
	var in io.Reader = os.Stdin
	if c.File != "-" {
		f, opening := os.Open(c.File)
		if opening != nil {
			return configError{opening}
		}
		defer f.Close()
		in = f
	}
	spec, err := apply.Parse(in)
	if err != nil {
		return configError{fmt.Errorf("%s: %w", c.File, err)}
	}
	d, err := e.database(cfg)
	if err != nil {
		return err
	}
	defer d.Close()
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

// database opens the database of c. No server needs to run.
func (e *env) database(c config.Config) (*db.DB, error) {
	return openDatabase(e, c, db.MinConns, 0, e.log("error"))
}
