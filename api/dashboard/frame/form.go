package frame

import (
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
	Code        bool // written in letters of one width
	// Group is the heading under which it and those after it stand.
	Group string

	Error string
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
// Passwords and files have to be given again.
func (r *Request) Form(f Form) Form {
	if r.invalid == nil {
		return f
	}
	f.Message = r.invalid.Message
	f.Fields = slices.Clone(f.Fields)
	for key, reason := range r.invalid.Fields {
		if at := f.about(key); at != nil {
			at.Error = reason
		} else {
			f.Message = labelled(key, reason)
		}
	}
	for i := range f.Fields {
		at := &f.Fields[i]
		switch at.Kind {
		case Password, File:
		case Boxes:
			at.Values = r.All(at.Name)
		default:
			at.Value = r.Raw(at.Name)
		}
	}
	return f
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
