// Package dnc has the pages of do-not-call registries and the organization's suppression list.
package dnc

import (
	"embed"
	"errors"
	"io/fs"
	"slices"
	"strconv"
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

// loadsPerPage is the number of past loads per page.
const loadsPerPage = 25

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
	before, _ := strconv.ParseInt(r.Query("after"), 10, 64) // a page that does not exist is the first one
	past, err := dnc.OrganizationHistory(r.Context(), r.DB(), r.Org(), before, loadsPerPage+1)
	if err != nil {
		return ui.Page{}, err
	}
	past, next := ui.Paginate(r, past, loadsPerPage, func(l dnc.LoadRecord) string { return strconv.FormatInt(l.ID, 10) })
	data := map[string]any{
		"Copies": copies, "Own": min(own, most), "More": own > most, "Past": past, "Next": next, "Number": r.Query("number"),
	}
	if number := r.Query("number"); number != "" {
		if err = l.findNumber(r, number, data); err != nil {
			return ui.Page{}, err
		}
	}
	p := ui.Page{
		Template: "show.html", Title: r.Texts.T("dnc.show.title"), Lead: r.Texts.T("dnc.show.lead"), Data: data,
		Actions: []ui.Link{
			{Label: r.Texts.T("dnc.link.upload_list"), Path: "do-not-call/upload"},
			{Label: r.Texts.T("dnc.link.add_number"), Path: "do-not-call/add"},
		},
	}
	if r.Root {
		p.Actions = append(p.Actions, ui.Link{Label: r.Texts.T("dnc.link.load_registry"), Path: "do-not-call/registry", Role: operator.Owner})
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
		data["Wrong"] = r.Texts.T("dnc.show.invalid", "code", code, "reason", strings.TrimPrefix(unread.Error(), "not a telephone number: "))
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

func crumbs(texts *ui.Texts, more ...ui.Link) []ui.Link {
	return append([]ui.Link{{Label: texts.T("dnc.link.do_not_call"), Path: "do-not-call"}}, more...)
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
		Template: "numbers.html", Title: r.Texts.T("dnc.numbers.title"), Lead: r.Texts.T("dnc.numbers.lead"), Crumbs: crumbs(r.Texts),
		Actions: []ui.Link{
			{Label: r.Texts.T("dnc.link.upload_list"), Path: "do-not-call/upload"},
			{Label: r.Texts.T("dnc.link.add_number"), Path: "do-not-call/add"},
		},
		Data: map[string]any{"Numbers": all, "Next": next},
	}, nil
}

func (Lists) askAdd(r *ui.Request) (ui.Page, error) {
	return ui.Page{
		Template: "form.html",
		Title:    r.Texts.T("dnc.add.submit"),
		Crumbs:   crumbs(r.Texts),
		Lead:     r.Texts.T("dnc.add.lead"),
		Data: r.Form(ui.Form{
			Submit: r.Texts.T("dnc.add.submit"), Cancel: r.URL("do-not-call"),
			Fields: []ui.Field{{
				Name: "number", Label: r.Texts.T("dnc.add.number.label"), Kind: "tel", Placeholder: "+1 202 555 0123",
				Complete: "off",
			}},
		}),
	}, nil
}

func (Lists) add(r *ui.Request) (ui.Result, error) {
	say := r.Texts.T("dnc.add.notice")
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		digits, there, err := dnc.AddNumber(r.Context(), q, r.Org(), r.Text("number"))
		if errors.Is(err, dnc.ErrNumber) {
			return operator.Entry{}, ui.Invalid("number", err)
		}
		if there {
			say = r.Texts.T("dnc.add.repeated")
			return operator.Entry{}, err
		}
		return operator.Entry{Action: "suppression.add", Object: digits}, err
	})
	return ui.Result{To: "do-not-call/numbers", Notice: say}, err
}

func (Lists) askTake(r *ui.Request) (ui.Page, error) {
	return ui.Confirm(r, ui.Page{
		Title:  r.Texts.T("dnc.remove.title", "id", ui.FormatNumber(r.ID())),
		Crumbs: crumbs(r.Texts, ui.Link{Label: r.Texts.T("dnc.link.suppression_list"), Path: "do-not-call/numbers"}),
		Lead:   r.Texts.T("dnc.remove.lead"),
	}, r.Texts.T("dnc.remove.submit"), "do-not-call/numbers"), nil
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
	return ui.Result{To: "do-not-call/numbers", Notice: r.Texts.T("dnc.remove.notice")}, err
}

func replaceField(texts *ui.Texts, what string) ui.Field {
	return ui.Field{Name: "replace", Label: texts.T("dnc.upload.replace.label"), Kind: ui.Checkbox, Help: what}
}

func (Lists) askUpload(r *ui.Request) (ui.Page, error) {
	return ui.Page{
		Template: "form.html",
		Title:    r.Texts.T("dnc.upload.submit"),
		Crumbs:   crumbs(r.Texts),
		Lead:     r.Texts.T("dnc.upload.lead"),
		Data: r.Form(ui.Form{
			Submit: r.Texts.T("dnc.upload.submit"), Cancel: r.URL("do-not-call"), Fields: []ui.Field{
				{Name: "file", Label: r.Texts.T("dnc.upload.file.label"), Kind: ui.File, Help: r.Texts.T("dnc.upload.file.help")},
				replaceField(r.Texts, r.Texts.T("dnc.upload.replace.help")),
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
		To: "do-not-call",
		Notice: r.Texts.T("dnc.upload.notice", "added", r.Texts.T("dnc.count.numbers", "count", done.Added), "deleted", done.Deleted, "total",
			done.Numbers),
	}, nil
}

func (Lists) askRegistry(r *ui.Request) (ui.Page, error) {
	return ui.Page{
		Template: "form.html",
		Title:    r.Texts.T("dnc.registry.submit"),
		Crumbs:   crumbs(r.Texts),
		Lead:     r.Texts.T("dnc.registry.lead"),
		Data: r.Form(ui.Form{
			Submit: r.Texts.T("dnc.registry.submit"), Cancel: r.URL("do-not-call"), Fields: []ui.Field{
				{
					Name: "registry", Label: r.Texts.T("dnc.registry.registry.label"), Placeholder: "us_national",
					Help: r.Texts.T("dnc.registry.registry.help"),
				},
				{Name: "file", Label: r.Texts.T("dnc.registry.file.label"), Kind: ui.File, Help: r.Texts.T("dnc.registry.file.help")},
				{
					Name: "areas", Label: r.Texts.T("dnc.registry.areas.label"), Optional: true, Placeholder: "212, 646",
					Help: r.Texts.T("dnc.registry.areas.help"),
				},
				{Name: "downloaded", Label: r.Texts.T("dnc.registry.downloaded.label"), Kind: "date", Help: r.Texts.T("dnc.registry.downloaded.help")},
				replaceField(r.Texts, r.Texts.T("dnc.registry.replace.help")),
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
		return ui.Result{}, ui.Invalid("downloaded", r.Texts.T("dnc.registry.invalid.downloaded"))
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
		Notice: r.Texts.T("dnc.registry.notice", "name", done.Name, "numbers", done.Numbers, "areas", done.Areas),
	}, nil
}
