package campaigncli

import (
	"context"
	"fmt"

	"github.com/parley-voice/parley/campaigns/store"
)

// CampaignDisclosures switches the disclosures of a campaign.
type CampaignDisclosures struct {
	ID     string `arg:"" help:"Campaign id."`
	Switch string `arg:"" enum:"on,off,default" help:"on, off, or default for the organization's setting."`
}

// Run switches the disclosures.
func (c CampaignDisclosures) Run(ctx context.Context, d *Env) error {
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
