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
	t.applyTo(&have)
	if err = t.checkCarrier(have.Proxy, o); err != nil {
		return err
	}
	if err = have.Check(); err != nil {
		return err
	}
	if o.CheckTrunk != nil {
		if err = o.CheckTrunk(have.MediaTrunk()); err != nil {
			return err
		}
	}
	if err = warnRealm(ctx, tx, have, o); err != nil {
		return err
	}
	trunkID, err := trunks.Save(ctx, tx, have)
	if err != nil {
		return err
	}
	return applySubgroups(ctx, tx, id, trunkID, "", t.Subgroups, o)
}

// checkCarrier returns an error if a trunk with a carrier lacks its proxy, and warns of a proxy of others.
func (t Trunk) checkCarrier(proxy string, o Options) error {
	if t.Carrier == nil {
		return nil
	}
	all, err := AllCarriers()
	if err != nil {
		return err
	}
	c, err := all.Find(*t.Carrier)
	if err != nil {
		return fmt.Errorf("carrier: %w", err)
	}
	if proxy == "" {
		return fmt.Errorf("proxy is missing: carrier %s needs %s", c.Name, c.Proxy)
	}
	if advice := c.checkProxy(proxy); advice != "" && o.Warn != nil {
		o.Warn(fmt.Sprintf("trunk %q: %s", t.Name, advice))
	}
	return nil
}

// warnRealm warns if a trunk has a username and no realm. Such a trunk may answer authentication challenges of any
// realm.
func warnRealm(ctx context.Context, tx db.Querier, t trunks.Trunk, o Options) error {
	if o.Warn == nil || t.Username == "" || t.Settings.Realm != "" {
		return nil
	}
	known, err := trunks.Realm(ctx, tx, t.Proxy)
	if err != nil {
		return err
	}
	advice := "set realm to the carrier's"
	if known != "" {
		advice = fmt.Sprintf("the carrier's realm seems to be %q: set realm to it", known)
	}
	o.Warn(
		fmt.Sprintf(
			"trunk %q has a username and no realm: until a call or a registration succeeds, a challenge of any realm is answered; %s",
			t.Name,
			advice,
		),
	)
	return nil
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

// Stored returns the trunk as Apply would store it in an empty database.
func (t Trunk) Stored() trunks.Trunk {
	have := trunks.Trunk{Name: t.Name}
	t.applyTo(&have)
	return have
}

// applyTo copies the fields that are not nil into a trunk.
func (t Trunk) applyTo(to *trunks.Trunk) {
	setIf(&to.Proxy, t.Proxy)
	setIf(&to.Username, t.Username)
	setIf(&to.Password, t.Password)
	setIf(&to.CallerNumbers, t.CallerNumbers)
	if t.Limits != nil {
		to.CallsPerSecond, to.ConcurrentCalls = 0, 0
		setIf(&to.CallsPerSecond, t.Limits.CallsPerSecond)
		setIf(&to.ConcurrentCalls, t.Limits.ConcurrentCalls)
	}
	s := &to.Settings
	setIf(&s.Backups, t.Backups)
	setIf(&s.Realm, t.Realm)
	setIf(&s.SignalingSources, t.SignalingSources)
	setIf(&s.Register, t.Register)
	setIf(&s.Codecs, t.Codecs)
	setIf(&s.Encryption, t.Encryption)
	setIf(&s.DTMF, t.DTMF)
	setIf(&s.NumberFormat, t.NumberFormat)
	setIf(&s.AssertedIdentity, t.AssertedIdentity)
	setIf(&s.Privacy, t.Privacy)
	setIf(&s.Diversion, t.Diversion)
	setIf(&s.Headers, t.Headers)
	setIf(&s.Attest, t.Attest)
	setIf(&s.MediaSources, t.MediaSources)
	setIf(&s.FirstMediaTimeout, t.FirstMediaTimeout)
	setIf(&s.MediaTimeout, t.MediaTimeout)
	setIf(&s.Provider, t.Provider)
	setIf(&s.Rates, t.Rates)
}
