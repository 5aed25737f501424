package campaigncli

import (
	"context"
	"fmt"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/campaigns/store"
)

// CampaignReopen reopens contacts whose calls failed because of this service.
type CampaignReopen struct {
	ID string `arg:"" help:"Campaign id."`
}

// Run reopens the contacts and logs the operator.
func (c CampaignReopen) Run(ctx context.Context, d *Env) error {
	var org string
	if err := d.Pool.QueryRow(ctx, "SELECT coalesce((SELECT org_id FROM campaigns WHERE id = $1), '')", c.ID).Scan(&org); err != nil {
		return fmt.Errorf("campaign: %w", err)
	}
	if org == "" {
		return store.NotFound()
	}
	n, err := (&service.Service{Pool: d.Pool, Store: &store.Store{Pool: d.Pool}}).Reopen(
		ctx, org, c.ID, service.Actor{Via: campaigns.BySystem, Actor: d.By})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.Out, "%s reopened\n", countNoun(int64(n), "contact", "contacts"))
	return err
}
