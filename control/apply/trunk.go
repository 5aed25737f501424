package apply

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/trunks"
)

func applyTrunk(ctx context.Context, tx db.Querier, id string, t Trunk, o Options) error {
	have, err := trunks.Find(ctx, tx, id, t.Name)
	if err != nil && !errors.Is(err, trunks.ErrUnknown) {
		return err
	}
	have.OrgID, have.Name = id, t.Name
	t.change(&have)
	if err = have.Check(); err != nil {
		return err
	}
	if o.Line != nil {
		if err = o.Line(have.Line()); err != nil {
			return err
		}
	}
	trunkID, err := trunks.Save(ctx, tx, have)
	if err != nil {
		return err
	}
	return applySubgroups(ctx, tx, id, trunkID, "", t.Subgroups, o)
}

func applySubgroups(ctx context.Context, tx db.Querier, id, trunkID, grantID string, all []Subgroup, o Options) error {
	var names []string
	for _, s := range all {
		if err := applySubgroup(ctx, tx, id, trunkID, grantID, s, o); err != nil {
			return fmt.Errorf("subgroup %q: %w", s.Name, err)
		}
		names = append(names, s.Name)
	}
	if !o.Prune {
		return nil
	}
	_, err := tx.Exec(ctx, "DELETE FROM subgroups WHERE org_id = $1 AND trunk_id = $2 AND NOT name = ANY ($3)", id, trunkID, notNull(names))
	return err
}

// change sets in a trunk what the file gives.
func (t Trunk) change(to *trunks.Trunk) {
	set(&to.Proxy, t.Proxy)
	set(&to.Username, t.Username)
	set(&to.Password, t.Password)
	set(&to.CallerNumbers, t.CallerNumbers)
	if t.Limits != nil {
		to.CallsPerSecond, to.ConcurrentCalls = t.Limits.CallsPerSecond, t.Limits.ConcurrentCalls
	}
	s := &to.Settings
	set(&s.Backups, t.Backups)
	set(&s.Realm, t.Realm)
	set(&s.Register, t.Register)
	set(&s.Codecs, t.Codecs)
	set(&s.Encryption, t.Encryption)
	set(&s.DTMF, t.DTMF)
	set(&s.AssertedIdentity, t.AssertedIdentity)
	set(&s.Privacy, t.Privacy)
	set(&s.Diversion, t.Diversion)
	set(&s.Headers, t.Headers)
	set(&s.Attest, t.Attest)
	set(&s.Provider, t.Provider)
	set(&s.Rates, t.Rates)
}
