package ui

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"
)

// Kinds of fields that are not types of input elements.
const (
	Text       = "text"
	TextArea   = "textarea"
	Select     = "select"
	Checkbox   = "checkbox"
	Checkboxes = "checkboxes"
	File       = "file"
	Hidden     = "hidden"
	Number     = "number"
	Password   = "password"
	Email      = "email"
	TimeOfDay  = "time"
	URL        = "url"
)

// A Form is shown by the template "form".
type Form struct {
	Submit string // label of the button
	// Danger marks a change that cannot be undone.
	Danger bool
	// Cancel is the path of the cancel link; "" means that there is none.
	Cancel string
	Fields []Field
	// Of is the object that the form edits, with its secrets; nil for a new object. Same rejects
	// the form if the object has changed since.
	Of any

	// Message is an error that belongs to no single field.
	Message string

	texts *Texts
}

// Confirm returns a page that asks before a change that cannot be undone. It has the title, crumbs and lead of p, a
// button with the label submit, and a link to the path cancel.
func Confirm(r *Request, p Page, submit, cancel string) Page {
	p.Template, p.Data = "form.html", r.Form(Form{Submit: submit, Danger: true, Cancel: r.URL(cancel)})
	return p
}

// A Field is one input of a form.
type Field struct {
	Name, Label string
	Kind        string // "" means Text
	Help        string
	Value       string   // value of the input; for a checkbox, not empty if it is ticked
	Values      []string // values of a group of checkboxes
	Options     []Option // choices of a select or of checkboxes
	Placeholder string
	Complete    string // autocomplete attribute
	Min, Max    string // minimum of a number
	Unit        string // shown after a number
	Rows        int    // rows of a text area
	Optional    bool
	Either      bool // one of several fields with this mark is required
	Code        bool // shown in a monospaced font
	// List is the id of a datalist with suggestions; empty for none.
	List string
	// Group is a heading above the field.
	Group string

	Error string
	// Newer is the value that someone else saved since the form was opened.
	Newer string
}

// An Option is one choice of a select.
type Option struct {
	Value, Label, Help string
	// Off means that the choice is shown but cannot be chosen.
	Off bool
}

// Options returns options whose labels are their values.
func Options(values ...string) []Option {
	all := make([]Option, len(values))
	for i, v := range values {
		all[i] = Option{Value: v, Label: v}
	}
	return all
}

// ID returns the element id.
func (f Field) ID() string { return "f-" + f.Name }

// Is reports whether a value is chosen.
func (f Field) Is(v string) bool { return f.Value == v || slices.Contains(f.Values, v) }

// Type returns the type of the input element.
func (f Field) Type() string {
	if f.Kind == "" {
		return Text
	}
	return f.Kind
}

// Describes returns the aria-describedby attribute of the field.
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
	return template.HTMLAttr(`aria-describedby="` + template.HTMLEscapeString(ids[1:]) + `"`) //nolint:gosec // ids are constants, and escaped
}

// A FormSection is a part of a long form.
type FormSection struct {
	ID, Title string
	Fields    []Field
}

// Sections returns the fields that are not hidden, by their groups.
func (f Form) Sections() (all []FormSection) {
	for _, x := range f.Fields {
		if x.Kind == Hidden {
			continue
		}
		if n := len(all); n == 0 || x.Group != "" && x.Group != all[n-1].Title {
			title := cmp.Or(x.Group, f.texts.T("ui.form.general"))
			all = append(all, FormSection{ID: "section-" + strings.ReplaceAll(strings.ToLower(title), " ", "-"), Title: title})
		}
		x.Group = ""
		at := &all[len(all)-1]
		at.Fields = append(at.Fields, x)
	}
	return all
}

// Hidden returns the hidden fields.
func (f Form) Hidden() []Field {
	return slices.DeleteFunc(slices.Clone(f.Fields), func(x Field) bool { return x.Kind != Hidden })
}

// Upload reports whether the form has a file field.
func (f Form) Upload() bool {
	return slices.ContainsFunc(f.Fields, func(f Field) bool { return f.Kind == File })
}

// Form adds the submitted values and errors to a form that is shown again. Passwords,
// files and NotRefilled fields stay empty. Cancel leads to the page that the query string names, as success does.
func (r *Request) Form(f Form) Form {
	f.Fields, f.texts = slices.Clone(f.Fields), r.Texts
	f.Cancel = cancelPath(r, f.Cancel)
	if f.Of != nil {
		f.Fields = append(f.Fields, r.Seen(f.Of))
	}
	if r.invalid == nil {
		return f
	}
	f.Message = r.invalid.Message
	for key, reason := range r.invalid.Fields {
		if at := f.fieldOf(key); at != nil {
			at.Error = reason
		} else {
			f.Message = labelled(key, reason)
		}
	}
	shown := false
	for i := range f.Fields {
		at := &f.Fields[i]
		now := at.shown(r.Texts)
		switch {
		case r.isBlankAgain(*at):
			continue
		case at.Kind == Checkboxes:
			at.Values = r.All(at.Name)
		default:
			at.Value = r.Raw(at.Name)
		}
		if r.invalid.Newer && at.Kind != Hidden && at.shown(r.Texts) != now {
			at.Newer, shown = cmp.Or(now, r.Texts.T("ui.form.value.empty")), true
		}
	}
	if r.invalid.Newer && !shown {
		f.Message = r.Texts.T("ui.form.changed.elsewhere")
	}
	return f
}

// cancelPath returns the page that the query string names instead of the usual one; "" stays.
func cancelPath(r *Request, usual string) string {
	if next := r.Query("next"); usual != "" && isPage(next) {
		return r.URL(next)
	}
	return usual
}

// isBlankAgain reports whether the field is shown empty again.
func (r *Request) isBlankAgain(f Field) bool {
	return f.Kind == Password || f.Kind == File || slices.Contains(r.notRefilled, f.Name) || f.Name == seen && r.invalid.Newer
}

// shown returns the value of a field as a reader sees it.
func (f Field) shown(texts *Texts) string {
	var labels []string
	for _, o := range f.Options {
		if f.Kind == Checkboxes && slices.Contains(f.Values, o.Value) || f.Kind == Select && f.Value == o.Value {
			labels = append(labels, o.Label)
		}
	}
	switch {
	case f.Kind == Checkbox && f.Value == "":
		return texts.T("ui.form.value.not_ticked")
	case f.Kind == Checkbox:
		return texts.T("ui.form.value.ticked")
	case f.Kind == Checkboxes || f.Kind == Select:
		return strings.Join(labels, ", ")
	default:
		return strings.TrimSpace(f.Value)
	}
}

// seen is the hidden field with the digest of the object that the form edits.
const seen = "seen"

// digest is a keyed hash of a value's JSON. Without the key, a guess of a secret in it cannot
// be verified.
func (r *Request) digest(of any) string {
	text, err := json.Marshal(of)
	if err != nil {
		text = fmt.Append(nil, of)
	}
	sum := hmac.New(sha256.New, r.frame.Key)
	_, _ = sum.Write(text) // encoding never fails
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// Seal signs data that a page carries in a hidden field. what names its purpose; only the same operator can use it.
func (r *Request) Seal(what string, data []byte) string {
	return base64.StdEncoding.EncodeToString(append(r.signature(what, data), data...))
}

// Unseal returns the data of Seal, or false if someone changed it.
func (r *Request) Unseal(what, sealed string) (data []byte, ok bool) {
	all, err := base64.StdEncoding.DecodeString(sealed)
	if err != nil || len(all) < sha256.Size {
		return nil, false
	}
	data = all[sha256.Size:]
	return data, hmac.Equal(all[:sha256.Size], r.signature(what, data))
}

func (r *Request) signature(what string, data []byte) []byte {
	sum := hmac.New(sha256.New, r.frame.Key)
	_, _ = fmt.Fprintf(sum, "%q %q %q ", what, r.Org(), r.Session.ID) // writing never fails
	_, _ = sum.Write(data)                                            // likewise
	return sum.Sum(nil)
}

// Seen returns the hidden field that lets Same compare an object in a form of its own.
func (r *Request) Seen(of any) Field { return Field{Name: seen, Kind: Hidden, Value: r.digest(of)} }

// Same rejects the form if the object has changed since the form was opened. Call it
// within Commit, where concurrent forms of an organization wait for each other.
func (r *Request) Same(of any) error {
	if from := r.Text(seen); from == "" || from == r.digest(of) {
		return nil
	}
	return &InvalidError{
		Newer:   true,
		Message: r.Texts.T("ui.form.changed.here"),
	}
}

// fieldOf finds the field of a key: the same name, one that begins with it, or its parent.
func (f Form) fieldOf(key string) *Field {
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
