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

func show(k apikeys.Key) shown {
	s := shown{k, "default", "active", cmp.Or(apikeys.JoinScopes(k.Scopes), "everything")}
	switch {
	case k.RateLimit == apikeys.RateOff:
		s.Limit = "none"
	case k.RateLimit > 0:
		s.Limit = strconv.Itoa(k.RateLimit) + " / min"
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
	all, looked := ui.SearchIn(all, r.Query("q"), r.Words.T("ui.search.name"), func(k apikeys.Key) string { return k.Name })
	looked.Shown = looked.Shown || r.Query("after") != ""
	all, next := ui.Paginate(r, all, perPage, func(k apikeys.Key) string { return k.ID })
	list := make([]shown, len(all))
	for i, k := range all {
		list[i] = show(k)
	}
	return ui.Page{
		Template: "list.html", Title: "API keys", Lead: "API keys authorize requests to /v1. The secret of a key is shown once.",
		Actions: []ui.Link{{Label: "New key", Path: "keys/new", Role: operator.Owner}},
		Data:    map[string]any{"Keys": list, "Next": next, "Search": looked},
	}, nil
}

func aboveKeys() []ui.Link { return []ui.Link{{Label: "API keys", Path: "keys"}} }

// limitField is the field of a rate limit.
func limitField(value string) ui.Field {
	return ui.Field{
		Name: "limit", Label: "Requests per minute", Value: value, Optional: true,
		Help: "A number, or “off” for no limit. Leave empty for the platform default. Applies from the next request.",
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
			return 0, ui.Invalid("limit", "Enter 1 to 1,000,000 or “off”, or leave empty.")
		}
		return n, nil
	}
}

func (Keys) ask(r *ui.Request) (ui.Page, error) {
	return ui.Page{Template: "form.html", Title: "New API key", Crumbs: aboveKeys(), Data: r.Form(ui.Form{
		Submit: "Create key", Cancel: r.URL("keys"),
		Fields: []ui.Field{
			{Name: "name", Label: "Name", Help: "Purpose of the key, such as “CRM” or “staging”.", Placeholder: "CRM"},
			{
				Name: "scopes", Label: "Permissions", Kind: ui.Checkboxes, Optional: true, Options: scopeOptions(),
				Help: "If you choose none, the key may do everything except administration.",
			},
			{
				Name: "days", Label: "Expires after", Kind: ui.Number, Min: "1", Max: "3660", Unit: "days", Optional: true,
				Help: "Leave empty for a key that does not expire.",
			},
			limitField(""),
		},
	})}, nil
}

func scopeOptions() []ui.Option {
	return []ui.Option{
		{Value: string(apikeys.ScopeRead), Label: "Read", Help: "calls with transcripts, campaigns, routes"},
		{Value: string(apikeys.ScopeCalls), Label: "Calls", Help: "request and end single calls"},
		{Value: string(apikeys.ScopeCampaigns), Label: "Campaigns", Help: "create, change and read campaigns; withdraw contacts"},
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
		return nil, ui.Invalid("days", "Enter 1 to 3660 days, or leave empty.")
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
		return ui.Result{}, ui.Invalid("scopes", "Choose from the list.")
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
			Template: "issued.html", Title: "API key created", Crumbs: aboveKeys(),
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
	return ui.Page{Template: "form.html", Title: "Limit of " + keyLabel(k), Crumbs: aboveKeys(), Data: r.Form(ui.Form{
		Submit: "Save", Cancel: r.URL("keys"), Fields: []ui.Field{limitField(value)},
	})}, nil
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
	return ui.Result{To: "keys", Notice: "Limit saved. It applies from the next request."}, err
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
		Title: "Revoke " + keyLabel(k), Crumbs: aboveKeys(),
		Lead: "Its requests are rejected from now on. This cannot be undone.",
	}, "Revoke key", "keys"), nil
}

func (Keys) revoke(r *ui.Request) (ui.Result, error) {
	err := r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		k, err := findKey(r, q)
		if err != nil || k.RevokedAt != nil {
			return operator.Entry{}, err
		}
		return operator.Entry{Action: "key.revoke", Object: k.ID, Before: map[string]any{"name": k.Name}}, apikeys.Revoke(r.Context(), q, k.ID)
	})
	return ui.Result{To: "keys", Notice: "Key revoked."}, err
}
