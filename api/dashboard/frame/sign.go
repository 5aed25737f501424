package frame

import (
	"errors"
	"net/http"
	"net/url"
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

func (f *Frame) toSignIn(w http.ResponseWriter, r *http.Request) {
	to := Home + "/sign-in"
	if r.Method == http.MethodGet && r.URL.Path != Home {
		to += "?next=" + url.QueryEscape(r.URL.RequestURI())
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

type signing struct{ Email, Next, Message string }

func (f *Frame) showSignIn(w http.ResponseWriter, r *http.Request) {
	if _, err := f.session(r); err == nil {
		http.Redirect(w, r, Home, http.StatusSeeOther)
		return
	}
	f.bare(w, r, http.StatusOK, "sign-in.html", "Sign in", signing{Next: r.URL.Query().Get("next")})
}

func (f *Frame) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	if err := r.ParseForm(); err != nil {
		f.fail(w, r, nil, &ProblemError{http.StatusBadRequest, "The form cannot be read", "Go back, load the page again, and send it from there."})
		return
	}
	to, from := r.PostForm.Get("next"), address(r)
	token, err := operator.SignIn(r.Context(), f.DB.Pool, r.PostForm.Get("email"), media.Secret(r.PostForm.Get("password")), from)
	slow, many := errors.AsType[*operator.SlowDownError](err)
	switch {
	case many || errors.Is(err, operator.ErrWrong):
		f.Log.WarnContext(r.Context(), "a sign-in was refused", "address", from, "reason", err.Error())
		s, status := signing{Email: r.PostForm.Get("email"), Next: to, Message: "This address and this password do not belong together."}, http.StatusUnprocessableEntity
		if many {
			s.Message, status = "Too many tries failed. Wait "+span(slow.For)+", then try again.", http.StatusTooManyRequests
		}
		f.bare(w, r, status, "sign-in.html", "Sign in", s)
	case err != nil:
		f.fail(w, r, nil, err)
	default:
		f.setCookie(w, string(token), int(operator.Life.Seconds()))
		http.Redirect(w, r, next(to), http.StatusSeeOther) //nolint:gosec // never out of the dashboard
	}
}

// next is where somebody wanted to go; never out of the dashboard.
func next(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(u.Path, Home+"/") || strings.ContainsAny(to, "\\\r\n") || strings.HasPrefix(u.Path, Home+"/sign-") {
		return Home
	}
	return u.RequestURI()
}

func (f *Frame) signOut(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(f.cookie()); err == nil {
		if err := operator.SignOut(r.Context(), f.DB.Pool, media.Secret(c.Value)); err != nil {
			f.fail(w, r, nil, err)
			return
		}
	}
	f.setCookie(w, "", -1)
	http.Redirect(w, r, Home+"/sign-in", http.StatusSeeOther)
}
