package access

import (
	"cmp"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
)

// Keys serves the pages of API keys. Only owners change them.
type Keys struct{}

// Module returns the pages.
func (k Keys) Module() (ui.Module, error) {
	pages, err := fs.Sub(files, "pages/keys")
	return ui.Module{
		Name: "keys", Files: pages,
		Links: []ui.Link{{Section: "ui.menu.developers", Label: "ui.menu.api_keys", Path: "keys"}},
		Routes: []ui.Route{
			{Path: "keys", Show: k.list},
			{Path: "keys/new", Role: operator.Owner, Show: k.ask, Submit: k.create},
			{Path: "keys/{id}/limit", Role: operator.Owner, Show: k.askLimit, Submit: k.setLimit},
			{Path: "keys/{id}/revoke", Role: operator.Owner, Show: k.askRevoke, Submit: k.revoke},
		},
	}, err
}

// mostLooked is the number of newest keys that a search covers.
const mostLooked = 10_000

type shown struct {
	apikeys.Key

	Limit, State, May string
}

func show(texts *ui.Texts, k apikeys.Key) shown {
	s := shown{
		k, texts.T("access.keys.list.limit.default"), "active",
		cmp.Or(apikeys.JoinScopes(k.Scopes), texts.T("access.keys.list.everything")),
	}
	switch {
	case k.RateLimit == apikeys.RateOff:
		s.Limit = texts.T("access.keys.list.limit.none")
	case k.RateLimit > 0:
		s.Limit = texts.T("access.keys.list.limit", "rate_limit", strconv.Itoa(k.RateLimit))
	}
	switch {
	case k.RevokedAt != nil:
		s.State = "revoked"
	case k.Expired:
		s.State = "expired"
	}
	return s
}

func (Keys) list(r *ui.Request) (ui.Page, error) {
	most := perPage + 1
	if r.Query("q") != "" {
		most = mostLooked // the search is in memory, because a database folds the letters of one language only
	}
	all, err := apikeys.NewestKeys(r.Context(), r.DB(), r.Org(), r.Query("after"), most)
	if err != nil {
		return ui.Page{}, err
	}
	all, looked := ui.SearchIn(all, r.Query("q"), r.Texts.T("ui.search.name"), func(k apikeys.Key) string { return k.Name })
	looked.Shown = looked.Shown || r.Query("after") != ""
	all, next := ui.Paginate(r, all, perPage, func(k apikeys.Key) string { return k.ID })
	list := make([]shown, len(all))
	for i, k := range all {
		list[i] = show(r.Texts, k)
	}
	return ui.Page{
		Template: "list.html", Title: r.Texts.T("access.keys.list.title"), Lead: r.Texts.T("access.keys.list.lead"),
		Actions: []ui.Link{{Label: r.Texts.T("access.link.new_key"), Path: "keys/new", Role: operator.Owner}},
		Data:    map[string]any{"Keys": list, "Next": next, "Search": looked},
	}, nil
}

func aboveKeys(texts *ui.Texts) []ui.Link {
	return []ui.Link{{Label: texts.T("access.link.api_keys"), Path: "keys"}}
}

// limitField is the field of a rate limit.
func limitField(texts *ui.Texts, value string) ui.Field {
	return ui.Field{
		Name: "limit", Label: texts.T("access.keys.limit.label"), Value: value, Optional: true,
		Help: texts.T("access.keys.limit.help"),
	}
}

func readLimit(r *ui.Request) (int, error) {
	switch text := r.Text("limit"); text {
	case "":
		return apikeys.RateDefault, nil
	case "off":
		return apikeys.RateOff, nil
	default:
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1_000_000 {
			return 0, ui.Invalid("limit", r.Texts.T("access.keys.limit.invalid"))
		}
		return n, nil
	}
}

func (Keys) ask(r *ui.Request) (ui.Page, error) {
	return ui.Page{Template: "form.html", Title: r.Texts.T("access.keys.new.title"), Crumbs: aboveKeys(r.Texts), Data: r.Form(ui.Form{
		Submit: r.Texts.T("access.keys.new.submit"), Cancel: r.URL("keys"),
		Fields: []ui.Field{
			{Name: "name", Label: r.Texts.T("access.keys.new.name.label"), Help: r.Texts.T("access.keys.new.name.help"), Placeholder: "CRM"},
			{
				Name: "scopes", Label: r.Texts.T("access.keys.new.scopes.label"), Kind: ui.Checkboxes, Optional: true, Options: scopeOptions(r.Texts),
				Help: r.Texts.T("access.keys.new.scopes.help"),
			},
			{
				Name: "days", Label: r.Texts.T("access.keys.new.days.label"), Kind: ui.Number, Min: "1", Max: "3660",
				Unit: r.Texts.T("access.keys.new.unit.days"), Optional: true,
				Help: r.Texts.T("access.keys.new.days.help"),
			},
			limitField(r.Texts, ""),
		},
	})}, nil
}

func scopeOptions(texts *ui.Texts) []ui.Option {
	return []ui.Option{
		{Value: string(apikeys.ScopeRead), Label: texts.T("access.keys.scope.read"), Help: texts.T("access.keys.scope.read.help")},
		{Value: string(apikeys.ScopeCalls), Label: texts.T("access.keys.scope.calls"), Help: texts.T("access.keys.scope.calls.help")},
		{Value: string(apikeys.ScopeCampaigns), Label: texts.T("access.keys.scope.campaigns"), Help: texts.T("access.keys.scope.campaigns.help")},
	}
}

// readExpiry returns when the new key expires; nil if never.
func readExpiry(r *ui.Request) (*time.Time, error) {
	text := r.Text("days")
	if text == "" {
		return nil, nil //nolint:nilnil // nil means never
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 3660 {
		return nil, ui.Invalid("days", r.Texts.T("access.keys.new.invalid.days"))
	}
	return new(time.Now().Add(time.Duration(n) * 24 * time.Hour)), nil
}

// create shows the secret only in the response; the secret is not stored.
func (Keys) create(r *ui.Request) (ui.Result, error) {
	name, err := ui.ReadName(r)
	if err != nil {
		return ui.Result{}, err
	}
	limit, err := readLimit(r)
	if err != nil {
		return ui.Result{}, err
	}
	key := apikeys.Key{OrgID: r.Org(), Name: name, RateLimit: limit}
	if key.Scopes, err = apikeys.ParseScopes(r.All("scopes")); err != nil || slices.Contains(key.Scopes, apikeys.ScopeAdmin) {
		return ui.Result{}, ui.Invalid("scopes", r.Texts.T("access.keys.new.invalid.scopes"))
	}
	if key.ExpiresAt, err = readExpiry(r); err != nil {
		return ui.Result{}, err
	}
	var secret string
	err = r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		id, issued, fault := apikeys.CreateKey(r.Context(), q, key)
		secret = string(issued)
		return operator.Entry{Action: "key.create", Object: id, After: key.Properties()}, fault
	})
	if err != nil {
		return ui.Result{}, err
	}
	return ui.Result{
		Page: &ui.Page{
			Template: "issued.html", Title: r.Texts.T("access.keys.new.done"), Crumbs: aboveKeys(r.Texts),
			Data: map[string]any{"Name": name, "Secret": secret},
		},
	}, nil
}

// findKey reads the key of a page.
func findKey(r *ui.Request, q db.Querier) (apikeys.Key, error) {
	k, err := apikeys.ReadKey(r.Context(), q, r.ID())
	if err == nil && k.OrgID != r.Org() {
		err = ui.ErrNotFound
	}
	return k, err
}

func (Keys) askLimit(r *ui.Request) (ui.Page, error) {
	k, err := findKey(r, r.DB())
	if err != nil {
		return ui.Page{}, err
	}
	value := ""
	switch {
	case k.RateLimit == apikeys.RateOff:
		value = "off"
	case k.RateLimit > 0:
		value = strconv.Itoa(k.RateLimit)
	}
	return ui.Page{
		Template: "form.html", Title: r.Texts.T("access.keys.limit.title", "key_label", keyLabel(k)), Crumbs: aboveKeys(r.Texts),
		Data: r.Form(ui.Form{
			Submit: r.Texts.T("ui.form.save"), Cancel: r.URL("keys"), Fields: []ui.Field{limitField(r.Texts, value)},
		}),
	}, nil
}

func (Keys) setLimit(r *ui.Request) (ui.Result, error) {
	limit, err := readLimit(r)
	if err != nil {
		return ui.Result{}, err
	}
	err = r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		k, fault := findKey(r, q)
		if fault != nil || k.RateLimit == limit {
			return operator.Entry{}, fault
		}
		e := operator.Entry{
			Action: "key.limit",
			Object: k.ID,
			Before: map[string]any{"rate_limit": k.RateLimit},
			After:  map[string]any{"rate_limit": limit},
		}
		return e, apikeys.SetRateLimit(r.Context(), q, k.ID, limit)
	})
	return ui.Result{To: "keys", Notice: r.Texts.T("access.keys.limit.notice")}, err
}

func keyLabel(k apikeys.Key) string {
	if k.Name == "" {
		return k.ID
	}
	return k.Name
}

func (Keys) askRevoke(r *ui.Request) (ui.Page, error) {
	k, err := findKey(r, r.DB())
	if err != nil {
		return ui.Page{}, err
	}
	return ui.Confirm(r, ui.Page{
		Title: r.Texts.T("access.keys.revoke.title", "key_label", keyLabel(k)), Crumbs: aboveKeys(r.Texts),
		Lead: r.Texts.T("access.keys.revoke.lead"),
	}, r.Texts.T("access.keys.revoke.submit"), "keys"), nil
}

func (Keys) revoke(r *ui.Request) (ui.Result, error) {
	err := r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		k, err := findKey(r, q)
		if err != nil || k.RevokedAt != nil {
			return operator.Entry{}, err
		}
		return operator.Entry{Action: "key.revoke", Object: k.ID, Before: map[string]any{"name": k.Name}}, apikeys.Revoke(r.Context(), q, k.ID)
	})
	return ui.Result{To: "keys", Notice: r.Texts.T("access.keys.revoke.notice")}, err
}
