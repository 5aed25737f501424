package calls

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
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/control/view"
)

// A page is the answer of a list.
type page struct {
	Calls      []view.Summary `json:"calls"`
	HasMore    bool           `json:"has_more"`
	NextCursor *string        `json:"next_cursor"`
}

// List answers GET /v1/calls.
func (c *Calls) List(w http.ResponseWriter, r *http.Request, key access.Key) error {
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
	found, err := c.Store.List(r.Context(), f)
	if err != nil {
		return err
	}
	p := page{Calls: []view.Summary{}, HasMore: found.More}
	for _, call := range found.Calls {
		p.Calls = append(p.Calls, c.View.Summary(call))
	}
	if found.More {
		next := c.CursorKey.Text(found.EndTime, found.EndID, q, key.OrgID)
		p.NextCursor = &next
	}
	respond.JSON(w, http.StatusOK, p)
	return nil
}

// closed are the filters over closed sets, and what they may ask for.
var closed = map[string][]string{ //nolint:gochecknoglobals // read-only table
	"status":      {"queued", "ringing", "ongoing", "ended", "failed"},
	"call_type":   {"phone", "web"},
	"answered_by": {"human", "voicemail", "ivr", "fax", "unknown"},
	"disconnection_reason": {
		"callee_hangup", "agent_hangup", "api_hangup", "transferred", "voicemail_reached", "voicemail_dropped", "ivr_reached",
		"inactivity", "max_duration", "media_timeout", "agent_error", "shutdown", "node_lost", "never_joined",
		"no_answer", "busy", "declined", "invalid_number", "blocked", "route_error", "auth_failed", "congestion", "cancelled",
		"queue_expired", "dnc_blocked", "frequency_blocked", "window_closed", "internal_error", "unknown_after_restart", "redirect_refused",
	},
}

// A reader reads filters and keeps the first that cannot be read.
type reader struct {
	q   url.Values
	bad string
}

func filter(q url.Values) (store.Filter, error) {
	rd := &reader{q: q}
	f := store.Filter{
		Statuses: rd.list("status"), Types: rd.list("call_type"), Agents: rd.list("agent_id"),
		Campaigns: rd.list("campaign_id"), Contacts: rd.list("contact_id"), Imports: rd.list("import_id"),
		Trunks: rd.list("trunk_id"), Routes: rd.list("route_id"), ExternalIDs: rd.list("external_id"),
		Reasons: rd.list("disconnection_reason"), AnsweredBy: rd.list("answered_by"),
		To: rd.number("to_number"), From: rd.number("from_number"),
		CreatedAfter: rd.time("created_after"), CreatedBefore: rd.time("created_before"),
		MinDurationS: rd.float("min_duration_s"), MaxDurationS: rd.float("max_duration_s"),
		Limit: rd.limit(), Ascending: rd.ascending(),
	}
	if rd.bad != "" {
		return store.Filter{}, control.Refuse(control.CodeInvalidFilter, "the value of "+rd.bad+" cannot be used")
	}
	return f, nil
}

func (rd *reader) fail(name string) {
	if rd.bad == "" {
		rd.bad = name
	}
}

// maxValues is how many values of one filter may be asked for at a time.
const maxValues = 100

// list reads a filter that may be repeated or hold a comma list. An empty
// value filters nothing.
func (rd *reader) list(name string) []string {
	of := closed[name]
	var all []string
	for _, v := range rd.q[name] {
		for s := range strings.SplitSeq(v, ",") {
			switch s = strings.TrimSpace(s); {
			case s == "":
			case !utf8.ValidString(s), strings.ContainsRune(s, 0), of != nil && !slices.Contains(of, s):
				rd.fail(name)
			default:
				all = append(all, s)
			}
		}
	}
	if len(all) > maxValues {
		rd.fail(name)
	}
	return all
}

func (rd *reader) number(name string) string {
	v := rd.q.Get(name)
	d := control.Digits(v)
	if v != "" && d == "" {
		rd.fail(name)
	}
	return d
}

func (rd *reader) float(name string) *float64 {
	v := rd.q.Get(name)
	if v == "" {
		return nil
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > 1e11 {
		rd.fail(name)
		return nil
	}
	return &f
}

func (rd *reader) time(name string) *time.Time {
	f := rd.float(name)
	if f == nil {
		return nil
	}
	t := time.UnixMicro(int64(*f * 1e6))
	return &t
}

func (rd *reader) limit() int {
	v := rd.q.Get("limit")
	if v == "" {
		return 50
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > 100 {
		rd.fail("limit")
	}
	return n
}

func (rd *reader) ascending() bool {
	switch rd.q.Get("order") {
	case "", "desc":
	case "asc":
		return true
	default:
		rd.fail("order")
	}
	return false
}
