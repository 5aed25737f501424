package contactfile

import (
	"slices"
	"strings"
	"unicode"
)

// PhoneColumn is the column of the phone number.
const PhoneColumn = colPhone

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

// phoneColumns returns the headings of phone columns, the best first. If a list has several of them, the best one is
// the phone number and the others are variables.
func phoneColumns() []string {
	return []string{
		colPhone, "phone_number", "to_number", "telephone", "telephone_number", "tel", "mobile", "mobile_number", "mobile_phone",
		"cell", "cell_phone", "cell_number", "phone_no", "tel_no", "mobile_no", "cell_no", "phonenumber", "cellphone", "mobilephone",
		"mobile_phone_number", "cell_phone_number", "primary_phone", "main_phone", "contact_phone",
		"contact_number", "customer_phone", "home_phone", "work_phone", "business_phone", "phone_1", "phone1",
		"телефон", "номер_телефона", "мобильный_телефон", "мобильный", "моб_телефон", "сотовый_телефон", "сотовый", "тел", "номер",
		"телефон_нөмірі", "ұялы_телефон",
	}
}

// knownColumn returns the column that a name stands for, ignoring case, spaces, dashes and dots; empty for none. For
// a phone column, rank is its index in phoneColumns.
func knownColumn(name string) (col string, rank int) {
	key := strings.ToLower(strings.Join(strings.FieldsFunc(name, func(r rune) bool {
		return r == '_' || r == '-' || r == '.' || r == ':' || r == '#' || unicode.IsSpace(r)
	}), "_"))
	switch key {
	case colName, colVariables, colTimezone, colExternalID, colLanguage, colPriority, colNotBefore, colNotAfter,
		colState, colZIP, colConsentAt, colMetadata:
		return key, 0
	case "time_zone":
		return colTimezone, 0
	default:
		if rank = slices.Index(phoneColumns(), key); rank >= 0 {
			return colPhone, rank
		}
		return "", 0
	}
}

// A heading is the meaning of a column name.
type heading struct {
	column   string // empty if the name is none of Columns
	rank     int    // rank of a phone column; the column with the lowest rank is used
	variable string // name of the variable; empty if the column cannot be one
}

// maxHeadings bounds the cache, because each row from the API may have other names.
const maxHeadings = 1000

// heading returns the cached meaning of a column name.
func (rd *reader) heading(name string) heading {
	h, ok := rd.headings[name]
	if ok {
		return h
	}
	h.column, h.rank = knownColumn(name)
	if v := strings.ReplaceAll(strings.TrimSpace(name), " ", "_"); rd.names.MatchString(v) {
		h.variable = v
	}
	if rd.headings == nil {
		rd.headings = map[string]heading{}
	}
	if len(rd.headings) < maxHeadings {
		rd.headings[name] = h
	}
	return h
}

// phoneColumn returns the best phone column, empty for none, and the other phone columns.
func (rd *reader) phoneColumn(cells []Cell) (name string, others []string) {
	best := -1
	for _, c := range cells {
		h := rd.heading(c.Column)
		switch {
		case h.column != colPhone || c.Variable:
		case best < 0 || h.rank < best:
			if best >= 0 {
				others = append(others, name)
			}
			name, best = c.Column, h.rank
		default:
			others = append(others, c.Column)
		}
	}
	return name, others
}
