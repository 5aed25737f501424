package contactfile

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/parley-voice/parley/campaigns/market"
)

// A DuplicateAction selects what happens to rows with the same number.
type DuplicateAction string

// Duplicate actions.
const (
	RejectDuplicates DuplicateAction = "reject" // each row with a repeated number is rejected
	KeepFirst        DuplicateAction = "keep_first"
	KeepLast         DuplicateAction = "keep_last"
)

// Options configure Check.
type Options struct {
	Market     *market.Package
	Duplicates DuplicateAction
	// Zone returns an error for an unknown time zone.
	Zone func(name string) error
	// ContactZone reports that contacts are called in their own time zone. If the market requires it, each row of a
	// batch must then name its zone. Other rows without a zone use that of the campaign.
	ContactZone bool
	Batch       bool
	// Variables are the names of the variables that the agent's texts use.
	Variables []string
	// MaxRows bounds the rows; 0 means no limit.
	MaxRows int
	// Progress receives the number of rows read, after every 1000 rows; nil disables it.
	Progress func(rows int)
}

// A List is a checked list. It does not keep the rows, so its memory does not depend on what they contain: All reads
// them again from the source.
type List struct {
	Seen       int // rows
	Accepted   int
	Warned     int // rows accepted with a warning
	Rejected   int
	Dropped    int // rows dropped because another row has the number
	Duplicates int // rows that repeat the number of an earlier row
	// Refusal is NoPhoneColumn or NoUsableRows for an unusable list.
	Refusal string
	// Codes counts the issues of the rows by code.
	Codes map[string]int
	// Locations are the different locations of the rows that may be called.
	Locations []market.Location
	// Split counts the rows by result.
	Split Split

	source  Source
	options Options
	repeats map[uint64]*repeat // by the digits of the number
	seen    map[string]bool    // keys of Locations
}

// A repeat is a number that several rows have. Its fields are row numbers.
type repeat struct {
	first, second int32
	kept          int32 // row that is not dropped; 0 if each row with the number is rejected for another reason
}

// ErrTooMany is returned for a list with more than MaxRows rows.
var ErrTooMany = errors.New("too many rows")

// Check reads a list, twice if it has duplicates. It returns the error of the source, or ErrTooMany.
func Check(source Source, o Options) (*List, error) {
	l := &List{source: source, options: o}
	found, err := l.count(true)
	if err == nil && len(l.repeats) > 0 {
		found, err = l.count(false)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case l.Seen > 0 && !found:
		l.Refusal = NoPhoneColumn
	case l.Accepted == 0 && l.Seen > 0:
		l.Refusal = NoUsableRows
	}
	l.seen = nil
	return l, nil
}

// All reads the rows again, in order. An error of the source ends them.
func (l *List) All() iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		rd := &reader{names: variableName()}
		for rec, err := range l.source {
			if err != nil {
				yield(nil, err)
				return
			}
			r := rd.row(rec)
			l.options.checkRow(r)
			l.finish(r)
			if !yield(r, nil) {
				return
			}
		}
	}
}

// count reads the rows and counts them. The first time it also finds the numbers that several rows have, and reports
// the progress. found is false if no row has a phone column.
func (l *List) count(first bool) (found bool, err error) {
	l.Seen, l.Accepted, l.Warned, l.Rejected, l.Dropped, l.Duplicates, l.Split = 0, 0, 0, 0, 0, 0, Split{}
	l.Codes, l.Locations, l.seen = map[string]int{}, nil, map[string]bool{}
	var numbers map[uint64]int32 // see addNumber
	if first {
		numbers, l.repeats = map[uint64]int32{}, map[uint64]*repeat{}
	}
	rd := &reader{names: variableName()}
	for rec, err := range l.source {
		if err != nil {
			return false, err
		}
		if l.options.MaxRows > 0 && l.Seen >= l.options.MaxRows {
			return false, fmt.Errorf("%w: at most %d are accepted", ErrTooMany, l.options.MaxRows)
		}
		r := rd.row(rec)
		l.options.checkRow(r)
		if first {
			l.addNumber(numbers, r)
		} else {
			l.finish(r)
		}
		l.add(r)
		if l.options.Progress != nil && first && l.Seen%1000 == 0 {
			l.options.Progress(l.Seen)
		}
	}
	return rd.found, nil
}

// numberKey returns the digits of a number in E.164, which has at most 15; 0 for no number.
func numberKey(e164 string) (key uint64) {
	for _, c := range []byte(e164) {
		if c >= '0' && c <= '9' {
			key = 10*key + uint64(c-'0')
		}
	}
	return key
}

// addNumber finds out whether an earlier row has the number of row r. A value of numbers is the first row with a
// number, shifted left by one bit. The lowest bit is 1 if that row is rejected.
func (l *List) addNumber(numbers map[uint64]int32, r *Row) {
	key, row := numberKey(r.Number.E164), int32(r.Row) //nolint:gosec // a file has fewer rows
	if key == 0 {
		return
	}
	rejected := int32(0)
	if r.isRejected() {
		rejected = 1
	}
	f, repeated := numbers[key]
	if !repeated {
		numbers[key] = row<<1 | rejected
		return
	}
	x := l.repeats[key]
	if x == nil {
		x = &repeat{first: f >> 1, second: row}
		if f&1 == 0 {
			x.kept = x.first
		}
		l.repeats[key] = x
	}
	if rejected == 0 && (x.kept == 0 || l.options.Duplicates == KeepLast) {
		x.kept = row
	}
}

// add adds a row to the counts.
func (l *List) add(r *Row) {
	l.Seen++
	for _, i := range r.Issues {
		l.Codes[i.Code]++
	}
	if x := l.repeats[numberKey(r.Number.E164)]; x != nil && int(x.first) != r.Row {
		l.Duplicates++
	}
	r.setStatus()
	switch r.Status {
	case Duplicate:
		l.Dropped++
	case Rejected:
		l.Rejected++
	case Warned:
		l.Warned++
		l.Accepted++
	default:
		l.Accepted++
	}
	l.Split.add(r)
	if !r.IsAccepted() || r.Number.Refusal != market.Callable {
		return
	}
	key := strings.Join(r.Location.States, ",") + ";" + strings.Join(r.Location.Zones, ",")
	if !l.seen[key] {
		l.seen[key], l.Locations = true, append(l.Locations, r.Location)
	}
}

// checkRow parses the phone number of a row and finds its possible locations.
func (o Options) checkRow(r *Row) {
	o.checkZone(r)
	if r.Phone == "" {
		return
	}
	n, err := o.Market.Read(r.Phone)
	if err != nil {
		r.addIssue(Error, PhoneInvalid, colPhone, r.Phone, err.Error())
		return
	}
	r.Number = n
	zone := r.Timezone
	if slices.ContainsFunc(r.Issues, func(i Issue) bool { return i.Code == TimezoneUnknown }) {
		zone = ""
	}
	if r.Location, err = o.Market.Locate(n, r.State, zone); err != nil {
		r.addIssue(Error, ColumnInvalid, colState, r.State, err.Error())
		return
	}
	switch {
	case n.Refusal == market.CountryUnsupported:
		r.addIssue(Warning, CountryUnsupported, colPhone, r.Phone, "the market does not call numbers of this country")
	case n.Refusal == market.TypeUnsupported:
		r.addIssue(Warning, TypeUnsupported, colPhone, r.Phone, "the market does not call this type of number")
	case n.Doubtful:
		r.addIssue(Warning, PossibleNotValid, colPhone, r.Phone, "the number is not known to be in service")
	}
	if n.Refusal == market.Callable && r.Location.IsAmbiguous() {
		r.addIssue(Warning, TimezoneAmbiguous, colPhone, r.Phone,
			"the time zone may be "+strings.Join(r.Location.Zones, ", ")+": calls must be legal in all")
	}
	for _, name := range o.Variables {
		if !hasVariable(r.Variables, name) {
			r.addIssue(Warning, VariableMissing, "variables."+name, "", "the agent's texts use this variable")
		}
	}
}

func (o Options) checkZone(r *Row) {
	switch {
	case r.Timezone != "":
		if err := o.Zone(r.Timezone); err != nil {
			r.addIssue(Error, TimezoneUnknown, colTimezone, r.Timezone, err.Error())
		}
	case !o.ContactZone:
	case o.Batch && o.Market.RequireTimezone:
		r.addIssue(Error, TimezoneRequired, colTimezone, "", "timezone is required: the campaign calls by the contact's time zone")
	default:
		r.addIssue(Warning, TimezoneDefaulted, colTimezone, "", "timezone is empty: the campaign's is used")
	}
}

// finish adds the issue of a repeated number to a row, and sets the row's status.
func (l *List) finish(r *Row) {
	if x := l.repeats[numberKey(r.Number.E164)]; x != nil {
		if int(x.first) != r.Row {
			r.DuplicateOf = int(x.first)
		}
		switch l.options.Duplicates {
		case KeepFirst, KeepLast:
			if int(x.kept) != r.Row && !r.isRejected() {
				r.addIssue(Warning, DuplicatePhone, colPhone, r.Phone, fmt.Sprintf("dropped: row %d has the same phone", x.kept))
				r.Status = Duplicate
			}
		default:
			r.addIssue(Error, DuplicatePhone, colPhone, r.Phone, fmt.Sprintf("rows %d and %d have the same phone", x.first, x.second))
		}
	}
	r.setStatus()
}

// setStatus sets the status by the issues, unless the row is dropped.
func (r *Row) setStatus() {
	switch {
	case r.Status == Duplicate:
	case r.isRejected():
		r.Status = Rejected
	case len(r.Issues) > 0:
		r.Status = Warned
	default:
		r.Status = Accepted
	}
}

// Issues returns the issues in row order, no more than first of them, with the count of issues by code and the total.
func (l *List) Issues(first int) (items []Issue, byCode map[string]int, total int) {
	byCode = maps.Clone(l.Codes)
	for _, n := range byCode {
		total += n
	}
	items, first = []Issue{}, min(first, total)
	for r, err := range l.All() { // not past the last issue
		if err != nil || len(items) >= first {
			break
		}
		items = append(items, r.Issues[:min(len(r.Issues), first-len(items))]...)
	}
	if l.Refusal != "" && l.Seen > 0 {
		byCode[l.Refusal]++
		total++
	}
	return items, byCode, total
}

// A Split counts the rows of a list by result. Each row is in exactly one of the counts.
type Split struct {
	Called    int
	Skipped   int // rows whose number the market does not call
	Duplicate int // rows whose number another row has
	Invalid   int
}

// add adds a row to the counts.
func (s *Split) add(r *Row) {
	switch {
	case r.Status == Duplicate || r.Status == Rejected && r.isOnlyDuplicate():
		s.Duplicate++
	case r.Status == Rejected:
		s.Invalid++
	case r.Number.Refusal != market.Callable:
		s.Skipped++
	default:
		s.Called++
	}
}

// isOnlyDuplicate reports whether the repeated number is the only reason for the
// rejection.
func (r *Row) isOnlyDuplicate() bool {
	return !slices.ContainsFunc(r.Issues, func(i Issue) bool { return i.Severity == Error && i.Code != DuplicatePhone })
}
