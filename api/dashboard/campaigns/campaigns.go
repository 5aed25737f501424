// Package campaigns is where operators make campaigns, see what keeps them from
// dialling, launch them, and watch how they get on.
package campaigns

import (
	"embed"
	"fmt"
	"io/fs"
	"net/url"

	api "github.com/parley-voice/parley/api/campaigns"
	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/api/dashboard/words"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/desk"
	"github.com/parley-voice/parley/campaigns/uploads"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/operator"
)

//go:embed pages/*.html
var files embed.FS

// Campaigns is the room of campaigns. Its fields are set once.
type Campaigns struct {
	API     *api.Campaigns
	Uploads *uploads.Uploads
}

// Room returns its pages.
func (c *Campaigns) Room() (frame.Room, error) {
	pages, err := fs.Sub(files, "pages")
	const most = schema.MaxFile + schema.MaxBody
	return frame.Room{
		Name: "campaigns", Files: pages,
		Links: []frame.Link{{Label: "Campaigns", Path: "campaigns"}},
		Routes: []frame.Route{
			{Path: "campaigns", Look: c.list},
			{Path: "campaigns/new", Look: c.askList, Change: c.takeList, Most: most, Long: longest},
			{Path: "campaigns/columns", Needs: operator.Operator, Look: c.columns, Long: longest},
			{Path: "campaigns/draft", Look: c.askDraft, Change: c.create, Long: longest},
			{Path: "campaigns/withdraw", Look: c.askWithdraw, Change: c.withdraw},
			{Path: "campaigns/{id}", Look: c.show},
			{Path: "campaigns/{id}/launch", Change: c.launch, Anew: []string{"attest"}},
			{Path: "campaigns/{id}/pause", Change: c.pause},
			{Path: "campaigns/{id}/resume", Change: c.resume},
			{Path: "campaigns/{id}/cancel", Look: c.askCancel, Change: c.cancel},
			{Path: "campaigns/{id}/calls", Look: c.askCalls, Change: c.add, Anew: []string{"attest"}, Most: most, Long: longest},
			{Path: "imports/{id}", Look: c.imported},
			{Path: "imports/{id}/report", Serve: c.report},
		},
	}, err
}

// desk is where campaigns are changed, by the API too.
func (c *Campaigns) desk() *desk.Desk { return c.API.Desk }

// who asks, for the record of a campaign.
func who(r *frame.Request) desk.Who {
	a := r.Actor()
	return desk.Who{Via: campaigns.ByDashboard, Actor: a.Email, IP: a.Address, Agent: short(r.HTTP.UserAgent())}
}

// short is what of a browser's name is kept.
func short(s string) string {
	const most = 500
	return frame.Clean(s[:min(len(s), most)])
}

// log writes what was done to a campaign to the audit log.
func (c *Campaigns) log(r *frame.Request, action, object string, before, after any) error {
	return r.Log(operator.Entry{Action: "campaign." + action, Object: object, Before: before, After: after})
}

// above are the pages above one of a campaign.
func above(more ...frame.Link) []frame.Link {
	return append([]frame.Link{{Label: "Campaigns", Path: "campaigns"}}, more...)
}

// of leads to a campaign.
func of(c campaigns.Campaign) frame.Link {
	return frame.Link{Label: c.Name, Path: "campaigns/" + c.ID}
}

// listed is what the list of campaigns shows.
type listed struct {
	Campaigns []campaigns.Campaign
	Filters   []frame.Field
	Filtered  bool
	Refused   string
	Next      string
}

func (c *Campaigns) list(r *frame.Request) (frame.Page, error) {
	status := []frame.Option{{Label: "any"}}
	for _, s := range []campaigns.Status{campaigns.Draft, campaigns.Scheduled, campaigns.Running, campaigns.Paused, campaigns.Completed, campaigns.Cancelled} {
		status = append(status, frame.Option{Value: string(s), Label: string(s)})
	}
	l := listed{Filters: []frame.Field{
		{Name: "name", Label: "Name begins with", Value: r.Query("name")},
		{Name: "status", Label: "Status", Kind: frame.Select, Options: status, Value: r.Query("status")},
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
	switch control.CodeOf(err) {
	case control.CodeInvalidFilter, control.CodeInvalidCursor:
		l.Refused, err = "This cannot be looked for: "+words.Refusal(err)+".", nil
	default:
	}
	return frame.Page{
		Template: "list.html", Title: "Campaigns",
		Actions: []frame.Link{{Label: "New campaign", Path: "campaigns/new"}, {Label: "Withdraw numbers", Path: "campaigns/withdraw"}}, Data: l,
	}, err
}

// report sends what became of the rows of a list, as the API does.
func (c *Campaigns) report(r *frame.Request) error {
	return c.API.Report(r.Writer, r.HTTP, access.Key{OrgID: r.Org()})
}

// importPage is what the page of a list shows.
type importPage struct {
	desk.Imported

	Campaign campaigns.Campaign
	Codes    []count
}

func (c *Campaigns) imported(r *frame.Request) (frame.Page, error) {
	x, err := c.desk().Import(r.Context(), r.Org(), r.ID(), screening(r))
	if err != nil {
		return frame.Page{}, err
	}
	k, err := c.API.Store.Get(r.Context(), r.DB(), r.Org(), x.CampaignID, false)
	if err != nil {
		return frame.Page{}, err
	}
	return frame.Page{
		Template: "import.html", Title: "List of " + x.CreatedAt.In(r.Zone()).Format("2 Jan 2006, 15:04 MST"), Crumbs: above(of(k)),
		Lead: fmt.Sprintf("%s, %d accepted.", frame.Plural(x.RowsSeen, "row", "rows"), x.AcceptedRows),
		Data: importPage{x, k, counts(x.ByCode, issueWords)},
	}, nil
}
