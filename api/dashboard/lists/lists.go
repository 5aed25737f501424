// Package lists shows the do-not-call lists: registries, how old they are and what
// they cover, and the organization's own.
package lists

import (
	"embed"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/api/dashboard/words"
	"github.com/parley-voice/parley/campaigns/lists"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
)

//go:embed pages/*.html
var files embed.FS

// Lists is the room of do-not-call lists.
type Lists struct{ Shelf *lists.Shelf }

// How large files are, and how long they may take.
const (
	mostOwn      = 64 << 20  // bytes
	mostRegistry = 512 << 20 // bytes
	loading      = 15 * time.Minute
)

// Room returns its pages.
func (l Lists) Room() (frame.Room, error) {
	pages, err := fs.Sub(files, "pages")
	return frame.Room{
		Name: "lists", Files: pages,
		Links: []frame.Link{{Section: "Calling", Label: "Do-not-call", Path: "do-not-call"}},
		Routes: []frame.Route{
			{Path: "do-not-call", Look: l.show},
			{Path: "do-not-call/numbers", Look: l.numbers},
			{Path: "do-not-call/add", Look: l.askAdd, Change: l.add},
			{Path: "do-not-call/upload", Look: l.askUpload, Change: l.upload, Most: mostOwn, Long: loading},
			{Path: "do-not-call/numbers/{id}/remove", Look: l.askTake, Change: l.take},
			{Path: "do-not-call/registry", Needs: operator.Owner, Root: true, Look: l.askRegistry, Change: l.load, Most: mostRegistry, Long: loading},
		},
	}, err
}

// A copy is a registry in use.
type copied struct {
	lists.Copy

	Age     time.Duration
	Stale   bool
	Country int // area codes that the country has
}

// most own numbers that are counted out.
const most = 100_000

// mostLoads is how many past loads are listed.
const mostLoads = 25

func (l Lists) show(r *frame.Request) (frame.Page, error) {
	all, err := l.Shelf.Copies(r.Context())
	if err != nil {
		return frame.Page{}, err
	}
	var copies []copied
	for _, c := range all {
		shown := copied{Copy: c, Age: time.Since(c.Downloaded)}
		code, _, _ := strings.Cut(c.Name, "_")
		pkg, fault := market.Load(code)
		if fault != nil {
			return frame.Page{}, fault
		}
		shown.Stale, shown.Country = pkg.StaleAfter > 0 && shown.Age > pkg.StaleAfter, len(pkg.Areas())
		copies = append(copies, shown)
	}
	own, err := lists.CountOwn(r.Context(), r.DB(), r.Org(), most+1)
	if err != nil {
		return frame.Page{}, err
	}
	past, err := lists.HistoryOf(r.Context(), r.DB(), r.Org(), mostLoads)
	if err != nil {
		return frame.Page{}, err
	}
	data := map[string]any{"Copies": copies, "Own": min(own, most), "More": own > most, "Past": past, "Number": r.Query("number")}
	if number := r.Query("number"); number != "" {
		if err = l.look(r, number, data); err != nil {
			return frame.Page{}, err
		}
	}
	p := frame.Page{
		Template: "show.html", Title: "Do-not-call", Lead: "Who is not to be called: by the registries, and by the organization’s own list.", Data: data,
		Actions: []frame.Link{{Label: "Upload a list", Path: "do-not-call/upload"}, {Label: "Add a number", Path: "do-not-call/add"}},
	}
	if r.Root {
		p.Actions = append(p.Actions, frame.Link{Label: "Load a registry", Path: "do-not-call/registry", Needs: operator.Owner})
	}
	return p, nil
}

// look tells on which lists a number is.
func (l Lists) look(r *frame.Request, number string, data map[string]any) error {
	o, err := access.ReadOrganization(r.Context(), r.DB(), r.Org())
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
		data["Wrong"] = "This is no number of the market " + code + ": " + strings.TrimPrefix(unread.Error(), "no telephone number: ") + "."
		return nil
	}
	looks, err := l.Shelf.Look(r.Context(), code, n.E164)
	if err != nil {
		return err
	}
	own, err := (&store.Store{}).Suppressed(r.Context(), r.DB(), r.Org(), []string{n.E164})
	data["E164"], data["Looks"], data["Listed"] = n.E164, looks, own[n.E164]
	return err
}

func above(more ...frame.Link) []frame.Link {
	return append([]frame.Link{{Label: "Do-not-call", Path: "do-not-call"}}, more...)
}

// perPage is how many numbers a page has.
const perPage = 100

func (Lists) numbers(r *frame.Request) (frame.Page, error) {
	all, err := lists.OwnNumbers(r.Context(), r.DB(), r.Org(), r.Query("after"), perPage+1)
	if err != nil {
		return frame.Page{}, err
	}
	all, next := frame.Paged(r, all, perPage, func(o lists.Own) string { return o.Number })
	return frame.Page{
		Template: "numbers.html", Title: "The organization’s own list", Lead: "No campaign and no single call of this organization calls these.", Crumbs: above(),
		Actions: []frame.Link{{Label: "Upload a list", Path: "do-not-call/upload"}, {Label: "Add a number", Path: "do-not-call/add"}},
		Data:    map[string]any{"Numbers": all, "Next": next},
	}, nil
}

func (Lists) askAdd(r *frame.Request) (frame.Page, error) {
	return frame.Page{Template: "form.html", Title: "Add a number", Crumbs: above(), Lead: "It is not called from now on.", Data: r.Form(frame.Form{
		Submit: "Add the number", Cancel: r.URL("do-not-call"), Fields: []frame.Field{{Name: "number", Label: "Number", Kind: "tel", Placeholder: "+12025550123", Complete: "off"}},
	})}, nil
}

func (Lists) add(r *frame.Request) (frame.Done, error) {
	say := "The number is on the list."
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		digits, there, err := lists.Put(r.Context(), q, r.Org(), r.Text("number"))
		if errors.Is(err, lists.ErrNumber) {
			return operator.Entry{}, frame.Invalid("number", err)
		}
		if there {
			say = "The number was on the list already."
			return operator.Entry{}, err
		}
		return operator.Entry{Action: "suppression.add", Object: digits}, err
	})
	return frame.Done{To: "do-not-call/numbers", Say: say}, err
}

func (Lists) askTake(r *frame.Request) (frame.Page, error) {
	return frame.Page{
		Template: "form.html", Title: "Take " + words.Number(r.ID()) + " off the list", Crumbs: above(frame.Link{Label: "Own list", Path: "do-not-call/numbers"}),
		Lead: "It may be called again, as far as registries let it. Who asked not to be called stays on the list.",
		Data: r.Form(frame.Form{Submit: "Take it off", Danger: true, Cancel: r.URL("do-not-call/numbers")}),
	}, nil
}

func (Lists) take(r *frame.Request) (frame.Done, error) {
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		err := lists.Take(r.Context(), q, r.Org(), r.ID())
		switch {
		case errors.Is(err, lists.ErrNumber):
			err = frame.ErrMissing
		case errors.Is(err, lists.ErrAsked):
			err = frame.Invalid("", err)
		}
		return operator.Entry{Action: "suppression.remove", Object: r.ID()}, err
	})
	return frame.Done{To: "do-not-call/numbers", Say: "The number is off the list."}, err
}

func replaceField(what string) frame.Field {
	return frame.Field{Name: "replace", Label: "Replace what is listed", Kind: frame.Box, Help: what}
}

func (Lists) askUpload(r *frame.Request) (frame.Page, error) {
	return frame.Page{Template: "form.html", Title: "Upload a list", Crumbs: above(), Lead: "For the organization’s own list.", Data: r.Form(frame.Form{
		Submit: "Upload the list", Cancel: r.URL("do-not-call"), Fields: []frame.Field{
			{Name: "file", Label: "File", Kind: frame.File, Help: "Text or CSV of numbers, or a zip of such; 64 MiB at most."},
			replaceField("Else the numbers are added. Who asked not to be called stays on the list either way."),
			frame.Once(),
		},
	})}, nil
}

func (l Lists) upload(r *frame.Request) (frame.Done, error) {
	sum, err := r.Sum("file")
	if err != nil {
		return frame.Done{}, err
	}
	return r.DoOnce(func() (frame.Done, error) { return l.loadOwn(r) }, sum, r.Ticked("replace"))
}

func (l Lists) loadOwn(r *frame.Request) (frame.Done, error) {
	done, err := l.loaded(r, lists.Load{OrgID: r.Org()}, l.Shelf.LoadOwn)
	if err != nil {
		return frame.Done{}, err
	}
	return frame.Done{To: "do-not-call", Say: frame.Plural(done.Added, "number was", "numbers were") + " added and " + strconv.FormatInt(done.Deleted, 10) + " taken off; the list has " + strconv.FormatInt(done.Numbers, 10) + "."}, nil
}

func (Lists) askRegistry(r *frame.Request) (frame.Page, error) {
	return frame.Page{Template: "form.html", Title: "Load a registry", Crumbs: above(), Lead: "It counts for all organizations of its market. Files of many gigabytes are loaded by parley dnc load.", Data: r.Form(frame.Form{
		Submit: "Load the registry", Cancel: r.URL("do-not-call"), Fields: []frame.Field{
			{Name: "registry", Label: "Registry", Placeholder: "us_national", Help: "us_national, or us_state_ and the two letters of a state."},
			{Name: "file", Label: "File", Kind: frame.File, Help: "Text, CSV or XML, or a zip of such; 512 MiB at most."},
			{Name: "areas", Label: "Area codes that it is about", Optional: true, Placeholder: "212, 646", Help: "With commas between; all is every one. Numbers of these that are not listed may be called."},
			{Name: "downloaded", Label: "Downloaded on", Kind: "date", Help: "The day on which the registry was asked."},
			replaceField("Else numbers are added, and those of changes taken off."),
			frame.Once(),
		},
	})}, nil
}

func (l Lists) load(r *frame.Request) (frame.Done, error) {
	sum, err := r.Sum("file")
	if err != nil {
		return frame.Done{}, err
	}
	return r.DoOnce(func() (frame.Done, error) { return l.loadRegistry(r) },
		sum, r.Ticked("replace"), r.Text("registry"), r.Text("areas"), r.Text("downloaded"))
}

func (l Lists) loadRegistry(r *frame.Request) (frame.Done, error) {
	load := lists.Load{Name: r.Text("registry")}
	if err := lists.CheckName(load.Name); err != nil {
		return frame.Done{}, frame.Invalid("registry", err)
	}
	day, err := time.Parse(time.DateOnly, r.Text("downloaded"))
	if err != nil {
		return frame.Done{}, frame.Invalid("downloaded", "Use a day like 2026-11-01.")
	}
	load.Downloaded = day
	code, _, _ := strings.Cut(load.Name, "_")
	pkg, err := market.Load(code)
	if err != nil {
		return frame.Done{}, err
	}
	load.Country = pkg.Areas()
	load.Areas = strings.FieldsFunc(r.Text("areas"), func(c rune) bool { return c == ',' || c == ' ' })
	if slices.Equal(load.Areas, []string{"all"}) {
		load.Areas = load.Country
	}
	done, err := l.loaded(r, load, l.Shelf.Load)
	if err != nil {
		return frame.Done{}, err
	}
	return frame.Done{To: "do-not-call", Say: done.Name + " has " + strconv.FormatInt(done.Numbers, 10) + " numbers in " + strconv.Itoa(done.Areas) + " area codes."}, nil
}
