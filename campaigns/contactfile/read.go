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
	maxName         = 200 // characters of a name
	maxID           = 128
	maxVariables    = 64
	maxVariable     = 2000 // characters of a variable
	maxMetadata     = 8 << 10
	defaultPriority = 5
	maxEpoch        = 253402300799 // 9999-12-31 in seconds
)

// variableName matches the names of variables.
func variableName() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`) }

// A reader converts records to rows.
type reader struct {
	names    *regexp.Regexp
	headings map[string]heading
	found    bool // a row has had a phone column
	decoded  bool // the warning about the encoding was added
	chosen   bool // the warning about several phone columns was added
}

// row converts a record to a row, which also has the issues.
func (rd *reader) row(rec Record) *Row {
	r := &Row{Row: rec.Row, Priority: defaultPriority}
	phone, others := rd.phoneColumn(rec.Cells)
	rd.found = rd.found || phone != ""
	if rec.Err != nil {
		r.addIssue(Error, RowUnreadable, "", "", rec.Err.Error())
		return r
	}
	if rec.Encoding != "" && !rd.decoded {
		rd.decoded = true
		r.addIssue(Warning, EncodingAssumed, "", "", "the file is not UTF-8 and is read as "+rec.Encoding)
	}
	if len(others) > 0 && !rd.chosen && rec.Cells[0].JSON == nil {
		rd.chosen = true
		r.addIssue(Warning, SeveralPhones, phone, "",
			"several columns have phone numbers: "+phone+" is called, "+strings.Join(others, ", ")+" not")
	}
	for _, c := range rec.Cells {
		rd.cell(r, c, phone)
	}
	for _, name := range rec.Formula {
		r.addIssue(Warning, FormulaValue, name, "", "the value is a formula; the last computed result is used")
	}
	if r.Phone == "" && !r.isRejected() {
		r.addIssue(Error, PhoneMissing, phone, "", "phone is missing")
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
		r.takeText(c, &r.Name, maxName, NameTooLong)
	case colTimezone:
		r.takeText(c, &r.Timezone, maxID, TimezoneUnknown)
	case colExternalID, colLanguage, colState, colZIP:
		r.takeText(c, r.textColumn(col), maxID, ColumnInvalid)
	case colNotBefore, colNotAfter, colConsentAt:
		r.takeTime(c, r.timeColumn(col))
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

// textColumn returns the destination of a plain text column.
func (r *Row) textColumn(col string) *string {
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

// timeColumn returns the destination of a time column.
func (r *Row) timeColumn(col string) *time.Time {
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
			r.addIssue(Error, PhoneInvalid, c.Column, r.Phone, "a phone must not contain zero bytes")
			r.Phone = ""
		}
	case "number":
		if s := strings.TrimSuffix(string(c.JSON), ".0"); strings.Trim(s, "0123456789") == "" {
			r.Phone = s
		} else {
			r.addIssue(Error, PhoneInvalid, c.Column, s, "a phone sent as a number must be an integer without exponent")
		}
	case "null":
	default:
		r.addIssue(Error, PhoneInvalid, c.Column, c.asSent(), "a phone must be a string or an integer")
	}
}

// takeText reads a string of at most longest characters.
func (r *Row) takeText(c Cell, to *string, longest int, code string) {
	s := strings.TrimSpace(c.Text)
	switch {
	case c.kind() != "text" && c.kind() != "string":
		r.addIssue(Error, code, c.Column, c.asSent(), c.Column+" must be a string")
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		r.addIssue(Error, ColumnInvalid, c.Column, s, c.Column+" must be UTF-8 text")
	case utf8.RuneCountInString(s) > longest:
		r.addIssue(Error, code, c.Column, s, fmt.Sprintf("%s must have at most %d characters", c.Column, longest))
	default:
		*to = s
	}
}

func (c Cell) number() (float64, bool) {
	if c.kind() != "text" && c.kind() != "number" {
		return 0, false
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(c.asSent()), 64)
	return v, err == nil
}

func (r *Row) takePriority(c Cell) {
	if v, ok := c.number(); ok && v == math.Trunc(v) && v >= 0 && v <= 9 {
		r.Priority = int(v)
		return
	}
	r.addIssue(Error, ColumnInvalid, c.Column, c.asSent(), "priority must be an integer from 0 to 9")
}

func (r *Row) takeTime(c Cell, to *time.Time) {
	if v, ok := c.number(); ok && v >= 0 && v <= maxEpoch {
		whole, part := math.Modf(v)
		*to = time.Unix(int64(whole), int64(part*1e9)).UTC()
		return
	}
	r.addIssue(Error, ColumnInvalid, c.Column, c.asSent(), c.Column+" must be a time in epoch seconds")
}

func (rd *reader) takeVariables(r *Row, c Cell) {
	var all map[string]json.RawMessage
	raw := []byte(c.asSent())
	if k := c.kind(); k != "object" && k != "text" || json.Unmarshal(raw, &all) != nil {
		r.addIssue(Error, VariablesInvalid, c.Column, c.asSent(), "variables must be an object of strings")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		v, s := all[name], ""
		if len(v) == 0 || v[0] != '"' || json.Unmarshal(v, &s) != nil {
			r.addIssue(Error, VariablesInvalid, c.Column+"."+name, string(v), "a variable must be a string")
			continue
		}
		rd.addVariable(r, c.Column+"."+name, name, s)
	}
}

// addVariable reads a variable with any name.
func (rd *reader) addVariable(r *Row, at, name, value string) {
	if !rd.names.MatchString(name) {
		r.addIssue(Error, VariablesInvalid, at, name, "a variable name must have 1 to 64 letters, digits and _, and not start with a digit")
		return
	}
	rd.setVariable(r, at, name, value)
}

// setVariable stores a variable with a valid name.
func (rd *reader) setVariable(r *Row, at, name, value string) {
	switch {
	case utf8.RuneCountInString(value) > maxVariable || !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		r.addIssue(Error, VariablesInvalid, at, value, fmt.Sprintf("a variable must be UTF-8 text of at most %d characters", maxVariable))
	case len(r.Variables) >= maxVariables && !hasVariable(r.Variables, name):
		r.addIssue(Error, VariablesInvalid, at, name, fmt.Sprintf("a row must have at most %d variables", maxVariables))
	default:
		if r.Variables == nil {
			r.Variables = map[string]string{}
		}
		r.Variables[name] = value
	}
}

func hasVariable(all map[string]string, name string) bool {
	_, ok := all[name]
	return ok
}

func (r *Row) takeMetadata(c Cell) {
	raw := json.RawMessage(c.asSent())
	var object map[string]json.RawMessage
	if k := c.kind(); k != "object" && k != "text" || len(raw) > maxMetadata || json.Unmarshal(raw, &object) != nil {
		r.addIssue(Error, ColumnInvalid, c.Column, c.asSent(), fmt.Sprintf("metadata must be an object of at most %d bytes", maxMetadata))
		return
	}
	r.Metadata = raw
}

// takeOther reads an unknown column: in a file it is a variable, in an API row it is
// ignored.
func (rd *reader) takeOther(r *Row, c Cell) {
	name := rd.heading(c.Column).variable
	if c.JSON != nil || name == "" {
		r.addIssue(Warning, ColumnIgnored, c.Column, c.asSent(), "unknown column: the value is ignored")
		return
	}
	rd.setVariable(r, c.Column, name, strings.TrimSpace(c.Text))
}
