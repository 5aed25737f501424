package contactfile

import (
	"errors"
	"fmt"
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
	// ContactZone reports that contacts are called in their own time zone. Rows of a batch must
	// then name their zone if the market requires it. Other rows use the zone of the campaign.
	ContactZone bool
	Batch       bool
	// Variables are the names of the variables that the agent's texts use.
	Variables []string
	// MaxRows bounds the rows; 0 means no limit.
	MaxRows int
	// Progress receives the number of rows read, after every 1000 rows; nil disables it.
	Progress func(rows int)
}

// A List is a checked list.
type List struct {
	Rows       []*Row // rows in their order
	Accepted   int
	Warned     int // rows accepted with a warning
	Rejected   int
	Dropped    int // rows dropped because another row has the number
	Duplicates int // rows that repeat the number of an earlier row
	// Refusal is NoPhoneColumn or NoUsableRows for an unusable list.
	Refusal string
}

// ErrTooMany is returned for a list with more than MaxRows rows.
var ErrTooMany = errors.New("too many rows")

// Check reads a list. It returns the error of the source, or ErrTooMany.
func Check(source Source, o Options) (*List, error) {
	l := &List{}
	rd := &reader{names: variableName()}
	for rec, err := range source {
		if err != nil {
			return nil, err
		}
		if o.MaxRows > 0 && len(l.Rows) >= o.MaxRows {
			return nil, fmt.Errorf("%w: at most %d are accepted", ErrTooMany, o.MaxRows)
		}
		r := rd.row(rec)
		o.checkRow(r)
		l.Rows = append(l.Rows, r)
		if n := len(l.Rows); o.Progress != nil && n%1000 == 0 {
			o.Progress(n)
		}
	}
	l.markDuplicates(o.Duplicates)
	l.countStatuses()
	switch {
	case len(l.Rows) > 0 && !rd.found:
		l.Refusal = NoPhoneColumn
	case l.Accepted == 0 && len(l.Rows) > 0:
		l.Refusal = NoUsableRows
	}
	return l, nil
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

func (l *List) markDuplicates(action DuplicateAction) {
	first, more := make(map[string]*Row, len(l.Rows)), map[*Row][]*Row{}
	for _, r := range l.Rows {
		switch f := first[r.Number.E164]; {
		case r.Number.E164 == "":
		case f == nil:
			first[r.Number.E164] = r
		default:
			more[f] = append(more[f], r)
		}
	}
	for _, r := range l.Rows {
		if more[r] == nil {
			continue
		}
		same := append([]*Row{r}, more[r]...)
		l.Duplicates += len(same) - 1
		for _, x := range same[1:] {
			x.DuplicateOf = same[0].Row
		}
		if action == KeepFirst || action == KeepLast {
			dropDuplicates(same, action)
			continue
		}
		for _, x := range same {
			x.addIssue(Error, DuplicatePhone, colPhone, x.Phone, fmt.Sprintf("rows %d and %d have the same phone", same[0].Row, same[1].Row))
		}
	}
}

// dropDuplicates drops all valid rows with the same number except the first or, with KeepLast, the last.
func dropDuplicates(same []*Row, action DuplicateAction) {
	good := slices.DeleteFunc(slices.Clone(same), (*Row).isRejected)
	if len(good) == 0 {
		return
	}
	chosen := good[0]
	if action == KeepLast {
		chosen = good[len(good)-1]
	}
	for _, x := range good {
		if x != chosen {
			x.addIssue(Warning, DuplicatePhone, colPhone, x.Phone, fmt.Sprintf("dropped: row %d has the same phone", chosen.Row))
			x.Status = Duplicate
		}
	}
}

// countStatuses sets the statuses and the counts.
func (l *List) countStatuses() {
	for _, r := range l.Rows {
		switch {
		case r.Status == Duplicate:
			l.Dropped++
			continue
		case r.isRejected():
			r.Status = Rejected
			l.Rejected++
			continue
		case len(r.Issues) > 0:
			r.Status = Warned
			l.Warned++
		default:
			r.Status = Accepted
		}
		l.Accepted++
	}
}

// Issues returns up to first issues in row order, the count of issues by code, and the total.
func (l *List) Issues(first int) (items []Issue, byCode map[string]int, total int) {
	byCode = map[string]int{}
	items = []Issue{}
	for _, r := range l.Rows {
		for _, i := range r.Issues {
			byCode[i.Code]++
			if total++; total <= first {
				items = append(items, i)
			}
		}
	}
	if l.Refusal != "" && len(l.Rows) > 0 {
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

// Split counts the rows by result.
func (l *List) Split() Split {
	var s Split
	for _, r := range l.Rows {
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
	return s
}

// isOnlyDuplicate reports whether the repeated number is the only reason for the
// rejection.
func (r *Row) isOnlyDuplicate() bool {
	return !slices.ContainsFunc(r.Issues, func(i Issue) bool { return i.Severity == Error && i.Code != DuplicatePhone })
}
