package frame

import (
	"errors"
	"regexp"
	"strings"

	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
)

// Apply does within a transaction what parley apply does with a file that holds
// this one organization. What is wrong with it is an *InvalidError, of the field
// whose name is the key in the file where the error names it.
func (r *Request) Apply(q db.Querier, o apply.Organization) error {
	return Refused(apply.Into(r.Context(), q, apply.Spec{Organizations: []apply.Organization{o}}, r.frame.Apply))
}

// where is what an error of package apply begins with: the organization, and what
// of it.
var where = regexp.MustCompile(`^(?:organizations?(?:\[0\]\.| "(?:[^"\\]|\\.)*": ))?(?:(?:agents|trunks)\[0\]\.|(?:agent|trunk) "(?:[^"\\]|\\.)*": )*(?:subgroups\[0\]\.|subgroup "(?:[^"\\]|\\.)*": )*`)

// field is the key that an error is about.
var field = regexp.MustCompile(`^([a-z_]+(?:\.[a-z_]+)*)(\[[0-9]+\][a-z_.]*)?( |: )`)

// Refused has an error of package apply, and of what it calls, refuse a form. An
// error of the database stays one.
func Refused(err error) error {
	if err == nil || apply.Broke(err) {
		return err
	}
	if _, ok := errors.AsType[*InvalidError](err); ok {
		return err
	}
	text := strings.TrimPrefix(err.Error(), where.FindString(err.Error()))
	if m := field.FindStringSubmatch(text); m != nil {
		if m[2] == "" && m[3] == ": " { // else it says more than the field does
			text = strings.TrimPrefix(text, m[0])
		}
		return Invalid(m[1], text)
	}
	return Invalid("", text)
}
