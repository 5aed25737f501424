package service_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/dnc/screening"
	"github.com/parley-voice/parley/campaigns/launchcheck"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// setMarket sets the market of the organization, empty for none.
func (o *env) setMarket(t *testing.T, market string) {
	t.Helper()
	_, err := o.db.Pool.Exec(o.ctx, "UPDATE organizations SET settings = settings || jsonb_build_object('market', nullif($2, '')) WHERE id = $1", o.org, market)
	if err != nil {
		t.Fatal(err)
	}
}

// TestOtherMarket checks that a campaign whose organization switched to another market, or to
// none, has a blocker, cannot be launched or resumed, and accepts no calls.
func TestOtherMarket(t *testing.T) {
	o := newOrganization(t)
	st, err := o.create(campaigns.Spec{}, true, "2125550123", "2125550124")
	if err != nil || st.Campaign.Status != campaigns.Running {
		t.Fatal(st.Blockers, err)
	}
	id := st.Campaign.ID
	for _, market := range []string{"kz", ""} {
		o.setMarket(t, market)
		p, err := o.Progress(o.ctx, o.org, id)
		if err != nil || p.Ready != 0 || p.HeldReasons[plan.NoMarket] != 2 {
			t.Errorf("%q: %d are ready, held %v, %v", market, p.Ready, p.HeldReasons, err)
		}
		st, err = o.Get(o.ctx, o.org, id, screening.Fresh)
		if err != nil || !blocked(st.Blockers, launchcheck.MarketNotInstalled) {
			t.Errorf("%q: %v, %v", market, st.Blockers, err)
		}
		if _, err = o.Add(o.ctx, o.org, id, testActor(), rowsOf("2125550125"), service.BatchHooks{}); control.CodeOf(err) != control.CodeMarketNotInstalled {
			t.Errorf("%q: calls are added: %v", market, err)
		}
	}
	o.setMarket(t, "us")
	if p, err := o.Progress(o.ctx, o.org, id); err != nil || p.Ready != 2 {
		t.Errorf("with its own market: %d are ready, held %v, %v", p.Ready, p.HeldReasons, err)
	}
}

// TestFirstMarket checks that a campaign created without a market gets that of its first calls.
func TestFirstMarket(t *testing.T) {
	o := newOrganization(t)
	o.setMarket(t, "")
	st, err := o.create(campaigns.Spec{Open: true, EndsAt: o.Now().AddDate(0, 0, 1)}, true)
	if err != nil || st.Campaign.Market != "" {
		t.Fatal(st.Campaign.Market, err)
	}
	o.setMarket(t, "us")
	added, err := o.Add(o.ctx, o.org, st.Campaign.ID, testActor(), rowsOf("2125550123"), service.BatchHooks{})
	if err != nil || added.Campaign.Market != "us" {
		t.Fatal(added.Campaign.Market, err)
	}
	if st, err = o.Get(o.ctx, o.org, st.Campaign.ID, screening.Fresh); err != nil || st.Campaign.Market != "us" {
		t.Errorf("market %q: %v", st.Campaign.Market, err)
	}
}

func blocked(all []launchcheck.Blocker, code string) bool {
	for _, b := range all {
		if b.Code == code {
			return true
		}
	}
	return false
}

// TestRegistryCannotBeOpened checks that if a registry cannot be opened, a running campaign reports that its contacts
// are held. It can be read, paused, resumed and canceled.
func TestRegistryCannotBeOpened(t *testing.T) {
	o := newOrganization(t)
	st, err := o.create(campaigns.Spec{}, true, "2125550123", "2125550124")
	if err != nil || st.Campaign.Status != campaigns.Running {
		t.Fatal(st.Blockers, err)
	}
	id := st.Campaign.ID
	o.Registries = func(context.Context, db.Querier, string) ([]screening.Registry, error) {
		return nil, errors.New("file gone")
	}
	if p, fault := o.Progress(o.ctx, o.org, id); fault != nil || p.Ready != 0 || p.HeldReasons[plan.ScreenStale] != 2 {
		t.Errorf("%d are ready, held %v, %v", p.Ready, p.HeldReasons, fault)
	}
	if st, err = o.Get(o.ctx, o.org, id, screening.Fresh); err != nil || slices.ContainsFunc(st.Warnings, func(w launchcheck.Warning) bool { return w.Code == launchcheck.DNCUnscreened }) {
		t.Errorf("get: %v, %v", st.Warnings, err)
	}
	if st, err = o.Pause(o.ctx, o.org, id, testActor()); err != nil || st.Campaign.Status != campaigns.Paused {
		t.Errorf("paused: %s, %v", st.Campaign.Status, err)
	}
	if st, err = o.Resume(o.ctx, o.org, id, testActor()); err != nil || st.Campaign.Status != campaigns.Running {
		t.Errorf("resumed: %s, %v", st.Campaign.Status, err)
	}
	if st, err = o.Cancel(o.ctx, o.org, id, testActor()); err != nil || st.Campaign.Status != campaigns.Canceled {
		t.Errorf("canceled: %s, %v", st.Campaign.Status, err)
	}
	if _, err = o.create(campaigns.Spec{}, true, "2125550123"); err == nil {
		t.Error("a list was created without a screening")
	}
}
