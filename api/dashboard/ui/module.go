package ui

import (
	"errors"
	"io/fs"
	"time"

	"github.com/parley-voice/parley/control/operator"
)

// A Module is a group of pages.
type Module struct {
	Name string
	// Files holds the templates: each *.html is a page and defines "main"; files that
	// begin with _ are shared by the pages of the module. form.html is predefined.
	Files fs.FS
	// Links are the module's entries in the navigation. Their labels and sections are keys of Texts.
	Links  []Link
	Routes []Route
}

// A Link leads to a page.
type Link struct {
	Section string // heading above the link; empty for none
	Label   string
	Path    string        // path relative to the organization
	Role    operator.Role // role that sees the link; empty means viewer
	Root    bool          // shown only in the root organization
	Danger  bool          // shown as a dangerous action
	Plain   bool          // not shown as the main action, because the page has another one
}

// A Route is a page (GET), a form handler (POST), or both at one path.
type Route struct {
	// Path is a http.ServeMux pattern relative to the organization.
	Path string
	// Role is the required role; empty is operator for routes with Submit or Answer, else viewer.
	Role operator.Role
	// Root restricts the route to the root organization.
	Root bool
	// Show reads the data of the page.
	Show func(*Request) (Page, error)
	// Submit makes the change of the form. After an *InvalidError or a *control.Error
	// the page is shown again with the submitted values.
	Submit func(*Request) (Result, error)
	// NotRefilled lists fields that are never filled in again, such as passwords and confirmations.
	NotRefilled []string
	// Back is the page to return to after a rejected change on a route without Show.
	Back string
	// Serve answers GET itself: a file, a stream. It has no time limit unless Timeout
	// is set.
	Serve func(*Request) error
	// Answer answers POST itself, for scripts: a sound, JSON. A route has Submit or Answer.
	Answer func(*Request) error
	// Timeout limits a request; 0 means 10 s.
	Timeout time.Duration
	// MaxBytes limits the form body, in bytes; 0 means 1 MiB.
	MaxBytes int64
}

func (r Route) needs() operator.Role {
	switch {
	case r.Role != "":
		return r.Role
	case r.Submit != nil || r.Answer != nil:
		return operator.Operator
	default:
		return operator.Viewer
	}
}

// A Page is what a template shows.
type Page struct {
	Template string // name of a file of the module
	Title    string
	// Lead is a line below the title.
	Lead string
	// Crumbs are the parent pages.
	Crumbs []Link
	// Actions are the buttons next to the title.
	Actions []Link
	// Data is .Data in the template.
	Data any
}

// Result says what to show after a change.
type Result struct {
	// To is the next page, relative to the organization.
	To string
	// Notice is shown there once, as an error if Failed.
	Notice string
	Failed bool
	// Page, if set, is shown instead of a redirect: for secrets that are shown once and
	// stored nowhere.
	Page *Page
}

// A ProblemError is an error page.
type ProblemError struct {
	Status      int
	Title, Text string
	// Next is the target of the button; empty means the dashboard.
	Next Link
}

// Error implements error.
func (p *ProblemError) Error() string { return p.Title }

// ErrNotFound means that a page does not exist, or does not exist for this operator.
var ErrNotFound = errors.New("page not found")
