package service

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/db"
)

// Rescreen rechecks contacts that are suppressed as geo_rejected. Contacts that the market and the subgroup allow now
// become pending, and Rescreen returns how many. Numbers on the organization's list, and contacts suppressed for
// another reason, stay suppressed. A campaign that was completed because no contact was left is paused if a contact
// becomes pending.
func (svc *Service) Rescreen(ctx context.Context, orgID, id string, who Actor) (n int, err error) {
	err = db.Tx(ctx, svc.Pool, func(tx pgx.Tx) error {
		c, fault := svc.lockCampaign(ctx, tx, orgID, id)
		if fault != nil {
			return fault
		}
		if over := c.Status.IsOver() && c.StatusReason != campaigns.QueueDrained; over ||
			c.Status.IsOver() && !c.EndsAt.IsZero() && !c.EndsAt.After(svc.now()) {
			return errTransition(c, "screened again")
		}
		org, pkg, fault := svc.rules(ctx, tx, orgID)
		if fault != nil {
			return fault
		}
		if pkg == nil || !org.UsesMarketOf(c) {
			return errNoMarket()
		}
		n, fault = svc.readmit(ctx, tx, c, who, pkg)
		return fault
	})
	return n, err
}

// readmit sets contacts to pending if they may be called now.
func (svc *Service) readmit(ctx context.Context, tx pgx.Tx, c campaigns.Campaign, who Actor, pkg *market.Package) (int, error) {
	if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = '5min'"); err != nil { // long lists take longer
		return 0, err
	}
	allowed, all, err := svc.Store.Contacts.GeoRejected(ctx, tx, c)
	if err != nil {
		return 0, err
	}
	now := svc.now().UTC()
	var fit []store.RejectedContact
	var numbers []string
	for _, x := range all {
		if g, ok := callableGroup(pkg, c, x, allowed, now); ok {
			x.Group = g
			fit, numbers = append(fit, x), append(numbers, x.Number)
		}
	}
	listed, err := svc.Store.Suppressed(ctx, tx, c.OrgID, numbers)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, x := range fit {
		if !listed[x.Number] {
			fit[n] = x
			n++
		}
	}
	if n == 0 {
		return 0, nil
	}
	if err = svc.Store.Contacts.Readmit(ctx, tx, fit[:n], now); err != nil {
		return 0, err
	}
	if c.Status.IsOver() {
		c.Status, c.StatusReason, c.CompletedAt, c.UpdatedAt = campaigns.Paused, "", time.Time{}, now
		if err = svc.Store.SaveStatus(ctx, tx, c); err != nil {
			return 0, err
		}
	}
	return n, svc.Store.AddLog(ctx, tx, c, who.entry(store.Rescreened, strconv.Itoa(n), now))
}

// callableGroup reports whether a contact may be called now, and returns its hours group,
// which covers its former and its current locations.
func callableGroup(pkg *market.Package, c campaigns.Campaign, x store.RejectedContact, allowed []string, now time.Time) (plan.Group, bool) {
	n, err := pkg.Read(x.Number)
	if err != nil || n.Refusal != market.Callable || admission.CheckDestination(x.Number, allowed) != nil {
		return plan.Group{}, false
	}
	at, err := pkg.Locate(n, "", "")
	if err != nil {
		return plan.Group{}, false
	}
	g := plan.Group{Location: at, Named: x.Named}.Widen(x.Location)
	return g, !pkg.NeverLegal(now, g.Location, c.Classification)
}
