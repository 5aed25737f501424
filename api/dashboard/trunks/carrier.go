package trunks

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/media"
)

// carriersPage lists the profiles. Suffix is the query string of the forms, which lead back to the page of the steps.
type carriersPage struct {
	Carriers apply.Carriers
	Suffix   string
}

func (Trunks) listCarriers(r *ui.Request) (ui.Page, error) {
	all, err := apply.AllCarriers()
	page := carriersPage{Carriers: all}
	if r.Query("next") == "start" {
		page.Suffix = "?next=start"
	}
	return ui.Page{
		Template: "carriers.html", Title: "Connect a carrier", Crumbs: crumbs(), Data: page,
		Lead: "A profile has the settings that the carrier documents. You enter your account and your numbers.",
	}, err
}

// carrierOf returns the profile of a page.
func carrierOf(r *ui.Request) (apply.Carrier, error) {
	all, err := apply.AllCarriers()
	if err != nil {
		return apply.Carrier{}, err
	}
	c, err := all.Find(r.ID())
	if err != nil {
		return c, ui.ErrNotFound
	}
	return c, nil
}

// A carrierPage is the form of a carrier, with what must be done at the carrier.
type carrierPage struct {
	Form    ui.Form
	Carrier apply.Carrier
	Sources []string
}

func (Trunks) askCarrier(r *ui.Request) (ui.Page, error) {
	c, err := carrierOf(r)
	if err != nil {
		return ui.Page{}, err
	}
	destinations, err := destinationsOf(r, r.DB())
	fields := []ui.Field{
		{
			Name: "username", Label: "SIP user name", Optional: true, Complete: "off",
			Help: "Leave empty if the carrier permits your servers by IP address.",
		},
		{
			Name: "password", Label: "Password", Kind: ui.Password, Optional: true, Complete: "new-password",
			Help: "It is stored and never shown again.",
		},
		lines("caller_numbers", "Your numbers", 3, "", "+12025550100",
			"Calls show one of them. One per line, beginning with + and the country code."),
	}
	fields[2].Optional = false
	if c.Trunk.Proxy == nil {
		proxy := ui.Field{Name: "proxy", Label: "Proxy", Code: true, Placeholder: "sip:sip.carrier.example", Help: "Use " + c.Proxy + "."}
		fields = append([]ui.Field{proxy}, fields...)
	}
	page := carrierPage{Carrier: c, Form: r.Form(ui.Form{Submit: "Connect", Cancel: r.URL("carriers"), Fields: fields})}
	for _, f := range c.Facts {
		if !slices.Contains(page.Sources, f.Source) {
			page.Sources = append(page.Sources, f.Source)
		}
	}
	return ui.Page{
		Template: "carrier.html", Title: c.Title, Data: page, Crumbs: crumbs(ui.Link{Label: "Connect a carrier", Path: "carriers"}),
		Lead: "Connect creates a trunk and a subgroup. All agents may use it. Allowed destinations: " + strings.Join(destinations, ", ") + ".",
	}, err
}

// destinationsOf returns what a new subgroup may call: the country of the organization's market.
func destinationsOf(r *ui.Request, q db.Querier) ([]string, error) {
	o, err := apikeys.ReadOrganization(r.Context(), q, r.Org())
	if o.Market == "kz" {
		return []string{"7"}, err
	}
	return []string{"US"}, err
}

// connect creates a trunk by a carrier profile, with a subgroup.
func (Trunks) connect(r *ui.Request) (ui.Result, error) {
	c, err := carrierOf(r)
	if err != nil {
		return ui.Result{}, err
	}
	proxy, user := r.Text("proxy"), r.Text("username")
	t := apply.Trunk{Username: &user, CallerNumbers: splitList(r, "caller_numbers")}
	if c.Trunk.Proxy == nil {
		if t.Proxy = &proxy; proxy == "" {
			return ui.Result{}, ui.Invalid("proxy", "Required.")
		}
	}
	if p := media.Secret(r.Raw("password")); p != "" {
		t.Password = &p
	}
	if len(*t.CallerNumbers) == 0 {
		return ui.Result{}, ui.Invalid("caller_numbers", "Enter at least one number.")
	}
	c.Fill(&t)
	t.Carrier = &c.Name
	err = r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) { return saveCarrier(r, q, c, t) })
	return ui.Result{To: "start", Notice: c.Title + ": trunk created. Check now whether the carrier answers."}, err
}

// saveCarrier creates the trunk of a carrier profile, and a subgroup for all agents.
func saveCarrier(r *ui.Request, q db.Querier, c apply.Carrier, t apply.Trunk) (operator.Entry, error) {
	var err error
	for n := 1; err == nil; n++ {
		if t.Name = c.Name; n > 1 {
			t.Name = fmt.Sprintf("%s-%d", c.Name, n)
		}
		_, err = trunks.Find(r.Context(), q, r.Org(), t.Name)
	}
	if !errors.Is(err, trunks.ErrUnknown) {
		return operator.Entry{}, err
	}
	names, err := agents.Names(r.Context(), q, r.Org())
	if err != nil {
		return operator.Entry{}, err
	}
	destinations, err := destinationsOf(r, q)
	if err != nil {
		return operator.Entry{}, err
	}
	concurrent, minute := trunks.DefaultConcurrent, trunks.DefaultPerMinute
	if l := t.Limits; l != nil && l.ConcurrentCalls != nil && *l.ConcurrentCalls > 0 {
		concurrent = min(concurrent, *l.ConcurrentCalls)
	}
	t.Subgroups = []apply.Subgroup{{
		Name: "default", AllowedDestinations: &destinations, Agents: &names, ConcurrentCalls: &concurrent, CallsPerMinute: &minute,
	}}
	if err = r.Apply(q, apply.Organization{Name: r.Member.Name, Trunks: []apply.Trunk{t}}); err != nil {
		return operator.Entry{}, err
	}
	is, err := trunks.Find(r.Context(), q, r.Org(), t.Name)
	after := auditView(is)
	after["carrier"], after["subgroup"], after["allowed_destinations"] = c.Name, "default", destinations
	if t.Password != nil {
		after["password"] = "changed"
	}
	return operator.Entry{Action: "trunk.create", Object: is.ID, After: after}, err
}
