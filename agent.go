package main

import (
	"context"
	"fmt"

	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
)

type agentCmd struct {
	Publish   agentPublishCmd   `cmd:"" help:"Publish the draft of an agent: new calls use it."`
	Unpublish agentUnpublishCmd `cmd:"" help:"Keep new calls from an agent."`
}

// agentOf names an agent.
type agentOf struct {
	Org  string `required:"" help:"Name of the organization."`
	Name string `arg:"" help:"Name of the agent."`
}

type (
	agentPublishCmd   struct{ agentOf }
	agentUnpublishCmd struct{ agentOf }
)

// with opens the database and finds the organization.
func (a agentOf) with(w *world, do func(ctx context.Context, q db.Querier, org string) error) error {
	d, err := w.open()
	if err != nil {
		return err
	}
	defer d.Close()
	org, err := access.FindOrganization(w, d.Pool, a.Org)
	if err != nil {
		return err
	}
	return do(w, d.Pool, org)
}

// Run publishes the draft.
func (c agentPublishCmd) Run(w *world) error {
	return c.with(w, func(ctx context.Context, q db.Querier, org string) error {
		version, err := agents.Publish(ctx, q, org, c.Name)
		if err == nil {
			_, err = fmt.Fprintf(w.out, "%s version %d\n", c.Name, version)
		}
		return err
	})
}

// Run unpublishes the agent.
func (c agentUnpublishCmd) Run(w *world) error {
	return c.with(w, func(ctx context.Context, q db.Querier, org string) error {
		return agents.Unpublish(ctx, q, org, c.Name)
	})
}
