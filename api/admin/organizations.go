package admin

import (
	"net/http"

	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/callview"
)

type organizationPage struct {
	Organizations []organizationView `json:"organizations"`
	pageEnd
}

type organizationView struct {
	ID        string         `json:"organization_id"`
	Name      string         `json:"name"`
	Timezone  string         `json:"timezone"`
	CreatedAt callview.Epoch `json:"created_at" nullable:"false"`
	// Market is empty without market rules; MarketVersion is empty for built-in rules.
	Market        string `json:"market"`
	MarketVersion string `json:"market_version"`
}

func showOrganization(o apikeys.Organization) organizationView {
	return organizationView{o.ID, o.Name, o.Timezone, callview.Epoch(o.CreatedAt), o.Market, o.MarketVersion}
}

// ListOrganizations answers GET /v1/admin/organizations.
func (a *Admin) ListOrganizations(w http.ResponseWriter, r *http.Request, _ apikeys.Key) error {
	p, err := paged(r, "org_")
	if err != nil {
		return err
	}
	all, err := apikeys.Organizations(r.Context(), a.DB, p.after, p.limit+1)
	if err != nil {
		return err
	}
	shown, end := listed(p, all, func(o apikeys.Organization) string { return o.ID }, showOrganization)
	response.JSON(w, http.StatusOK, organizationPage{shown, end})
	return nil
}

// ReadOrganization answers GET /v1/admin/organizations/{id}.
func (a *Admin) ReadOrganization(w http.ResponseWriter, r *http.Request, _ apikeys.Key) error {
	id, err := id(r)
	if err != nil {
		return err
	}
	o, err := apikeys.ReadOrganization(r.Context(), a.DB, id)
	if err != nil {
		return missing(err)
	}
	response.JSON(w, http.StatusOK, showOrganization(o))
	return nil
}

// CreateOrganization answers POST /v1/admin/organizations: 201, or 200 with the
// organization that has the name already.
func (a *Admin) CreateOrganization(w http.ResponseWriter, r *http.Request, _ apikeys.Key) error {
	body, err := schema.Read(w, r)
	if err != nil {
		return err
	}
	name, timezone, err := a.Schemas.Organization(body)
	if err != nil {
		return err
	}
	o, made, err := apikeys.CreateOrganization(r.Context(), a.DB, name, timezone)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if made {
		status = http.StatusCreated
	}
	response.JSON(w, status, showOrganization(o))
	return nil
}
