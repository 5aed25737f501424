// Package admin answers /v1/admin: the organizations of the service, the rules of
// markets that they go by, their API keys and their webhooks. It is for privileged
// keys of the root organization.
package admin

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-voice/parley/api/filter"
	"github.com/parley-voice/parley/api/respond"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/db"
)

// An Admin answers for what the operator of the service owns.
type Admin struct {
	DB      db.Querier
	Schemas *schema.Set
	// Root is the name of the organization whose privileged keys are let in.
	Root string
	// AllowInsecure lets webhooks be plain http.
	AllowInsecure bool
}

// A Handler answers a request of a known key.
type Handler func(w http.ResponseWriter, r *http.Request, key access.Key) error

// Only lets privileged keys of the root organization through, and no others.
func (a *Admin) Only(h Handler) Handler {
	return func(w http.ResponseWriter, r *http.Request, key access.Key) error {
		switch {
		case !key.Privileged:
			return control.Refuse(control.CodePrivilegedKey, "this needs a privileged API key")
		case key.OrgName != a.Root:
			return control.Refuse(control.CodeRootOrgKey, "this needs an API key of the root organization")
		}
		return h(w, r, key)
	}
}

// missing answers 404 for what is not there, and passes on what else went wrong.
func missing(err error) error {
	if errors.Is(err, access.ErrUnknown) {
		return &respond.PlainError{Status: http.StatusNotFound, Message: "no such object"}
	}
	return err
}

// id is the id in a request's path, or 404 where the database can have none of
// the kind.
func id(r *http.Request) (string, error) {
	id := r.PathValue("id")
	if !text(id) {
		return "", missing(access.ErrUnknown)
	}
	return id, nil
}

// text reports whether the database can hold a text.
func text(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// A page is the part of a list that is asked for.
type page struct {
	after string // id of the last item before it
	limit int
}

// paged reads which page of a list is asked for; its items' ids begin with
// prefix.
func paged(r *http.Request, prefix string) (page, error) {
	q, err := filter.Query(r)
	if err != nil {
		return page{}, err
	}
	p := page{after: q.Get("cursor"), limit: 50}
	if p.after != "" && (!strings.HasPrefix(p.after, prefix) || !text(p.after)) {
		return p, control.Refuse(control.CodeInvalidCursor, "the cursor is none of this list")
	}
	if given := q.Get("limit"); given != "" {
		n, err := strconv.Atoi(given)
		if err != nil || n < 1 || n > 100 {
			return p, control.Refuse(control.CodeInvalidFilter, "limit: use 1 to 100")
		}
		p.limit = n
	}
	return p, nil
}

// organization reads the organization_id of a list, which may be left out.
func organization(r *http.Request) (string, error) {
	id := r.URL.Query().Get("organization_id")
	if !text(id) {
		return "", control.Refuse(control.CodeInvalidFilter, "organization_id: no such text")
	}
	return id, nil
}

// listed answers a page of a list under its name. One more item was asked for
// than the page has, which tells whether there are more.
func listed[T, V any](w http.ResponseWriter, name string, p page, all []T, idOf func(T) string, show func(T) V) {
	more := len(all) > p.limit
	all = all[:min(len(all), p.limit)]
	shown := make([]V, 0, len(all))
	for _, v := range all {
		shown = append(shown, show(v))
	}
	var next *string
	if more {
		last := idOf(all[len(all)-1])
		next = &last
	}
	respond.JSON(w, http.StatusOK, map[string]any{name: shown, "has_more": more, "next_cursor": next})
}
