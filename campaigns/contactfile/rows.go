// Package contactfile reads contact lists from JSON rows, CSV and XLSX files. For each row it reports the issues, and
// whether the row can be called. It does no I/O except through the reader that it receives.
package contactfile

import (
	"encoding/json"
	"iter"
	"strings"
	"time"

	"github.com/parley-voice/parley/campaigns/market"
)

// A Record is one row as sent, with its columns in order. Row counts from 1 and does not count the header line.
type Record struct {
	Row   int
	Cells []Cell
	// Formula names the columns with a formula.
	Formula []string
	// Encoding is the encoding that was assumed for values that are not UTF-8; empty if all are UTF-8. The first row
	// includes the values of the header line.
	Encoding string
	// Err is set if the row could not be read.
	Err error
}

// A Cell is one value: text from files, any JSON value from the API.
type Cell struct {
	Column string
	Text   string          // text from a file or of a JSON string
	JSON   json.RawMessage // value from the API; nil for files
	// Variable is set if the column is a variable even though its name is a known
	// column.
	Variable bool
}

// A Source is the records of a list, in order. An error ends the source and invalidates the list.
type Source = iter.Seq2[Record, error]

// A Row is one planned call.
type Row struct {
	Row        int    // number of the row in the list, from 1
	Phone      string // phone as it was sent
	Name       string
	Variables  map[string]string
	Timezone   string // name of an IANA time zone
	State      string // two letters; in addition to the state of the number
	ZIP        string
	Language   string // BCP 47
	ExternalID string
	Priority   int // 0 to 9; 9 is called first
	NotBefore  time.Time
	NotAfter   time.Time
	ConsentAt  time.Time
	Metadata   json.RawMessage // a JSON object; nil without metadata

	Number   market.Number
	Location market.Location
	Status   Status
	Issues   []Issue
	// DuplicateOf is the number of the earlier row with the same phone; 0 if there is none.
	DuplicateOf int
}

// A Status is the result of a row.
type Status string

// Statuses.
const (
	Accepted  Status = "accepted"
	Warned    Status = "warned" // accepted with a warning
	Rejected  Status = "rejected"
	Duplicate Status = "duplicate" // dropped because another row has the number
)

// IsAccepted reports whether the row becomes a contact.
func (r *Row) IsAccepted() bool { return r.Status == Accepted || r.Status == Warned }

// A Severity reports whether an issue rejects the row.
type Severity string

// Severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// An Issue is a problem of a row.
type Issue struct {
	Row      int      `json:"row"`
	Column   string   `json:"column"`
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	Value    string   `json:"value"` // value as it was sent, at most 100 characters
	Message  string   `json:"message"`
}

// Codes of issues. An issue of the first group rejects the row.
const (
	PhoneMissing     = "phone_missing"
	PhoneInvalid     = "phone_invalid"
	DuplicatePhone   = "duplicate_phone"
	TimezoneRequired = "timezone_required"
	TimezoneUnknown  = "timezone_unknown"
	VariablesInvalid = "variables_invalid"
	NameTooLong      = "name_too_long"
	ColumnInvalid    = "column_invalid" // the column does not accept the value
	RowUnreadable    = "row_unreadable"
	NoPhoneColumn    = "no_phone_column" // an issue of the list as a whole
	NoUsableRows     = "no_usable_rows"  // an issue of the list as a whole

	CountryUnsupported = "phone_country_unsupported"
	TypeUnsupported    = "phone_type_unsupported"
	PossibleNotValid   = "phone_possible_not_valid"
	TimezoneAmbiguous  = "timezone_ambiguous"
	TimezoneDefaulted  = "timezone_defaulted"
	ColumnIgnored      = "column_ignored"
	VariableMissing    = "variable_missing"
	FormulaValue       = "formula_value"
	EncodingAssumed    = "encoding_assumed"    // an issue of the list, reported at the first row that is not UTF-8
	SeveralPhones      = "phone_column_chosen" // an issue of the list, reported at its first row
)

// maxIssueValue bounds the value in an issue, in characters.
const maxIssueValue = 100

func (r *Row) addIssue(severity Severity, code, column, value, message string) {
	n := 0
	for at := range value {
		if n++; n > maxIssueValue {
			value = value[:at] + "…"
			break
		}
	}
	r.Issues = append(r.Issues, Issue{
		Row: r.Row, Column: column, Code: code, Severity: severity, Value: strings.ToValidUTF8(value, "�"), Message: message,
	})
}

func (r *Row) isRejected() bool {
	for _, i := range r.Issues {
		if i.Severity == Error {
			return true
		}
	}
	return false
}
