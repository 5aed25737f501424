package frame

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"
)

// Kinds of fields, beside those that an input element has by itself.
const (
	Text     = "text"
	Area     = "textarea"
	Select   = "select"
	Box      = "checkbox"
	Boxes    = "checkboxes"
	File     = "file"
	Hidden   = "hidden"
	Number   = "number"
	Password = "password"
	Email    = "email"
	Clock    = "time"
	URL      = "url"
)

// A Form asks for what a change needs. The template "form" shows it.
type Form struct {
	Submit string // what the button says
	// Danger is what cannot be taken back.
	Danger bool
	// Cancel is the page of who does not want to; "" is none.
	Cancel string
	Fields []Field
	// Of is what the form changes, as it is now, secrets too; nil where it makes something
	// new. A form that was filled in from something else is refused by Same.
	Of any

	// Message is what is wrong with none of the fields.
	Message string
}

// A Field is one value of a form.
type Field struct {
	Name, Label string
	Kind        string // "" is Text
	Help        string
	Value       string   // of a box: whether it is ticked, by being there
	Values      []string // of boxes
	Options     []Option // of a selection, or of boxes
	Placeholder string
	Complete    string // autocomplete
	Min, Max    string // of a number
	Unit        string // that stands behind a number
	Rows        int    // of an area
	Optional    bool
	Either      bool // it is optional, but not all like it are
	Code        bool // written in letters of one width
	// Group is the heading under which it and those after it stand.
	Group string

	Error string
	// Newer is what somebody else has made of it meanwhile.
	Newer string
}

// An Option is one of a selection's.
type Option struct{ Value, Label, Help string }

// Options are values that say what they are.
func Options(values ...string) []Option {
	all := make([]Option, len(values))
	for i, v := range values {
		all[i] = Option{Value: v, Label: v}
	}
	return all
}

// ID is the field's in the page.
func (f Field) ID() string { return "f-" + f.Name }

// Is reports whether a value is chosen.
func (f Field) Is(v string) bool { return f.Value == v || slices.Contains(f.Values, v) }

// Type is the kind of an input element.
func (f Field) Type() string {
	if f.Kind == "" {
		return Text
	}
	return f.Kind
}

// Describes are the ids of what explains the field.
func (f Field) Describes() template.HTMLAttr {
	ids := ""
	if f.Help != "" {
		ids += " " + f.ID() + "-help"
	}
	if f.Newer != "" {
		ids += " " + f.ID() + "-newer"
	}
	if f.Error != "" {
		ids += " " + f.ID() + "-error"
	}
	if ids == "" {
		return ""
	}
	return template.HTMLAttr(`aria-describedby="` + template.HTMLEscapeString(ids[1:]) + `"`) //nolint:gosec // ids are ours, and escaped
}

// Upload reports whether the form brings a file.
func (f Form) Upload() bool {
	return slices.ContainsFunc(f.Fields, func(f Field) bool { return f.Kind == File })
}

// Form is a form with what was typed into it before, and what was wrong with that.
// Passwords, files, and what the route says have to be given again.
func (r *Request) Form(f Form) Form {
	f.Fields = slices.Clone(f.Fields)
	if f.Of != nil {
		f.Fields = append(f.Fields, Field{Name: seen, Kind: Hidden, Value: r.digest(f.Of)})
	}
	if r.invalid == nil {
		return f
	}
	f.Message = r.invalid.Message
	for key, reason := range r.invalid.Fields {
		if at := f.about(key); at != nil {
			at.Error = reason
		} else {
			f.Message = labelled(key, reason)
		}
	}
	shown := false
	for i := range f.Fields {
		at := &f.Fields[i]
		now := at.shown()
		switch {
		case r.asksAnew(*at):
			continue
		case at.Kind == Boxes:
			at.Values = r.All(at.Name)
		default:
			at.Value = r.Raw(at.Name)
		}
		if r.invalid.Newer && at.Kind != Hidden && at.shown() != now {
			at.Newer, shown = cmp.Or(now, "empty"), true
		}
	}
	if r.invalid.Newer && !shown {
		f.Message = "Somebody else changed this after you had opened it, so nothing was saved. What they changed is a secret, or is not on this page; send the form again to save yours."
	}
	return f
}

// asksAnew tells whether what was sent of a field is not shown again.
func (r *Request) asksAnew(f Field) bool {
	return f.Kind == Password || f.Kind == File || slices.Contains(r.anew, f.Name) || f.Name == seen && r.invalid.Newer
}

// shown is the value of a field as people read it.
func (f Field) shown() string {
	var labels []string
	for _, o := range f.Options {
		if f.Kind == Boxes && slices.Contains(f.Values, o.Value) || f.Kind == Select && f.Value == o.Value {
			labels = append(labels, o.Label)
		}
	}
	switch {
	case f.Kind == Box && f.Value == "":
		return "not ticked"
	case f.Kind == Box:
		return "ticked"
	case f.Kind == Boxes || f.Kind == Select:
		return strings.Join(labels, ", ")
	default:
		return strings.TrimSpace(f.Value)
	}
}

// seen is the field of what a form was filled in from.
const seen = "seen"

// digest is short for something, as JSON writes it. Without the key nobody can tell whether
// a guess of it is right.
func (r *Request) digest(of any) string {
	text, err := json.Marshal(of)
	if err != nil {
		text = fmt.Append(nil, of)
	}
	sum := hmac.New(sha256.New, r.frame.Key)
	_, _ = sum.Write(text) // never fails
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// Same refuses a form that was filled in from something else than is there now, where
// it says from what. It is asked in Commit: of two who send a form at a time the second
// waits there.
func (r *Request) Same(of any) error {
	if from := r.Text(seen); from == "" || from == r.digest(of) {
		return nil
	}
	return &InvalidError{Newer: true, Message: "Somebody else changed this after you had opened it, so nothing was saved. Under the fields that differ stands what they say now; send the form again to put yours in the place of that."}
}

// about is the field that a key names, or a part of what it names, or is a part of.
func (f Form) about(key string) *Field {
	for _, fits := range []func(name string) bool{
		func(name string) bool { return name == key },
		func(name string) bool { return strings.HasPrefix(name, key) },
		func(name string) bool { return strings.HasPrefix(key, name+".") },
	} {
		if i := slices.IndexFunc(f.Fields, func(at Field) bool { return fits(at.Name) }); i >= 0 {
			return &f.Fields[i]
		}
	}
	return nil
}
