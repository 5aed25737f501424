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

// A heading is what the name of a column stands for.
type heading struct {
	column   string // ours, empty where it is none of these
	variable string // that it would be, empty where it can be none
}

// mostHeadings bounds how many names are remembered: rows of the API may each
// have names of their own.
const mostHeadings = 1000

// heading reads the name of a column, once for all rows.
func (rd *reader) heading(name string) heading {
	h, ok := rd.headings[name]
	if ok {
		return h
	}
	h.column = column(name)
	if v := strings.ReplaceAll(strings.TrimSpace(name), " ", "_"); rd.names.MatchString(v) {
		h.variable = v
	}
	if rd.headings == nil {
		rd.headings = map[string]heading{}
	}
	if len(rd.headings) < mostHeadings {
		rd.headings[name] = h
	}
	return h
}

// phones lists the names of the cells that stand for the phone.
func (rd *reader) phones(cells []Cell) []string {
	all := rd.found[:0]
	for _, c := range cells {
		if rd.heading(c.Column).column == colPhone {
			all = append(all, c.Column)
		}
	}
	rd.found = all
	return all
}
