package settings

import (
	"slices"
	"strings"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/campaigns/marketstore"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
)

// mostPackage limits the zip of a market package, in bytes.
const mostPackage = 16 << 20

type version struct {
	marketstore.Info

	Here bool // this organization uses it
	Used int
}

func (Settings) packages(r *ui.Request) (ui.Page, error) {
	o, err := apikeys.ReadOrganization(r.Context(), r.DB(), r.Org())
	if err != nil {
		return ui.Page{}, err
	}
	all, err := marketstore.List(r.Context(), r.DB())
	if err != nil {
		return ui.Page{}, err
	}
	shown := make([]version, len(all))
	for i, k := range all {
		shown[i] = version{
			Info: k,
			Here: k.Code == o.Market && (k.BuiltIn && o.MarketVersion == "" || !k.BuiltIn && k.Version == o.MarketVersion),
			Used: len(k.UsedBy),
		}
		if !r.Root {
			shown[i].UsedBy = nil // names of the other organizations that use it
		}
	}
	p := ui.Page{
		Template: "market.html", Title: r.Texts.T("settings.market.title"),
		Lead:    r.Texts.T("settings.market.lead"),
		Actions: []ui.Link{{Label: r.Texts.T("settings.link.choose_rules"), Path: "market/use", Role: operator.Owner}},
		Data:    map[string]any{"All": shown, "Market": o.Market},
	}
	if r.Root {
		p.Actions = append(p.Actions, ui.Link{Label: r.Texts.T("settings.link.install_rules"), Path: "market/install", Role: operator.Owner})
	}
	return p, nil
}

func aboveMarket(texts *ui.Texts) []ui.Link {
	return []ui.Link{{Label: texts.T("settings.link.market_rules"), Path: "market"}}
}

func (Settings) askUse(r *ui.Request) (ui.Page, error) {
	o, err := apikeys.ReadOrganization(r.Context(), r.DB(), r.Org())
	if err != nil {
		return ui.Page{}, err
	}
	all, err := marketstore.List(r.Context(), r.DB())
	options := []ui.Option{{Value: "", Label: r.Texts.T("settings.use.option.none")}}
	for _, k := range all {
		if k.BuiltIn {
			options = append(options, ui.Option{
				Value: k.Code,
				Label: r.Texts.T("settings.use.option.built_in", "code", k.Code, "version", k.Version),
			})
		} else {
			options = append(options, ui.Option{
				Value: k.Code + " " + k.Version,
				Label: r.Texts.T("settings.use.option.version", "code", k.Code, "version", k.Version),
			})
		}
	}
	return ui.Page{
		Template: "form.html", Title: r.Texts.T("settings.use.title"), Crumbs: aboveMarket(r.Texts),
		Lead: r.Texts.T("settings.use.lead"),
		Data: r.Form(ui.Form{
			Submit: r.Texts.T("settings.use.submit"), Cancel: r.URL("market"), Of: rules(o.Market, o.MarketVersion),
			Fields: []ui.Field{
				{
					Name: "rules", Label: r.Texts.T("settings.use.rules.label"), Kind: ui.Select, Value: strings.TrimSpace(o.Market + " " +
						o.MarketVersion), Options: options,
					Help: r.Texts.T("settings.use.rules.help"),
				},
			},
		}),
	}, err
}

func (Settings) use(r *ui.Request) (ui.Result, error) {
	code, chosen, _ := strings.Cut(r.Text("rules"), " ")
	err := r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		all, fault := marketstore.List(r.Context(), q)
		if fault != nil {
			return operator.Entry{}, fault
		}
		if code != "" && !slices.ContainsFunc(all, func(k marketstore.Info) bool {
			return k.Code == code && (k.BuiltIn && chosen == "" || !k.BuiltIn && k.Version == chosen)
		}) {
			return operator.Entry{}, ui.Invalid("rules", r.Texts.T("settings.use.invalid.rules"))
		}
		o, fault := apikeys.ReadOrganization(r.Context(), q, r.Org())
		if fault != nil {
			return operator.Entry{}, fault
		}
		before, after := rules(o.Market, o.MarketVersion), rules(code, chosen)
		if fault = r.Same(before); fault != nil {
			return operator.Entry{}, fault
		}
		return operator.Entry{
			Action: "organization.market", Object: r.Org(), Before: before, After: after,
		}, marketstore.Assign(r.Context(), q, r.Org(), code, chosen)
	})
	return ui.Result{To: "market", Notice: r.Texts.T("settings.use.notice")}, err
}

// rules are the market rules in the audit log.
func rules(code, version string) map[string]any {
	return map[string]any{"market": code, "version": version}
}

func (Settings) askInstall(r *ui.Request) (ui.Page, error) {
	return ui.Page{
		Template: "form.html", Title: r.Texts.T("settings.install.title"), Crumbs: aboveMarket(r.Texts),
		Lead: r.Texts.T("settings.install.lead"),
		Data: r.Form(
			ui.Form{
				Submit: r.Texts.T("settings.install.submit"),
				Cancel: r.URL("market"),
				Fields: []ui.Field{{Name: "file", Label: r.Texts.T("settings.install.file.label"), Kind: ui.File}},
			},
		),
	}, nil
}

func (Settings) install(r *ui.Request) (ui.Result, error) {
	name, remove, err := r.File("file")
	if err != nil {
		return ui.Result{}, err
	}
	defer remove()
	read, err := marketstore.Open(name)
	if err != nil {
		return ui.Result{}, ui.Invalid("file", r.Texts.T("settings.install.invalid.file"))
	}
	say := ""
	err = r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		p, fault := marketstore.Install(r.Context(), q, read, r.Session.Email)
		if fault != nil {
			return operator.Entry{}, ui.InvalidFromApply(fault)
		}
		say = r.Texts.T("settings.install.notice", "code", p.Code, "version", p.Version)
		return operator.Entry{Action: "market.install", Object: p.Code + " " + p.Version}, nil
	})
	return ui.Result{To: "market", Notice: say}, err
}
