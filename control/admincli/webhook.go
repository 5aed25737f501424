package admincli

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-voice/parley/control/webhook"
)

// Webhook groups the webhook commands.
type Webhook struct {
	List   ListWebhooks   `cmd:"" help:"List endpoints or failed deliveries."`
	Replay ReplayWebhooks `cmd:"" help:"Send deliveries again: one by id, or all failed ones of an endpoint."`
	Test   TestWebhook    `cmd:"" help:"Send a test event to an endpoint and print the response."`
}

// ListWebhooks lists endpoints.
type ListWebhooks struct {
	Org  string `help:"List only this organization."`
	Dead bool   `help:"List failed deliveries, newest first, at most 1000."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run lists the endpoints without their secrets.
func (c ListWebhooks) Run(ctx context.Context, d *Env) error {
	if c.Dead {
		return c.dead(ctx, d)
	}
	all, err := webhook.List(ctx, d.Pool, c.Org)
	if err != nil {
		return err
	}
	t := NewTable("ID", "ORGANIZATION", "URL", "EVENTS", "WAITING", "DEAD", "LAST SUCCESS", "DISABLED")
	for _, s := range all {
		disabled := ""
		if s.DisabledAt != nil {
			disabled = formatTime(s.DisabledAt) + ": " + s.DisabledReason
		}
		t.Add(s.ID, s.OrgName, s.Host(), s.Events, s.Waiting, s.Dead, s.LastSuccessAt, disabled)
	}
	return t.Print(d.Out, c.JSON)
}

func (c ListWebhooks) dead(ctx context.Context, d *Env) error {
	all, err := webhook.DeadLetters(ctx, d.Pool, c.Org)
	if err != nil {
		return err
	}
	t := NewTable("ID", "ENDPOINT", "TYPE", "CALL", "TRIES", "GIVEN UP", "LAST ANSWER")
	for _, l := range all {
		answer := l.Fault
		if l.Status != 0 {
			answer = fmt.Sprint(l.Status)
		}
		t.Add(l.ID, l.EndpointID, l.Type, l.CallID, l.Tries, l.At, answer)
	}
	return t.Print(d.Out, c.JSON)
}

// ReplayWebhooks sends deliveries again.
type ReplayWebhooks struct {
	ID     string `arg:"" help:"A delivery (evt_…), or an endpoint (whe_…) for all its failed deliveries."`
	Enable bool   `help:"Enable the endpoint if it is disabled."`
}

// Run makes the deliveries due again. A running server sends them at once.
func (c ReplayWebhooks) Run(ctx context.Context, d *Env) error {
	n, err := webhook.Replay(ctx, d.Pool, c.ID, c.Enable)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.Out, "deliveries to resend: %d\n", n)
	return err
}

// TestWebhook sends a test event to an endpoint.
type TestWebhook struct {
	ID string `arg:"" help:"The endpoint's id (whe_…)."`
}

// Run sends one test event without the delivery queue. It fails unless the response has a 2xx status.
func (c TestWebhook) Run(ctx context.Context, d *Env) error {
	s := &webhook.Sender{Pool: d.Pool, AllowInsecure: d.AllowInsecure}
	status, took, err := s.Test(ctx, c.ID)
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintf(d.Out, "%d in %d ms\n", status, took.Milliseconds()); err != nil {
		return err
	}
	if status < 200 || status > 299 {
		return errors.New("the endpoint must respond with 2xx")
	}
	return nil
}
