package calls

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/parley-voice/parley/api/listing"
	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/callview"
	"github.com/parley-voice/parley/control/store"
)

// Responses returns, by operation, a value of the type of the successful response.
func Responses() map[string]any {
	return map[string]any{
		"create-phone-call": callview.Call{}, "create-web-call": ticket{}, "list-calls": page{}, "get-call": callview.Call{},
		"get-call-turns": []callview.Turn{}, "end-call": callview.Call{}, "list-dialing-routes": routeList{},
	}
}

type page struct {
	Calls      []callview.Summary `json:"calls"`
	HasMore    bool               `json:"has_more"`
	NextCursor *string            `json:"next_cursor"`
}

// List answers GET /v1/calls.
func (c *Calls) List(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	q, err := listing.Query(r)
	if err != nil {
		return err
	}
	found, next, err := c.Find(r.Context(), key.OrgID, q, nil)
	if err != nil {
		return err
	}
	p := page{Calls: []callview.Summary{}, HasMore: found.More}
	for _, call := range found.Calls {
		p.Calls = append(p.Calls, c.View.Summary(call))
	}
	if found.More {
		p.NextCursor = &next
	}
	response.JSON(w, http.StatusOK, p)
	return nil
}

// Find returns a page of calls and the cursor of the next page; "" on the last page. narrow may add conditions, which
// must follow from q; nil adds none.
func (c *Calls) Find(
	ctx context.Context, orgID string, q url.Values, narrow func(*store.Filter),
) (found store.Page, next string, err error) {
	f, err := parseFilter(q)
	if err != nil {
		return store.Page{}, "", err
	}
	f.OrgID = orgID
	if narrow != nil {
		narrow(&f)
	}
	if text := q.Get("cursor"); text != "" {
		if f.AfterTime, f.AfterID, err = c.CursorKey.Open(text, "call_", q, orgID); err != nil {
			return store.Page{}, "", err
		}
	}
	if found, err = c.Store.List(ctx, f); err == nil && found.More {
		next = c.CursorKey.Text(found.EndTime, found.EndID, q, orgID)
	}
	return found, next, err
}

// Choices returns the accepted values of a filter that has a fixed set.
func Choices(name string) []string { return slices.Clone(closed[name]) }

// usualPage is the default page size.
const usualPage = 50

// closed lists the filters with a fixed set of values.
var closed = map[string][]string{ //nolint:gochecknoglobals // read-only table
	"status":      {"queued", "ringing", "ongoing", "ended", "failed"},
	"call_type":   {"phone", "web"},
	"answered_by": {"human", "voicemail", "ivr", "fax", "unknown"},
	"disconnection_reason": {
		"callee_hangup", "agent_hangup", "api_hangup", "transferred", "voicemail_reached", "voicemail_dropped", "ivr_reached",
		"inactivity", "max_duration", "media_timeout", "agent_error", "shutdown", "node_lost", "never_joined",
		"no_answer", "busy", "declined", "invalid_number", "blocked", "route_error", "auth_failed", "congestion", "cancelled",
		"queue_expired", "dnc_blocked", "caller_number_unavailable", "frequency_blocked", "window_closed",
		"internal_error", "provider_not_configured", "unknown_after_restart", "redirect_refused",
	},
}

func parseFilter(q url.Values) (store.Filter, error) {
	rd := &listing.Reader{Query: q, Closed: closed}
	f := store.Filter{
		Statuses: rd.List("status"), Types: rd.List("call_type"), Agents: rd.List("agent_id"),
		Campaigns: rd.List("campaign_id"), Contacts: rd.List("contact_id"), Imports: rd.List("import_id"),
		Trunks: rd.List("trunk_id"), Routes: rd.List("route_id"), ExternalIDs: rd.List("external_id"),
		Reasons: rd.List("disconnection_reason"), AnsweredBy: rd.List("answered_by"),
		To: rd.Number("to_number"), From: rd.Number("from_number"),
		CreatedAfter: rd.Time("created_after"), CreatedBefore: rd.Time("created_before"),
		MinDurationS: rd.Float("min_duration_s"), MaxDurationS: rd.Float("max_duration_s"),
		Limit: rd.Limit(usualPage), Ascending: rd.Ascending(),
	}
	return f, rd.Err()
}
