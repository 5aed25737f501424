package campaigns

import (
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/contactfile"
	"github.com/parley-voice/parley/campaigns/dnc/screening"
	"github.com/parley-voice/parley/campaigns/launchcheck"
	"github.com/parley-voice/parley/campaigns/progress"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/control/callview"
	"github.com/parley-voice/parley/control/pricing"
)

// A shortView is a campaign in a list. Every key is always present.
type shortView struct {
	CampaignID     string           `json:"campaign_id"`
	Status         campaigns.Status `json:"status"`
	CreatedVia     campaigns.Via    `json:"created_via"`
	LaunchedVia    campaigns.Via    `json:"launched_via"`
	Name           string           `json:"name"`
	AgentID        string           `json:"agent_id"`
	Timezone       string           `json:"timezone"`
	TimezoneSource string           `json:"timezone_source"`
	StartsAt       callview.Epoch   `json:"starts_at"`
	EndsAt         callview.Epoch   `json:"ends_at"`
	Open           bool             `json:"accepts_call_additions"`
	CallsPerMinute int              `json:"calls_per_minute"`
	CallStrategy   string           `json:"call_strategy"`
	Classification string           `json:"classification"`
	CreatedAt      callview.Epoch   `json:"created_at" nullable:"false"`
	Budget         *pricing.Amount  `json:"budget"` // nil if there is no limit
}

type campaignView struct {
	shortView

	ConsentTier     string                 `json:"consent_tier"`
	RetryConfig     retry.Config           `json:"retry_config"`
	DuplicateAction string                 `json:"duplicate_action"`
	ContactTimezone bool                   `json:"use_contact_timezone"`
	WorkingHours    []campaigns.Shift      `json:"working_hours"`
	Binding         campaigns.Binding      `json:"binding"`
	Import          *importView            `json:"import"`
	DNCScreen       screening.Screen       `json:"dnc_screen"`
	Blockers        *[]launchcheck.Blocker `json:"blockers,omitempty"` // nil if no launch checks were made
	Warnings        *[]launchcheck.Warning `json:"warnings,omitempty"`
	UpdatedAt       callview.Epoch         `json:"updated_at" nullable:"false"`
	LaunchedAt      callview.Epoch         `json:"launched_at"`
	CompletedAt     callview.Epoch         `json:"completed_at"`
	CancelledAt     callview.Epoch         `json:"cancelled_at"`
	StatusReason    string                 `json:"status_reason"`
	Market          string                 `json:"market"`
	AgentVersion    *int                   `json:"agent_version"`
}

// launchCheck is the response to a launch check.
type launchCheck struct {
	Blockers  []launchcheck.Blocker `json:"blockers"`
	Warnings  []launchcheck.Warning `json:"warnings"`
	DNCScreen screening.Screen      `json:"dnc_screen"`
}

// Responses returns, by operation, a value of the type of the successful response.
func Responses() map[string]any {
	all := map[string]any{
		"list-campaigns": page{}, "check-campaign": launchCheck{}, "add-calls": added{}, "get-import": importView{},
		"campaign-progress": progress.Progress{}, "withdraw-contacts": service.Withdrawal{},
	}
	for _, id := range []string{"create", "get", "launch", "pause", "resume", "cancel"} {
		all[id+"-campaign"] = campaignView{}
	}
	all["set-campaign-budget"] = campaignView{}
	return all
}

type importView struct {
	ImportID        string            `json:"import_id"`
	Status          string            `json:"status"`
	RowsSeen        int               `json:"rows_seen"`
	Accepted        int               `json:"accepted"`
	Warned          int               `json:"warned"`
	Rejected        int               `json:"rejected"`
	DuplicatesFound int               `json:"duplicates_found"`
	DNCMatched      int               `json:"dnc_matched"`
	RefusalCode     string            `json:"refusal_code"`
	Issues          importIssues      `json:"issues"`
	DNCScreen       screening.Screen  `json:"dnc_screen"`
	DNCMatches      []screening.Match `json:"dnc_matches"`
	CampaignID      string            `json:"campaign_id"`
	Kind            string            `json:"kind"`
	CreatedAt       callview.Epoch    `json:"created_at" nullable:"false"`
	CreatedVia      campaigns.Via     `json:"created_via"`
	RowsProjected   bool              `json:"source_rows_projected"`
}

type importIssues struct {
	Total     int                 `json:"total"`
	Shown     int                 `json:"shown"`
	Truncated bool                `json:"truncated"`
	ByCode    map[string]int      `json:"by_code"`
	Items     []contactfile.Issue `json:"items"`
}

func summarize(c campaigns.Campaign) shortView {
	v := shortView{
		CampaignID: c.ID, Status: c.Status, CreatedVia: c.CreatedVia, LaunchedVia: c.LaunchedVia, Name: c.Name, AgentID: c.AgentName,
		Timezone: c.Timezone, TimezoneSource: c.TimezoneSource, StartsAt: callview.Epoch(c.StartsAt), EndsAt: callview.Epoch(c.EndsAt),
		Open:           c.Open,
		CallsPerMinute: c.CallsPerMinute, CallStrategy: string(c.Retry.Strategy), Classification: string(c.Classification),
		CreatedAt: callview.Epoch(c.CreatedAt),
	}
	if c.Budget > 0 {
		v.Budget = &c.Budget
	}
	return v
}

// viewCampaign renders a campaign, with the launch checks if checked is set.
func viewCampaign(st service.Status, checked bool) campaignView {
	c := st.Campaign
	v := campaignView{
		shortView: summarize(c), ConsentTier: c.ConsentTier(), RetryConfig: c.Retry, DuplicateAction: string(c.Duplicates),
		ContactTimezone: c.ContactTimezone, WorkingHours: c.WorkingHours, Binding: c.Binding, DNCScreen: st.Screen,
		UpdatedAt: callview.Epoch(c.UpdatedAt), LaunchedAt: callview.Epoch(c.LaunchedAt), CompletedAt: callview.Epoch(c.CompletedAt),
		CancelledAt:  callview.Epoch(c.CanceledAt),
		StatusReason: c.StatusReason, Market: c.Market,
	}
	if st.Import != nil {
		i := viewImport(*st.Import)
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

func viewImport(x service.ImportStatus) importView {
	status := "refused"
	if x.Accepted {
		status = "accepted"
	}
	matches := x.Matches
	if matches == nil {
		matches = []screening.Match{}
	}
	return importView{
		ImportID: x.ID, Status: status, RowsSeen: x.RowsSeen, Accepted: x.AcceptedRows, Warned: x.Warned, Rejected: x.Rejected,
		DuplicatesFound: x.Duplicates, DNCMatched: x.Screen.Matched, RefusalCode: x.RefusalCode, DNCScreen: x.Screen, DNCMatches: matches,
		Issues:     importIssues{Total: x.Total, Shown: len(x.Issues), Truncated: x.Total > len(x.Issues), ByCode: x.ByCode, Items: x.Issues},
		CampaignID: x.CampaignID, Kind: x.Kind, CreatedAt: callview.Epoch(x.CreatedAt), CreatedVia: x.Via, RowsProjected: x.SourceKey != "",
	}
}
