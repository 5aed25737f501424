package desk_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/checks"
	"github.com/parley-voice/parley/campaigns/desk"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/campaigns/screen"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// goesBy has the organization go by the law of a market, empty for none.
func (o *office) goesBy(t *testing.T, market string) {
	t.Helper()
	_, err := o.db.Pool.Exec(o.ctx, "UPDATE organizations SET settings = settings || jsonb_build_object('market', nullif($2, '')) WHERE id = $1", o.org, market)
	if err != nil {
		t.Fatal(err)
	}
}

// TestOtherMarket: a campaign whose organization goes by the law of another market by
// now, or of none, says so, is not launched or resumed, and takes no calls.
func TestOtherMarket(t *testing.T) {
	o := newOffice(t)
	if err := o.open(); err != nil {
		t.Fatal(err)
	}
	st, err := o.create(campaigns.Spec{}, true, "2125550123", "2125550124")
	if err != nil || st.Campaign.Status != campaigns.Running {
		t.Fatal(st.Blockers, err)
	}
	id := st.Campaign.ID
	for _, market := range []string{"kz", ""} {
		o.goesBy(t, market)
		p, err := o.Progress(o.ctx, o.org, id)
		if err != nil || p.Ready != 0 || p.HeldReasons[plan.NoMarket] != 2 {
			t.Errorf("%q: %d are ready, held %v, %v", market, p.Ready, p.HeldReasons, err)
		}
		st, err = o.Get(o.ctx, o.org, id, screen.Anew)
		if err != nil || !blocked(st.Blockers, checks.MarketNotInstalled) {
			t.Errorf("%q: %v, %v", market, st.Blockers, err)
		}
		if _, err = o.Add(o.ctx, o.org, id, who(), rowsOf("2125550125"), desk.Ending{}); control.CodeOf(err) != control.CodeMarketNotInstalled {
			t.Errorf("%q: calls are added: %v", market, err)
		}
	}
	o.goesBy(t, "us")
	if p, err := o.Progress(o.ctx, o.org, id); err != nil || p.Ready != 2 {
		t.Errorf("by its own again: %d are ready, held %v, %v", p.Ready, p.HeldReasons, err)
	}
}

// TestFirstMarket: a campaign that came to be without a market is of that by whose
// law its first calls were read.
func TestFirstMarket(t *testing.T) {
	o := newOffice(t)
	if err := o.open(); err != nil {
		t.Fatal(err)
	}
	o.goesBy(t, "")
	st, err := o.create(campaigns.Spec{Open: true, EndsAt: o.Now().AddDate(0, 0, 1)}, true)
	if err != nil || st.Campaign.Market != "" {
		t.Fatal(st.Campaign.Market, err)
	}
	o.goesBy(t, "us")
	added, err := o.Add(o.ctx, o.org, st.Campaign.ID, who(), rowsOf("2125550123"), desk.Ending{})
	if err != nil || added.Campaign.Market != "us" {
		t.Fatal(added.Campaign.Market, err)
	}
	if st, err = o.Get(o.ctx, o.org, st.Campaign.ID, screen.Anew); err != nil || st.Campaign.Market != "us" {
		t.Errorf("it is of %q: %v", st.Campaign.Market, err)
	}
}

func blocked(all []checks.Blocker, code string) bool {
	for _, b := range all {
		if b.Code == code {
			return true
		}
	}
	return false
}

// TestRegistryGone: where a registry cannot be opened, a campaign that runs says that it
// waits for it, and can be looked at, paused, resumed and cancelled.
func TestRegistryGone(t *testing.T) {
	o := newOffice(t)
	if err := o.open(); err != nil {
		t.Fatal(err)
	}
	st, err := o.create(campaigns.Spec{}, true, "2125550123", "2125550124")
	if err != nil || st.Campaign.Status != campaigns.Running {
		t.Fatal(st.Blockers, err)
	}
	id := st.Campaign.ID
	o.Registries = func(context.Context, db.Querier, string) ([]screen.Registry, error) {
		return nil, errors.New("file gone")
	}
	if p, fault := o.Progress(o.ctx, o.org, id); fault != nil || p.Ready != 0 || p.HeldReasons[plan.ScreenStale] != 2 {
		t.Errorf("%d are ready, held %v, %v", p.Ready, p.HeldReasons, fault)
	}
	if st, err = o.Get(o.ctx, o.org, id, screen.Anew); err != nil || slices.ContainsFunc(st.Warnings, func(w checks.Warning) bool { return w.Code == checks.DNCUnscreened }) {
		t.Errorf("looked at: %v, %v", st.Warnings, err)
	}
	if st, err = o.Pause(o.ctx, o.org, id, who()); err != nil || st.Campaign.Status != campaigns.Paused {
		t.Errorf("paused: %s, %v", st.Campaign.Status, err)
	}
	if st, err = o.Resume(o.ctx, o.org, id, who()); err != nil || st.Campaign.Status != campaigns.Running {
		t.Errorf("resumed: %s, %v", st.Campaign.Status, err)
	}
	if st, err = o.Cancel(o.ctx, o.org, id, who()); err != nil || st.Campaign.Status != campaigns.Cancelled {
		t.Errorf("cancelled: %s, %v", st.Campaign.Status, err)
	}
	if _, err = o.create(campaigns.Spec{}, true, "2125550123"); err == nil {
		t.Error("a list is taken that was held against no registry")
	}
}
