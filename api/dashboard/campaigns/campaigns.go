// Package campaigns has the pages to create, check, launch and watch campaigns.
package campaigns

import (
	"embed"
	"io/fs"
	"net/url"

	api "github.com/parley-voice/parley/api/campaigns"
	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/contactfile"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/campaigns/uploads"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/store"
)

//go:embed pages/*.html
var files embed.FS

// Campaigns serves the pages of campaigns. Its fields are set once.
type Campaigns struct {
	API     *api.Campaigns
	Uploads *uploads.Uploads
	// Imports creates campaigns of large lists in the background; nil creates them at once.
	Imports *uploads.Imports
	// Calls ends the active calls.
	Calls *store.Store
	// Currency is that of costs and budgets.
	Currency string
	// Large is the size of a large list, in bytes; 0 means 256 KiB.
	Large int64
}

// Module returns the pages.
func (c *Campaigns) Module() (ui.Module, error) {
	pages, err := fs.Sub(files, "pages")
	const most = schema.MaxFile + schema.MaxBody
	edits := drafts{c}
	return ui.Module{
		Name: "campaigns", Files: pages,
		Links: []ui.Link{{Label: "ui.menu.campaigns", Path: "campaigns"}},
		Routes: []ui.Route{
			{Path: "campaigns", Show: c.list},
			{Path: "campaigns/new", Show: c.askList, Submit: c.uploadList, MaxBytes: most, Timeout: listTimeout},
			{Path: "campaigns/columns", Role: operator.Operator, Show: c.columns, Timeout: listTimeout},
			{Path: "campaigns/draft", Show: c.askDraft, Submit: c.create, Timeout: listTimeout},
			{Path: "campaigns/importing", Role: operator.Operator, Show: c.importing},
			{Path: "campaigns/withdraw", Show: c.askWithdraw, Submit: c.withdraw},
			{Path: "campaigns/pause", Role: operator.Operator, Show: c.askPauseAll, Submit: c.pauseAll, Timeout: listTimeout},
			{Path: "campaigns/{id}", Show: c.show},
			{Path: "campaigns/{id}/contacts", Show: c.contacts},
			{Path: "campaigns/{id}/edit", Role: operator.Operator, Show: edits.askEdit, Submit: edits.edit},
			{Path: "campaigns/{id}/duplicate", Role: operator.Operator, Show: edits.askDuplicate, Submit: edits.duplicate, Timeout: listTimeout},
			{Path: "campaigns/{id}/launch", Submit: c.launch, NotRefilled: []string{"attest"}},
			{Path: "campaigns/{id}/pause", Submit: c.pause},
			{Path: "campaigns/{id}/resume", Submit: c.resume},
			{Path: "campaigns/{id}/reopen", Submit: c.reopen},
			{Path: "campaigns/{id}/rescreen", Submit: c.rescreen, Timeout: listTimeout},
			{Path: "campaigns/{id}/cancel", Show: c.askCancel, Submit: c.cancel},
			{Path: "campaigns/{id}/budget", Show: c.askBudget, Submit: c.setBudget},
			{Path: "campaigns/{id}/calls", Show: c.askCalls, Submit: c.add, NotRefilled: []string{"attest"}, MaxBytes: most, Timeout: listTimeout},
			{Path: "imports/{id}", Show: c.imported},
			{Path: "imports/{id}/report", Serve: c.report},
		},
	}, err
}

func (c *Campaigns) service() *service.Service { return c.API.Service }

func who(r *ui.Request) service.Actor {
	a := r.Actor()
	return service.Actor{Via: campaigns.ByDashboard, Actor: a.Email, IP: a.Address, Agent: short(r.HTTP.UserAgent())}
}

func short(s string) string {
	const most = 500
	return ui.Clean(s[:min(len(s), most)])
}

func (c *Campaigns) log(r *ui.Request, action, object string, before, after any) error {
	return r.Log(operator.Entry{Action: "campaign." + action, Object: object, Before: before, After: after})
}

func crumbs(texts *ui.Texts, more ...ui.Link) []ui.Link {
	return append([]ui.Link{{Label: texts.T("campaigns.link.campaigns"), Path: "campaigns"}}, more...)
}

func campaignLink(c campaigns.Campaign) ui.Link {
	return ui.Link{Label: c.Name, Path: "campaigns/" + c.ID}
}

type listed struct {
	Campaigns []campaigns.Campaign
	Idle      map[string]Idle // by campaign
	Filters   []ui.Field
	Filtered  bool
	Refused   string
	Next      string
}

func (c *Campaigns) list(r *ui.Request) (ui.Page, error) {
	status := []ui.Option{{Label: r.Texts.T("ui.filter.any")}}
	for _, s := range []campaigns.Status{
		campaigns.Draft, campaigns.Scheduled,
		campaigns.Running, campaigns.Paused, campaigns.Completed, campaigns.Canceled,
	} {
		status = append(status, ui.Option{Value: string(s), Label: r.Texts.Label("ui.state", string(s))})
	}
	l := listed{Filters: []ui.Field{
		{Name: "name", Label: r.Texts.T("campaigns.list.name.label"), Value: r.Query("name")},
		{Name: "status", Label: r.Texts.T("campaigns.list.status.label"), Kind: ui.Select, Options: status, Value: r.Query("status")},
	}}
	q := url.Values{}
	for _, f := range l.Filters {
		if f.Value != "" {
			q.Set(f.Name, f.Value)
			l.Filtered = true
		}
	}
	if cursor := r.Query("cursor"); cursor != "" {
		q.Set("cursor", cursor)
	}
	var err error
	var next string
	l.Campaigns, next, err = c.API.Find(r.Context(), r.Org(), q)
	if next != "" {
		q.Set("cursor", next)
		l.Next = r.HTTP.URL.Path + "?" + q.Encode()
	}
	ids := []string{}
	for _, k := range l.Campaigns {
		ids = append(ids, k.ID)
	}
	if err == nil {
		var idle []Idle
		idle, err = FindIdle(c, r, ids)
		l.Idle = map[string]Idle{}
		for _, x := range idle {
			l.Idle[x.ID] = x
		}
	}
	switch control.CodeOf(err) {
	case control.CodeInvalidFilter, control.CodeInvalidCursor:
		l.Refused, err = r.Texts.T("campaigns.list.invalid", "reason", ui.ErrorText(err)), nil
	default:
	}
	return ui.Page{
		Template: "list.html", Title: r.Texts.T("campaigns.list.title"),
		Actions: []ui.Link{
			{Label: r.Texts.T("campaigns.link.new_campaign"), Path: "campaigns/new"},
			{Label: r.Texts.T("campaigns.link.withdraw_numbers"), Path: "campaigns/withdraw"},
		}, Data: l,
	}, err
}

func (c *Campaigns) report(r *ui.Request) error {
	return c.API.Report(r.Writer, r.HTTP, apikeys.Key{OrgID: r.Org()})
}

type importPage struct {
	service.ImportStatus

	Campaign campaigns.Campaign
	Codes    []count
	Split    contactfile.Split
}

func (c *Campaigns) imported(r *ui.Request) (ui.Page, error) {
	x, err := c.service().Import(r.Context(), r.Org(), r.ID(), screeningAge(r))
	if err != nil {
		return ui.Page{}, err
	}
	k, err := c.API.Store.Get(r.Context(), r.DB(), r.Org(), x.CampaignID, false)
	if err != nil {
		return ui.Page{}, err
	}
	split, err := c.API.Store.Imports.Split(r.Context(), r.DB(), x.Import, x.ByCode)
	if err != nil {
		return ui.Page{}, err
	}
	split.Called = max(0, split.Called-x.Screen.Matched)
	return ui.Page{
		Template: "import.html", Title: r.Texts.T("campaigns.import.title", "time",
			ui.DatesOf(r.Member).Minute(x.CreatedAt)), Crumbs: crumbs(r.Texts, campaignLink(k)),
		Lead: r.Texts.T("campaigns.import.lead", "rows", r.Texts.T("ui.count.rows", "count", x.RowsSeen), "accepted", x.AcceptedRows),
		Data: importPage{x, k, counts(r.Texts, "campaigns.issue", x.ByCode), split},
	}, nil
}
