package desk

import (
	"context"
	"fmt"

	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/agents"
)

// Agent holds the commands of agents.
type Agent struct {
	Publish   PublishAgent   `cmd:"" help:"Publish the draft of an agent: new calls use it."`
	Unpublish UnpublishAgent `cmd:"" help:"Keep new calls from an agent."`
}

// An AgentName names an agent.
type AgentName struct {
	Org  string `required:"" help:"Name of the organization."`
	Name string `arg:""      help:"Name of the agent."`
}

// PublishAgent publishes an agent's draft.
type PublishAgent struct{ AgentName }

// UnpublishAgent keeps new calls from an agent.
type UnpublishAgent struct{ AgentName }

// Run publishes the draft.
func (c PublishAgent) Run(ctx context.Context, d *Desk) error {
	org, err := access.FindOrganization(ctx, d.Pool, c.Org)
	if err != nil {
		return err
	}
	version, err := agents.Publish(ctx, d.Pool, org, c.Name)
	if err == nil {
		_, err = fmt.Fprintf(d.Out, "%s version %d\n", c.Name, version)
	}
	return err
}

// Run unpublishes the agent.
func (c UnpublishAgent) Run(ctx context.Context, d *Desk) error {
	org, err := access.FindOrganization(ctx, d.Pool, c.Org)
	if err != nil {
		return err
	}
	return agents.Unpublish(ctx, d.Pool, org, c.Name)
}
