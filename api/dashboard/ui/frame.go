// Package ui serves the pages of the dashboard: sessions and roles, layout, forms, files, and
// Commit, through which every change goes.
package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/api/realip"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/identity"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/control/webhook"
)

// Home is the path of the dashboard.
const Home = "/dashboard"

// A Frame serves modules. Its fields are set before Handler is called.
type Frame struct {
	DB *db.DB
	// Key is shared by all servers. It hides the content behind the digests of forms.
	Key []byte
	// Root is the name of the organization whose owners manage shared data.
	Root string
	// PublicURL is where browsers reach the service: http or https.
	PublicURL string
	// Identity verifies operators; nil: they sign in with passwords only.
	Identity *identity.Provider
	// RequireCodes makes operators who sign in with a password turn on one-time codes.
	RequireCodes bool
	// Apply holds the options for edits.
	Apply   apply.Options
	Modules []Module
	// Texts are the texts of all pages; nil means English.
	Texts *Texts
	Log   *slog.Logger

	cross  *http.CrossOriginProtection
	assets assets
	pages  map[string]*template.Template // templates by module and file
}

// defaultTimeout limits a request without a limit of its own.
const defaultTimeout = 10 * time.Second

// maxFormBytes limits the body of a form without a file.
const maxFormBytes = 1 << 20

// Handler returns the handler of /dashboard and everything below it.
func (f *Frame) Handler() (http.Handler, error) {
	if len(f.Key) == 0 {
		return nil, errors.New("dashboard: the key for forms is missing")
	}
	if f.Log == nil {
		f.Log = slog.New(slog.DiscardHandler)
	}
	f.cross = http.NewCrossOriginProtection()
	if u, err := url.Parse(f.PublicURL); err == nil && u.Host != "" {
		if err := f.cross.AddTrustedOrigin(u.Scheme + "://" + u.Host); err != nil {
			return nil, fmt.Errorf("dashboard: %w", err)
		}
	}
	var err error
	if f.Texts == nil {
		if f.Texts, err = ReadTexts(nil); err != nil {
			return nil, err
		}
	}
	if f.assets, err = readAssets(); err != nil {
		return nil, err
	}
	if f.pages, err = f.parse(); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Home, f.home)
	mux.HandleFunc("GET "+Home+"/{$}", f.home)
	mux.HandleFunc("GET "+Home+"/sign-in", f.showSignIn)
	mux.HandleFunc("POST "+Home+"/sign-in", f.signIn)
	mux.HandleFunc("POST "+Home+"/sign-out", f.signOut)
	if f.Identity != nil {
		mux.HandleFunc("GET "+providerPath, f.startIdentity)
		mux.HandleFunc("GET "+CallbackPath, f.finishIdentity)
	}
	mux.HandleFunc("GET "+Home+"/{org}", f.home)
	handleRoutes(f, mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { f.noRoute(w, r, mux) })
	return f.withHeaders(mux), nil
}

// handleRoutes adds the pages and forms of the modules.
func handleRoutes(f *Frame, mux *http.ServeMux) {
	for _, module := range f.Modules {
		for _, route := range module.Routes {
			path := Home + "/{org}/" + route.Path
			if route.Show != nil || route.Serve != nil {
				mux.HandleFunc("GET "+path, f.authorize(module, route, f.servePage))
			}
			if route.Submit != nil || route.Answer != nil {
				mux.HandleFunc("POST "+path, f.authorize(module, route, f.serveForm))
			}
		}
	}
}

// withHeaders serves assets, sets security headers and rejects cross-site forms.
func (f *Frame) withHeaders(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, ok := strings.CutPrefix(r.URL.Path, assetPath); ok {
			f.assets.serve(w, r, name)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), payment=(), usb=()")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cache-Control", "no-store")
		if err := f.cross.Check(r); err != nil {
			f.fail(
				w,
				r,
				nil,
				&ProblemError{
					Status: http.StatusForbidden,
					Title:  f.Texts.T("ui.problem.other_site.title"),
					Text:   f.Texts.T("ui.problem.other_site.text"),
				},
			)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// policy allows resources and form targets of this server only, and no inline script
// or style.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' blob:; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// noRoute answers requests that match no page.
func (f *Frame) noRoute(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) {
	other := &http.Request{Method: http.MethodGet, URL: r.URL, Host: r.Host}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		other.Method = http.MethodPost
	}
	if _, pattern := mux.Handler(other); pattern != "/" {
		f.fail(
			w, r, f.requestOutside(w, r),
			&ProblemError{
				Status: http.StatusMethodNotAllowed, Title: f.Texts.T("ui.problem.method.title"),
				Text: f.Texts.T("ui.problem.method.text"),
			},
		)
		return
	}
	if _, err := f.session(r); err != nil {
		f.refuseSignedOut(w, r, err)
		return
	}
	f.fail(w, r, f.requestOutside(w, r), ErrNotFound)
}

// requestOutside returns a request outside of all routes, in the organization of its path.
func (f *Frame) requestOutside(w http.ResponseWriter, r *http.Request) *Request {
	s, err := f.session(r)
	if err != nil {
		return nil
	}
	org, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, Home+"/"), "/")
	member, _ := s.Membership(org)
	return f.request(w, r, s, member)
}

// home redirects to the organization that was visited last.
func (f *Frame) home(w http.ResponseWriter, r *http.Request) {
	s, err := f.session(r)
	if err != nil {
		f.refuseSignedOut(w, r, err)
		return
	}
	org := cmp.Or(r.PathValue("org"), s.LastOrg)
	member, ok := s.Membership(org)
	if !ok && r.PathValue("org") == "" && len(s.Memberships) > 0 {
		member, ok = s.Memberships[0], true
	}
	if !ok {
		f.fail(w, r, f.request(w, r, s, operator.Membership{}), ErrNotFound)
		return
	}
	http.Redirect(w, r, Home+"/"+url.PathEscape(member.OrgID)+"/"+f.first(), http.StatusSeeOther)
}

func (f *Frame) first() string {
	for _, module := range f.Modules {
		for _, l := range module.Links {
			return l.Path
		}
	}
	return ""
}

// CodesPath is the page on which operators turn on one-time codes.
const CodesPath = "account/codes"

// lacksCodes reports whether the operator must turn on one-time codes before opening this page.
func (f *Frame) lacksCodes(r *Request, route Route) bool {
	return f.RequireCodes && !r.Session.HasCodes && !r.Session.Identity && route.Path != CodesPath
}

// authorize checks session, organization and role. Other organizations' pages are not found,
// so their existence stays hidden.
func (f *Frame) authorize(module Module, route Route, then func(*Request, Module, Route) error) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if route.Serve == nil && route.Timeout == 0 {
			route.Timeout = defaultTimeout
		}
		if route.Timeout > 0 {
			ctx, cancel := context.WithTimeout(req.Context(), route.Timeout)
			defer cancel()
			req = req.WithContext(ctx)
		}
		r, ok := f.authenticate(w, req, route)
		if !ok {
			return
		}
		var err error
		switch {
		case r.Org() == "":
			err = ErrNotFound
		case f.lacksCodes(r, route):
			redirect(w, req, r.URL(CodesPath), nil)
		case !r.May(route.needs()):
			err = operator.ErrForbidden
		case route.Root && !r.Root:
			err = ErrNotFound
		case r.readErr != nil:
			err = unreadable(f.Texts, r.readErr)
		case r.again:
			err = f.resume(r, module, route)
		default:
			err = then(r, module, route)
		}
		if err != nil {
			f.fail(w, req, r, err)
		}
	}
}

// authenticate finds the session, or answers the request. A form that was submitted from the
// sign-in page signs in again even if there is a session, because the session may belong to
// another operator.
func (f *Frame) authenticate(w http.ResponseWriter, req *http.Request, route Route) (*Request, bool) {
	s, err := f.session(req)
	out := errors.Is(err, operator.ErrSignedOut)
	var readErr error
	var again bool
	if req.Method == http.MethodPost && (err == nil || out) {
		readErr = readPlain(w, req)
		if again = out || req.PostForm.Has(againEmail); again {
			var ok bool
			if s, ok = f.again(w, req, route, readErr); !ok {
				return nil, false
			}
			err = nil
		}
	}
	if err != nil {
		f.refuseSignedOut(w, req, err)
		return nil, false
	}
	member, _ := s.Membership(req.PathValue("org"))
	r := f.request(w, req, s, member)
	r.readErr, r.again, r.notRefilled = readErr, again, route.NotRefilled
	return r, true
}

func (f *Frame) request(w http.ResponseWriter, req *http.Request, s operator.Session, member operator.Membership) *Request {
	return &Request{
		HTTP: req, Writer: w, Session: s, Member: member, Root: member.Name == f.Root && member.OrgID != "", Texts: f.Texts, frame: f,
	}
}

func (f *Frame) servePage(r *Request, module Module, route Route) error {
	if err := r.Session.Visit(r.Context(), f.DB.Pool, r.Org()); err != nil {
		return err
	}
	if route.Serve != nil {
		return route.Serve(r)
	}
	p, err := route.Show(r)
	if err != nil {
		return err
	}
	return f.show(r, module, p, http.StatusOK)
}

// serveForm submits a form. A rejected form is shown again with its values; success
// redirects to the next page.
func (f *Frame) serveForm(r *Request, module Module, route Route) error {
	r.bound(route)
	// net/http would do it, but WithContext copied the request
	defer func() {
		if sent := r.HTTP.MultipartForm; sent != nil {
			_ = sent.RemoveAll() // the files are temporary
		}
	}()
	if err := parse(r.HTTP); err != nil {
		return unreadable(f.Texts, err)
	}
	if r.HTTP.PostForm.Has(againEmail) {
		return f.resume(r, module, route)
	}
	if route.Answer != nil {
		return route.Answer(r)
	}
	done, err := route.Submit(r)
	if isNotFound(err) {
		return err
	}
	r.invalid = refusal(f.Texts, err)
	switch {
	case r.invalid != nil && route.Show != nil:
		p, fault := route.Show(r)
		if fault != nil {
			return fault
		}
		status := cmp.Or(r.invalid.Status, http.StatusUnprocessableEntity)
		if r.invalid.Newer {
			status = http.StatusConflict
		}
		return f.show(r, module, p, status)
	case r.invalid != nil:
		done = Result{To: cmp.Or(route.Back, f.first()), Notice: r.invalid.Error(), Failed: true}
	case err != nil:
		return err
	}
	if done.Page != nil {
		return f.show(r, module, *done.Page, http.StatusOK)
	}
	if done.Notice != "" {
		if err := r.Session.SetFlash(r.Context(), f.DB.Pool, flash(done)); err != nil {
			return err
		}
	}
	redirect(r.Writer, r.HTTP, r.URL(r.next(done)), nil)
	return nil
}

// next returns the page after a change: the one that the query string names, unless the change failed.
func (r *Request) next(done Result) string {
	if next := r.Query("next"); !done.Failed && isPage(next) {
		return next
	}
	return done.To
}

// isPage reports whether a value of the query string is a page of the organization to which a form may return.
func isPage(path string) bool {
	return path != "" && strings.Trim(path, "abcdefghijklmnopqrstuvwxyz-/") == "" && path[0] >= 'a'
}

// The script for uploads sends Parley-Upload and gets the next page in Parley-To. If it got a
// redirect, it would follow it by itself and lose the notice that is shown once.
const (
	uploaded = "Parley-Upload"
	nextPage = "Parley-To"
)

// address returns the client's IP address without the port.
func address(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return from.Addr().Unmap().String()
}

// network returns the address range by which sign-in attempts are counted, in addition to the account.
func network(r *http.Request) string {
	from, _ := netip.ParseAddrPort(r.RemoteAddr) // requests without an address share one range
	return realip.Network(from.Addr()).String()
}

// isNotFound reports whether an error means that an object does not exist.
func isNotFound(err error) bool {
	for _, e := range []error{ErrNotFound, apikeys.ErrUnknown, agents.ErrUnknown, webhook.ErrUnknown, trunks.ErrUnknown, operator.ErrUnknown} {
		if errors.Is(err, e) {
			return true
		}
	}
	return slices.Contains(
		[]control.Code{control.CodeCallNotFound, control.CodeCampaignNotFound, control.CodeImportNotFound},
		control.CodeOf(err),
	)
}
