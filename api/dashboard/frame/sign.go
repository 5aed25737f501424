package frame

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/media"
)

// cookie is the name of what a browser is known by. Over https its name has it
// refused from anywhere else.
func (f *Frame) cookie() string {
	if f.secure() {
		return "__Host-parley"
	}
	return "parley"
}

func (f *Frame) secure() bool { return strings.HasPrefix(f.PublicURL, "https://") }

func (f *Frame) session(r *http.Request) (operator.Session, error) {
	c, err := r.Cookie(f.cookie())
	if err != nil || c.Value == "" {
		return operator.Session{}, operator.ErrSignedOut
	}
	return operator.Open(r.Context(), f.DB.Pool, media.Secret(c.Value))
}

func (f *Frame) setCookie(w http.ResponseWriter, value string, age int) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure wherever browsers come by https
		Name: f.cookie(), Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: f.secure(), SameSite: http.SameSiteLaxMode,
	})
}

// unknown answers who is not signed in, or where that cannot be told.
func (f *Frame) unknown(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, operator.ErrSignedOut) {
		f.toSignIn(w, r)
		return
	}
	f.fail(w, r, nil, err)
}

// toSignIn leads to the page of signing in, and from there back to a page.
func (f *Frame) toSignIn(w http.ResponseWriter, r *http.Request) {
	q := url.Values{}
	if r.Method == http.MethodGet && r.URL.Path != Home {
		q.Set("next", r.URL.RequestURI())
	}
	goOn(w, r, Home+"/sign-in", q)
}

// tooLong leads there from a form that is too long to be kept meanwhile.
func (f *Frame) tooLong(w http.ResponseWriter, r *http.Request, route Route) {
	q := url.Values{"lost": {"yes"}}
	if route.Look != nil {
		q.Set("next", r.URL.RequestURI())
	}
	goOn(w, r, Home+"/sign-in", q)
}

// goOn leads to a page.
func goOn(w http.ResponseWriter, r *http.Request, to string, q url.Values) {
	if len(q) > 0 {
		to += "?" + q.Encode()
	}
	if r.Header.Get(uploaded) != "" {
		w.Header().Set(nextPage, to)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther) //nolint:gosec // never out of the dashboard
}

// signing is what the page of signing in shows.
type signing struct {
	Email, Next, Message string
	// Again tells that a form was sent while nobody was signed in; Kept is what of it
	// comes along.
	Again bool
	Kept  []kept
}

// kept is a value of a form.
type kept struct{ Name, Value string }

func (f *Frame) showSignIn(w http.ResponseWriter, r *http.Request) {
	if _, err := f.session(r); err == nil {
		http.Redirect(w, r, Home, http.StatusSeeOther)
		return
	}
	page := signing{Next: r.URL.Query().Get("next")}
	if r.URL.Query().Has("lost") {
		page.Message = "You were signed out, and what you sent is too long to be kept. Nothing was done: sign in, and send it again."
	}
	f.bare(w, r, http.StatusOK, "sign-in.html", "Sign in", page)
}

func (f *Frame) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	if err := r.ParseForm(); err != nil {
		f.fail(w, r, nil, &ProblemError{Status: http.StatusBadRequest, Title: "The form cannot be read", Text: "Go back, load the page again, and send it from there."})
		return
	}
	to := r.PostForm.Get("next")
	if _, ok := f.prove(w, r, signing{Email: r.PostForm.Get("email"), Next: to}, r.PostForm.Get("password")); ok {
		http.Redirect(w, r, next(to), http.StatusSeeOther) //nolint:gosec // never out of the dashboard
	}
}

// prove begins a session of whose address and password belong together; else it says
// on the page what is wrong.
func (f *Frame) prove(w http.ResponseWriter, r *http.Request, s signing, password string) (media.Secret, bool) {
	from := address(r)
	token, err := operator.SignIn(r.Context(), f.DB.Pool, s.Email, media.Secret(password), network(r))
	slow, many := errors.AsType[*operator.SlowDownError](err)
	switch {
	case many || errors.Is(err, operator.ErrWrong):
		f.Log.WarnContext(r.Context(), "a sign-in was refused", "address", from, "reason", err.Error())
		status := http.StatusUnprocessableEntity
		s.Message = "This address and this password do not belong together."
		if many {
			s.Message, status = "Too many tries failed. Wait "+span(slow.For)+", then try again.", http.StatusTooManyRequests
		}
		f.bare(w, r, status, "sign-in.html", "Sign in", s)
	case err != nil:
		f.fail(w, r, nil, err)
	default:
		if err := f.leave(r); err != nil { // whoever's it was
			f.Log.WarnContext(r.Context(), "the session before goes on", "error", err.Error())
		}
		f.setCookie(w, string(token), int(operator.Life.Seconds()))
		return token, true
	}
	return "", false
}

// Fields of the page of signing in, where it stands in the place of another.
const (
	againEmail    = "sign-in.email"
	againPassword = "sign-in.password"
)

// again has who sent a form and is not signed in, sign in at the form's own address: what
// was typed comes along, but for files and what the route has given anew. It tells
// whether somebody has, and answers where nobody has.
func (f *Frame) again(w http.ResponseWriter, r *http.Request, route Route, unread error) (s operator.Session, ok bool) {
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	if unread != nil || parse(r) != nil { // it is longer than is kept, say
		f.tooLong(w, r, route)
		return s, false
	}
	email, password := r.PostForm.Get(againEmail), r.PostForm.Get(againPassword)
	page := signing{Email: email, Again: true}
	for _, name := range slices.Sorted(maps.Keys(r.PostForm)) {
		if name == againEmail || name == againPassword || slices.Contains(route.Anew, name) {
			delete(r.PostForm, name)
			continue
		}
		for _, v := range r.PostForm[name] {
			page.Kept = append(page.Kept, kept{name, Clean(v)})
		}
	}
	if email == "" {
		f.bare(w, r, http.StatusUnauthorized, "sign-in.html", "Sign in", page)
		return s, false
	}
	token, ok := f.prove(w, r, page, password)
	if !ok {
		return s, false
	}
	s, err := operator.Open(r.Context(), f.DB.Pool, token)
	if err != nil {
		f.fail(w, r, nil, err)
	}
	return s, err == nil
}

// resume shows a form again that was sent while nobody was signed in. Nothing is done
// yet: who has signed in may be somebody else.
func (f *Frame) resume(r *Request, room Room, route Route) error {
	if route.Look == nil {
		to := cmp.Or(route.Back, f.first())
		above := path.Dir(route.Path)
		if slices.ContainsFunc(room.Routes, func(x Route) bool { return x.Path == above && x.Look != nil }) {
			to = path.Dir(r.HTTP.URL.Path)
		}
		if err := r.Session.Say(r.Context(), f.DB.Pool, flash(Done{Say: "You were signed out, and nothing was done. Do it again.", Wrong: true})); err != nil {
			return err
		}
		http.Redirect(r.Writer, r.HTTP, r.URL(to), http.StatusSeeOther) //nolint:gosec // a page of ours
		return nil
	}
	r.invalid = &InvalidError{Message: "You were signed out, and nothing was done yet. Here is what you had typed: send it again. Passwords, files and confirmations have to be given anew."}
	p, err := route.Look(r)
	if err != nil {
		return err
	}
	return f.show(r, room, p, http.StatusOK)
}

// next is where somebody wanted to go; never out of the dashboard.
func next(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(u.Path, Home+"/") || strings.ContainsAny(to, "\\\r\n") || strings.HasPrefix(u.Path, Home+"/sign-") {
		return Home
	}
	return u.RequestURI()
}

// leave ends the session by which a request comes, if there is one.
func (f *Frame) leave(r *http.Request) error {
	c, err := r.Cookie(f.cookie())
	if err != nil {
		return nil //nolint:nilerr // there is none
	}
	return operator.SignOut(r.Context(), f.DB.Pool, media.Secret(c.Value))
}

func (f *Frame) signOut(w http.ResponseWriter, r *http.Request) {
	if err := f.leave(r); err != nil {
		f.fail(w, r, nil, err)
		return
	}
	f.setCookie(w, "", -1)
	http.Redirect(w, r, Home+"/sign-in", http.StatusSeeOther)
}
