package campaigns

import (
	"time"

	"github.com/parley-voice/parley/campaigns/contactfile"
	"github.com/parley-voice/parley/campaigns/dnc/screening"
)

// A State is the state of a contact.
type State string

// States.
const (
	Pending    State = "pending" // waits for a call or a retry
	InCall     State = "in_call"
	Awaiting   State = "awaiting" // reached; waits for the analysis of the call
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

// An Import is a contact list that a client sent, and the result of reading it.
type Import struct {
	ID, OrgID, CampaignID string
	Kind                  string
	Accepted              bool // the list was accepted; otherwise it was refused
	RefusalCode           string
	Via                   Via
	RowsSeen              int
	AcceptedRows          int
	Warned, Rejected      int
	Duplicates            int
	SourceKey             string            // key of the original rows in the bucket; empty if they are not stored
	Screen                *screening.Screen // screening of a batch, fixed when the batch was accepted
	Rules                 string            // version of the market rules
	CreatedAt             time.Time
}

// A Contact is a person to call. A row that was not accepted has no contact: the ID and the state are empty.
type Contact struct {
	ID     string
	Row    *contactfile.Row
	State  State
	Reason string // reason of the suppression
}

// Counts are the contacts of a campaign by state.
type Counts struct {
	ByState   map[State]int
	ByReason  map[string]int // suppressed contacts by reason
	AtLaunch  int            // contacts that a do-not-call list suppressed at the launch
	Ambiguous int            // contacts with several possible time zones that are not suppressed
	Redials   int            // contacts that wait for another attempt
	Capped    map[string]int // contacts suppressed by a frequency cap, by the name of the cap
}

// Total returns the number of contacts.
func (c Counts) Total() int {
	n := 0
	for _, k := range c.ByState {
		n += k
	}
	return n
}
