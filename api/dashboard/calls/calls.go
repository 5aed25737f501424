// Package calls has the pages to search calls, inspect one, play its recording and end it.
package calls

import (
	"embed"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	api "github.com/parley-voice/parley/api/calls"
	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/api/recordings"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/store"
)

//go:embed pages/*.html
var files embed.FS

// Calls serves the pages of calls. Its fields are set once.
type Calls struct {
	API        *api.Calls
	Store      *store.Store
	Recordings *recordings.Recordings

	exports exporters
	waves   *waveforms
}

// Module returns the pages.
func (c *Calls) Module() (ui.Module, error) {
	pages, err := fs.Sub(files, "pages")
	c.exports.all, c.waves = map[string]bool{}, newWaveforms()
	return ui.Module{
		Name: "calls", Files: pages,
		Links: []ui.Link{{Label: "ui.menu.calls", Path: "calls"}},
		Routes: []ui.Route{
			{Path: "calls", Show: c.search},
			{Path: "calls/columns", Role: operator.Viewer, Submit: chooseColumns},
			{Path: "calls/export", Serve: c.export, Timeout: exportTimeout},
			{Path: "calls/{id}", Show: c.show},
			{Path: "calls/{id}/recording", Serve: c.recording},
			{Path: "calls/{id}/end", Submit: c.end},
			{Path: "calls/{id}/waveform", Serve: c.waveform, Timeout: waveTimeout},
			{Path: "calls/{id}/next", Serve: func(r *ui.Request) error { return c.neighbor(r, false) }, Timeout: neighborTimeout},
			{Path: "calls/{id}/previous", Serve: func(r *ui.Request) error { return c.neighbor(r, true) }, Timeout: neighborTimeout},
			{Path: "calls/{id}/tags", Back: "calls", Submit: tag},
			{Path: "calls/{id}/score", Back: "calls", Submit: score},
			{Path: "calls/{id}/notes", Back: "calls", Submit: note},
			{Path: "calls/{id}/replay", Role: operator.Operator, Submit: c.replay},
		},
	}, err
}

// A filter is a search field; its name is that of the API parameter.
type filter struct {
	ui.Field

	more bool // the filter is shown under More filters
	time bool // the filter is a date and time here, and epoch seconds in the API
	own  bool // the API does not have the filter
	at   time.Time
}

// agentOptions are the agents to filter by. They include a deleted agent that the query names.
func agentOptions(r *ui.Request) ([]ui.Option, error) {
	all := []ui.Option{{Label: r.Texts.T("ui.filter.any")}}
	found, err := agents.List(r.Context(), r.DB(), r.Org())
	for _, a := range found {
		all = append(all, ui.Option{Value: a.ID, Label: a.Name})
	}
	if id := r.Query("agent_id"); id != "" && !slices.ContainsFunc(all, func(o ui.Option) bool { return o.Value == id }) {
		all = append(all, ui.Option{Value: id, Label: id})
	}
	return all, err
}

func filters(r *ui.Request, talkers, tags []ui.Option) []filter {
	options := func(name string) []ui.Option {
		all := []ui.Option{{Label: r.Texts.T("ui.filter.any")}}
		for _, v := range api.Choices(name) {
			all = append(all, ui.Option{Value: v, Label: r.Texts.Label("calls.filters."+name, v)})
		}
		return all
	}
	over := ui.Option{Value: "ended,failed", Label: r.Texts.T("calls.filters.status.over")}
	all := []filter{
		{Field: ui.Field{Name: "q", Label: r.Texts.T("calls.filters.q.label"), Kind: "search", Placeholder: "refund"}},
		{Field: ui.Field{Name: "to_number", Label: r.Texts.T("calls.filters.to_number.label"), Kind: "search", Placeholder: "+1 202 555 0123"}},
		{Field: ui.Field{
			Name: "status", Label: r.Texts.T("calls.filters.status.label"), Kind: ui.Select,
			Options: append(options("status"), over),
		}},
		{Field: ui.Field{Name: "agent_id", Label: r.Texts.T("calls.filters.agent_id.label"), Kind: ui.Select, Options: talkers}},
		{Field: ui.Field{Name: "created_after", Label: r.Texts.T("calls.filters.created_after.label"), Kind: "datetime-local"}, time: true},
		{Field: ui.Field{Name: "created_before", Label: r.Texts.T("calls.filters.created_before.label"), Kind: "datetime-local"}, time: true},
		{Field: ui.Field{Name: "tag", Label: r.Texts.T("calls.filters.tag.label"), Kind: ui.Select, Options: tags}, more: true, own: true},
		{
			Field: ui.Field{Name: "score", Label: r.Texts.T("calls.filters.score.label"), Kind: ui.Select, Options: scoreOptions(r.Texts)},
			more:  true, own: true,
		},
		{
			Field: ui.Field{
				Name: "disconnection_reason", Label: r.Texts.T("calls.filters.disconnection_reason.label"), Kind: ui.Select,
				Options: options("disconnection_reason"),
			},
			more: true,
		},
		{Field: ui.Field{
			Name: "answered_by", Label: r.Texts.T("calls.filters.answered_by.label"), Kind: ui.Select,
			Options: options("answered_by"),
		}, more: true},
		{
			Field: ui.Field{Name: "call_type", Label: r.Texts.T("calls.filters.call_type.label"), Kind: ui.Select, Options: options("call_type")},
			more:  true,
		},
		{Field: ui.Field{Name: "min_duration_s", Label: r.Texts.T("calls.filters.min_duration_s.label"), Kind: ui.Number, Min: "0"}, more: true},
		{Field: ui.Field{Name: "max_duration_s", Label: r.Texts.T("calls.filters.max_duration_s.label"), Kind: ui.Number, Min: "0"}, more: true},
		{Field: ui.Field{Name: "from_number", Label: r.Texts.T("calls.filters.from_number.label")}, more: true},
		{Field: ui.Field{Name: "campaign_id", Label: r.Texts.T("calls.filters.campaign_id.label"), Placeholder: "cmp_…"}, more: true},
		{Field: ui.Field{Name: "import_id", Label: r.Texts.T("calls.filters.import_id.label"), Placeholder: "imp_…"}, more: true},
		{Field: ui.Field{Name: "contact_id", Label: r.Texts.T("calls.filters.contact_id.label"), Placeholder: "con_…"}, more: true},
		{Field: ui.Field{Name: "external_id", Label: r.Texts.T("calls.filters.external_id.label")}, more: true},
		{Field: ui.Field{Name: "trunk_id", Label: r.Texts.T("calls.filters.trunk_id.label"), Placeholder: "trk_…"}, more: true},
		{Field: ui.Field{Name: "route_id", Label: r.Texts.T("calls.filters.route_id.label"), Placeholder: "rte_…"}, more: true},
		{
			Field: ui.Field{
				Name: "order", Label: r.Texts.T("calls.filters.order.label"), Kind: ui.Select,
				Options: []ui.Option{
					{Label: r.Texts.T("calls.filters.order.newest")}, {
						Value: "asc",
						Label: r.Texts.T("calls.filters.order.oldest"),
					}, {Value: slowestFirst, Label: r.Texts.T("calls.filters.order.slowest")},
				},
			},
			more: true,
		},
	}
	all = append(all, countedFilters(r.Texts, ui.DatesOf(r.Member))...)
	for i := range all {
		all[i].Value = r.Query(all[i].Name)
		if all[i].time {
			all[i].at, all[i].Value = readTime(all[i].Value, r.Zone())
		}
	}
	return all
}

type searchPage struct {
	First, More []filter
	Chosen      []chosen // values of the filters under More filters
	Filtered    bool
	Range       string // chosen range of days; empty for all or for own dates
	Ranges      []dayRange
	Orders      []order
	Slowest     bool // the calls are ordered by their slowest response
	Refused     string
	Calls       []row
	Columns     []column // all; Shown are the chosen ones
	Shown       []column
	Next        string
	Later       bool   // the page is not the first
	Query       string // filters of the page, with a leading "?"; empty without filters
}

// A chosen is the value of a filter, and the list without it.
type chosen struct{ Label, Value, Href string }

func newChosen(list string, link url.Values, f filter) chosen {
	x := chosen{Label: f.Label, Value: f.Value}
	for _, o := range f.Options {
		if o.Value == f.Value {
			x.Value = o.Label
		}
	}
	rest := maps.Clone(link)
	rest.Del(f.Name)
	x.Href = list + "?" + rest.Encode()
	return x
}

func (c *Calls) search(r *ui.Request) (ui.Page, error) {
	found, err := readSearch(r)
	if err != nil && !isRefused(err) {
		return ui.Page{}, err
	}
	s := searchPage{Columns: columnsOf(r), Slowest: found.narrow.Slowest}
	for _, c := range s.Columns {
		if c.On || s.Slowest && c.Key == slowestColumn {
			s.Shown = append(s.Shown, c)
		}
	}
	for _, f := range found.filters {
		if f.more {
			s.More = append(s.More, f)
			if f.Value != "" {
				s.Chosen = append(s.Chosen, newChosen(r.URL("calls"), found.link, f))
			}
		} else {
			s.First = append(s.First, f)
		}
	}
	s.Filtered, s.Query = len(found.link) > 0, found.suffix()
	s.Orders = orderLinks(r.Texts, r.URL("calls"), found.link)
	s.Range, s.Ranges = found.link.Get("range"), rangeLinks(r.Texts, r.URL("calls"), found.link)
	if err == nil {
		var page store.Page
		var next string
		if page, next, err = c.API.Find(r.Context(), r.Org(), found.query, found.apply); err == nil {
			s.Calls, err = c.shownRows(r, s.Shown, page.Calls, found.text)
		}
		if next != "" {
			here := r.HTTP.URL.Query()
			here.Set("cursor", next)
			s.Next = r.HTTP.URL.Path + "?" + here.Encode()
		}
	}
	if isRefused(err) {
		s.Refused = ui.ErrorText(err)
	} else if err != nil {
		return ui.Page{}, err
	}
	s.Later = found.query.Has("cursor")
	return ui.Page{Template: "list.html", Title: r.Texts.T("calls.list.title"), Data: s}, nil
}

// isRefused reports whether a search has an invalid filter.
func isRefused(err error) bool {
	code := control.CodeOf(err)
	return code == control.CodeInvalidFilter || code == control.CodeInvalidCursor
}

func (c *Calls) recording(r *ui.Request) error {
	if _, err := c.Store.Call(r.Context(), r.Org(), r.ID()); err != nil {
		return err
	}
	err := c.Recordings.Send(r.Writer, r.HTTP, r.ID())
	if err != nil { // whatever the reason is, there is nothing to play
		return &ui.ProblemError{
			Status: http.StatusNotFound,
			Title:  r.Texts.T("calls.recording.title"),
			Text:   r.Texts.T("calls.recording.text"),
		}
	}
	return nil
}
