package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/campaigns/packages"
	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
)

// mostPackage is how large the zip of a market package may be.
const mostPackage = 16 << 20

// A version is a package as it is shown.
type version struct {
	packages.Kept

	Here bool // this organization goes by it
	Used int
}

func (Settings) packages(r *frame.Request) (frame.Page, error) {
	o, err := access.ReadOrganization(r.Context(), r.DB(), r.Org())
	if err != nil {
		return frame.Page{}, err
	}
	all, err := packages.List(r.Context(), r.DB())
	if err != nil {
		return frame.Page{}, err
	}
	shown := make([]version, len(all))
	for i, k := range all {
		shown[i] = version{Kept: k, Here: k.Code == o.Market && (k.OfProgram && o.MarketVersion == "" || !k.OfProgram && k.Version == o.MarketVersion), Used: len(k.UsedBy)}
		if !r.Root {
			shown[i].UsedBy = nil // others' names
		}
	}
	p := frame.Page{
		Template: "market.html", Title: "Market rules", Lead: "The law of a market, as data: when one may call there, how often, whom not, and what is to be said.",
		Actions: []frame.Link{{Label: "Choose rules", Path: "market/use", Needs: operator.Owner}},
		Data:    map[string]any{"All": shown, "Market": o.Market},
	}
	if r.Root {
		p.Actions = append(p.Actions, frame.Link{Label: "Install rules", Path: "market/install", Needs: operator.Owner})
	}
	return p, nil
}

func aboveMarket() []frame.Link { return []frame.Link{{Label: "Market rules", Path: "market"}} }

func (Settings) askUse(r *frame.Request) (frame.Page, error) {
	o, err := access.ReadOrganization(r.Context(), r.DB(), r.Org())
	if err != nil {
		return frame.Page{}, err
	}
	all, err := packages.List(r.Context(), r.DB())
	options := []frame.Option{{Value: "", Label: "None"}}
	for _, k := range all {
		if k.OfProgram {
			options = append(options, frame.Option{Value: k.Code, Label: k.Code + ", built in (now " + k.Version + ")"})
		} else {
			options = append(options, frame.Option{Value: k.Code + " " + k.Version, Label: k.Code + ", version " + k.Version})
		}
	}
	return frame.Page{
		Template: "form.html", Title: "Choose the rules", Crumbs: aboveMarket(),
		Lead: "Campaigns of that market go by them from their next call on; those of another call nobody while these are chosen.",
		Data: r.Form(frame.Form{Submit: "Use these rules", Cancel: r.URL("market"), Of: rules(o.Market, o.MarketVersion), Fields: []frame.Field{
			{
				Name: "rules", Label: "Rules", Kind: frame.Select, Value: strings.TrimSpace(o.Market + " " + o.MarketVersion), Options: options,
				Help: "Rules that are built in change with the program; those of a version stay as they are. With none, the organization’s own window and caps count alone.",
			},
		}}),
	}, err
}

func (Settings) use(r *frame.Request) (frame.Done, error) {
	code, chosen, _ := strings.Cut(r.Text("rules"), " ")
	err := r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		all, fault := packages.List(r.Context(), q)
		if fault != nil {
			return operator.Entry{}, fault
		}
		if code != "" && !slices.ContainsFunc(all, func(k packages.Kept) bool {
			return k.Code == code && (k.OfProgram && chosen == "" || !k.OfProgram && k.Version == chosen)
		}) {
			return operator.Entry{}, frame.Invalid("rules", "There are no such rules.")
		}
		o, fault := access.ReadOrganization(r.Context(), q, r.Org())
		if fault != nil {
			return operator.Entry{}, fault
		}
		before, after := rules(o.Market, o.MarketVersion), rules(code, chosen)
		if fault = r.Same(before); fault != nil {
			return operator.Entry{}, fault
		}
		return operator.Entry{Action: "organization.market", Object: r.Org(), Before: before, After: after}, packages.Use(r.Context(), q, r.Org(), code, chosen)
	})
	return frame.Done{To: "market", Say: "The organization goes by these rules."}, err
}

// rules are those of a market, as the log keeps them.
func rules(code, version string) map[string]any {
	return map[string]any{"market": code, "version": version}
}

func (Settings) askInstall(r *frame.Request) (frame.Page, error) {
	return frame.Page{
		Template: "form.html", Title: "Install rules", Crumbs: aboveMarket(), Lead: "They are kept beside those of the program; an organization goes by them once it chooses them.",
		Data: r.Form(frame.Form{Submit: "Install", Cancel: r.URL("market"), Fields: []frame.Field{{Name: "file", Label: "Zip with package.yaml and its tables", Kind: frame.File}}}),
	}, nil
}

func (Settings) install(r *frame.Request) (frame.Done, error) {
	name, remove, err := r.File("file")
	if err != nil {
		return frame.Done{}, err
	}
	defer remove()
	read, err := packages.Open(name)
	if err != nil {
		return frame.Done{}, frame.Invalid("file", "This is no zip of rules.")
	}
	say := ""
	err = r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		p, fault := packages.Install(r.Context(), q, read, r.Session.Email)
		if fault != nil {
			return operator.Entry{}, frame.Refused(fault)
		}
		say = fmt.Sprintf("%s %s can be chosen.", p.Code, p.Version)
		return operator.Entry{Action: "market.install", Object: p.Code + " " + p.Version}, nil
	})
	return frame.Done{To: "market", Say: say}, err
}
