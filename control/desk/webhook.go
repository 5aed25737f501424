package desk

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-voice/parley/control/webhook"
)

// Webhook holds the commands of webhook endpoints.
type Webhook struct {
	List   ListWebhooks   `cmd:"" help:"List the endpoints, or the notices that were given up."`
	Replay ReplayWebhooks `cmd:"" help:"Send notices again: one by its id, or all that were given up of an endpoint."`
	Test   TestWebhook    `cmd:"" help:"Send a notice of type test to an endpoint, and print what it answers."`
}

// ListWebhooks lists endpoints.
type ListWebhooks struct {
	Org  string `help:"Of this organization alone."`
	Dead bool   `help:"List the notices that were given up, the newest first, 1000 at most."`
}

// Run lists the endpoints, without their secrets.
func (c ListWebhooks) Run(ctx context.Context, d *Desk) error {
	if c.Dead {
		return c.dead(ctx, d)
	}
	all, err := webhook.List(ctx, d.Pool, c.Org)
	if err != nil {
		return err
	}
	t := d.table()
	fmt.Fprintln(t, "ID\tORGANIZATION\tURL\tEVENTS\tWAITING\tDEAD\tLAST SUCCESS\tDISABLED")
	for _, s := range all {
		disabled := "–"
		if s.DisabledAt != nil {
			disabled = day(s.DisabledAt) + ": " + s.DisabledReason
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\n", s.ID, s.OrgName, s.Host(), strings.Join(s.Events, ","), s.Waiting, s.Dead, day(s.LastSuccessAt), disabled)
	}
	return t.Flush()
}

func (c ListWebhooks) dead(ctx context.Context, d *Desk) error {
	all, err := webhook.DeadLetters(ctx, d.Pool, c.Org)
	if err != nil {
		return err
	}
	t := d.table()
	fmt.Fprintln(t, "ID\tENDPOINT\tTYPE\tCALL\tTRIES\tGIVEN UP\tLAST ANSWER")
	for _, l := range all {
		answer := l.Fault
		if l.Status != 0 {
			answer = fmt.Sprint(l.Status)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", l.ID, l.EndpointID, l.Type, l.CallID, l.Tries, day(l.At), answer)
	}
	return t.Flush()
}

// ReplayWebhooks sends notices again.
type ReplayWebhooks struct {
	ID     string `arg:"" help:"A notice (evt_…), or an endpoint (whe_…) for all that it had given up."`
	Enable bool   `help:"Enable the endpoint, should it be disabled."`
}

// Run makes notices due; a server that runs sends them at once.
func (c ReplayWebhooks) Run(ctx context.Context, d *Desk) error {
	n, err := webhook.Replay(ctx, d.Pool, c.ID, c.Enable)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.Out, "%d to be sent again\n", n)
	return err
}

// TestWebhook tries an endpoint.
type TestWebhook struct {
	ID string `arg:"" help:"The endpoint's id (whe_…)."`
}

// Run sends one notice, outside the queue. It fails unless the endpoint takes it.
func (c TestWebhook) Run(ctx context.Context, d *Desk) error {
	s := &webhook.Sender{Pool: d.Pool, AllowInsecure: d.AllowInsecure}
	status, took, err := s.Test(ctx, c.ID)
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintf(d.Out, "%d in %d ms\n", status, took.Milliseconds()); err != nil {
		return err
	}
	if status < 200 || status > 299 {
		return errors.New("the endpoint did not take the notice: it is to answer 2xx")
	}
	return nil
}
