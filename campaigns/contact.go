package campaigns

import (
	"time"

	"github.com/parley-voice/parley/campaigns/rows"
	"github.com/parley-voice/parley/campaigns/screen"
)

// A State is where a contact stands in its campaign.
type State string

// States.
const (
	Pending    State = "pending"  // waits to be called, again too
	InCall     State = "in_call"  // is being called
	Awaiting   State = "awaiting" // was talked to; the analysis decides
	Done       State = "done"
	Exhausted  State = "exhausted" // not reached, and no attempt is left
	Suppressed State = "suppressed"
)

// Reasons of suppression.
const (
	DNCSuppressed     = "dnc_suppressed"
	WithdrawnByClient = "withdrawn_by_client"
	GeoRejected       = "geo_rejected"
	FrequencyCapped   = "frequency_capped"
	OptedOut          = "opted_out"
	NumberInvalid     = "number_invalid"
	ReassignedNumber  = "reassigned_number"
	OperatorRemoved   = "operator_removed"
)

// Kinds of imports.
const (
	LaunchImport = "launch"
	BatchImport  = "batch"
	FileImport   = "file"
)

// An Import is a list that was handed over, and what became of it.
type Import struct {
	ID, OrgID, CampaignID string
	Kind                  string
	Accepted              bool   // else it was refused
	RefusalCode           string // why
	Via                   Via
	RowsSeen              int
	AcceptedRows          int
	Warned, Rejected      int
	Duplicates            int
	SourceKey             string         // of the rows as they came, in the bucket; empty where they were not kept
	Screen                *screen.Screen // of a batch, frozen
	Rules                 string         // the version of the market's rules by which it was read
	CreatedAt             time.Time
}

// A Contact is somebody to call.
type Contact struct {
	ID     string
	Row    *rows.Row
	State  State
	Reason string // of the suppression
}

// Counts are how many contacts of a campaign are in each state, and some that
// matter beside.
type Counts struct {
	ByState   map[State]int
	ByReason  map[string]int // of the suppressed
	AtLaunch  int            // suppressed at the launch for a do-not-call list
	Ambiguous int            // in several time zones, and not suppressed
	Redials   int            // waiting for another attempt
	Capped    map[string]int // suppressed by a frequency cap, by its name
}

// All is how many contacts there are.
func (c Counts) All() int {
	n := 0
	for _, k := range c.ByState {
		n += k
	}
	return n
}
