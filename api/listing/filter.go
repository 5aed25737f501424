package listing

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/phonenumber"
)

// Query parses the query of a request. A query with one unreadable part is refused as a whole,
// because without that part it would select other objects.
func Query(r *http.Request) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, control.Refuse(control.CodeInvalidFilter, "the query string cannot be parsed: "+err.Error())
	}
	return q, nil
}

// A Reader parses filters and keeps the first error.
type Reader struct {
	Query url.Values
	// Closed lists the accepted values of filters that have a fixed set.
	Closed map[string][]string

	bad, accepted string
}

// Err returns the first error as a control.Error with code invalid_filter, or nil.
func (r *Reader) Err() error {
	if r.bad == "" {
		return nil
	}
	return control.Refuse(control.CodeInvalidFilter, "invalid value of "+r.bad+"; accepted: "+r.accepted)
}

func (r *Reader) fail(name, accepted string) {
	if r.bad == "" {
		r.bad, r.accepted = name, accepted
	}
}

// oneOf describes the accepted values. nil means that any text is accepted.
func oneOf(of []string) string {
	if of == nil {
		return "UTF-8 text without NUL"
	}
	return strings.Join(of, ", ")
}

// maxValues limits the values of one filter.
const maxValues = 100

// List reads a filter that may be repeated or hold a comma-separated list. Empty
// values are ignored.
func (r *Reader) List(name string) []string {
	of := r.Closed[name]
	var all []string
	for _, v := range r.Query[name] {
		for s := range strings.SplitSeq(v, ",") {
			switch s = strings.TrimSpace(s); {
			case s == "":
			case !utf8.ValidString(s), strings.ContainsRune(s, 0), of != nil && !slices.Contains(of, s):
				r.fail(name, oneOf(of))
			default:
				all = append(all, s)
			}
		}
	}
	if len(all) > maxValues {
		r.fail(name, "at most "+strconv.Itoa(maxValues)+" values")
	}
	return all
}

// Number returns the digits of a telephone number; "" without the filter.
func (r *Reader) Number(name string) string {
	v := r.Query.Get(name)
	d := phonenumber.SuppressionDigits(v)
	if v != "" && d == "" {
		r.fail(name, "a telephone number in E.164 format")
	}
	return d
}

// Float returns a number of at least 0; nil without the filter.
func (r *Reader) Float(name string) *float64 {
	v := r.Query.Get(name)
	if v == "" {
		return nil
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > 1e11 {
		r.fail(name, "a number from 0 to 100000000000")
		return nil
	}
	return &f
}

// Time reads epoch seconds; nil without the filter.
func (r *Reader) Time(name string) *time.Time {
	f := r.Float(name)
	if f == nil {
		return nil
	}
	t := time.UnixMicro(int64(*f * 1e6))
	return &t
}

// Limit returns the page size, 1 to 100. usual is the page size without the parameter.
func (r *Reader) Limit(usual int) int {
	v := r.Query.Get("limit")
	if v == "" {
		return usual
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > 100 {
		r.fail("limit", "a whole number from 1 to 100")
	}
	return n
}

// Ascending reports whether the oldest objects come first.
func (r *Reader) Ascending() bool {
	switch r.Query.Get("order") {
	case "", "desc":
	case "asc":
		return true
	default:
		r.fail("order", "asc, desc")
	}
	return false
}

// Text returns one value; "" without the filter.
func (r *Reader) Text(name string) string {
	v := strings.TrimSpace(r.Query.Get(name))
	of := r.Closed[name]
	if !utf8.ValidString(v) || strings.ContainsRune(v, 0) || of != nil && v != "" && !slices.Contains(of, v) {
		r.fail(name, oneOf(of))
	}
	return v
}
