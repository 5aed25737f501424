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
		Template: "carriers.html", Title: r.Texts.T("trunks.carriers.title"), Crumbs: crumbs(r.Texts), Data: page,
		Lead: r.Texts.T("trunks.carriers.lead"),
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
			Name: "username", Label: r.Texts.T("trunks.carrier.username.label"), Optional: true, Complete: "off",
			Help: r.Texts.T("trunks.carrier.username.help"),
		},
		{
			Name: "password", Label: r.Texts.T("trunks.carrier.password.label"), Kind: ui.Password, Optional: true, Complete: "new-password",
			Help: r.Texts.T("trunks.carrier.password.help"),
		},
		lines("caller_numbers", r.Texts.T("trunks.carrier.caller_numbers.label"), 3, "", "+12025550100",
			r.Texts.T("trunks.carrier.caller_numbers.help")),
	}
	fields[2].Optional = false
	if c.Trunk.Proxy == nil {
		proxy := ui.Field{
			Name: "proxy", Label: r.Texts.T("trunks.carrier.proxy.label"), Code: true, Placeholder: "sip:sip.carrier.example",
			Help: r.Texts.T("trunks.carrier.proxy.help", "proxy", c.Proxy),
		}
		fields = append([]ui.Field{proxy}, fields...)
	}
	page := carrierPage{Carrier: c, Form: r.Form(ui.Form{
		Submit: r.Texts.T("trunks.carrier.submit"), Cancel: r.URL("carriers"),
		Fields: fields,
	})}
	for _, f := range c.Facts {
		if !slices.Contains(page.Sources, f.Source) {
			page.Sources = append(page.Sources, f.Source)
		}
	}
	return ui.Page{
		Template: "carrier.html", Title: c.Title, Data: page, Crumbs: crumbs(r.Texts,
			ui.Link{Label: r.Texts.T("trunks.link.connect_carrier"), Path: "carriers"}),
		Lead: r.Texts.T("trunks.carrier.lead", "destinations", strings.Join(destinations, ", ")),
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
			return ui.Result{}, ui.Invalid("proxy", r.Texts.T("ui.field.required"))
		}
	}
	if p := media.Secret(r.Raw("password")); p != "" {
		t.Password = &p
	}
	if len(*t.CallerNumbers) == 0 {
		return ui.Result{}, ui.Invalid("caller_numbers", r.Texts.T("trunks.carrier.invalid.caller_numbers"))
	}
	c.Fill(&t)
	t.Carrier = &c.Name
	err = r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) { return saveCarrier(r, q, c, t) })
	return ui.Result{To: "start", Notice: r.Texts.T("trunks.carrier.notice", "title", c.Title)}, err
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
