// Package calls is where operators find calls, look into one, listen to it, and end
// one that is on.
package calls

import (
	"embed"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	api "github.com/parley-voice/parley/api/calls"
	"github.com/parley-voice/parley/api/dashboard/field"
	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/api/dashboard/words"
	"github.com/parley-voice/parley/api/recordings"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/store"
)

//go:embed pages/*.html
var files embed.FS

// Calls is the room of calls. Its fields are set once.
type Calls struct {
	API        *api.Calls
	Store      *store.Store
	Recordings *recordings.Recordings
}

// Room returns its pages.
func (c *Calls) Room() (frame.Room, error) {
	pages, err := fs.Sub(files, "pages")
	return frame.Room{
		Name: "calls", Files: pages,
		Links: []frame.Link{{Label: "Calls", Path: "calls"}},
		Routes: []frame.Route{
			{Path: "calls", Look: c.search},
			{Path: "calls/{id}", Look: c.show},
			{Path: "calls/{id}/recording", Serve: c.recording},
			{Path: "calls/{id}/end", Change: c.end},
			{Path: "calls/{id}/replay", Needs: operator.Operator, Change: c.replay},
		},
	}, err
}

// A filter is a field of the search, which the API knows by its name.
type filter struct {
	frame.Field

	more bool // it stands among those that are rarely asked for
	time bool // it is a time of the day here, and seconds there
}

// talkers are the agents that calls may be looked for by, and the one that is asked
// for, which may be gone.
func talkers(r *frame.Request) ([]frame.Option, error) {
	all := []frame.Option{{Label: "any"}}
	found, err := agents.List(r.Context(), r.DB(), r.Org())
	for _, a := range found {
		all = append(all, frame.Option{Value: a.ID, Label: a.Name})
	}
	if id := r.Query("agent_id"); id != "" && !slices.ContainsFunc(all, func(o frame.Option) bool { return o.Value == id }) {
		all = append(all, frame.Option{Value: id, Label: id})
	}
	return all, err
}

// filters are those of the API, with what was asked for.
func filters(r *frame.Request, talkers []frame.Option) []filter {
	options := func(name string) []frame.Option {
		all := []frame.Option{{Label: "any"}}
		for _, v := range api.Choices(name) {
			all = append(all, frame.Option{Value: v, Label: strings.ReplaceAll(v, "_", " ")})
		}
		return all
	}
	all := []filter{
		{Field: frame.Field{Name: "to_number", Label: "Number called", Kind: "search", Placeholder: "+1 202 555 0123"}},
		{Field: frame.Field{Name: "status", Label: "Status", Kind: frame.Select, Options: options("status")}},
		{Field: frame.Field{Name: "agent_id", Label: "Agent", Kind: frame.Select, Options: talkers}},
		{Field: frame.Field{Name: "created_after", Label: "From", Kind: "datetime-local"}, time: true},
		{Field: frame.Field{Name: "created_before", Label: "Until", Kind: "datetime-local"}, time: true},
		{Field: frame.Field{Name: "disconnection_reason", Label: "Why it is over", Kind: frame.Select, Options: options("disconnection_reason")}, more: true},
		{Field: frame.Field{Name: "answered_by", Label: "Answered by", Kind: frame.Select, Options: options("answered_by")}, more: true},
		{Field: frame.Field{Name: "call_type", Label: "Kind", Kind: frame.Select, Options: options("call_type")}, more: true},
		{Field: frame.Field{Name: "min_duration_s", Label: "Seconds at least", Kind: frame.Number, Min: "0"}, more: true},
		{Field: frame.Field{Name: "max_duration_s", Label: "Seconds at most", Kind: frame.Number, Min: "0"}, more: true},
		{Field: frame.Field{Name: "from_number", Label: "Caller number"}, more: true},
		{Field: frame.Field{Name: "campaign_id", Label: "Campaign", Placeholder: "cmp_…"}, more: true},
		{Field: frame.Field{Name: "import_id", Label: "Import", Placeholder: "imp_…"}, more: true},
		{Field: frame.Field{Name: "contact_id", Label: "Contact", Placeholder: "con_…"}, more: true},
		{Field: frame.Field{Name: "external_id", Label: "Your own id"}, more: true},
		{Field: frame.Field{Name: "trunk_id", Label: "Trunk", Placeholder: "trk_…"}, more: true},
		{Field: frame.Field{Name: "route_id", Label: "Subgroup", Placeholder: "rte_…"}, more: true},
		{Field: frame.Field{Name: "order", Label: "Order", Kind: frame.Select, Options: []frame.Option{{Label: "newest first"}, {Value: "asc", Label: "oldest first"}}}, more: true},
	}
	for i := range all {
		all[i].Value = r.Query(all[i].Name)
	}
	return all
}

// asked is the query of the API that the search asks for.
func asked(r *frame.Request, all []filter) (url.Values, error) {
	q := url.Values{}
	for _, f := range all {
		v := f.Value
		if f.time && v != "" {
			at, err := time.ParseInLocation(field.Moment, v, r.Zone())
			if err != nil {
				return nil, control.Refuse(control.CodeInvalidFilter, f.Label+" is a date and a time of the day")
			}
			v = strconv.FormatInt(at.Unix(), 10)
		}
		if v != "" {
			q.Set(f.Name, v)
		}
	}
	if cursor := r.Query("cursor"); cursor != "" {
		q.Set("cursor", cursor)
	}
	return q, nil
}

// searched is what the page of a search shows.
type searched struct {
	First, More []filter
	MoreOpen    bool
	Filtered    bool
	Refused     string
	Calls       []row
	Next        string
	Later       bool // it is not the first page
}

func (c *Calls) search(r *frame.Request) (frame.Page, error) {
	var s searched
	talkers, err := talkers(r)
	if err != nil {
		return frame.Page{}, err
	}
	all := filters(r, talkers)
	for _, f := range all {
		if f.more {
			s.More = append(s.More, f)
			s.MoreOpen = s.MoreOpen || f.Value != ""
		} else {
			s.First = append(s.First, f)
		}
		s.Filtered = s.Filtered || f.Value != ""
	}
	q, err := asked(r, all)
	if err == nil {
		var found store.Page
		var next string
		if found, next, err = c.API.Find(r.Context(), r.Org(), q); err == nil {
			s.Calls = rows(found.Calls)
		}
		if next != "" {
			here := r.HTTP.URL.Query()
			here.Set("cursor", next)
			s.Next = r.HTTP.URL.Path + "?" + here.Encode()
		}
	}
	switch control.CodeOf(err) {
	case control.CodeInvalidFilter, control.CodeInvalidCursor:
		s.Refused = words.Refusal(err)
	default:
		if err != nil {
			return frame.Page{}, err
		}
	}
	s.Later = q.Has("cursor")
	return frame.Page{Template: "list.html", Title: "Calls", Data: s}, nil
}

// recording answers with the recording of a call of the organization.
func (c *Calls) recording(r *frame.Request) error {
	if _, err := c.Store.Call(r.Context(), r.Org(), r.ID()); err != nil {
		return err
	}
	err := c.Recordings.Send(r.Writer, r.HTTP, r.ID())
	if err != nil { // whatever it is that keeps it: there is none to hear
		return &frame.ProblemError{Status: http.StatusNotFound, Title: "There is no recording", Text: "It was not made, has been deleted, or lies where it cannot be reached now."}
	}
	return nil
}
