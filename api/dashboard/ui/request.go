package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/media"
)

// A Request is a page request or form submission by a signed-in operator.
type Request struct {
	HTTP    *http.Request
	Writer  http.ResponseWriter
	Session operator.Session
	// Membership is the organization and the operator's role in it.
	Member operator.Membership
	// Root is true in the root organization.
	Root bool
	// Texts are the texts of the pages.
	Texts *Texts

	frame       *Frame
	invalid     *InvalidError // errors of the submitted form
	readErr     error         // why the form could not be read
	again       bool          // the form was sent together with a sign-in
	notRefilled []string      // fields that are not filled in again
}

// Context returns the context of the HTTP request.
func (r *Request) Context() context.Context { return r.HTTP.Context() }

// Org returns the organization id.
func (r *Request) Org() string { return r.Member.OrgID }

// DB is for reading. Changes go through Commit.
func (r *Request) DB() db.Querier { return r.frame.DB.Pool }

// ID returns {id} of the path.
func (r *Request) ID() string { return r.HTTP.PathValue("id") }

// May reports whether the operator's role includes the needed one.
func (r *Request) May(needed operator.Role) bool { return r.Member.Role.Includes(needed) }

// URL returns the path of a page of the organization. A path that begins with a
// slash is returned as it is.
func (r *Request) URL(path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	return Home + "/" + url.PathEscape(r.Org()) + "/" + path
}

// Zone is the organization's time zone, in which times are shown and entered.
func (r *Request) Zone() *time.Location { return zone(r.Member.Timezone) }

// AllowSocket lets the page open WebSockets to this server, which not every browser counts as 'self'.
func (r *Request) AllowSocket() {
	if u, err := url.Parse(r.frame.PublicURL); err == nil && u.Host != "" {
		own := "connect-src 'self' ws" + strings.TrimPrefix(u.Scheme, "http") + "://" + u.Host
		r.Writer.Header().Set("Content-Security-Policy", strings.Replace(policy, "connect-src 'self'", own, 1))
	}
}

// Part renders one block of a page of a module.
func (r *Request) Part(module string, p Page, block string) (string, error) {
	t, ok := r.frame.pages[module+"/"+p.Template]
	if !ok {
		return "", fmt.Errorf("dashboard: template %s of %s not found", p.Template, module)
	}
	var b strings.Builder
	if err := t.ExecuteTemplate(&b, block, r.frame.sheet(r, p)); err != nil {
		return "", fmt.Errorf("dashboard: %s of %s: %w", block, p.Template, err)
	}
	return b.String(), nil
}

// Still returns an error once the operator of a stream has signed out or lost access.
func (r *Request) Still() error {
	s, err := r.frame.session(r.HTTP)
	if err != nil {
		return err
	}
	if _, ok := s.Membership(r.Org()); !ok {
		return operator.ErrForbidden
	}
	return nil
}

// Notify shows a notice on the next page.
func (r *Request) Notify(notice string) error {
	return r.Session.SetFlash(r.Context(), r.frame.DB.Pool, flash(Result{Notice: notice}))
}

// SetCookie stores a choice in the browser.
func (r *Request) SetCookie(name, value string, keep time.Duration) {
	r.frame.setCookie(r.Writer, name, value, int(keep.Seconds()))
}

// Query returns a cleaned value of the query string.
func (r *Request) Query(name string) string { return Clean(r.HTTP.URL.Query().Get(name)) }

// Text returns a field without surrounding white space.
func (r *Request) Text(name string) string { return strings.TrimSpace(r.Raw(name)) }

// Raw returns a field with line ends as \n.
func (r *Request) Raw(name string) string {
	return strings.ReplaceAll(Clean(r.HTTP.PostForm.Get(name)), "\r\n", "\n")
}

// OnceField is a hidden field that makes repeated submissions of a form harmless.
func OnceField() Field { return Field{Name: once, Kind: Hidden, Value: control.NewID("", time.Now())} }

const once = "once"

// OnceKey returns the idempotency key of the form and its scope: session, method, path.
func (r *Request) OnceKey() (scope, key string, err error) {
	if key = r.Text(once); key == "" || len(key) > 100 {
		return "", "", Invalid("", r.Texts.T("ui.form.once.invalid"))
	}
	return r.Session.ID + " " + r.HTTP.Method + " " + r.HTTP.URL.Path, key, nil
}

// All returns the ticked values of checkboxes.
func (r *Request) All(name string) []string { return r.HTTP.PostForm[name] }

// Ticked reports whether a checkbox is ticked.
func (r *Request) Ticked(name string) bool { return r.HTTP.PostForm.Get(name) != "" }

// Clean removes what Postgres text cannot hold: NUL and invalid UTF-8.
func Clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

// File stores an uploaded file in a temporary folder until remove is called. Without
// a file the error is an *InvalidError of the field.
func (r *Request) File(name string) (path string, remove func(), err error) {
	from, head, err := r.HTTP.FormFile(name)
	if err != nil || head.Size == 0 {
		return "", nil, Invalid(name, r.Texts.T("ui.field.file.invalid"))
	}
	defer from.Close()
	dir, err := os.MkdirTemp("", "parley-")
	if err != nil {
		return "", nil, fmt.Errorf("store an upload: %w", err)
	}
	remove = func() { _ = os.RemoveAll(dir) } // the file is temporary
	path = filepath.Join(dir, plainName(head.Filename))
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600) //nolint:gosec // a sanitized name in a new folder
	if err == nil {
		_, err = io.Copy(to, from)
		err = errors.Join(err, to.Close())
	}
	if err != nil {
		remove()
		return "", nil, fmt.Errorf("store an upload: %w", err)
	}
	return path, remove, nil
}

func plainName(name string) string {
	name = strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("._- ", c) {
			return c
		}
		return '_'
	}, Clean(filepath.Base(name)))
	if name = strings.TrimLeft(name, "."); name == "" || len(name) > 200 {
		return "file"
	}
	return name
}

// parse reads a form of either encoding. The caller bounds the size of the body.
func parse(r *http.Request) error {
	err := r.ParseForm() // ParseMultipartForm would hide the error
	if err == nil {
		err = r.ParseMultipartForm(maxFormBytes) //nolint:gosec // see above
	}
	if errors.Is(err, http.ErrNotMultipart) {
		return nil
	}
	return err
}

// readPlain reads a form without files. Forms with files are read by serveForm.
func readPlain(w http.ResponseWriter, r *http.Request) error {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "multipart/form-data" {
		return nil
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
	return parse(r)
}

// bound limits the size of a form's body and the time to read it.
func (r *Request) bound(route Route) {
	r.HTTP.Body = http.MaxBytesReader(r.Writer, r.HTTP.Body, max(maxFormBytes, route.MaxBytes))
	if route.Timeout > defaultTimeout {
		// The server's deadline for reading is one minute, and uploads may take longer. If the
		// connection does not support it, the server's deadline stays.
		_ = http.NewResponseController(r.Writer).SetReadDeadline(time.Now().Add(route.Timeout))
	}
}

// unreadable returns the error page of a form that could not be read.
func unreadable(texts *Texts, err error) error {
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		return &ProblemError{
			Status: http.StatusRequestEntityTooLarge,
			Title:  texts.T("ui.problem.too_large.title"),
			Text:   texts.T("ui.problem.too_large.text"),
		}
	}
	return &ProblemError{
		Status: http.StatusBadRequest,
		Title:  texts.T("ui.problem.unreadable.title"),
		Text:   texts.T("ui.problem.unreadable.text"),
	}
}

// Actor returns the operator for the audit log.
func (r *Request) Actor() operator.Actor {
	return operator.Actor{ID: r.Session.ID, Email: r.Session.Email, OrgID: r.Org(), Address: address(r.HTTP)}
}

// Commit makes a change and its audit entry in one transaction, after checking the
// role again. An entry without an action means that nothing changed.
func (r *Request) Commit(needed operator.Role, do func(q db.Querier) (operator.Entry, error)) error {
	if r.Text(seen) == "" {
		return operator.Change(r.Context(), r.frame.DB, r.Actor(), needed, do)
	}
	return operator.Change(r.Context(), r.frame.DB, r.Actor(), needed, func(q db.Querier) (operator.Entry, error) {
		if _, err := q.Exec(r.Context(), "SELECT pg_advisory_xact_lock(hashtextextended('form ' || $1, 0))", r.Org()); err != nil {
			return operator.Entry{}, fmt.Errorf("form: %w", err)
		}
		return do(q)
	})
}

// Log writes the audit entry of a change that ran in its own transactions, even if the
// browser has disconnected.
func (r *Request) Log(e operator.Entry) error {
	return operator.Log(context.WithoutCancel(r.Context()), r.frame.DB.Pool, r.Actor(), e)
}

// An InvalidError says why a form is rejected.
type InvalidError struct {
	Fields  map[string]string // by field name: what is wrong, and what is accepted
	Message string            // error that belongs to no single field
	Newer   bool              // the object was changed after the form was opened
	Status  int               // HTTP status; 0 means 422
}

// Error implements error.
func (e *InvalidError) Error() string {
	if e.Message != "" {
		return e.Message
	}
	for _, m := range e.Fields {
		return m
	}
	return "the form is incomplete"
}

// Text returns all errors with the names of their fields.
func (e *InvalidError) Text() string {
	all := []string{}
	if e.Message != "" {
		all = append(all, e.Message)
	}
	for _, key := range slices.Sorted(maps.Keys(e.Fields)) {
		all = append(all, labelled(key, e.Fields[key]))
	}
	return strings.Join(all, "; ")
}

// labelled prefixes a reason with its key unless it begins with it.
func labelled(key, reason string) string {
	if strings.HasPrefix(reason, Capitalize(key)) {
		return reason
	}
	return key + ": " + reason
}

// Invalid rejects a form because of a field, or as a whole with field "".
func Invalid(field string, reason any) error {
	text := Capitalize(fmt.Sprint(reason))
	if field == "" {
		return &InvalidError{Message: text}
	}
	return &InvalidError{Fields: map[string]string{field: text}}
}

// TooManyAttempts rejects a form after too many wrong passwords.
func TooManyAttempts(texts *Texts, field string, slow *operator.SlowDownError) error {
	return &InvalidError{
		Fields: map[string]string{
			field: texts.T("ui.problem.too_many_attempts", "span", wait(texts, slow.For)),
		}, Status: http.StatusTooManyRequests,
	}
}

// Prove checks the operator's password; see operator.Session.VerifyPassword.
func (r *Request) Prove(password media.Secret) error {
	return r.Session.VerifyPassword(r.Context(), r.frame.DB.Pool, password)
}

// ProveCode uses up a one-time code of the operator; see operator.Session.VerifyCode.
func (r *Request) ProveCode(code string) error {
	return r.Session.VerifyCode(r.Context(), r.frame.DB.Pool, code)
}

// Service returns the name of this service in authenticator apps.
func (r *Request) Service() string {
	if u, err := url.Parse(r.frame.PublicURL); err == nil && u.Hostname() != "" {
		return "Parley (" + u.Hostname() + ")"
	}
	return "Parley"
}

// RequiresCodes reports whether the operator must turn on one-time codes.
func (r *Request) RequiresCodes() bool { return r.frame.RequireCodes }

// Capitalize returns a text with its first letter in upper case.
func Capitalize(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

// wait returns how long to wait: whole minutes, rounded up, if it is longer than one.
func wait(texts *Texts, d time.Duration) string {
	if d > time.Minute {
		d = (d + time.Minute - 1).Truncate(time.Minute)
	}
	return span(texts, d)
}

// refusal returns the reason to show for a rejected change, nil for other errors.
func refusal(texts *Texts, err error) *InvalidError {
	if invalid, ok := errors.AsType[*InvalidError](err); ok {
		return invalid
	}
	refused, ok := errors.AsType[*control.Error](err)
	if !ok {
		return nil
	}
	switch refused.Code {
	case control.CodeIdempotencyReuse:
		return &InvalidError{Message: texts.T("ui.form.once.other_values")}
	case control.CodeIdempotencyInFlight:
		return &InvalidError{Message: texts.T("ui.form.once.in_progress")}
	default:
		return &InvalidError{Message: refused.Message}
	}
}

// Paginate cuts a list that was read with one item more than a page holds. If there is such an
// item, next is the address of the next page, which begins after the last ID of this one.
func Paginate[T any](r *Request, all []T, size int, id func(T) string) (page []T, next string) {
	if len(all) <= size {
		return all, ""
	}
	all = all[:size]
	q := r.HTTP.URL.Query()
	q.Set("after", id(all[size-1]))
	return all, r.HTTP.URL.Path + "?" + q.Encode()
}
