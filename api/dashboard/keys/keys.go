// Package keys shows an organization's API keys, issues them and revokes them.
package keys

import (
	"embed"
	"io/fs"
	"strconv"

	"github.com/parley-voice/parley/api/dashboard/field"
	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/api/dashboard/search"
	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
)

//go:embed pages/*.html
var files embed.FS

// Keys is the room of API keys. Only owners issue and change them.
type Keys struct{}

// Room returns its pages.
func (k Keys) Room() (frame.Room, error) {
	pages, err := fs.Sub(files, "pages")
	return frame.Room{
		Name: "keys", Files: pages,
		Links: []frame.Link{{Section: "Developers", Label: "API keys", Path: "keys"}},
		Routes: []frame.Route{
			{Path: "keys", Look: k.list},
			{Path: "keys/new", Needs: operator.Owner, Look: k.ask, Change: k.create},
			{Path: "keys/{id}/limit", Needs: operator.Owner, Look: k.askLimit, Change: k.setLimit},
			{Path: "keys/{id}/revoke", Needs: operator.Owner, Look: k.askRevoke, Change: k.revoke},
		},
	}, err
}

// A page has so many keys; one is looked for among so many of the newest.
const (
	perPage    = 50
	mostLooked = 10_000
)

type shown struct {
	access.Key

	Limit, State string
}

func show(k access.Key) shown {
	s := shown{k, "platform’s", "active"}
	switch {
	case k.RateLimit == access.RateOff:
		s.Limit = "none"
	case k.RateLimit > 0:
		s.Limit = strconv.Itoa(k.RateLimit) + " / min"
	}
	if k.RevokedAt != nil {
		s.State = "revoked"
	}
	return s
}

func (Keys) list(r *frame.Request) (frame.Page, error) {
	most := perPage + 1
	if r.Query("q") != "" {
		most = mostLooked // a database knows the letters of one language alone
	}
	all, err := access.NewestKeys(r.Context(), r.DB(), r.Org(), r.Query("after"), most)
	if err != nil {
		return frame.Page{}, err
	}
	all, looked := search.In(all, r.Query("q"), "name", func(k access.Key) string { return k.Name })
	looked.Shown = looked.Shown || r.Query("after") != ""
	all, next := frame.Paged(r, all, perPage, func(k access.Key) string { return k.ID })
	list := make([]shown, len(all))
	for i, k := range all {
		list[i] = show(k)
	}
	return frame.Page{
		Template: "list.html", Title: "API keys", Lead: "What programs call /v1 with. A key’s secret is shown once, when it is issued.",
		Actions: []frame.Link{{Label: "New key", Path: "keys/new", Needs: operator.Owner}},
		Data:    map[string]any{"Keys": list, "Next": next, "Search": looked},
	}, nil
}

func above() []frame.Link { return []frame.Link{{Label: "API keys", Path: "keys"}} }

// limitField asks for a rate limit.
func limitField(value string) frame.Field {
	return frame.Field{
		Name: "limit", Label: "Requests a minute", Value: value, Optional: true,
		Help: "A number, or “off” for no limit. Left empty, the platform’s limit holds. It counts from the key’s next request on.",
	}
}

func readLimit(r *frame.Request) (int, error) {
	switch text := r.Text("limit"); text {
	case "":
		return access.RateDefault, nil
	case "off":
		return access.RateOff, nil
	default:
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1_000_000 {
			return 0, frame.Invalid("limit", "Use a number from 1 to 1,000,000, or off, or leave it empty.")
		}
		return n, nil
	}
}

func (Keys) ask(r *frame.Request) (frame.Page, error) {
	return frame.Page{Template: "form.html", Title: "New API key", Crumbs: above(), Data: r.Form(frame.Form{
		Submit: "Issue the key", Cancel: r.URL("keys"),
		Fields: []frame.Field{
			{Name: "name", Label: "Name", Help: "What the key is for, such as “CRM” or “staging”.", Placeholder: "CRM"},
			limitField(""),
		},
	})}, nil
}

// create shows the secret, in the answer alone: it is kept nowhere.
func (Keys) create(r *frame.Request) (frame.Done, error) {
	name, err := field.Name(r)
	if err != nil {
		return frame.Done{}, err
	}
	limit, err := readLimit(r)
	if err != nil {
		return frame.Done{}, err
	}
	var secret string
	err = r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		id, issued, fault := access.CreateKey(r.Context(), q, access.Key{OrgID: r.Org(), Name: name, RateLimit: limit})
		secret = string(issued)
		return operator.Entry{Action: "key.create", Object: id, After: map[string]any{"name": name, "rate_limit": limit}}, fault
	})
	if err != nil {
		return frame.Done{}, err
	}
	return frame.Done{Page: &frame.Page{Template: "issued.html", Title: "The key is issued", Crumbs: above(), Data: map[string]any{"Name": name, "Secret": secret}}}, nil
}

// find reads the organization's key that a page is about.
func find(r *frame.Request, q db.Querier) (access.Key, error) {
	k, err := access.ReadKey(r.Context(), q, r.ID())
	if err == nil && k.OrgID != r.Org() {
		err = frame.ErrMissing
	}
	return k, err
}

func (Keys) askLimit(r *frame.Request) (frame.Page, error) {
	k, err := find(r, r.DB())
	if err != nil {
		return frame.Page{}, err
	}
	value := ""
	switch {
	case k.RateLimit == access.RateOff:
		value = "off"
	case k.RateLimit > 0:
		value = strconv.Itoa(k.RateLimit)
	}
	return frame.Page{Template: "form.html", Title: "Limit of " + label(k), Crumbs: above(), Data: r.Form(frame.Form{
		Submit: "Save", Cancel: r.URL("keys"), Fields: []frame.Field{limitField(value)},
	})}, nil
}

func (Keys) setLimit(r *frame.Request) (frame.Done, error) {
	limit, err := readLimit(r)
	if err != nil {
		return frame.Done{}, err
	}
	err = r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		k, fault := find(r, q)
		if fault != nil || k.RateLimit == limit {
			return operator.Entry{}, fault
		}
		e := operator.Entry{Action: "key.limit", Object: k.ID, Before: map[string]any{"rate_limit": k.RateLimit}, After: map[string]any{"rate_limit": limit}}
		return e, access.SetRateLimit(r.Context(), q, k.ID, limit)
	})
	return frame.Done{To: "keys", Say: "The limit counts from the key’s next request on."}, err
}

func label(k access.Key) string {
	if k.Name == "" {
		return k.ID
	}
	return k.Name
}

func (Keys) askRevoke(r *frame.Request) (frame.Page, error) {
	k, err := find(r, r.DB())
	if err != nil {
		return frame.Page{}, err
	}
	return frame.Page{
		Template: "form.html", Title: "Revoke " + label(k), Crumbs: above(),
		Lead: "Its next request is refused. A revoked key cannot be brought back.",
		Data: r.Form(frame.Form{Submit: "Revoke the key", Danger: true, Cancel: r.URL("keys")}),
	}, nil
}

func (Keys) revoke(r *frame.Request) (frame.Done, error) {
	err := r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		k, err := find(r, q)
		if err != nil || k.RevokedAt != nil {
			return operator.Entry{}, err
		}
		return operator.Entry{Action: "key.revoke", Object: k.ID, Before: map[string]any{"name": k.Name}}, access.Revoke(r.Context(), q, k.ID)
	})
	return frame.Done{To: "keys", Say: "The key is revoked."}, err
}
