// Package view writes campaigns as the API shows them.
package view

import (
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/checks"
	"github.com/parley-voice/parley/campaigns/desk"
	"github.com/parley-voice/parley/campaigns/rows"
	"github.com/parley-voice/parley/campaigns/screen"
	"github.com/parley-voice/parley/control/view"
)

// A Short is a campaign as lists show it. Every key is always there.
type Short struct {
	CampaignID     string           `json:"campaign_id"`
	Status         campaigns.Status `json:"status"`
	CreatedVia     campaigns.Via    `json:"created_via"`
	LaunchedVia    campaigns.Via    `json:"launched_via"`
	Name           string           `json:"name"`
	AgentID        string           `json:"agent_id"`
	Timezone       string           `json:"timezone"`
	TimezoneSource string           `json:"timezone_source"`
	StartsAt       view.Epoch       `json:"starts_at"`
	EndsAt         view.Epoch       `json:"ends_at"`
	Open           bool             `json:"accepts_call_additions"`
	CallsPerMinute int              `json:"calls_per_minute"`
	CallStrategy   string           `json:"call_strategy"`
	Classification string           `json:"classification"`
	CreatedAt      view.Epoch       `json:"created_at"`
}

// A Campaign is a campaign as shown on its own.
type Campaign struct {
	Short

	ConsentTier     string            `json:"consent_tier"`
	RetryConfig     any               `json:"retry_config"`
	DuplicateAction string            `json:"duplicate_action"`
	ContactTimezone bool              `json:"use_contact_timezone"`
	WorkingHours    []campaigns.Shift `json:"working_hours"`
	Binding         campaigns.Binding `json:"binding"`
	Import          *Import           `json:"import"`
	DNCScreen       screen.Screen     `json:"dnc_screen"`
	Blockers        *[]checks.Blocker `json:"blockers,omitempty"` // nil where nobody checked
	Warnings        *[]checks.Warning `json:"warnings,omitempty"`
	UpdatedAt       view.Epoch        `json:"updated_at"`
	LaunchedAt      view.Epoch        `json:"launched_at"`
	CompletedAt     view.Epoch        `json:"completed_at"`
	CancelledAt     view.Epoch        `json:"cancelled_at"`
	StatusReason    string            `json:"status_reason"`
	Market          string            `json:"market"`
	AgentVersion    *int              `json:"agent_version"`
}

// An Import is a list as shown.
type Import struct {
	ImportID        string         `json:"import_id"`
	Status          string         `json:"status"`
	RowsSeen        int            `json:"rows_seen"`
	Accepted        int            `json:"accepted"`
	Warned          int            `json:"warned"`
	Rejected        int            `json:"rejected"`
	DuplicatesFound int            `json:"duplicates_found"`
	DNCMatched      int            `json:"dnc_matched"`
	RefusalCode     string         `json:"refusal_code"`
	Issues          Issues         `json:"issues"`
	DNCScreen       screen.Screen  `json:"dnc_screen"`
	DNCMatches      []screen.Match `json:"dnc_matches"`
	CampaignID      string         `json:"campaign_id"`
	Kind            string         `json:"kind"`
	CreatedAt       view.Epoch     `json:"created_at"`
	CreatedVia      campaigns.Via  `json:"created_via"`
	RowsProjected   bool           `json:"source_rows_projected"`
}

// Issues are the first of what is wrong with the rows of a list.
type Issues struct {
	Total     int            `json:"total"`
	Shown     int            `json:"shown"`
	Truncated bool           `json:"truncated"`
	ByCode    map[string]int `json:"by_code"`
	Items     []rows.Issue   `json:"items"`
}

// Summary shows a campaign in a list.
func Summary(c campaigns.Campaign) Short {
	return Short{
		CampaignID: c.ID, Status: c.Status, CreatedVia: c.CreatedVia, LaunchedVia: c.LaunchedVia, Name: c.Name, AgentID: c.AgentName,
		Timezone: c.Timezone, TimezoneSource: c.TimezoneSource, StartsAt: view.Epoch(c.StartsAt), EndsAt: view.Epoch(c.EndsAt), Open: c.Open,
		CallsPerMinute: c.CallsPerMinute, CallStrategy: string(c.Retry.Strategy), Classification: string(c.Classification), CreatedAt: view.Epoch(c.CreatedAt),
	}
}

// Whole shows a campaign on its own, with the launch checks where they were run.
func Whole(st desk.Standing, checked bool) Campaign {
	c := st.Campaign
	v := Campaign{
		Short: Summary(c), ConsentTier: c.ConsentTier(), RetryConfig: c.Retry, DuplicateAction: string(c.Duplicates),
		ContactTimezone: c.ContactTimezone, WorkingHours: c.WorkingHours, Binding: c.Binding, DNCScreen: st.Screen,
		UpdatedAt: view.Epoch(c.UpdatedAt), LaunchedAt: view.Epoch(c.LaunchedAt), CompletedAt: view.Epoch(c.CompletedAt), CancelledAt: view.Epoch(c.CancelledAt),
		StatusReason: c.StatusReason, Market: c.Market,
	}
	if st.Import != nil {
		i := Imported(*st.Import)
		v.Import = &i
	}
	if checked {
		v.Blockers, v.Warnings = &st.Blockers, &st.Warnings
	}
	if c.AgentVersion > 0 {
		v.AgentVersion = &c.AgentVersion
	}
	return v
}

// Imported shows a list.
func Imported(x desk.Imported) Import {
	status := "refused"
	if x.Accepted {
		status = "accepted"
	}
	matches := x.Matches
	if matches == nil {
		matches = []screen.Match{}
	}
	return Import{
		ImportID: x.ID, Status: status, RowsSeen: x.RowsSeen, Accepted: x.AcceptedRows, Warned: x.Warned, Rejected: x.Rejected,
		DuplicatesFound: x.Duplicates, DNCMatched: x.Screen.Matched, RefusalCode: x.RefusalCode, DNCScreen: x.Screen, DNCMatches: matches,
		Issues:     Issues{Total: x.Total, Shown: len(x.Issues), Truncated: x.Total > len(x.Issues), ByCode: x.ByCode, Items: x.Issues},
		CampaignID: x.CampaignID, Kind: x.Kind, CreatedAt: view.Epoch(x.CreatedAt), CreatedVia: x.Via, RowsProjected: x.SourceKey != "",
	}
}
