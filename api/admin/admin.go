// Package admin serves /v1/admin for privileged keys of the root organization:
// organizations, market rules, API keys and webhooks.
package admin

import (
	"errors"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-voice/parley/api/listing"
	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
)

// An Admin serves /v1/admin.
type Admin struct {
	DB      operator.Database
	Schemas *schema.Set
	// Root is the name of the root organization.
	Root string
	// AllowInsecure permits plain http webhooks.
	AllowInsecure bool
}

// A Handler serves an authenticated request.
type Handler func(w http.ResponseWriter, r *http.Request, key apikeys.Key) error

// Only restricts a handler to privileged keys of the root organization.
func (a *Admin) Only(h Handler) Handler {
	return func(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
		switch {
		case !key.Privileged:
			return control.Refuse(control.CodePrivilegedKey, "a privileged API key is required")
		case key.OrgName != a.Root:
			return control.Refuse(control.CodeRootOrgKey, "an API key of the root organization is required")
		}
		return h(w, r, key)
	}
}

// change runs do and writes the audit log entry that do returns, in one transaction. The entry names the key.
func (a *Admin) change(r *http.Request, key apikeys.Key, orgID string, do func(db.Querier) (operator.Entry, error)) error {
	from, _ := netip.ParseAddrPort(r.RemoteAddr) // without an address the entry has none
	by := operator.Actor{Email: "API key " + key.ID, OrgID: orgID}
	if from.IsValid() {
		by.Address = from.Addr().Unmap().String()
	}
	return operator.ChangeAs(r.Context(), a.DB, by, do)
}

// missing turns not-found errors into 404 and returns all others unchanged.
func missing(err error) error {
	if errors.Is(err, apikeys.ErrUnknown) {
		return &response.PlainError{Status: http.StatusNotFound, Message: "object not found"}
	}
	return err
}

// id returns the id in the path, or a 404 error if its form is wrong.
func id(r *http.Request) (string, error) {
	id := r.PathValue("id")
	if !text(id) {
		return "", missing(apikeys.ErrUnknown)
	}
	return id, nil
}

// text reports whether the database can store a text, which excludes NUL and invalid UTF-8.
func text(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// A page is the requested part of a list.
type page struct {
	after string // ID of the last item of the page before
	limit int
}

func paged(r *http.Request, prefix string) (page, error) {
	q, err := listing.Query(r)
	if err != nil {
		return page{}, err
	}
	p := page{after: q.Get("cursor"), limit: 50}
	if p.after != "" && (!strings.HasPrefix(p.after, prefix) || !text(p.after)) {
		return p, control.Refuse(control.CodeInvalidCursor, "cursor does not belong to this list; start without a cursor")
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

func organization(r *http.Request) (string, error) {
	id := r.URL.Query().Get("organization_id")
	if !text(id) {
		return "", control.Refuse(control.CodeInvalidFilter, "organization_id must be UTF-8 text without NUL")
	}
	return id, nil
}

// A pageEnd is the part that pages have in common.
type pageEnd struct {
	HasMore    bool    `json:"has_more"`
	NextCursor *string `json:"next_cursor"`
}

// listed returns a page of a list. The list was read with one item more than the page holds.
func listed[T, V any](p page, all []T, idOf func(T) string, show func(T) V) ([]V, pageEnd) {
	e := pageEnd{HasMore: len(all) > p.limit}
	all = all[:min(len(all), p.limit)]
	shown := make([]V, 0, len(all))
	for _, v := range all {
		shown = append(shown, show(v))
	}
	if e.HasMore {
		last := idOf(all[len(all)-1])
		e.NextCursor = &last
	}
	return shown, e
}

// Responses returns, by operation, a value of the type of the successful response.
func Responses() map[string]any {
	return map[string]any{
		"list-organizations": organizationPage{}, "create-organization": organizationView{}, "get-organization": organizationView{},
		"change-organization": organizationView{}, "list-market-packages": marketPackages{},
		"list-keys": keyPage{}, "create-key": keyView{}, "get-key": keyView{}, "change-key": keyView{}, "revoke-key": keyView{},
		"list-webhooks": webhookPage{}, "save-webhook": webhookView{}, "remove-webhook": webhookView{},
	}
}
