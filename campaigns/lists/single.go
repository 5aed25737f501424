package lists

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-voice/parley/campaigns/screen"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/spelling"
)

// A Single is the control.Screen of one call: the organization's own list, and
// then the registries of its market. While one of those is not open here, nobody
// knows who is on it: that is an error.
type Single struct {
	Own   control.Screen // the organization's own list; nil where it was asked
	Shelf *Shelf
	// Always, of calls of campaigns: individual_dnc says nothing of them.
	Always bool
}

// Allowed implements control.Screen.
func (s *Single) Allowed(ctx context.Context, n control.Number, p control.Purpose) (control.Verdict, error) {
	if s.Own != nil {
		if v, err := s.Own.Allowed(ctx, n, p); err != nil || v.List != "" {
			return v, err
		}
	}
	if some, err := s.Shelf.some(ctx); err != nil || !some {
		return control.Verdict{}, err
	}
	var market string
	var enforced bool
	err := s.Shelf.Pool.QueryRow(ctx, `
		SELECT coalesce(settings->>'market', ''), coalesce(settings->>'individual_dnc', 'enforce') = 'enforce' FROM organizations WHERE id = $1`,
		n.OrgID).Scan(&market, &enforced)
	if err != nil {
		return control.Verdict{}, fmt.Errorf("market: %w", err)
	}
	if !enforced && !s.Always {
		return control.Verdict{}, nil
	}
	all, err := s.Shelf.Known(market)
	if err != nil {
		return control.Verdict{}, err
	}
	return control.Verdict{List: Listed(n.Digits, all)}, nil
}

// Listed is the first of registries that has a number, as people dial it; empty
// where none has it.
func Listed(digits string, all []screen.Registry) string {
	slices.SortFunc(all, func(a, b screen.Registry) int { return strings.Compare(a.Name, b.Name) })
	for _, spelled := range spelling.Plain(digits) { // registries know no others
		for _, r := range all {
			if listed, _ := r.Has("+" + spelled); listed {
				return r.Name
			}
		}
	}
	return ""
}
