package contactfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of columns.
const (
	longestName     = 200 // characters
	longestID       = 128
	mostVariables   = 64
	longestVariable = 2000 // characters
	longestMetadata = 8 << 10
	usualPriority   = 5
	lastEpoch       = 253402300799 // 9999-12-31, in seconds
)

// variableName matches the names of variables.
func variableName() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`) }

// A reader converts records to rows.
type reader struct {
	names    *regexp.Regexp
	headings map[string]heading
	found    bool // a row had a phone column
	decoded  bool // the encoding warning was issued
	chosen   bool // the warning about several phone columns was issued
}

// row converts a record. Its issues are on the row.
func (rd *reader) row(rec Record) *Row {
	r := &Row{Row: rec.Row, Priority: usualPriority}
	phone, others := rd.phone(rec.Cells)
	rd.found = rd.found || phone != ""
	if rec.Err != nil {
		r.issue(Error, RowUnreadable, "", "", rec.Err.Error())
		return r
	}
	if rec.Encoding != "" && !rd.decoded {
		rd.decoded = true
		r.issue(Warning, EncodingAssumed, "", "", "the file is not UTF-8 and is read as "+rec.Encoding)
	}
	if len(others) > 0 && !rd.chosen && rec.Cells[0].JSON == nil {
		rd.chosen = true
		r.issue(Warning, SeveralPhones, phone, "", "several columns have phone numbers: "+phone+" is called, "+strings.Join(others, ", ")+" not")
	}
	for _, c := range rec.Cells {
		rd.cell(r, c, phone)
	}
	for _, name := range rec.Formula {
		r.issue(Warning, FormulaValue, name, "", "the value is a formula; the last computed result is used")
	}
	if r.Phone == "" && !r.failed() {
		r.issue(Error, PhoneMissing, phone, "", "phone is missing")
	}
	return r
}

// cell reads one value into the row.
func (rd *reader) cell(r *Row, c Cell, phone string) {
	if c.Column == phone {
		r.takePhone(c)
		return
	}
	if c.kind() == "null" || c.JSON == nil && strings.TrimSpace(c.Text) == "" {
		return
	}
	col := rd.heading(c.Column).column
	if c.Variable {
		col = ""
	}
	switch col {
	case colName:
		r.text(c, &r.Name, longestName, NameTooLong)
	case colTimezone:
		r.text(c, &r.Timezone, longestID, TimezoneUnknown)
	case colExternalID, colLanguage, colState, colZIP:
		r.text(c, r.label(col), longestID, ColumnInvalid)
	case colNotBefore, colNotAfter, colConsentAt:
		r.takeTime(c, r.time(col))
	case colPriority:
		r.takePriority(c)
	case colVariables:
		rd.takeVariables(r, c)
	case colMetadata:
		r.takeMetadata(c)
	default:
		rd.takeOther(r, c)
	}
}

// label returns the destination of a plain text column.
func (r *Row) label(col string) *string {
	switch col {
	case colExternalID:
		return &r.ExternalID
	case colLanguage:
		return &r.Language
	case colState:
		return &r.State
	default:
		return &r.ZIP
	}
}

// time returns the destination of a time column.
func (r *Row) time(col string) *time.Time {
	switch col {
	case colNotBefore:
		return &r.NotBefore
	case colNotAfter:
		return &r.NotAfter
	default:
		return &r.ConsentAt
	}
}

func (r *Row) takePhone(c Cell) {
	switch c.kind() {
	case "text", "string":
		if r.Phone = strings.TrimSpace(c.Text); strings.ContainsRune(r.Phone, 0) {
			r.issue(Error, PhoneInvalid, c.Column, r.Phone, "a phone must not contain zero bytes")
			r.Phone = ""
		}
	case "number":
		if s := strings.TrimSuffix(string(c.JSON), ".0"); strings.Trim(s, "0123456789") == "" {
			r.Phone = s
		} else {
			r.issue(Error, PhoneInvalid, c.Column, s, "a phone sent as a number must be an integer without exponent")
		}
	case "null":
	default:
		r.issue(Error, PhoneInvalid, c.Column, c.sent(), "a phone must be a string or an integer")
	}
}

// text reads a string of at most longest characters.
func (r *Row) text(c Cell, to *string, longest int, code string) {
	s := strings.TrimSpace(c.Text)
	switch {
	case c.kind() != "text" && c.kind() != "string":
		r.issue(Error, code, c.Column, c.sent(), c.Column+" must be a string")
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		r.issue(Error, ColumnInvalid, c.Column, s, c.Column+" must be UTF-8 text")
	case utf8.RuneCountInString(s) > longest:
		r.issue(Error, code, c.Column, s, fmt.Sprintf("%s must have at most %d characters", c.Column, longest))
	default:
		*to = s
	}
}

func (c Cell) number() (float64, bool) {
	if c.kind() != "text" && c.kind() != "number" {
		return 0, false
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(c.sent()), 64)
	return v, err == nil
}

func (r *Row) takePriority(c Cell) {
	if v, ok := c.number(); ok && v == math.Trunc(v) && v >= 0 && v <= 9 {
		r.Priority = int(v)
		return
	}
	r.issue(Error, ColumnInvalid, c.Column, c.sent(), "priority must be an integer from 0 to 9")
}

func (r *Row) takeTime(c Cell, to *time.Time) {
	if v, ok := c.number(); ok && v >= 0 && v <= lastEpoch {
		whole, part := math.Modf(v)
		*to = time.Unix(int64(whole), int64(part*1e9)).UTC()
		return
	}
	r.issue(Error, ColumnInvalid, c.Column, c.sent(), c.Column+" must be a time in epoch seconds")
}

func (rd *reader) takeVariables(r *Row, c Cell) {
	var all map[string]json.RawMessage
	raw := []byte(c.sent())
	if k := c.kind(); k != "object" && k != "text" || json.Unmarshal(raw, &all) != nil {
		r.issue(Error, VariablesInvalid, c.Column, c.sent(), "variables must be an object of strings")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		v, s := all[name], ""
		if len(v) == 0 || v[0] != '"' || json.Unmarshal(v, &s) != nil {
			r.issue(Error, VariablesInvalid, c.Column+"."+name, string(v), "a variable must be a string")
			continue
		}
		rd.variable(r, c.Column+"."+name, name, s)
	}
}

// variable reads a variable with any name.
func (rd *reader) variable(r *Row, at, name, value string) {
	if !rd.names.MatchString(name) {
		r.issue(Error, VariablesInvalid, at, name, "a variable name must have 1 to 64 letters, digits and _, and not start with a digit")
		return
	}
	rd.put(r, at, name, value)
}

// put stores a variable with a valid name.
func (rd *reader) put(r *Row, at, name, value string) {
	switch {
	case utf8.RuneCountInString(value) > longestVariable || !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		r.issue(Error, VariablesInvalid, at, value, fmt.Sprintf("a variable must be UTF-8 text of at most %d characters", longestVariable))
	case len(r.Variables) >= mostVariables && !has(r.Variables, name):
		r.issue(Error, VariablesInvalid, at, name, fmt.Sprintf("a row must have at most %d variables", mostVariables))
	default:
		if r.Variables == nil {
			r.Variables = map[string]string{}
		}
		r.Variables[name] = value
	}
}

func has(all map[string]string, name string) bool {
	_, ok := all[name]
	return ok
}

func (r *Row) takeMetadata(c Cell) {
	raw := json.RawMessage(c.sent())
	var object map[string]json.RawMessage
	if k := c.kind(); k != "object" && k != "text" || len(raw) > longestMetadata || json.Unmarshal(raw, &object) != nil {
		r.issue(Error, ColumnInvalid, c.Column, c.sent(), fmt.Sprintf("metadata must be an object of at most %d bytes", longestMetadata))
		return
	}
	r.Metadata = raw
}

// takeOther reads an unknown column: in a file it is a variable, in an API row it is
// ignored.
func (rd *reader) takeOther(r *Row, c Cell) {
	name := rd.heading(c.Column).variable
	if c.JSON != nil || name == "" {
		r.issue(Warning, ColumnIgnored, c.Column, c.sent(), "unknown column: the value is ignored")
		return
	}
	rd.put(r, c.Column, name, strings.TrimSpace(c.Text))
}
