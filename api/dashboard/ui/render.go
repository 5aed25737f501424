package ui

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

func (f *Frame) parse() (map[string]*template.Template, error) {
	base := template.New("frame").Funcs(funcs(f.assets, f.Texts))
	own, err := fs.Sub(files, "pages")
	if err == nil {
		err = parseFiles(base, own, "_*.html", f.Texts)
	}
	if err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	all := map[string]*template.Template{}
	for _, module := range append([]Module{{Files: own}}, f.Modules...) {
		if err := readPages(all, base, own, module, f.Texts); err != nil {
			return nil, fmt.Errorf("dashboard: %s: %w", module.Name, err)
		}
	}
	return all, nil
}

// parseFiles adds templates to t, in the language of the texts.
func parseFiles(t *template.Template, from fs.FS, pattern string, texts *Texts) error {
	names, err := fs.Glob(from, pattern)
	if err != nil {
		return err
	}
	for _, name := range names {
		source, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		if _, err = t.New(name).Parse(TranslatePage(string(source), texts.page)); err != nil {
			return err
		}
	}
	return nil
}

// readPages reads the templates of one module. Each module also has form.html.
func readPages(all map[string]*template.Template, base *template.Template, own fs.FS, module Module, texts *Texts) error {
	names, err := fs.Glob(module.Files, "[^_]*.html")
	if err != nil {
		return err
	}
	shared, err := base.Clone()
	if err == nil && module.Name != "" {
		err = parseFiles(shared, module.Files, "_*.html", texts)
	}
	if err != nil {
		return err
	}
	read := func(from fs.FS, name string) error {
		page, fault := shared.Clone()
		if fault == nil {
			fault = parseFiles(page, from, name, texts)
		}
		all[path.Join(module.Name, name)] = page
		return fault
	}
	for _, name := range names {
		if err = read(module.Files, name); err != nil {
			return err
		}
	}
	return read(own, formPage)
}

// formPage is a page with one form and nothing else.
const formPage = "form.html"

type sheet struct {
	Page

	Session operator.Session
	Member  operator.Membership
	Nav     []section
	Flash   string
	Failed  bool // Flash reports a failure
	Path    string
	dates   Dates
}

type section struct {
	Name  string
	Links []navLink
}

type navLink struct {
	Link

	Here bool
}

// May reports whether the operator's role includes the needed one.
func (s sheet) May(role string) bool { return s.Member.Role.Includes(operator.Role(role)) }

// URL returns the path of a page of the organization.
func (s sheet) URL(parts ...any) string {
	return (&Request{Member: s.Member}).URL(strings.TrimSuffix(fmt.Sprint(join(parts)), "/"))
}

// Zone returns the name of the time zone of shown times.
func (s sheet) Zone() string { return s.dates.Zone.String() }

// TimeOfDay formats a time such as "09:00".
func (s sheet) TimeOfDay(clock string) string { return s.dates.TimeOfDay(clock) }

// Calendar formats a date such as "2026-11-26".
func (s sheet) Calendar(date string) string { return s.dates.Calendar(date) }

// When formats a time; nil and the zero time give a dash.
func (s sheet) When(v any) template.HTML {
	t, ok := toTime(v)
	if !ok {
		return `<span class="none">–</span>`
	}
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`, //nolint:gosec // times alone
		t.UTC().Format(time.RFC3339), s.dates.Full(t), s.dates.Short(t, time.Now())))
}

// Crumb returns the path of a parent page.
func (s sheet) Crumb(l Link) string { return s.URL(l.Path) }

// Actions returns the actions that the operator's role permits.
func (s sheet) Actions() []Link {
	var all []Link
	for _, l := range s.Page.Actions {
		if needed := l.Role; s.Member.Role.Includes(orDefault(needed, operator.Operator)) {
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
	s := sheet{Page: p, Session: r.Session, Member: r.Member, Path: r.HTTP.URL.Path, dates: DatesOf(r.Member)}
	s.Flash, s.Failed = unflash(r.Session.Flash)
	if r.Org() == "" {
		return s
	}
	for _, module := range f.Modules {
		for _, l := range module.Links {
			if !r.Member.Role.Includes(orDefault(l.Role, operator.Viewer)) || l.Root && !r.Root {
				continue
			}
			l.Section, l.Label = f.Texts.T(l.Section), f.Texts.T(l.Label)
			if len(s.Nav) == 0 || s.Nav[len(s.Nav)-1].Name != l.Section {
				s.Nav = append(s.Nav, section{Name: l.Section})
			}
			in := &s.Nav[len(s.Nav)-1]
			in.Links = append(in.Links, navLink{Link: l})
		}
	}
	if !s.mark(r, s.Path) { // such as the page of a subgroup
		for _, crumb := range p.Crumbs {
			if s.mark(r, r.URL(crumb.Path)) {
				break
			}
		}
	}
	return s
}

// mark marks the link of the navigation that leads to a path or to the longest part of it, and reports whether there is one.
func (s *sheet) mark(r *Request, path string) bool {
	var here *navLink
	for i := range s.Nav {
		for j := range s.Nav[i].Links {
			l := &s.Nav[i].Links[j]
			at := r.URL(l.Path)
			if (path == at || strings.HasPrefix(path, at+"/")) && (here == nil || len(l.Path) > len(here.Path)) {
				here = l
			}
		}
	}
	if here != nil {
		here.Here = true
	}
	return here != nil
}

func zone(name string) *time.Location {
	if z, err := control.Zone(name); err == nil {
		return z
	}
	return time.UTC
}

func (f *Frame) show(r *Request, module Module, p Page, status int) error {
	return f.write(r.Writer, path.Join(module.Name, p.Template), f.sheet(r, p), status)
}

// writeBare writes a page without an organization's navigation.
func (f *Frame) writeBare(w http.ResponseWriter, r *http.Request, status int, file, title string, data any) {
	s := f.sheet(&Request{HTTP: r}, Page{Title: title, Data: data})
	if err := f.write(w, file, s, status); err != nil {
		f.Log.ErrorContext(r.Context(), "failed to render a page", "page", file, "err", err)
		http.Error(w, "the page could not be rendered", http.StatusInternalServerError)
	}
}

// write renders the whole template before it sends the first byte.
func (f *Frame) write(w http.ResponseWriter, name string, s sheet, status int) error {
	t, ok := f.pages[name]
	if !ok {
		return fmt.Errorf("dashboard: template %s not found", name)
	}
	var page bytes.Buffer
	if err := t.ExecuteTemplate(&page, "page", s); err != nil {
		return fmt.Errorf("dashboard: %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(page.Bytes()) // the browser may have left
	return nil
}

// fail writes the page of an error. Unexpected errors are logged, not shown.
func (f *Frame) fail(w http.ResponseWriter, req *http.Request, r *Request, err error) {
	problem, ok := errors.AsType[*ProblemError](err)
	switch {
	case ok:
	case isNotFound(err):
		problem = &ProblemError{
			Status: http.StatusNotFound,
			Title:  f.Texts.T("ui.problem.not_found.title"),
			Text:   f.Texts.T("ui.problem.not_found.text"),
		}
	case errors.Is(err, operator.ErrForbidden):
		problem = &ProblemError{
			Status: http.StatusForbidden,
			Title:  f.Texts.T("ui.problem.forbidden.title"),
			Text:   f.Texts.T("ui.problem.forbidden.text"),
		}
	case refusal(f.Texts, err) != nil:
		problem = &ProblemError{
			Status: http.StatusUnprocessableEntity, Title: f.Texts.T("ui.problem.rejected.title"),
			Text: refusal(f.Texts, err).Error(),
		}
	case req.Context().Err() != nil:
		f.Log.WarnContext(req.Context(), "page timed out", "path", req.URL.Path, "err", err)
		problem = &ProblemError{
			Status: http.StatusServiceUnavailable,
			Title:  f.Texts.T("ui.problem.timeout.title"),
			Text:   f.Texts.T("ui.problem.timeout.text"),
		}
	default:
		f.Log.ErrorContext(req.Context(), "failed to serve a page", "path", req.URL.Path, "err", err)
		problem = &ProblemError{
			Status: http.StatusInternalServerError,
			Title:  f.Texts.T("ui.problem.fault.title"),
			Text:   f.Texts.T("ui.problem.fault.text", "request", w.Header().Get("X-Request-Id")),
		}
	}
	if r == nil {
		r = &Request{HTTP: req}
	}
	s := f.sheet(r, Page{Title: problem.Title, Data: problem})
	s.Flash = ""
	if fault := f.write(w, "problem.html", s, problem.Status); fault != nil {
		f.Log.ErrorContext(req.Context(), "failed to render an error page", "err", fault)
		http.Error(w, problem.Title, problem.Status)
	}
}

// flash encodes the notice of the next page. Its first byte is ! for a failure and + otherwise.
func flash(d Result) string {
	if d.Failed {
		return "!" + d.Notice
	}
	return "+" + d.Notice
}

func unflash(said string) (line string, wrong bool) {
	if said == "" {
		return "", false
	}
	return said[1:], said[0] == '!'
}
