package ui

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/media"
)

// cookie is the name of the session cookie. Over https the __Host- prefix keeps other
// hosts from setting it.
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
	s, err := operator.Open(r.Context(), f.DB.Pool, media.Secret(c.Value))
	if err == nil && !s.Identity && f.Identity != nil && f.Identity.Only {
		err = operator.ErrSignedOut // a password started the session before passwords were turned off
	}
	return s, err
}

func (f *Frame) setCookie(w http.ResponseWriter, name, value string, age int) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure over https
		Name: name, Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: f.secure(), SameSite: http.SameSiteLaxMode,
	})
}

// device returns the device of a request if the account has signed in on it before.
func (f *Frame) device(r *http.Request, email string) (id string, known bool) {
	c, err := r.Cookie(f.cookie() + "-device")
	if err != nil {
		return "", false
	}
	return operator.KnownDevice(f.Key, c.Value, email, time.Now())
}

// refuseSignedOut answers a request without a session.
func (f *Frame) refuseSignedOut(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, operator.ErrSignedOut) {
		f.toSignIn(w, r)
		return
	}
	f.fail(w, r, nil, err)
}

// toSignIn redirects to the sign-in page, and from there back to this page.
func (f *Frame) toSignIn(w http.ResponseWriter, r *http.Request) {
	q := url.Values{}
	if r.Method == http.MethodGet && r.URL.Path != Home {
		q.Set("next", r.URL.RequestURI())
	}
	redirect(w, r, Home+"/sign-in", q)
}

// dropForm redirects to the sign-in page and drops a form that cannot be kept.
func (f *Frame) dropForm(w http.ResponseWriter, r *http.Request, route Route) {
	q := url.Values{"lost": {"yes"}}
	if route.Show != nil {
		q.Set("next", r.URL.RequestURI())
	}
	redirect(w, r, Home+"/sign-in", q)
}

func redirect(w http.ResponseWriter, r *http.Request, to string, q url.Values) {
	if len(q) > 0 {
		to += "?" + q.Encode()
	}
	if r.Header.Get(uploaded) != "" {
		w.Header().Set(nextPage, to)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther) //nolint:gosec // never leaves the dashboard
}

type signing struct {
	Email, Next, Message string
	// Again means that a form was submitted without a session. Kept are the fields of that form.
	Again bool
	Kept  []kept
	// Provider is the name of the identity provider, or empty. Only means that passwords are off. Leave is the address
	// where a person signs out of the provider.
	Provider, Leave string
	Only            bool
	Challenge       string // the password was right, and a code is required
	Link            string // the sign-in connects the account to this person at the provider
}

// showSigning shows the sign-in page.
func (f *Frame) showSigning(w http.ResponseWriter, r *http.Request, status int, page signing) {
	if f.Identity != nil {
		page.Provider, page.Only = f.Identity.Host(), f.Identity.Only
	}
	f.writeBare(w, r, status, "sign-in.html", f.Texts.T("ui.sign_in.title"), page)
}

type kept struct{ Name, Value string }

func (f *Frame) showSignIn(w http.ResponseWriter, r *http.Request) {
	if _, err := f.session(r); err == nil {
		http.Redirect(w, r, Home, http.StatusSeeOther)
		return
	}
	page := signing{Next: r.URL.Query().Get("next")}
	if r.URL.Query().Has("lost") {
		page.Message = f.Texts.T("ui.sign_in.lost.too_large")
		if f.Identity != nil && f.Identity.Only {
			page.Message = f.Texts.T("ui.sign_in.lost.provider")
		}
	}
	if f.Identity != nil && r.URL.Query().Has("left") {
		page.Leave = f.Identity.SignOutURL(r.Context(), strings.TrimSuffix(f.PublicURL, "/")+Home+"/sign-in")
	}
	f.showSigning(w, r, http.StatusOK, page)
}

func (f *Frame) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	if err := r.ParseForm(); err != nil {
		f.fail(
			w,
			r,
			nil,
			&ProblemError{
				Status: http.StatusBadRequest,
				Title:  f.Texts.T("ui.problem.unreadable.title"),
				Text:   f.Texts.T("ui.problem.unreadable.text"),
			},
		)
		return
	}
	to := r.PostForm.Get("next")
	given := credentials{r.PostForm.Get("password"), r.PostForm.Get("challenge"), r.PostForm.Get("code")}
	page := signing{Email: r.PostForm.Get("email"), Next: to, Link: r.PostForm.Get("link")}
	if _, ok := f.checkCredentials(w, r, page, given); ok {
		http.Redirect(w, r, next(to), http.StatusSeeOther) //nolint:gosec // never leaves the dashboard
	}
}

// credentials are a password, or a code with the challenge that the password gave.
type credentials struct{ password, challenge, code string }

// checkCredentials starts a session if the credentials are right, otherwise it shows the error, or asks for a code.
func (f *Frame) checkCredentials(w http.ResponseWriter, r *http.Request, s signing, given credentials) (media.Secret, bool) {
	if f.Identity != nil && f.Identity.Only {
		s.Message = f.Texts.T("ui.sign_in.passwords_off", "host", f.Identity.Host())
		logRefusal(f, r, false, operator.Refusal{Email: s.Email, Way: operator.ByPassword, Err: errors.New("passwords are off")})
		f.showSigning(w, r, http.StatusForbidden, s)
		return "", false
	}
	token, email, err := f.tryCredentials(r, s.Email, given)
	if err != nil {
		f.refuseCredentials(w, r, s, given, cmp.Or(email, s.Email), err)
		return "", false
	}
	if s.Link != "" && f.Identity != nil {
		if err = linkAccount(f, r, token, s.Link); err != nil {
			f.refuseIdentity(w, r, email, err)
			return "", false
		}
	}
	f.setSession(w, r, token)
	if _, known := f.device(r, email); !known {
		f.setCookie(w, f.cookie()+"-device", operator.NewDevice(f.Key, email, time.Now()), int(operator.DeviceLife.Seconds()))
	}
	return token, true
}

func (f *Frame) tryCredentials(r *http.Request, email string, given credentials) (token media.Secret, of string, err error) {
	if given.challenge == "" {
		device, _ := f.device(r, email)
		token, err = operator.SignIn(r.Context(), f.DB.Pool, operator.SignInAttempt{
			Email: email, Password: media.Secret(given.password), Network: network(r), Address: address(r), Device: device, Key: f.Key,
		})
		return token, email, err
	}
	return operator.SignInCode(r.Context(), f.DB.Pool, operator.CodeAttempt{
		Challenge: given.challenge, Code: given.code, Key: f.Key, Address: address(r),
		Device: func(email string) string {
			device, _ := f.device(r, email)
			return device
		},
	})
}

// refuseCredentials shows the sign-in page with the error, or the field for the code. email is that of the account, if it is known.
func (f *Frame) refuseCredentials(w http.ResponseWriter, r *http.Request, s signing, given credentials, email string, err error) {
	status := http.StatusUnprocessableEntity
	slow, many := errors.AsType[*operator.SlowDownError](err)
	code, asked := errors.AsType[*operator.CodeRequiredError](err)
	switch {
	case asked:
		s.Challenge = code.Challenge
		f.showSigning(w, r, http.StatusOK, s)
		return
	case many:
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(slow.For.Seconds()))))
		s.Message, status = f.Texts.T("ui.problem.too_many_attempts", "span", wait(f.Texts, slow.For)), http.StatusTooManyRequests
	case errors.Is(err, operator.ErrBadCredentials):
		s.Message = f.Texts.T("ui.sign_in.wrong.password")
	case errors.Is(err, operator.ErrBadCode):
		s.Message, s.Challenge = f.Texts.T("ui.sign_in.wrong.code"), given.challenge
	case errors.Is(err, operator.ErrChallengeOver):
		s.Message = f.Texts.T("ui.sign_in.wrong.late")
	default:
		f.fail(w, r, nil, err)
		return
	}
	logRefusal(f, r, true, operator.Refusal{Email: email, Way: operator.ByPassword, Err: err})
	f.showSigning(w, r, status, s)
}

// setSession gives the browser a session, and ends the one that it had, of any operator.
func (f *Frame) setSession(w http.ResponseWriter, r *http.Request, token media.Secret) {
	if err := f.endSession(r); err != nil {
		f.Log.WarnContext(r.Context(), "failed to end the previous session", "error", err.Error())
	}
	f.setCookie(w, f.cookie(), string(token), int(operator.Life.Seconds()))
}

// Fields of the sign-in page when it is shown instead of a submitted form.
const (
	againEmail    = "sign-in.email"
	againPassword = "sign-in.password"

	againChallenge = "sign-in.challenge"
	againCode      = "sign-in.code"
)

// again shows the sign-in page at the address of a form that was submitted without a
// session, and keeps its fields except files and NotRefilled. It reports whether the
// operator signed in; otherwise it has answered.
func (f *Frame) again(w http.ResponseWriter, r *http.Request, route Route, readErr error) (s operator.Session, ok bool) {
	r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
	only := f.Identity != nil && f.Identity.Only   // the provider returns to another page
	if only || readErr != nil || parse(r) != nil { // for example because it is too long to keep
		f.dropForm(w, r, route)
		return s, false
	}
	email := r.PostForm.Get(againEmail)
	given := credentials{r.PostForm.Get(againPassword), r.PostForm.Get(againChallenge), r.PostForm.Get(againCode)}
	page := signing{Email: email, Again: true}
	for _, name := range slices.Sorted(maps.Keys(r.PostForm)) {
		if slices.Contains([]string{againEmail, againPassword, againChallenge, againCode}, name) || slices.Contains(route.NotRefilled, name) {
			delete(r.PostForm, name)
			continue
		}
		for _, v := range r.PostForm[name] {
			page.Kept = append(page.Kept, kept{name, Clean(v)})
		}
	}
	if email == "" {
		f.showSigning(w, r, http.StatusUnauthorized, page)
		return s, false
	}
	token, ok := f.checkCredentials(w, r, page, given)
	if !ok {
		return s, false
	}
	s, err := operator.Open(r.Context(), f.DB.Pool, token)
	if err != nil {
		f.fail(w, r, nil, err)
	}
	return s, err == nil
}

// resume shows a form again after the sign-in. Nothing has been saved yet, because another
// operator may have signed in.
func (f *Frame) resume(r *Request, module Module, route Route) error {
	if route.Show == nil {
		to := cmp.Or(route.Back, f.first())
		above := path.Dir(route.Path)
		if slices.ContainsFunc(module.Routes, func(x Route) bool { return x.Path == above && x.Show != nil }) {
			to = path.Dir(r.HTTP.URL.Path)
		}
		if err := r.Session.SetFlash(r.Context(), f.DB.Pool,
			flash(Result{Notice: r.Texts.T("ui.sign_in.resumed.notice"), Failed: true})); err != nil {
			return err
		}
		http.Redirect(r.Writer, r.HTTP, r.URL(to), http.StatusSeeOther) //nolint:gosec // within the dashboard
		return nil
	}
	r.invalid = &InvalidError{
		Message: r.Texts.T("ui.sign_in.resumed.message"),
	}
	p, err := route.Show(r)
	if err != nil {
		return err
	}
	return f.show(r, module, p, http.StatusOK)
}

// next returns the path to go to after signing in; it never leaves the dashboard.
func next(to string) string {
	u, err := url.Parse(to)
	if err == nil && path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/") { // a browser would resolve it differently
		return Home
	}
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(u.Path, Home+"/") || strings.ContainsAny(to, "\\\r\n") ||
		strings.HasPrefix(u.Path, Home+"/sign-") {
		return Home
	}
	return u.RequestURI()
}

// endSession ends the session of a request, if it has one.
func (f *Frame) endSession(r *http.Request) error {
	c, err := r.Cookie(f.cookie())
	if err != nil {
		return nil //nolint:nilerr // no session
	}
	return operator.SignOut(r.Context(), f.DB.Pool, media.Secret(c.Value), address(r))
}

func (f *Frame) signOut(w http.ResponseWriter, r *http.Request) {
	s, _ := f.session(r) // without a session there is nothing to end
	if err := f.endSession(r); err != nil {
		f.fail(w, r, nil, err)
		return
	}
	f.setCookie(w, f.cookie(), "", -1)
	to := Home + "/sign-in"
	if s.Identity {
		to += "?left" // the person is still signed in at the provider
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}
