package rows

import "strings"

// Columns that rows may have.
const (
	colPhone      = "phone"
	colName       = "name"
	colVariables  = "variables"
	colTimezone   = "timezone"
	colExternalID = "external_id"
	colLanguage   = "language"
	colPriority   = "priority"
	colNotBefore  = "not_before"
	colNotAfter   = "not_after"
	colState      = "state"
	colZIP        = "zip"
	colConsentAt  = "consent_at"
	colMetadata   = "metadata"
)

// column returns the column that a name stands for, whatever its case, spaces
// and dashes; empty where it stands for none.
func column(name string) string {
	key := strings.ToLower(strings.Join(strings.FieldsFunc(name, func(r rune) bool {
		return r == ' ' || r == '_' || r == '-' || r == '\u00a0' || r == '\t'
	}), "_"))
	switch key {
	case colPhone, "phone_number", "telephone", "tel", "mobile", "to_number", "номер", "телефон":
		return colPhone
	case colName, colVariables, colTimezone, colExternalID, colLanguage, colPriority, colNotBefore, colNotAfter,
		colState, colZIP, colConsentAt, colMetadata:
		return key
	case "time_zone":
		return colTimezone
	default:
		return ""
	}
}

// phones lists the names of the cells that stand for the phone.
func phones(cells []Cell) []string {
	var all []string
	for _, c := range cells {
		if column(c.Column) == colPhone {
			all = append(all, c.Column)
		}
	}
	return all
}
