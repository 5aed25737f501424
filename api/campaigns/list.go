package campaigns

import (
	"context"
	"net/http"
	"net/url"

	"github.com/parley-voice/parley/api/listing"
	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/apikeys"
)

type page struct {
	Campaigns  []shortView `json:"campaigns"`
	HasMore    bool        `json:"has_more"`
	NextCursor *string     `json:"next_cursor"`
}

// List answers GET /v1/campaigns.
func (c *Campaigns) List(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	q, err := listing.Query(r)
	if err != nil {
		return err
	}
	found, next, err := c.Find(r.Context(), key.OrgID, q)
	if err != nil {
		return err
	}
	p := page{Campaigns: []shortView{}, HasMore: next != ""}
	for _, x := range found {
		p.Campaigns = append(p.Campaigns, summarize(x))
	}
	if p.HasMore {
		p.NextCursor = &next
	}
	response.JSON(w, http.StatusOK, p)
	return nil
}

// Find returns a page of campaigns and the cursor of the next page, "" on the last one.
func (c *Campaigns) Find(ctx context.Context, orgID string, q url.Values) (found []campaigns.Campaign, next string, err error) {
	f, err := parseFilter(q)
	if err != nil {
		return nil, "", err
	}
	f.OrgID = orgID
	if text := q.Get("cursor"); text != "" {
		if f.AfterTime, f.AfterID, err = c.CursorKey.Open(text, "cmp_", q, orgID); err != nil {
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

// usualPage is the default page size.
const usualPage = 20

func parseFilter(q url.Values) (store.Filter, error) {
	rd := &listing.Reader{Query: q, Closed: map[string][]string{
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
