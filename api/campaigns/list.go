package campaigns

import (
	"context"
	"net/http"
	"net/url"

	"github.com/parley-voice/parley/api/filter"
	"github.com/parley-voice/parley/api/respond"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/campaigns/view"
	"github.com/parley-voice/parley/control/access"
)

// A page is the answer of a list.
type page struct {
	Campaigns  []view.Short `json:"campaigns"`
	HasMore    bool         `json:"has_more"`
	NextCursor *string      `json:"next_cursor"`
}

// List answers GET /v1/campaigns.
func (c *Campaigns) List(w http.ResponseWriter, r *http.Request, key access.Key) error {
	q, err := filter.Query(r)
	if err != nil {
		return err
	}
	found, next, err := c.Find(r.Context(), key.OrgID, q)
	if err != nil {
		return err
	}
	p := page{Campaigns: []view.Short{}, HasMore: next != ""}
	for _, x := range found {
		p.Campaigns = append(p.Campaigns, view.Summary(x))
	}
	if p.HasMore {
		p.NextCursor = &next
	}
	respond.JSON(w, http.StatusOK, p)
	return nil
}

// Find returns the page of an organization's campaigns that the query of a list
// asks for, and the cursor of the page after it, empty where there is none.
func (c *Campaigns) Find(ctx context.Context, orgID string, q url.Values) (found []campaigns.Campaign, next string, err error) {
	f, err := asked(q)
	if err != nil {
		return nil, "", err
	}
	f.OrgID = orgID
	if text := q.Get("cursor"); text != "" {
		if f.AfterTime, f.AfterID, err = c.CursorKey.Open(text, q, orgID); err != nil {
			return nil, "", err
		}
	}
	found, more, err := c.Store.List(ctx, f)
	if more {
		last := found[len(found)-1]
		next = c.CursorKey.Text(last.CreatedAt, last.ID, q, orgID)
	}
	return found, next, err
}

// usualPage is how many campaigns a page has that asks for no number.
const usualPage = 20

// asked reads the query of a list.
func asked(q url.Values) (store.Filter, error) {
	rd := &filter.Reader{Query: q, Closed: map[string][]string{
		"status":         {"draft", "scheduled", "running", "paused", "completed", "cancelled"},
		"created_via":    {"api", "dashboard", "command", "system"},
		"classification": {"marketing", "servicing", "debt_collection"},
	}}
	f := store.Filter{
		Status: rd.List("status"), Agent: rd.Text("agent_id"), CreatedVia: rd.Text("created_via"), Classification: rd.Text("classification"),
		Name: rd.Text("name"), CreatedAfter: rd.Time("created_after"), CreatedBefore: rd.Time("created_before"),
		Ascending: rd.Ascending(), Limit: rd.Limit(usualPage),
	}
	return f, rd.Err()
}
