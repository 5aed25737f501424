// Package rows reads lists of people to call: rows of JSON, files of
// comma-separated values, spreadsheets. It tells of each row whether it can be
// called and what is wrong with it. It is pure but for the reader it is given.
package rows

import (
	"encoding/json"
	"iter"
	"strings"
	"time"

	"github.com/parley-voice/parley/campaigns/market"
)

// A Record is one row as it came: its columns in order. Row is its place, the
// first being 1; the line of names of a file is none.
type Record struct {
	Row   int
	Cells []Cell
	// Formula names the columns whose value a formula made.
	Formula []string
	// Err tells that the row could not be read at all.
	Err error
}

// A Cell is one value of a record: text from files, any JSON value from the API.
type Cell struct {
	Column string
	Text   string          // of a file, or of a JSON string
	JSON   json.RawMessage // of the API; nil from files
}

// A Source is the records of a list, in order. An error ends it: what it read
// is no list.
type Source = iter.Seq2[Record, error]

// A Row is one planned call.
type Row struct {
	Row        int    // its place in what was sent
	Phone      string // as sent
	Name       string
	Variables  map[string]string
	Timezone   string // IANA
	State      string // two letters; beside what the number says
	ZIP        string
	Language   string // BCP 47
	ExternalID string
	Priority   int // 0 to 9, 9 first
	NotBefore  time.Time
	NotAfter   time.Time
	ConsentAt  time.Time
	Metadata   json.RawMessage // an object, or nil

	Number market.Number
	Place  market.Place
	Status Status
	Issues []Issue
	// Of is the row whose number this one repeats, 0 where it repeats none.
	Of int
}

// A Status is what became of a row.
type Status string

// Statuses.
const (
	Accepted  Status = "accepted"
	Warned    Status = "warned" // accepted, with something to say
	Rejected  Status = "rejected"
	Duplicate Status = "duplicate" // left out for another row with its number
)

// Accepted tells whether a contact comes of the row.
func (r *Row) Accepted() bool { return r.Status == Accepted || r.Status == Warned }

// A Severity says whether an issue costs the row.
type Severity string

// Severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// An Issue is something wrong with a row.
type Issue struct {
	Row      int      `json:"row"`
	Column   string   `json:"column"`
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	Value    string   `json:"value"` // as sent, 100 characters of it
	Message  string   `json:"message"`
}

// Codes of issues. The first ones cost the row.
const (
	PhoneMissing     = "phone_missing"
	PhoneInvalid     = "phone_invalid"
	DuplicatePhone   = "duplicate_phone"
	TimezoneRequired = "timezone_required"
	TimezoneUnknown  = "timezone_unknown"
	VariablesInvalid = "variables_invalid"
	NameTooLong      = "name_too_long"
	ColumnInvalid    = "column_invalid" // a value of another form than its column's
	RowUnreadable    = "row_unreadable"
	NoPhoneColumn    = "no_phone_column" // of the list
	NoUsableRows     = "no_usable_rows"  // of the list

	CountryUnsupported = "phone_country_unsupported"
	TypeUnsupported    = "phone_type_unsupported"
	PossibleNotValid   = "phone_possible_not_valid"
	TimezoneAmbiguous  = "timezone_ambiguous"
	TimezoneDefaulted  = "timezone_defaulted"
	ColumnIgnored      = "column_ignored"
	VariableMissing    = "variable_missing"
	FormulaValue       = "formula_value"
)

// shown is how much of a value an issue repeats, in characters.
const shown = 100

func (r *Row) issue(severity Severity, code, column, value, message string) {
	if cut := []rune(value); len(cut) > shown {
		value = string(cut[:shown]) + "…"
	}
	r.Issues = append(r.Issues, Issue{
		Row: r.Row, Column: column, Code: code, Severity: severity, Value: strings.ToValidUTF8(value, "�"), Message: message,
	})
}

// failed tells whether an issue costs the row.
func (r *Row) failed() bool {
	for _, i := range r.Issues {
		if i.Severity == Error {
			return true
		}
	}
	return false
}
