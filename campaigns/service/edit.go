package service

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/contactfile"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// An EditRequest replaces the settings of a draft.
type EditRequest struct {
	Spec campaigns.Spec
	// KeepHours keeps the working hours, whatever Spec has.
	KeepHours bool
	// Same refuses the edit of a version that is not the current one; may be nil.
	Same func(current campaigns.Campaign) error
}

// Edit replaces the settings of a draft. Its contacts stay; how duplicate rows were treated, and whether the campaign
// accepts further calls, do not change.
func Edit(ctx context.Context, svc *Service, orgID, id string, who Actor, o EditRequest) (before, after campaigns.Campaign, err error) {
	if before, err = svc.Store.Get(ctx, svc.Pool, orgID, id, false); err != nil {
		return before, after, err
	}
	groups, err := svc.Store.Contacts.PendingGroups(ctx, svc.Pool, id)
	if err != nil {
		return before, after, err
	}
	s := o.Spec
	if s.Duplicates, s.Open = string(before.Duplicates), before.Open; o.KeepHours {
		s.WorkingHours = before.WorkingHours
	}
	n, err := svc.newCreation(ctx, orgID, CreateRequest{Spec: s})
	if err != nil {
		return before, after, err
	}
	if after, err = n.buildCampaign(ctx, listOf(groups)); err != nil {
		return before, after, err
	}
	err = db.Tx(ctx, svc.Pool, func(tx pgx.Tx) error {
		now, fault := svc.lockCampaign(ctx, tx, orgID, id)
		switch {
		case fault != nil:
			return fault
		case now.Status != campaigns.Draft:
			return errTransition(now, "edited")
		case o.Same != nil:
			if fault = o.Same(now); fault != nil {
				return fault
			}
		}
		if fault = checkConsent(ctx, tx, svc.Store, now, after); fault != nil {
			return fault
		}
		after.ID, after.OrgID, after.CreatedVia, after.CreatedAt = now.ID, now.OrgID, now.CreatedVia, now.CreatedAt
		after.Market, after.LaunchImportID, after.DNC = now.Market, now.LaunchImportID, now.DNC
		before = now
		fault = svc.Store.SaveSettings(ctx, tx, after)
		if fault == nil {
			fault = svc.Store.AddLog(ctx, tx, after, who.entry(store.Edited, "", n.now))
		}
		if fault != nil {
			return fault
		}
		if groups, fault = svc.Store.Contacts.PendingGroups(ctx, tx, id); fault == nil { // calls may have been added since
			fault = relocate(ctx, tx, n, before, after, who, groups)
		}
		return fault
	})
	return before, after, err
}

// checkConsent refuses another purpose for a draft to which calls were added, because the consent of their contacts was
// attested for the present purpose.
func checkConsent(ctx context.Context, q db.Querier, from *store.Store, now, after campaigns.Campaign) error {
	if now.Classification == after.Classification {
		return nil
	}
	attested, err := from.HasAttestedBatch(ctx, q, now)
	if err != nil || !attested {
		return err
	}
	return control.Refuse(control.CodeCampaignTransition,
		"the purpose cannot be changed, because numbers were added with consent to "+string(now.Classification)+" calls; duplicate the campaign")
}

// listOf returns a list with the locations of the groups.
func listOf(groups []string) *contactfile.List {
	l := &contactfile.List{}
	for _, key := range groups {
		if g, err := plan.ParseGroup(key); err == nil {
			l.Locations = append(l.Locations, g.Location)
		}
	}
	return l
}

// relocate skips contacts that the law never lets a draft with its new purpose call, and makes those pending that the
// new purpose or subgroup allows.
func relocate(ctx context.Context, tx pgx.Tx, n *creation, before, after campaigns.Campaign, who Actor, groups []string) error {
	if n.pkg == nil || !n.org.UsesMarketOf(after) ||
		before.Classification == after.Classification && before.Binding.RouteID == after.Binding.RouteID {
		return nil
	}
	if never := neverLegal(n, after, groups); len(never) > 0 {
		if err := n.Store.Contacts.SuppressGroups(ctx, tx, after.ID, never, campaigns.GeoRejected, n.now); err != nil {
			return err
		}
	}
	_, err := n.readmit(ctx, tx, after, who, n.pkg)
	return err
}

func neverLegal(n *creation, c campaigns.Campaign, groups []string) (all []string) {
	for _, key := range groups {
		if g, err := plan.ParseGroup(key); err == nil && n.pkg.NeverLegal(n.now, g.Location, c.Classification) {
			all = append(all, key)
		}
	}
	return all
}
