// Package dnc has the pages of do-not-call registries and the organization's suppression list.
package dnc

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/campaigns/dnc"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
)

//go:embed pages/*.html
var files embed.FS

// Lists serves the pages of do-not-call lists.
type Lists struct{ Catalog *dnc.Catalog }

// Size limits of files and the time limit of loading.
const (
	mostOwn      = 64 << 20  // bytes
	mostRegistry = 512 << 20 // bytes
	loading      = 15 * time.Minute
)

// Module returns the pages.
func (l Lists) Module() (ui.Module, error) {
	pages, err := fs.Sub(files, "pages")
	return ui.Module{
		Name: "lists", Files: pages,
		Links: []ui.Link{{Section: "ui.menu.calling", Label: "ui.menu.do_not_call", Path: "do-not-call"}},
		Routes: []ui.Route{
			{Path: "do-not-call", Show: l.show},
			{Path: "do-not-call/numbers", Show: l.numbers},
			{Path: "do-not-call/add", Show: l.askAdd, Submit: l.add},
			{Path: "do-not-call/upload", Show: l.askUpload, Submit: l.upload, MaxBytes: mostOwn, Timeout: loading},
			{Path: "do-not-call/numbers/{id}/remove", Show: l.askTake, Submit: l.take},
			{
				Path: "do-not-call/registry", Role: operator.Owner, Root: true, Show: l.askRegistry,
				Submit: l.load, MaxBytes: mostRegistry, Timeout: loading,
			},
		},
	}, err
}

type registryCopy struct {
	dnc.Copy

	Age     time.Duration
	Stale   bool
	Country int // number of area codes of the country
}

// most limits the counting of the suppression list.
const most = 100_000

// mostLoads limits the list of past loads.
const mostLoads = 25

func (l Lists) show(r *ui.Request) (ui.Page, error) {
	all, err := l.Catalog.Copies(r.Context())
	if err != nil {
		return ui.Page{}, err
	}
	var copies []registryCopy
	for _, c := range all {
		shown := registryCopy{Copy: c, Age: time.Since(c.Downloaded)}
		code, _, _ := strings.Cut(c.Name, "_")
		pkg, fault := market.Load(code)
		if fault != nil {
			return ui.Page{}, fault
		}
		shown.Stale, shown.Country = pkg.StaleAfter > 0 && shown.Age > pkg.StaleAfter, len(pkg.Areas())
		copies = append(copies, shown)
	}
	own, err := dnc.CountOwn(r.Context(), r.DB(), r.Org(), most+1)
	if err != nil {
		return ui.Page{}, err
	}
	past, err := dnc.OrganizationHistory(r.Context(), r.DB(), r.Org(), mostLoads)
	if err != nil {
		return ui.Page{}, err
	}
	data := map[string]any{"Copies": copies, "Own": min(own, most), "More": own > most, "Past": past, "Number": r.Query("number")}
	if number := r.Query("number"); number != "" {
		if err = l.findNumber(r, number, data); err != nil {
			return ui.Page{}, err
		}
	}
	p := ui.Page{
		Template: "show.html", Title: "Do-not-call", Lead: "Do-not-call registries and your organization’s suppression list.", Data: data,
		Actions: []ui.Link{{Label: "Upload list", Path: "do-not-call/upload"}, {Label: "Add number", Path: "do-not-call/add"}},
	}
	if r.Root {
		p.Actions = append(p.Actions, ui.Link{Label: "Load registry", Path: "do-not-call/registry", Role: operator.Owner})
	}
	return p, nil
}

func (l Lists) findNumber(r *ui.Request, number string, data map[string]any) error {
	o, err := apikeys.ReadOrganization(r.Context(), r.DB(), r.Org())
	if err != nil {
		return err
	}
	code := o.Market
	if code == "" {
		code = "us"
	}
	pkg, err := market.Load(code)
	if err != nil {
		return err
	}
	n, unread := pkg.Read(number)
	if unread != nil {
		data["Wrong"] = "Invalid number for market " + code + ": " + strings.TrimPrefix(unread.Error(), "not a telephone number: ") + "."
		return nil
	}
	looks, err := l.Catalog.Lookup(r.Context(), code, n.E164)
	if err != nil {
		return err
	}
	own, err := (&store.Store{}).Suppressed(r.Context(), r.DB(), r.Org(), []string{n.E164})
	data["E164"], data["Results"], data["Listed"] = n.E164, looks, own[n.E164]
	return err
}

func crumbs(more ...ui.Link) []ui.Link {
	return append([]ui.Link{{Label: "Do-not-call", Path: "do-not-call"}}, more...)
}

// perPage is the number of entries per page.
const perPage = 100

func (Lists) numbers(r *ui.Request) (ui.Page, error) {
	all, err := dnc.OwnNumbers(r.Context(), r.DB(), r.Org(), r.Query("after"), perPage+1)
	if err != nil {
		return ui.Page{}, err
	}
	all, next := ui.Paginate(r, all, perPage, func(o dnc.OwnNumber) string { return o.Number })
	return ui.Page{
		Template: "numbers.html", Title: "Suppression list", Lead: "This organization never calls these numbers.", Crumbs: crumbs(),
		Actions: []ui.Link{{Label: "Upload list", Path: "do-not-call/upload"}, {Label: "Add number", Path: "do-not-call/add"}},
		Data:    map[string]any{"Numbers": all, "Next": next},
	}, nil
}

func (Lists) askAdd(r *ui.Request) (ui.Page, error) {
	return ui.Page{
		Template: "form.html",
		Title:    "Add number",
		Crumbs:   crumbs(),
		Lead:     "The number will not be called any more.",
		Data: r.Form(ui.Form{
			Submit: "Add number", Cancel: r.URL("do-not-call"),
			Fields: []ui.Field{{Name: "number", Label: "Number", Kind: "tel", Placeholder: "+12025550123", Complete: "off"}},
		}),
	}, nil
}

func (Lists) add(r *ui.Request) (ui.Result, error) {
	say := "Number added to the suppression list."
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		digits, there, err := dnc.AddNumber(r.Context(), q, r.Org(), r.Text("number"))
		if errors.Is(err, dnc.ErrNumber) {
			return operator.Entry{}, ui.Invalid("number", err)
		}
		if there {
			say = "The number is already on the suppression list."
			return operator.Entry{}, err
		}
		return operator.Entry{Action: "suppression.add", Object: digits}, err
	})
	return ui.Result{To: "do-not-call/numbers", Notice: say}, err
}

func (Lists) askTake(r *ui.Request) (ui.Page, error) {
	return ui.Confirm(r, ui.Page{
		Title:  "Remove " + ui.FormatNumber(r.ID()),
		Crumbs: crumbs(ui.Link{Label: "Suppression list", Path: "do-not-call/numbers"}),
		Lead:   "The number can be called again unless a registry lists it. Opt-outs cannot be removed.",
	}, "Remove number", "do-not-call/numbers"), nil
}

func (Lists) take(r *ui.Request) (ui.Result, error) {
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		err := dnc.RemoveNumber(r.Context(), q, r.Org(), r.ID())
		switch {
		case errors.Is(err, dnc.ErrNumber):
			err = ui.ErrNotFound
		case errors.Is(err, dnc.ErrOptedOut):
			err = ui.Invalid("", err)
		}
		return operator.Entry{Action: "suppression.remove", Object: r.ID()}, err
	})
	return ui.Result{To: "do-not-call/numbers", Notice: "Number removed from the suppression list."}, err
}

func replaceField(what string) ui.Field {
	return ui.Field{Name: "replace", Label: "Replace the current list", Kind: ui.Checkbox, Help: what}
}

func (Lists) askUpload(r *ui.Request) (ui.Page, error) {
	return ui.Page{
		Template: "form.html",
		Title:    "Upload list",
		Crumbs:   crumbs(),
		Lead:     "Adds numbers to the suppression list.",
		Data: r.Form(ui.Form{
			Submit: "Upload list", Cancel: r.URL("do-not-call"), Fields: []ui.Field{
				{Name: "file", Label: "File", Kind: ui.File, Help: "Text or CSV with numbers, or a zip of such files; up to 64 MiB."},
				replaceField("If off, the numbers are added to the list. Opt-outs always stay on the list."),
				ui.OnceField(),
			},
		}),
	}, nil
}

func (l Lists) upload(r *ui.Request) (ui.Result, error) {
	sum, err := r.Sum("file")
	if err != nil {
		return ui.Result{}, err
	}
	return r.DoOnce(func() (ui.Result, error) { return l.loadOwn(r) }, sum, r.Ticked("replace"))
}

func (l Lists) loadOwn(r *ui.Request) (ui.Result, error) {
	done, err := l.loadList(r, dnc.Load{OrgID: r.Org()}, l.Catalog.LoadOwn)
	if err != nil {
		return ui.Result{}, err
	}
	return ui.Result{
		To:     "do-not-call",
		Notice: fmt.Sprintf("%s added, %d removed. Total: %d.", ui.Plural(done.Added, "number", "numbers"), done.Deleted, done.Numbers),
	}, nil
}

func (Lists) askRegistry(r *ui.Request) (ui.Page, error) {
	return ui.Page{
		Template: "form.html",
		Title:    "Load registry",
		Crumbs:   crumbs(),
		Lead:     "Applies to all organizations of its market. For very large files use parley dnc load.",
		Data: r.Form(ui.Form{
			Submit: "Load registry", Cancel: r.URL("do-not-call"), Fields: []ui.Field{
				{Name: "registry", Label: "Registry", Placeholder: "us_national", Help: "us_national, or us_state_ plus the two-letter state code."},
				{Name: "file", Label: "File", Kind: ui.File, Help: "Text, CSV or XML, or a zip of such files; up to 512 MiB."},
				{
					Name: "areas", Label: "Covered area codes", Optional: true, Placeholder: "212, 646",
					Help: "Comma-separated, or all. Unlisted numbers in these area codes may be called.",
				},
				{Name: "downloaded", Label: "Downloaded on", Kind: "date", Help: "Date of the download from the registry."},
				replaceField("If off, the additions and deletions in the file are applied."),
				ui.OnceField(),
			},
		}),
	}, nil
}

func (l Lists) load(r *ui.Request) (ui.Result, error) {
	sum, err := r.Sum("file")
	if err != nil {
		return ui.Result{}, err
	}
	return r.DoOnce(func() (ui.Result, error) { return l.loadRegistry(r) },
		sum, r.Ticked("replace"), r.Text("registry"), r.Text("areas"), r.Text("downloaded"))
}

func (l Lists) loadRegistry(r *ui.Request) (ui.Result, error) {
	load := dnc.Load{Name: r.Text("registry")}
	if err := dnc.CheckName(load.Name); err != nil {
		return ui.Result{}, ui.Invalid("registry", err)
	}
	day, err := time.Parse(time.DateOnly, r.Text("downloaded"))
	if err != nil {
		return ui.Result{}, ui.Invalid("downloaded", "Enter a date such as 2026-11-01.")
	}
	load.Downloaded = day
	code, _, _ := strings.Cut(load.Name, "_")
	pkg, err := market.Load(code)
	if err != nil {
		return ui.Result{}, err
	}
	load.Country = pkg.Areas()
	load.Areas = strings.FieldsFunc(r.Text("areas"), func(c rune) bool { return c == ',' || c == ' ' })
	if slices.Equal(load.Areas, []string{"all"}) {
		load.Areas = load.Country
	}
	done, err := l.loadList(r, load, l.Catalog.Load)
	if err != nil {
		return ui.Result{}, err
	}
	return ui.Result{
		To:     "do-not-call",
		Notice: fmt.Sprintf("%s loaded: %d numbers in %d area codes.", done.Name, done.Numbers, done.Areas),
	}, nil
}
