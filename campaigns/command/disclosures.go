package command

import (
	"context"
	"fmt"

	"github.com/parley-voice/parley/campaigns/store"
)

// CampaignDisclosures switches the disclosures of a campaign.
type CampaignDisclosures struct {
	ID     string `arg:"" help:"The campaign's id."`
	Switch string `arg:"" enum:"on,off,default" help:"on, off, or default: as the organization has it."`
}

// Run switches the disclosures.
func (c CampaignDisclosures) Run(ctx context.Context, d *Desk) error {
	var on *bool
	if c.Switch != "default" {
		on = new(c.Switch == "on")
	}
	tag, err := d.Pool.Exec(ctx, "UPDATE campaigns SET disclosures = $2, updated_at = now() WHERE id = $1", c.ID, on)
	if err != nil {
		return fmt.Errorf("campaign: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return store.NotFound()
	}
	return nil
}
