// Package campaigns defines campaigns and contacts: validation, statuses, and the effects of actions. It is pure;
// campaigns/store has the SQL.
package campaigns

import (
	"time"

	"github.com/parley-voice/parley/campaigns/contactfile"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/control/pricing"
)

// A Status is the status of a campaign.
type Status string

// Statuses.
const (
	Draft     Status = "draft"
	Scheduled Status = "scheduled" // launched; it starts at StartsAt
	Running   Status = "running"
	Paused    Status = "paused"
	Completed Status = "completed"
	Canceled  Status = "cancelled"
)

// IsOver reports whether the campaign is completed or canceled.
func (s Status) IsOver() bool { return s == Completed || s == Canceled }

// A Via is the channel through which a request came: the API, the dashboard, a command or the system.
type Via string

// Channels.
const (
	ByAPI       Via = "api"
	ByDashboard Via = "dashboard"
	ByCommand   Via = "command"
	BySystem    Via = "system"
)

// Sources of the time zone of a campaign.
const (
	ZoneOfRequest      = "request"
	ZoneOfOrganization = "organization"
)

// Decisions about numbers on a do-not-call list.
const (
	Block = "block" // do not launch the campaign
	Skip  = "skip"  // launch the campaign without these numbers
)

// Reasons for the end of a campaign.
const (
	QueueDrained     = "queue_drained"
	EndsAtReached    = "ends_at"
	CanceledByClient = "client_cancel"
)

// A Campaign calls the contacts of a list through one route. A zero time means that the time is not set, or that the
// event has not happened.
type Campaign struct {
	ID, OrgID               string
	Status                  Status
	StatusReason            string
	CreatedVia, LaunchedVia Via // LaunchedVia is empty before the first launch
	Name                    string
	AgentID                 string // internal ID; agent_id of the API is AgentName
	AgentName               string // current name of the agent
	AgentVersion            int    // fixed at the launch; 0 before
	Timezone                string
	TimezoneSource          string
	StartsAt, EndsAt        time.Time
	Open                    bool // accepts further calls (accepts_call_additions)
	CallsPerMinute          int
	Budget                  pricing.Amount // budget of all calls; 0 means no limit
	Classification          market.Classification
	Retry                   retry.Config
	Duplicates              contactfile.DuplicateAction
	ContactTimezone         bool
	WorkingHours            []Shift
	Binding                 Binding
	DNC                     string // Block or Skip
	LaunchImportID          string
	SeenFingerprint         string // fingerprint of the last screening result of the draft that a client saw
	Market                  string // code of the market package; empty for none

	CreatedAt, UpdatedAt, LaunchedAt, CompletedAt, CanceledAt time.Time
}

// A Binding is the route of a campaign's calls.
type Binding struct {
	TrunkID    string `json:"trunk_id"`
	RouteID    string `json:"route_id"`
	FromNumber string `json:"from_number"`
}

// ConsentTier returns the required consent (47 CFR 64.1200(a)(2), FCC 24-17): pewc (prior express written consent)
// for marketing, otherwise pec (prior express consent).
func (c Campaign) ConsentTier() string {
	if c.Classification == market.Marketing {
		return "pewc"
	}
	return "pec"
}

// LaunchStatus returns the status after a launch.
func (c Campaign) LaunchStatus(now time.Time) Status {
	if c.StartsAt.After(now) {
		return Scheduled
	}
	return Running
}
