package frame

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
)

// A Request is a page that is asked for, or a form that was sent, by somebody who
// may.
type Request struct {
	HTTP    *http.Request
	Writer  http.ResponseWriter
	Session operator.Session
	// Seat is the organization, and the operator's role in it.
	Seat operator.Seat
	// Root holds in the root organization.
	Root bool

	frame   *Frame
	invalid *InvalidError // what was wrong with the form that was sent
	unread  error         // why that could not be read
	again   bool          // who asks has signed in with it
	anew    []string      // the fields of it that nobody takes over
}

// Context is the request's.
func (r *Request) Context() context.Context { return r.HTTP.Context() }

// Org is the organization's id.
func (r *Request) Org() string { return r.Seat.OrgID }

// DB is for reading.
func (r *Request) DB() db.Querier { return r.frame.DB.Pool }

// ID is the {id} of the path.
func (r *Request) ID() string { return r.HTTP.PathValue("id") }

// May reports whether the role is enough.
func (r *Request) May(needed operator.Role) bool { return r.Seat.Role.May(needed) }

// URL is the address of a page of the organization. A path that begins with a
// slash is one already.
func (r *Request) URL(path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	return Home + "/" + url.PathEscape(r.Org()) + "/" + path
}

// Zone is the organization's, in which times are shown and typed.
func (r *Request) Zone() *time.Location { return zone(r.Seat.Timezone) }

// Part is a block of a page of a room by itself, as it would stand in the page.
func (r *Request) Part(room string, p Page, block string) (string, error) {
	t, ok := r.frame.pages[room+"/"+p.Template]
	if !ok {
		return "", fmt.Errorf("dashboard: there is no template %s of %s", p.Template, room)
	}
	var b strings.Builder
	if err := t.ExecuteTemplate(&b, block, r.frame.sheet(r, p)); err != nil {
		return "", fmt.Errorf("dashboard: %s of %s: %w", block, p.Template, err)
	}
	return b.String(), nil
}

// Still fails where who asked for a page that goes on may not look at it any more.
func (r *Request) Still() error {
	s, err := r.frame.session(r.HTTP)
	if err != nil {
		return err
	}
	if _, ok := s.Seat(r.Org()); !ok {
		return operator.ErrForbidden
	}
	return nil
}

// Query is a value of the address, "" where there is none or none that can be.
func (r *Request) Query(name string) string { return Clean(r.HTTP.URL.Query().Get(name)) }

// Text is what was typed into a field, without the blanks around it.
func (r *Request) Text(name string) string { return strings.TrimSpace(r.Raw(name)) }

// Raw is what was typed into a field, its lines ended as ours are.
func (r *Request) Raw(name string) string {
	return strings.ReplaceAll(Clean(r.HTTP.PostForm.Get(name)), "\r\n", "\n")
}

// Once is the field of a form that does something once, however often it is sent.
func Once() Field { return Field{Name: once, Kind: Hidden, Value: control.NewID("", time.Now())} }

const once = "once"

// OnceKey is what the form that was sent is known by, and in which scope: the
// operator's, at this address.
func (r *Request) OnceKey() (scope, key string, err error) {
	if key = r.Text(once); key == "" || len(key) > 100 {
		return "", "", Invalid("", "Load the page again, and send the form from there.")
	}
	return r.Session.ID + " " + r.HTTP.Method + " " + r.HTTP.URL.Path, key, nil
}

// All are the values of boxes that were ticked.
func (r *Request) All(name string) []string { return r.HTTP.PostForm[name] }

// Ticked reports whether a box was.
func (r *Request) Ticked(name string) bool { return r.HTTP.PostForm.Get(name) != "" }

// Clean leaves out what the database can hold in no text.
func Clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

// File keeps a file that was sent, under its own name in a folder of its own, until
// remove is called. None is an *InvalidError of the field.
func (r *Request) File(name string) (path string, remove func(), err error) {
	from, head, err := r.HTTP.FormFile(name)
	if err != nil || head.Size == 0 {
		return "", nil, Invalid(name, "Choose a file.")
	}
	defer from.Close()
	dir, err := os.MkdirTemp("", "parley-")
	if err != nil {
		return "", nil, fmt.Errorf("keep a file: %w", err)
	}
	remove = func() { _ = os.RemoveAll(dir) } // temporary
	path = filepath.Join(dir, plainName(head.Filename))
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600) //nolint:gosec // a plain name in a folder of ours
	if err == nil {
		_, err = io.Copy(to, from)
		err = errors.Join(err, to.Close())
	}
	if err != nil {
		remove()
		return "", nil, fmt.Errorf("keep a file: %w", err)
	}
	return path, remove, nil
}

// plainName is a file's name as far as it is a plain one.
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

// parse reads a form of either kind, whose body is bounded.
func parse(r *http.Request) error {
	err := r.ParseForm() // what follows would not tell what was wrong with it
	if err == nil {
		err = r.ParseMultipartForm(mostForm) //nolint:gosec // see above
	}
	if errors.Is(err, http.ErrNotMultipart) {
		return nil
	}
	return err
}

// readPlain reads a form that brings no file. One that does is read where it is taken.
func readPlain(w http.ResponseWriter, r *http.Request) error {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "multipart/form-data" {
		return nil
	}
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	return parse(r)
}

// bound says how long the body of a form may be, and may take.
func (r *Request) bound(route Route) {
	r.HTTP.Body = http.MaxBytesReader(r.Writer, r.HTTP.Body, max(mostForm, route.Most))
	if route.Long > patience {
		// The server lets no body take longer than a minute; a file may. Where the
		// deadline cannot be moved, the server's counts.
		_ = http.NewResponseController(r.Writer).SetReadDeadline(time.Now().Add(route.Long))
	}
}

// unreadable is what is said of a form that could not be read.
func unreadable(err error) error {
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		return &ProblemError{Status: http.StatusRequestEntityTooLarge, Title: "That is too much", Text: "What was sent is longer than this page takes."}
	}
	return &ProblemError{Status: http.StatusBadRequest, Title: "The form cannot be read", Text: "Go back, load the page again, and send it from there."}
}

// Actor is who changes something.
func (r *Request) Actor() operator.Actor {
	return operator.Actor{ID: r.Session.ID, Email: r.Session.Email, OrgID: r.Org(), Address: address(r.HTTP)}
}

// Commit does a change in one transaction with its entry in the audit log; the role
// that the page needs is looked at again there. An entry without an action says
// that nothing was changed.
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

// Log writes the entry of a change that has transactions of its own, once it is
// made. It is written although the operator has left meanwhile.
func (r *Request) Log(e operator.Entry) error {
	return operator.Log(context.WithoutCancel(r.Context()), r.frame.DB.Pool, r.Actor(), e)
}

// An InvalidError is why a form is refused.
type InvalidError struct {
	Fields  map[string]string // by name: what is wrong, and what is accepted
	Message string            // of none of them
	Newer   bool              // what it is about is another by now
}

// Error implements error.
func (e *InvalidError) Error() string {
	if e.Message != "" {
		return e.Message
	}
	for _, m := range e.Fields {
		return m
	}
	return "the form is not complete"
}

// Told is what is wrong, with the names of the fields.
func (e *InvalidError) Told() string {
	all := []string{}
	if e.Message != "" {
		all = append(all, e.Message)
	}
	for _, key := range slices.Sorted(maps.Keys(e.Fields)) {
		all = append(all, labelled(key, e.Fields[key]))
	}
	return strings.Join(all, "; ")
}

// labelled is a reason with the key that it is about, which it may begin with.
func labelled(key, reason string) string {
	if strings.HasPrefix(reason, sentence(key)) {
		return reason
	}
	return key + ": " + reason
}

// Invalid refuses a form because of a field; of none where that is "".
func Invalid(field string, reason any) error {
	text := sentence(fmt.Sprint(reason))
	if field == "" {
		return &InvalidError{Message: text}
	}
	return &InvalidError{Fields: map[string]string{field: text}}
}

// sentence begins an error as people begin what they write.
func sentence(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

// refusal is why a change was refused; nil where it was not, or failed otherwise.
func refusal(err error) *InvalidError {
	if invalid, ok := errors.AsType[*InvalidError](err); ok {
		return invalid
	}
	refused, ok := errors.AsType[*control.Error](err)
	if !ok {
		return nil
	}
	switch refused.Code {
	case control.CodeIdempotencyReuse:
		return &InvalidError{Message: "This form was sent before, and said something else then. Look at what came of it, and load the page again."}
	case control.CodeIdempotencyInFlight:
		return &InvalidError{Message: "This form was sent before, and is being worked on. Look in a moment at what came of it."}
	default:
		return &InvalidError{Message: refused.Message}
	}
}

// Paged cuts a list to a page. One more item was asked for than a page has; where
// it is there, next is the address of the page after this, by the id of the last.
func Paged[T any](r *Request, all []T, size int, id func(T) string) (page []T, next string) {
	if len(all) <= size {
		return all, ""
	}
	all = all[:size]
	q := r.HTTP.URL.Query()
	q.Set("after", id(all[size-1]))
	return all, r.HTTP.URL.Path + "?" + q.Encode()
}
