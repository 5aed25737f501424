// Package frame is what all pages of the dashboard stand in: who is signed in and
// what they may, the layout, forms, and the one door through which changes go.
//
// A room is a group of pages. Each page is a small function that reads what is to
// be seen and names a template; each change is a function that a form's answer is
// given to, and redirects. Rooms hold no rules of their own: they call what the
// API and the commands call.
package frame

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

	"github.com/parley-voice/parley/api/forwarded"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/control/webhook"
)

// Home is where the dashboard begins.
const Home = "/dashboard"

// A Frame serves rooms. Its fields are set before Handler is called.
type Frame struct {
	DB *db.DB
	// Key is shared by all servers: by it a page says what its form was filled in from, and
	// tells nothing of the secrets in that.
	Key []byte
	// Root is the name of the organization whose owners look after what all share.
	Root string
	// PublicURL is where browsers reach the service: http or https.
	PublicURL string
	// Apply is how what is edited is applied.
	Apply apply.Options
	Rooms []Room
	Log   *slog.Logger

	cross  *http.CrossOriginProtection
	assets assets
	pages  map[string]*template.Template // by room and file
}

// patience is how long a page may take.
const patience = 10 * time.Second

// mostForm is how long the body of a form may be that brings no file.
const mostForm = 1 << 20 // bytes

// Handler serves /dashboard and all below it.
func (f *Frame) Handler() (http.Handler, error) {
	if len(f.Key) == 0 {
		return nil, errors.New("dashboard: there is no key for forms")
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
	mux.HandleFunc("GET "+Home+"/{org}", f.home)
	for _, room := range f.Rooms {
		for _, route := range room.Routes {
			path := Home + "/{org}/" + route.Path
			if route.Look != nil || route.Serve != nil {
				mux.HandleFunc("GET "+path, f.enter(room, route, f.look))
			}
			if route.Change != nil {
				mux.HandleFunc("POST "+path, f.enter(room, route, f.change))
			}
		}
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { f.lost(w, r, mux) })
	return f.outer(mux), nil
}

// outer is around every request: headers, assets, and who sends a form.
func (f *Frame) outer(mux *http.ServeMux) http.Handler {
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
			f.fail(w, r, nil, &ProblemError{Status: http.StatusForbidden, Title: "This form was sent from another site", Text: "Nothing was changed. Go back, load the page again, and send the form from there."})
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// policy lets pages load what is ours and send forms to us, and nothing else: no
// script and no style stands in a page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' blob:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// lost answers what no page is for.
func (f *Frame) lost(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) {
	other := &http.Request{Method: http.MethodGet, URL: r.URL, Host: r.Host}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		other.Method = http.MethodPost
	}
	if _, pattern := mux.Handler(other); pattern != "/" {
		f.fail(w, r, f.whose(w, r), &ProblemError{Status: http.StatusMethodNotAllowed, Title: "This cannot be done here", Text: "Go back and try it from the page before."})
		return
	}
	if _, err := f.session(r); err != nil {
		f.unknown(w, r, err)
		return
	}
	f.fail(w, r, f.whose(w, r), ErrMissing)
}

// whose is a request to no page, of who is signed in and of the organization that its
// path begins with.
func (f *Frame) whose(w http.ResponseWriter, r *http.Request) *Request {
	s, err := f.session(r)
	if err != nil {
		return nil
	}
	org, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, Home+"/"), "/")
	seat, _ := s.Seat(org)
	return f.request(w, r, s, seat)
}

// home leads to the organization that was looked at last.
func (f *Frame) home(w http.ResponseWriter, r *http.Request) {
	s, err := f.session(r)
	if err != nil {
		f.unknown(w, r, err)
		return
	}
	org := cmp.Or(r.PathValue("org"), s.LastOrg)
	seat, ok := s.Seat(org)
	if !ok && r.PathValue("org") == "" && len(s.Seats) > 0 {
		seat, ok = s.Seats[0], true
	}
	if !ok {
		f.fail(w, r, f.request(w, r, s, operator.Seat{}), ErrMissing)
		return
	}
	http.Redirect(w, r, Home+"/"+url.PathEscape(seat.OrgID)+"/"+f.first(), http.StatusSeeOther)
}

// first is the page that the dashboard opens with.
func (f *Frame) first() string {
	for _, room := range f.Rooms {
		for _, l := range room.Links {
			return l.Path
		}
	}
	return ""
}

// enter lets into a page who is signed in, has a role in the organization, and may.
// Of others' organizations nobody learns that they are there.
func (f *Frame) enter(room Room, route Route, then func(*Request, Room, Route) error) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if route.Serve == nil && route.Long == 0 {
			route.Long = patience
		}
		if route.Long > 0 {
			ctx, cancel := context.WithTimeout(req.Context(), route.Long)
			defer cancel()
			req = req.WithContext(ctx)
		}
		r, ok := f.admit(w, req, route)
		if !ok {
			return
		}
		var err error
		switch {
		case r.Org() == "":
			err = ErrMissing
		case !r.May(route.needs()):
			err = operator.ErrForbidden
		case route.Root && !r.Root:
			err = ErrMissing
		case r.unread != nil:
			err = unreadable(r.unread)
		case r.again:
			err = f.resume(r, room, route)
		default:
			err = then(r, room, route)
		}
		if err != nil {
			f.fail(w, req, r, err)
		}
	}
}

// admit finds out who asks, and where that is nobody answers. A form from the page of
// signing in signs in whoever is signed in already: what it holds may be another's.
func (f *Frame) admit(w http.ResponseWriter, req *http.Request, route Route) (*Request, bool) {
	s, err := f.session(req)
	out := errors.Is(err, operator.ErrSignedOut)
	var unread error
	var again bool
	if req.Method == http.MethodPost && (err == nil || out) {
		unread = readPlain(w, req)
		if again = out || req.PostForm.Has(againEmail); again {
			var ok bool
			if s, ok = f.again(w, req, route, unread); !ok {
				return nil, false
			}
			err = nil
		}
	}
	if err != nil {
		f.unknown(w, req, err)
		return nil, false
	}
	seat, _ := s.Seat(req.PathValue("org"))
	r := f.request(w, req, s, seat)
	r.unread, r.again, r.anew = unread, again, route.Anew
	return r, true
}

func (f *Frame) request(w http.ResponseWriter, req *http.Request, s operator.Session, seat operator.Seat) *Request {
	return &Request{HTTP: req, Writer: w, Session: s, Seat: seat, Root: seat.Name == f.Root && seat.OrgID != "", frame: f}
}

func (f *Frame) look(r *Request, room Room, route Route) error {
	if err := r.Session.Visit(r.Context(), f.DB.Pool, r.Org()); err != nil {
		return err
	}
	if route.Serve != nil {
		return route.Serve(r)
	}
	p, err := route.Look(r)
	if err != nil {
		return err
	}
	return f.show(r, room, p, http.StatusOK)
}

// change gives a form's answer to its page. One that is refused is shown again with
// what was typed; one that is taken leads to the next page.
func (f *Frame) change(r *Request, room Room, route Route) error {
	r.bound(route)
	// The server would do so, had this not been copied to be given a deadline.
	defer func() {
		if sent := r.HTTP.MultipartForm; sent != nil {
			_ = sent.RemoveAll() // temporary
		}
	}()
	if err := parse(r.HTTP); err != nil {
		return unreadable(err)
	}
	if r.HTTP.PostForm.Has(againEmail) {
		return f.resume(r, room, route)
	}
	done, err := route.Change(r)
	if missing(err) {
		return err
	}
	r.invalid = refusal(err)
	switch {
	case r.invalid != nil && route.Look != nil:
		p, fault := route.Look(r)
		if fault != nil {
			return fault
		}
		status := http.StatusUnprocessableEntity
		if r.invalid.Newer {
			status = http.StatusConflict
		}
		return f.show(r, room, p, status)
	case r.invalid != nil:
		done = Done{To: cmp.Or(route.Back, f.first()), Say: r.invalid.Error(), Wrong: true}
	case err != nil:
		return err
	}
	if done.Page != nil {
		return f.show(r, room, *done.Page, http.StatusOK)
	}
	if done.Say != "" {
		if err := r.Session.Say(r.Context(), f.DB.Pool, flash(done)); err != nil {
			return err
		}
	}
	goOn(r.Writer, r.HTTP, r.URL(done.To), nil)
	return nil
}

// A script that sends a file says so, and is told where to go on: it would follow a
// redirect itself, and what is said on the next page once would be lost.
const (
	uploaded = "Parley-Upload"
	nextPage = "Parley-To"
)

// address is the network's of who sends a request, without its port.
func address(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return from.Addr().Unmap().String()
}

// network is what tries to sign in are counted by beside the account.
func network(r *http.Request) string {
	from, _ := netip.ParseAddrPort(r.RemoteAddr) // those of no address share one
	return forwarded.Network(from.Addr()).String()
}

// missing tells whether something asked for is not there.
func missing(err error) bool {
	for _, e := range []error{ErrMissing, access.ErrUnknown, agents.ErrUnknown, webhook.ErrUnknown, trunks.ErrUnknown, operator.ErrUnknown} {
		if errors.Is(err, e) {
			return true
		}
	}
	return slices.Contains([]control.Code{control.CodeCallNotFound, control.CodeCampaignNotFound, control.CodeImportNotFound}, control.CodeOf(err))
}
