// Package filter reads what the query of a list asks for.
package filter

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
)

// Query is the query of a request. One of which a part cannot be read is refused:
// without that part it asks for something else.
func Query(r *http.Request) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, control.Refuse(control.CodeInvalidFilter, "the query cannot be read: "+err.Error())
	}
	return q, nil
}

// A Reader reads filters and keeps the first that cannot be read.
type Reader struct {
	Query url.Values
	// Closed are the filters over closed sets, and what they may ask for.
	Closed map[string][]string

	bad string
}

// Err refuses the filter that could not be read, if there was one.
func (r *Reader) Err() error {
	if r.bad == "" {
		return nil
	}
	return control.Refuse(control.CodeInvalidFilter, "the value of "+r.bad+" cannot be used")
}

func (r *Reader) fail(name string) {
	if r.bad == "" {
		r.bad = name
	}
}

// maxValues is how many values of one filter may be asked for at a time.
const maxValues = 100

// List reads a filter that may be repeated or hold a comma list. An empty
// value filters nothing.
func (r *Reader) List(name string) []string {
	of := r.Closed[name]
	var all []string
	for _, v := range r.Query[name] {
		for s := range strings.SplitSeq(v, ",") {
			switch s = strings.TrimSpace(s); {
			case s == "":
			case !utf8.ValidString(s), strings.ContainsRune(s, 0), of != nil && !slices.Contains(of, s):
				r.fail(name)
			default:
				all = append(all, s)
			}
		}
	}
	if len(all) > maxValues {
		r.fail(name)
	}
	return all
}

// Number is the digits of a telephone number.
func (r *Reader) Number(name string) string {
	v := r.Query.Get(name)
	d := control.Digits(v)
	if v != "" && d == "" {
		r.fail(name)
	}
	return d
}

// Float is a number of at least 0, nil where nothing is asked.
func (r *Reader) Float(name string) *float64 {
	v := r.Query.Get(name)
	if v == "" {
		return nil
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > 1e11 {
		r.fail(name)
		return nil
	}
	return &f
}

// Time is a time in epoch seconds, nil where nothing is asked.
func (r *Reader) Time(name string) *time.Time {
	f := r.Float(name)
	if f == nil {
		return nil
	}
	t := time.UnixMicro(int64(*f * 1e6))
	return &t
}

// Limit is how many objects a page has, 1 to 100, usual where nothing is asked.
func (r *Reader) Limit(usual int) int {
	v := r.Query.Get("limit")
	if v == "" {
		return usual
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > 100 {
		r.fail("limit")
	}
	return n
}

// Ascending tells whether the oldest come first.
func (r *Reader) Ascending() bool {
	switch r.Query.Get("order") {
	case "", "desc":
	case "asc":
		return true
	default:
		r.fail("order")
	}
	return false
}

// Text is one value; an empty one filters nothing.
func (r *Reader) Text(name string) string {
	v := strings.TrimSpace(r.Query.Get(name))
	of := r.Closed[name]
	if !utf8.ValidString(v) || strings.ContainsRune(v, 0) || of != nil && v != "" && !slices.Contains(of, v) {
		r.fail(name)
	}
	return v
}
