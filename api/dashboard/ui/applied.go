package ui

import (
	"errors"
	"regexp"
	"strings"

	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
)

// Apply applies this organization like `parley apply`, within a transaction. An invalid value
// is an *InvalidError of the field whose name is the key in the file, if the error names one.
func (r *Request) Apply(q db.Querier, o apply.Organization) error {
	return InvalidFromApply(apply.WithinTx(r.Context(), q, apply.Spec{Organizations: []apply.Organization{o}}, r.frame.Apply))
}

// where matches the start of an error of package apply, which is the path of the object.
var where = regexp.MustCompile(
	`^(?:organizations?(?:\[0\]\.| "(?:[^"\\]|\\.)*": ))?(?:(?:agents|trunks)\[0\]\.|(?:agent|trunk) "(?:[^"\\]|\\.)*": )*(?:subgroups\[0\]\.|subgroup "(?:[^"\\]|\\.)*": )*`,
)

// fieldKey matches the key that an error is about.
var fieldKey = regexp.MustCompile(`^([a-z_]+(?:\.[a-z_]+)*)(\[[0-9]+\][a-z_.]*)?( |: )`)

// InvalidFromApply turns an error of package apply into an *InvalidError. Database errors
// are returned as they are.
func InvalidFromApply(err error) error {
	if err == nil || apply.IsDatabaseError(err) {
		return err
	}
	if _, ok := errors.AsType[*InvalidError](err); ok {
		return err
	}
	text := strings.TrimPrefix(err.Error(), where.FindString(err.Error()))
	if m := fieldKey.FindStringSubmatch(text); m != nil {
		if m[2] == "" && m[3] == ": " { // keep a longer key, which says more than the name of the field
			text = strings.TrimPrefix(text, m[0])
		}
		return Invalid(m[1], text)
	}
	return Invalid("", text)
}
