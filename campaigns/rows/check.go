package rows

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-voice/parley/campaigns/market"
)

// A DuplicateAction says what to do with a phone that comes twice.
type DuplicateAction string

// Actions.
const (
	RejectDuplicates DuplicateAction = "reject" // every row of the phone is rejected
	KeepFirst        DuplicateAction = "keep_first"
	KeepLast         DuplicateAction = "keep_last"
)

// Options say how a list is checked.
type Options struct {
	Market     *market.Package
	Duplicates DuplicateAction
	// Zone is nil for a name that is no time zone.
	Zone func(name string) error
	// ContactZone tells that contacts are called by their own zone; then rows of
	// a batch need one where the market says so, and others take the campaign's.
	ContactZone bool
	Batch       bool
	// Variables are those that the agent's texts use.
	Variables []string
	// Most is how many rows a list may have, 0 any.
	Most int
	// Progress is told how many rows were read, every thousand; nil is nobody.
	Progress func(rows int)
}

// A List is what was read.
type List struct {
	Rows       []*Row // all of them, in order
	Accepted   int
	Warned     int // of those accepted
	Rejected   int
	Dropped    int // left out for another row with their number
	Duplicates int // rows that repeat an earlier one's number
	// Refusal is NoPhoneColumn or NoUsableRows where the list is none.
	Refusal string
}

// ErrTooMany tells that a list has more rows than it may.
var ErrTooMany = errors.New("too many rows")

// Check reads a list to its end. An error is the source's, or ErrTooMany.
func Check(source Source, o Options) (*List, error) {
	l := &List{}
	rd := &reader{names: variableName()}
	for rec, err := range source {
		if err != nil {
			return nil, err
		}
		if o.Most > 0 && len(l.Rows) >= o.Most {
			return nil, fmt.Errorf("%w: a list has at most %d", ErrTooMany, o.Most)
		}
		r := rd.row(rec)
		o.judge(r)
		l.Rows = append(l.Rows, r)
		if n := len(l.Rows); o.Progress != nil && n%1000 == 0 {
			o.Progress(n)
		}
	}
	l.duplicates(o.Duplicates)
	l.count()
	switch {
	case len(l.Rows) > 0 && !rd.phone:
		l.Refusal = NoPhoneColumn
	case l.Accepted == 0 && len(l.Rows) > 0:
		l.Refusal = NoUsableRows
	}
	return l, nil
}

// judge reads the phone of a row and says where it is.
func (o Options) judge(r *Row) {
	o.zone(r)
	if r.Phone == "" {
		return
	}
	n, err := o.Market.Read(r.Phone)
	if err != nil {
		r.issue(Error, PhoneInvalid, colPhone, r.Phone, err.Error())
		return
	}
	r.Number = n
	zone := r.Timezone
	if slices.ContainsFunc(r.Issues, func(i Issue) bool { return i.Code == TimezoneUnknown }) {
		zone = ""
	}
	if r.Place, err = o.Market.Locate(n, r.State, zone); err != nil {
		r.issue(Error, ColumnInvalid, colState, r.State, err.Error())
		return
	}
	switch {
	case n.Refusal == market.CountryUnsupported:
		r.issue(Warning, CountryUnsupported, colPhone, r.Phone, "numbers of that country are not called in this market")
	case n.Refusal == market.TypeUnsupported:
		r.issue(Warning, TypeUnsupported, colPhone, r.Phone, "numbers of that kind are not called")
	case n.Doubtful:
		r.issue(Warning, PossibleNotValid, colPhone, r.Phone, "the number has the right form, but is in no list of numbers in service")
	}
	if n.Refusal == market.Callable && r.Place.Ambiguous() {
		r.issue(Warning, TimezoneAmbiguous, colPhone, r.Phone, "the number may be in "+strings.Join(r.Place.Zones, ", ")+": it is called when it may be in all of them")
	}
	for _, name := range o.Variables {
		if !has(r.Variables, name) {
			r.issue(Warning, VariableMissing, "variables."+name, "", "the agent's texts use it")
		}
	}
}

// zone judges the time zone that a row names.
func (o Options) zone(r *Row) {
	switch {
	case r.Timezone != "":
		if err := o.Zone(r.Timezone); err != nil {
			r.issue(Error, TimezoneUnknown, colTimezone, r.Timezone, err.Error())
		}
	case !o.ContactZone:
	case o.Batch && o.Market.RequireTimezone:
		r.issue(Error, TimezoneRequired, colTimezone, "", "the campaign calls by the contact's time zone: each row names one")
	default:
		r.issue(Warning, TimezoneDefaulted, colTimezone, "", "the row names no time zone: the campaign's is used")
	}
}

// duplicates finds the rows that have one number.
func (l *List) duplicates(action DuplicateAction) {
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
			x.Of = same[0].Row
		}
		if action == KeepFirst || action == KeepLast {
			keep(same, action)
			continue
		}
		for _, x := range same {
			x.issue(Error, DuplicatePhone, colPhone, x.Phone, fmt.Sprintf("rows %d and %d have this phone", same[0].Row, same[1].Row))
		}
	}
}

// keep drops all but the first, or the last, of the rows that can be called.
func keep(same []*Row, action DuplicateAction) {
	good := slices.DeleteFunc(slices.Clone(same), (*Row).failed)
	if len(good) == 0 {
		return
	}
	kept := good[0]
	if action == KeepLast {
		kept = good[len(good)-1]
	}
	for _, x := range good {
		if x != kept {
			x.issue(Warning, DuplicatePhone, colPhone, x.Phone, fmt.Sprintf("left out: row %d has this phone", kept.Row))
			x.Status = Duplicate
		}
	}
}

// count settles what became of each row.
func (l *List) count() {
	for _, r := range l.Rows {
		switch {
		case r.Status == Duplicate:
			l.Dropped++
			continue
		case r.failed():
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

// Issues returns the first issues of the list in order of rows, how many there
// are of each code, and how many of all.
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
