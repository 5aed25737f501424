package frame

import (
	"errors"
	"io/fs"
	"time"

	"github.com/parley-voice/parley/control/operator"
)

// A Room is a group of pages.
type Room struct {
	// Name is of one word.
	Name string
	// Files holds the room's templates: each *.html is a page and defines "main";
	// those that begin with _ are parts of all of them. One that is a form alone is
	// form.html, which all rooms have.
	Files fs.FS
	// Links are what of the room is in the navigation.
	Links  []Link
	Routes []Route
}

// A Link leads to a page.
type Link struct {
	Section string // under which it stands; empty is none
	Label   string
	Path    string        // below the organization's
	Needs   operator.Role // others do not see it; empty is viewer
	Root    bool          // only those of the root organization see it
}

// A Route is a page, a form, or both at one path: what GET shows, POST does.
type Route struct {
	// Path stands below the organization's, as http.ServeMux writes it.
	Path string
	// Needs is the role it takes; empty is viewer where nothing is changed, and
	// operator where something is.
	Needs operator.Role
	// Root lets in those of the root organization alone.
	Root bool
	// Look reads what the page shows.
	Look func(*Request) (Page, error)
	// Change does what the page's form asks for. Where it returns an
	// *InvalidError or a *control.Error, the page is shown again with what was
	// typed.
	Change func(*Request) (Done, error)
	// Anew are the fields of the form that are never filled in with what was sent:
	// passwords, and what one confirms with one's own name.
	Anew []string
	// Back is the page to go back to where a change is refused that has no page.
	Back string
	// Serve answers GET by itself: a file, a stream. It has no time limit unless
	// Long is set.
	Serve func(*Request) error
	// Long is how long it may take; 0 means 10 s.
	Long time.Duration
	// Most is how long the form may be, in bytes; 0 means 1 MiB.
	Most int64
}

func (r Route) needs() operator.Role {
	switch {
	case r.Needs != "":
		return r.Needs
	case r.Change != nil:
		return operator.Operator
	default:
		return operator.Viewer
	}
}

// A Page is what is to be seen.
type Page struct {
	Template string // a file of the room
	Title    string
	// Lead is a line under the title.
	Lead string
	// Crumbs are the pages above it.
	Crumbs []Link
	// Actions are what can be begun here, for those who may.
	Actions []Link
	// Data is .Data of the template.
	Data any
}

// Done is what comes after a change.
type Done struct {
	// To is the next page, below the organization's path.
	To string
	// Say is shown there, once; Wrong says that it did not go well.
	Say   string
	Wrong bool
	// Page, where set, is shown at once instead: only for what is shown once, and
	// kept nowhere.
	Page *Page
}

// A ProblemError is a page of its own.
type ProblemError struct {
	Status      int
	Title, Text string
	// Next is where to go on, below the organization; none is the dashboard.
	Next Link
}

// Error implements error.
func (p *ProblemError) Error() string { return p.Title }

// ErrMissing is a page that there is not, or not for who asks.
var ErrMissing = errors.New("there is no such page")
