package frame

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/operator"
)

// parse reads the templates of the frame and of all rooms.
func (f *Frame) parse() (map[string]*template.Template, error) {
	base, err := template.New("frame").Funcs(funcs(f.assets)).ParseFS(files, "pages/_*.html")
	if err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	own, err := fs.Sub(files, "pages")
	if err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	all := map[string]*template.Template{}
	for _, room := range append([]Room{{Files: own}}, f.Rooms...) {
		if err := readPages(all, base, own, room); err != nil {
			return nil, fmt.Errorf("dashboard: %s: %w", room.Name, err)
		}
	}
	return all, nil
}

// readPages reads those of a room, and the page that is a form alone, which each has.
func readPages(all map[string]*template.Template, base *template.Template, own fs.FS, room Room) error {
	names, err := fs.Glob(room.Files, "*.html")
	if err != nil {
		return err
	}
	shared, err := base.Clone()
	if err != nil {
		return err
	}
	if room.Name != "" {
		for _, name := range names {
			if strings.HasPrefix(name, "_") {
				if _, err = shared.ParseFS(room.Files, name); err != nil {
					return err
				}
			}
		}
	}
	read := func(from fs.FS, name string) error {
		page, fault := shared.Clone()
		if fault == nil {
			page, fault = page.ParseFS(from, name)
		}
		all[path.Join(room.Name, name)] = page
		return fault
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "_") {
			if err = read(room.Files, name); err != nil {
				return err
			}
		}
	}
	return read(own, formPage)
}

// formPage is a form and nothing else.
const formPage = "form.html"

// A sheet is what a page is written from.
type sheet struct {
	Page

	Session operator.Session
	Seat    operator.Seat
	Nav     []section
	Said    string
	Wrong   bool // it was said that something went wrong
	Path    string
	zone    *time.Location
}

type section struct {
	Name  string
	Links []navLink
}

type navLink struct {
	Link

	Here bool
}

// May reports whether the operator's role is enough.
func (s sheet) May(role string) bool { return s.Seat.Role.May(operator.Role(role)) }

// URL is the address of a page of the organization.
func (s sheet) URL(parts ...any) string {
	return (&Request{Seat: s.Seat}).URL(strings.TrimSuffix(fmt.Sprint(join(parts)), "/"))
}

// Zone is the time zone that times are shown in.
func (s sheet) Zone() string { return s.zone.String() }

// When shows a time; nil and the zero time are a dash.
func (s sheet) When(v any) template.HTML {
	t, ok := moment(v)
	if !ok {
		return `<span class="none">–</span>`
	}
	local := t.In(s.zone)
	form := "2 Jan, 15:04"
	if local.Year() != time.Now().In(s.zone).Year() {
		form = "2 Jan 2006"
	}
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`, //nolint:gosec // times alone
		t.UTC().Format(time.RFC3339), local.Format("Mon 2 Jan 2006, 15:04:05 MST"), local.Format(form)))
}

// Crumb is the address of a page above this one.
func (s sheet) Crumb(l Link) string { return s.URL(l.Path) }

// Actions are those that the operator may begin.
func (s sheet) Actions() []Link {
	var all []Link
	for _, l := range s.Page.Actions {
		if needed := l.Needs; s.Seat.Role.May(orDefault(needed, operator.Operator)) {
			all = append(all, l)
		}
	}
	return all
}

func orDefault(r, usual operator.Role) operator.Role {
	if r == "" {
		return usual
	}
	return r
}

func (f *Frame) sheet(r *Request, p Page) sheet {
	s := sheet{Page: p, Session: r.Session, Seat: r.Seat, Path: r.HTTP.URL.Path, zone: zone(r.Seat.Timezone)}
	s.Said, s.Wrong = unflash(r.Session.Said)
	if r.Org() == "" {
		return s
	}
	longest, at := -1, [2]int{}
	for _, room := range f.Rooms {
		for _, l := range room.Links {
			if !r.Seat.Role.May(orDefault(l.Needs, operator.Viewer)) || l.Root && !r.Root {
				continue
			}
			if len(s.Nav) == 0 || s.Nav[len(s.Nav)-1].Name != l.Section {
				s.Nav = append(s.Nav, section{Name: l.Section})
			}
			in := &s.Nav[len(s.Nav)-1]
			in.Links = append(in.Links, navLink{Link: l})
			if here := r.URL(l.Path); (s.Path == here || strings.HasPrefix(s.Path, here+"/")) && len(l.Path) > longest {
				longest, at = len(l.Path), [2]int{len(s.Nav) - 1, len(in.Links) - 1}
			}
		}
	}
	if longest >= 0 {
		s.Nav[at[0]].Links[at[1]].Here = true
	}
	return s
}

func zone(name string) *time.Location {
	if z, err := control.Zone(name); err == nil {
		return z
	}
	return time.UTC
}

// show writes a page of a room.
func (f *Frame) show(r *Request, room Room, p Page, status int) error {
	return f.write(r.Writer, path.Join(room.Name, p.Template), f.sheet(r, p), status)
}

// bare writes a page of the frame's own, without an organization around it.
func (f *Frame) bare(w http.ResponseWriter, r *http.Request, status int, file, title string, data any) {
	s := f.sheet(&Request{HTTP: r}, Page{Title: title, Data: data})
	if err := f.write(w, file, s, status); err != nil {
		f.Log.ErrorContext(r.Context(), "dashboard", "page", file, "err", err)
		http.Error(w, "this page cannot be shown", http.StatusInternalServerError)
	}
}

// write executes a template whole before anything of it is sent.
func (f *Frame) write(w http.ResponseWriter, name string, s sheet, status int) error {
	t, ok := f.pages[name]
	if !ok {
		return fmt.Errorf("dashboard: there is no template %s", name)
	}
	var page bytes.Buffer
	if err := t.ExecuteTemplate(&page, "page", s); err != nil {
		return fmt.Errorf("dashboard: %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(page.Bytes()) // the browser may be gone
	return nil
}

// fail answers what went wrong. What is nobody's business is logged, not shown.
func (f *Frame) fail(w http.ResponseWriter, req *http.Request, r *Request, err error) {
	problem, ok := errors.AsType[*ProblemError](err)
	switch {
	case ok:
	case missing(err):
		problem = &ProblemError{Status: http.StatusNotFound, Title: "There is no such page", Text: "It may have been removed, or the address may be mistyped."}
	case errors.Is(err, operator.ErrForbidden):
		problem = &ProblemError{Status: http.StatusForbidden, Title: "Your role does not allow this", Text: "An owner of the organization can change what you may do, under Operators."}
	case refusal(err) != nil:
		problem = &ProblemError{Status: http.StatusUnprocessableEntity, Title: "This was refused", Text: refusal(err).Error()}
	case req.Context().Err() != nil:
		f.Log.WarnContext(req.Context(), "dashboard: a page took too long", "path", req.URL.Path, "err", err)
		problem = &ProblemError{Status: http.StatusServiceUnavailable, Title: "This took too long", Text: "The service is busy. Try again in a moment."}
	default:
		f.Log.ErrorContext(req.Context(), "dashboard", "path", req.URL.Path, "err", err)
		problem = &ProblemError{Status: http.StatusInternalServerError, Title: "Something went wrong", Text: "It was logged as " + w.Header().Get("X-Request-Id") + ". Try again in a moment."}
	}
	if r == nil {
		r = &Request{HTTP: req}
	}
	s := f.sheet(r, Page{Title: problem.Title, Data: problem})
	s.Said = ""
	if fault := f.write(w, "problem.html", s, problem.Status); fault != nil {
		f.Log.ErrorContext(req.Context(), "dashboard", "err", fault)
		http.Error(w, problem.Title, problem.Status)
	}
}

// flash is what is said on the next page, as it is kept.
func flash(d Done) string {
	if d.Wrong {
		return "!" + d.Say
	}
	return "+" + d.Say
}

func unflash(said string) (line string, wrong bool) {
	if said == "" {
		return "", false
	}
	return said[1:], said[0] == '!'
}
