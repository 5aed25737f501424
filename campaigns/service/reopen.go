package service

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/store"
)

// Reopen sets contacts to pending again if their last attempt failed because of Parley or a provider, and returns how
// many. A campaign that was completed because no contact was left runs again.
func (svc *Service) Reopen(ctx context.Context, orgID, id string, who Actor) (n int, err error) {
	// EffectOf is not used here, because it allows no action on a completed campaign.
	err = svc.change(ctx, orgID, id, campaigns.AddCalls, func(tx pgx.Tx, c campaigns.Campaign, _ campaigns.Effect) error {
		now := svc.now().UTC()
		if !canReopen(c, now) {
			return errTransition(c, "reopened")
		}
		if n, err = svc.Store.Contacts.Reopen(ctx, tx, c.ID, now); err != nil || n == 0 {
			return err
		}
		c.UpdatedAt = now
		if c.Status == campaigns.Completed {
			c.Status, c.StatusReason, c.CompletedAt = campaigns.Running, "", time.Time{}
		}
		return lifecycle{svc.Store}.record(ctx, tx, c, who.entry(store.Reopened, fmt.Sprintf("%d contacts", n), now))
	})
	return n, err
}

// canReopen reports whether contacts of a campaign may become pending again.
func canReopen(c campaigns.Campaign, now time.Time) bool {
	drained := c.Status == campaigns.Completed && c.StatusReason == campaigns.QueueDrained
	return c.Status.IsLive() || drained && (c.EndsAt.IsZero() || c.EndsAt.After(now))
}
