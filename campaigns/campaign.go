// Package campaigns calls lists of people: what a campaign is, which of them
// can be, and how one moves from draft to its end. What decides here is pure;
// the database stands in campaigns/store.
package campaigns

import (
	"time"

	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/campaigns/rows"
)

// A Status is where a campaign stands.
type Status string

// Statuses.
const (
	Draft     Status = "draft"
	Scheduled Status = "scheduled" // launched, to begin at StartsAt
	Running   Status = "running"
	Paused    Status = "paused"
	Completed Status = "completed"
	Cancelled Status = "cancelled"
)

// Over tells that nothing happens to a campaign any more.
func (s Status) Over() bool { return s == Completed || s == Cancelled }

// A Via is the channel by which something was done.
type Via string

// Channels.
const (
	ByAPI       Via = "api"
	ByDashboard Via = "dashboard"
	ByCommand   Via = "command"
	BySystem    Via = "system"
)

// Sources of a campaign's time zone.
const (
	ZoneOfRequest      = "request"
	ZoneOfOrganization = "organization"
)

// Decisions about numbers on a do-not-call list.
const (
	Block = "block" // do not launch
	Skip  = "skip"  // launch without them
)

// Reasons why a campaign is over.
const (
	QueueDrained = "queue_drained"
	EndsAtCame   = "ends_at"
	ByClient     = "client_cancel"
)

// A Campaign calls the people of a list through one route. Zero times stand
// for what is not set or has not happened.
type Campaign struct {
	ID, OrgID               string
	Status                  Status
	StatusReason            string
	CreatedVia, LaunchedVia Via // LaunchedVia is empty before the first launch
	Name                    string
	AgentID                 string // ours; the API's agent_id is AgentName
	AgentName               string // as the agent is called now
	AgentVersion            int    // frozen at the launch, 0 before
	Timezone                string
	TimezoneSource          string
	StartsAt, EndsAt        time.Time
	Open                    bool // accepts_call_additions
	CallsPerMinute          int
	Classification          market.Classification
	Retry                   retry.Config
	Duplicates              rows.DuplicateAction
	ContactTimezone         bool
	WorkingHours            []Shift
	Binding                 Binding
	DNC                     string // Block or Skip
	LaunchImportID          string
	SeenFingerprint         string // of the screen that was shown last, of a draft
	Market                  string // code of the package, empty for none

	CreatedAt, UpdatedAt, LaunchedAt, CompletedAt, CancelledAt time.Time
}

// A Binding is the line that a campaign calls through.
type Binding struct {
	TrunkID    string `json:"trunk_id"`
	RouteID    string `json:"route_id"`
	FromNumber string `json:"from_number"`
}

// ConsentTier is the consent that the calls need: pewc, prior express written
// consent, for marketing; pec, prior express consent, for the rest (47 CFR
// 64.1200(a)(2), FCC 24-17).
func (c Campaign) ConsentTier() string {
	if c.Classification == market.Marketing {
		return "pewc"
	}
	return "pec"
}

// Launched is the status that a launch leads to.
func (c Campaign) Launched(now time.Time) Status {
	if c.StartsAt.After(now) {
		return Scheduled
	}
	return Running
}
