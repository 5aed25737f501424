package admin

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/campaigns/marketstore"
	"github.com/parley-voice/parley/control/apikeys"
)

type (
	marketPackages struct {
		MarketPackages []marketPackage `json:"market_packages"`
	}
	marketPackage struct {
		Market        string   `json:"market"`
		Version       string   `json:"version"`
		OfProgram     bool     `json:"of_program"`
		Organizations []string `json:"organizations"` // names of the organizations that use it
	}
)

// ListMarketPackages answers GET /v1/admin/market-packages: built-in and installed rules.
func (a *Admin) ListMarketPackages(w http.ResponseWriter, r *http.Request, _ apikeys.Key) error {
	all, err := marketstore.List(r.Context(), a.DB)
	if err != nil {
		return err
	}
	list := make([]marketPackage, len(all))
	for n, k := range all {
		list[n] = marketPackage{k.Code, k.Version, k.BuiltIn, k.UsedBy}
	}
	response.JSON(w, http.StatusOK, marketPackages{list})
	return nil
}

// ChangeOrganization answers PATCH /v1/admin/organizations/{id}, which sets the market rules of
// its campaigns.
func (a *Admin) ChangeOrganization(w http.ResponseWriter, r *http.Request, _ apikeys.Key) error {
	id, err := id(r)
	if err != nil {
		return err
	}
	if _, err = apikeys.ReadOrganization(r.Context(), a.DB, id); err != nil {
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
	if err = marketstore.Assign(r.Context(), a.DB, id, market, version); err != nil {
		return err
	}
	o, err := apikeys.ReadOrganization(r.Context(), a.DB, id)
	if err != nil {
		return missing(err)
	}
	response.JSON(w, http.StatusOK, showOrganization(o))
	return nil
}

// known rejects a package that is not installed; an empty market is accepted.
func (a *Admin) known(ctx context.Context, market, version string) error {
	if market == "" && version == "" {
		return nil
	}
	all, err := marketstore.List(ctx, a.DB)
	if err != nil {
		return err
	}
	there := func(k marketstore.Info) bool {
		return k.Code == market && (version == "" && k.BuiltIn || version != "" && !k.BuiltIn && k.Version == version)
	}
	if slices.ContainsFunc(all, there) {
		return nil
	}
	if slices.ContainsFunc(all, func(k marketstore.Info) bool { return k.Code == market }) {
		return schema.InvalidValue(
			"market_version",
			fmt.Sprintf("this version of %s is not installed; omit market_version for the built-in rules", market),
			version,
		)
	}
	var codes []string
	for _, k := range all {
		codes = append(codes, k.Code)
	}
	return schema.InvalidValue("market", "use "+strings.Join(slices.Compact(codes), ", ")+", or an empty string for no market rules", market)
}
