package apply

import (
	"context"
	"fmt"

	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/trunks"
)

// applyGrants replaces the grants of a lender.
func applyGrants(ctx context.Context, tx db.Querier, org Organization, _ Options) error {
	if org.Grants == nil {
		return nil
	}
	id, err := apikeys.FindOrganization(ctx, tx, org.Name)
	if err != nil {
		return err
	}
	var all []trunks.Grant
	for _, g := range *org.Grants {
		trunk, err := trunks.Find(ctx, tx, id, g.Trunk)
		if err != nil {
			return fmt.Errorf("grants: %w", err)
		}
		to, err := apikeys.FindOrganization(ctx, tx, g.To)
		if err != nil {
			return fmt.Errorf("grants: %w", err)
		}
		grant := trunks.Grant{
			OrgID: to, TrunkID: trunk.ID, CallerNumbers: g.CallerNumbers,
			ConcurrentCalls: g.ConcurrentCalls, CallsPerMinute: g.CallsPerMinute,
		}
		if err = grant.Check(trunk); err != nil {
			return fmt.Errorf("grants: trunk %q to %q: %w", g.Trunk, g.To, err)
		}
		all = append(all, grant)
	}
	return trunks.ReplaceGrants(ctx, tx, id, all)
}

// applyGrantedTrunks writes an organization's subgroups on borrowed trunks.
func applyGrantedTrunks(ctx context.Context, tx db.Querier, org Organization, o Options) error {
	if org.GrantedTrunks == nil {
		return nil
	}
	id, err := apikeys.FindOrganization(ctx, tx, org.Name)
	if err != nil {
		return err
	}
	kept := []string{}
	for _, g := range *org.GrantedTrunks {
		grant, fault := trunks.FindGrant(ctx, tx, g.Of, g.Trunk, id)
		if fault == nil {
			fault = applySubgroups(ctx, tx, id, grant.TrunkID, grant.ID, g.Subgroups, o)
		}
		if fault != nil {
			return fmt.Errorf("granted_trunks: trunk %q of %q: %w", g.Trunk, g.Of, fault)
		}
		kept = append(kept, grant.ID)
	}
	if o.Prune {
		_, err = tx.Exec(ctx, "DELETE FROM subgroups WHERE org_id = $1 AND grant_id IS NOT NULL AND NOT grant_id = ANY ($2)", id, kept)
	}
	return err
}
