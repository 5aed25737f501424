package main

import (
	"fmt"
	"io"
	"os"

	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/pipeline/egress"
	"github.com/parley-voice/parley/sip"
)

type applyCmd struct {
	File  string `short:"f" required:"" help:"The operator's YAML file; - for standard input." placeholder:"FILE"`
	Prune bool   `help:"Delete what the file does not name."`
}

// Run makes the database say what the file says.
func (c applyCmd) Run(w *world) error {
	cfg, err := w.config()
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
	d, err := w.database(cfg)
	if err != nil {
		return err
	}
	defer d.Close()
	options := applyOptions(cfg)
	options.Prune = c.Prune
	err = apply.Apply(w, d.Pool, spec, options)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	_, err = fmt.Fprintf(w.errs, "applied %d organizations\n", len(spec.Organizations))
	return err
}

// applyOptions are those of a configuration.
func applyOptions(c config.Config) apply.Options {
	return apply.Options{
		AllowInsecure: c.AllowInsecureWebhooks, ConcurrentCalls: c.SubgroupConcurrency, CallsPerMinute: c.SubgroupRate, Line: sip.Check,
		Reach: egress.Rules{Hosts: c.ToolHosts},
	}
}

// open opens the database of the configuration.
func (w *world) open() (*db.DB, error) {
	c, err := w.config()
	if err != nil {
		return nil, err
	}
	return w.database(c)
}

// database opens the database of the configuration, whether a server runs or not.
func (w *world) database(c config.Config) (*db.DB, error) {
	return openDatabase(w, c, 2, w.log("error"))
}
