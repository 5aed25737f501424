package admincli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/apply"
)

// Agent groups the agent commands.
type Agent struct {
	List      ListAgents     `cmd:"" help:"List agents."`
	Diff      DiffAgent      `cmd:"" help:"Show how the draft of an agent differs from its published version, or how two versions differ."`
	Publish   PublishAgent   `cmd:"" help:"Publish an agent's draft; new calls use it."`
	Unpublish UnpublishAgent `cmd:"" help:"Unpublish an agent; new calls cannot use it."`
}

// AgentName holds the arguments that name an agent.
type AgentName struct {
	Org  string `required:"" help:"Name of the organization."`
	Name string `arg:""      help:"Name of the agent."`
}

// PublishAgent publishes an agent's draft.
type PublishAgent struct{ AgentName }

// UnpublishAgent unpublishes an agent.
type UnpublishAgent struct{ AgentName }

// Run publishes the draft.
func (c PublishAgent) Run(ctx context.Context, d *Env) error {
	org, err := apikeys.FindOrganization(ctx, d.Pool, c.Org)
	if err != nil {
		return err
	}
	if err = c.check(ctx, d, org); err != nil {
		return err
	}
	version, err := agents.Publish(ctx, d.Pool, org, c.Name)
	if err == nil {
		_, err = fmt.Fprintf(d.Out, "%s version %d\n", c.Name, version)
	}
	return err
}

// check tests the providers of the draft. It prints warnings, and returns an error if calls with the draft would
// fail.
func (c PublishAgent) check(ctx context.Context, d *Env, org string) error {
	if d.Providers == nil {
		return nil
	}
	a, err := agents.Find(ctx, d.Pool, org, c.Name)
	if err != nil {
		return err
	}
	d.Providers.Probe(ctx, org, a.Draft.Speech)
	d.Providers.Save(ctx, d.Pool, org, a.Draft.Speech)
	if err = d.Providers.Check(ctx, d.Pool, org, a.Draft); err != nil {
		return fmt.Errorf("agent %q cannot be published: %w", c.Name, err)
	}
	for _, text := range d.Providers.Warnings(org, a.Draft) {
		fmt.Fprintf(d.Errs, "warning: %s\n", text)
	}
	return nil
}

// Run unpublishes the agent.
func (c UnpublishAgent) Run(ctx context.Context, d *Env) error {
	org, err := apikeys.FindOrganization(ctx, d.Pool, c.Org)
	if err != nil {
		return err
	}
	return agents.Unpublish(ctx, d.Pool, org, c.Name)
}

// ListAgents lists agents.
type ListAgents struct {
	Org  string `required:"" help:"Name of the organization."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run lists the agents of an organization.
func (c ListAgents) Run(ctx context.Context, d *Env) error {
	org, err := apikeys.FindOrganization(ctx, d.Pool, c.Org)
	if err != nil {
		return err
	}
	all, err := agents.List(ctx, d.Pool, org)
	if err != nil {
		return err
	}
	t := NewTable("ID", "NAME", "PUBLISHED", "NEWEST", "DRAFT CHANGED", "UPDATED")
	for _, a := range all {
		t.Add(a.ID, a.Name, a.Published, a.Newest, a.Changed, a.UpdatedAt)
	}
	return t.Print(d.Out, c.JSON)
}

// DiffAgent compares two versions of an agent, usually its published version with the draft.
type DiffAgent struct {
	AgentName

	From int  `help:"Number of the older version; 0 means the published version."`
	To   int  `help:"Number of the newer version; 0 means the draft."`
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints the fields that differ. Headers of tools are secret; it says only which tools have other headers.
func (c DiffAgent) Run(ctx context.Context, d *Env) error {
	org, err := apikeys.FindOrganization(ctx, d.Pool, c.Org)
	if err != nil {
		return err
	}
	a, err := agents.Find(ctx, d.Pool, org, c.Name)
	if err != nil {
		return err
	}
	from := cmp.Or(c.From, a.Published, -1)
	changes, err := apply.DiffAgent(ctx, d.Pool, a, from, c.To)
	if err != nil {
		return err
	}
	return PrintChanges(d.Out, changes, c.JSON)
}
