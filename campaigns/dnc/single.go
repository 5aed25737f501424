package dnc

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-voice/parley/campaigns/dnc/screening"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/phonenumber"
)

// A CallScreen implements control.Screener for one call: it checks the organization's
// list and then the registries of its market. It returns an error if a registry is not
// open on this node.
type CallScreen struct {
	Own     control.Screener // checks the organization's list; nil if it was checked before
	Catalog *Catalog
	// Always checks the registries even if the organization's setting individual_dnc disables this. Campaign calls
	// set it.
	Always bool
}

// Screen implements control.Screener.
func (s *CallScreen) Screen(ctx context.Context, n control.Number, p control.Purpose) (control.ScreenResult, error) {
	if s.Own != nil {
		if v, err := s.Own.Screen(ctx, n, p); err != nil || v.List != "" {
			return v, err
		}
	}
	if exist, err := s.Catalog.hasRegistries(ctx); err != nil || !exist {
		return control.ScreenResult{}, err
	}
	var market string
	var enforced bool
	err := s.Catalog.Pool.QueryRow(ctx, `
		SELECT coalesce(settings->>'market', ''), coalesce(settings->>'individual_dnc', 'enforce') = 'enforce' FROM organizations WHERE id = $1`,
		n.OrgID).Scan(&market, &enforced)
	if err != nil {
		return control.ScreenResult{}, fmt.Errorf("market: %w", err)
	}
	if !enforced && !s.Always {
		return control.ScreenResult{}, nil
	}
	all, err := s.Catalog.OpenRegistries(market)
	if err != nil {
		return control.ScreenResult{}, err
	}
	return control.ScreenResult{List: Listed(n.Digits, all)}, nil
}

// Listed returns the name of the first registry, in order of names, that contains a number in any form; empty for
// none.
func Listed(digits string, all []screening.Registry) string {
	slices.SortFunc(all, func(a, b screening.Registry) int { return strings.Compare(a.Name, b.Name) })
	for _, form := range phonenumber.PlainForms(digits) { // registries contain only plain forms
		for _, r := range all {
			if listed, _ := r.Has("+" + form); listed {
				return r.Name
			}
		}
	}
	return ""
}
