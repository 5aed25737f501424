package campaigns

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-voice/parley/api/respond"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/campaigns/view"
	"github.com/parley-voice/parley/control"
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
	q := r.URL.Query()
	f, err := filter(q)
	if err != nil {
		return err
	}
	f.OrgID = key.OrgID
	if text := q.Get("cursor"); text != "" {
		if f.AfterTime, f.AfterID, err = c.CursorKey.Open(text, q, key.OrgID); err != nil {
			return err
		}
	}
	found, more, err := c.Store.List(r.Context(), f)
	if err != nil {
		return err
	}
	p := page{Campaigns: []view.Short{}, HasMore: more}
	for _, x := range found {
		p.Campaigns = append(p.Campaigns, view.Summary(x))
	}
	if more {
		last := found[len(found)-1]
		next := c.CursorKey.Text(last.CreatedAt, last.ID, q, key.OrgID)
		p.NextCursor = &next
	}
	respond.JSON(w, http.StatusOK, p)
	return nil
}

// Bounds of pages.
const (
	usualPage = 20
	mostPage  = 100
)

// closed are the filters over closed sets, and what they may ask for.
func closed(name string) []string {
	switch name {
	case "status":
		return []string{"draft", "scheduled", "running", "paused", "completed", "cancelled"}
	case "created_via":
		return []string{"api", "dashboard", "command", "system"}
	case "classification":
		return []string{"marketing", "servicing", "debt_collection"}
	case "order":
		return []string{"asc", "desc"}
	default:
		return nil
	}
}

// A reader reads filters and keeps one that cannot be read.
type reader struct {
	q   url.Values
	bad string
}

// filter reads the query of a list.
func filter(q url.Values) (store.Filter, error) {
	rd := &reader{q: q}
	f := store.Filter{
		Status: rd.statuses(), Agent: rd.text("agent_id"), CreatedVia: rd.text("created_via"), Classification: rd.text("classification"),
		Name: rd.text("name"), CreatedAfter: rd.time("created_after"), CreatedBefore: rd.time("created_before"),
		Ascending: rd.text("order") == "asc", Limit: rd.limit(),
	}
	if rd.bad != "" {
		return store.Filter{}, control.Refuse(control.CodeInvalidFilter, "the value of "+rd.bad+" cannot be used")
	}
	return f, nil
}

func (rd *reader) text(name string) string {
	v := strings.TrimSpace(rd.q.Get(name))
	if of := closed(name); !utf8.ValidString(v) || strings.ContainsRune(v, 0) || of != nil && v != "" && !slices.Contains(of, v) {
		rd.bad = name
	}
	return v
}

func (rd *reader) time(name string) time.Time {
	v := rd.text(name)
	if v == "" {
		return time.Time{}
	}
	s, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsNaN(s) || s < 0 || s > 1e11 {
		rd.bad = name
		return time.Time{}
	}
	return time.UnixMicro(int64(s * 1e6))
}

// statuses may be repeated, or be a list with commas.
func (rd *reader) statuses() []string {
	var all []string
	for _, v := range rd.q["status"] {
		for s := range strings.SplitSeq(v, ",") {
			if s = strings.TrimSpace(s); s == "" {
				continue
			}
			if !slices.Contains(closed("status"), s) {
				rd.bad = "status"
			}
			all = append(all, s)
		}
	}
	return all
}

func (rd *reader) limit() int {
	v := rd.text("limit")
	if v == "" {
		return usualPage
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > mostPage {
		rd.bad = "limit"
	}
	return n
}
