package admin

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/parley-voice/parley/api/respond"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/campaigns/packages"
	"github.com/parley-voice/parley/control/access"
)

// ListMarketPackages answers GET /v1/admin/market-packages: those of the program
// and those that were installed.
func (a *Admin) ListMarketPackages(w http.ResponseWriter, r *http.Request, _ access.Key) error {
	all, err := packages.List(r.Context(), a.DB)
	if err != nil {
		return err
	}
	type shown struct {
		Market        string   `json:"market"`
		Version       string   `json:"version"`
		OfProgram     bool     `json:"of_program"`
		Organizations []string `json:"organizations"` // names of those that go by it
	}
	list := make([]shown, len(all))
	for n, k := range all {
		list[n] = shown{k.Code, k.Version, k.OfProgram, k.UsedBy}
	}
	respond.JSON(w, http.StatusOK, map[string]any{"market_packages": list})
	return nil
}

// ChangeOrganization answers PATCH /v1/admin/organizations/{id}: by which market's
// rules its campaigns go from now on.
func (a *Admin) ChangeOrganization(w http.ResponseWriter, r *http.Request, _ access.Key) error {
	id, err := id(r)
	if err != nil {
		return err
	}
	if _, err = access.ReadOrganization(r.Context(), a.DB, id); err != nil {
		return missing(err)
	}
	body, err := schema.Read(w, r)
	if err != nil {
		return err
	}
	market, version, err := a.Schemas.OrganizationChange(body)
	if err != nil {
		return err
	}
	if err = a.known(r.Context(), market, version); err != nil {
		return err
	}
	if err = packages.Use(r.Context(), a.DB, id, market, version); err != nil {
		return err
	}
	o, err := access.ReadOrganization(r.Context(), a.DB, id)
	if err != nil {
		return missing(err)
	}
	respond.JSON(w, http.StatusOK, showOrganization(o))
	return nil
}

// known refuses a package that there is not. No market at all is none to know.
func (a *Admin) known(ctx context.Context, market, version string) error {
	if market == "" && version == "" {
		return nil
	}
	all, err := packages.List(ctx, a.DB)
	if err != nil {
		return err
	}
	there := func(k packages.Kept) bool {
		return k.Code == market && (version == "" && k.OfProgram || version != "" && !k.OfProgram && k.Version == version)
	}
	if slices.ContainsFunc(all, there) {
		return nil
	}
	if slices.ContainsFunc(all, func(k packages.Kept) bool { return k.Code == market }) {
		return schema.Misfit("market_version", fmt.Sprintf("no such version of %s was installed; without one it is the program's", market), version)
	}
	var codes []string
	for _, k := range all {
		codes = append(codes, k.Code)
	}
	return schema.Misfit("market", "use "+strings.Join(slices.Compact(codes), ", ")+", or nothing for none", market)
}
