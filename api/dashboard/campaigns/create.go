package campaigns

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/campaigns/contactfile"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/campaigns/uploads"
)

// listTimeout limits requests that read a whole list.
const listTimeout = 2 * time.Minute

func numbers(texts *ui.Texts, submit, cancel string) ui.Form {
	return ui.Form{
		Submit: submit, Cancel: cancel,
		Fields: []ui.Field{
			{
				Name: "rows", Label: texts.T("campaigns.numbers.file.label"), Kind: ui.File, Optional: true, Either: true,
				Help: texts.T("campaigns.numbers.file.help"),
			},
			{
				Name: "lines", Label: texts.T("campaigns.numbers.lines.label"), Kind: ui.TextArea, Rows: 6, Optional: true, Either: true, Code: true,
				Placeholder: texts.T("campaigns.numbers.lines.placeholder"), Help: texts.T("campaigns.numbers.lines.help"),
			},
		},
	}
}

func (c *Campaigns) askList(r *ui.Request) (ui.Page, error) {
	f := numbers(r.Texts, r.Texts.T("ui.form.continue"), r.URL("campaigns"))
	f.Fields = append(f.Fields, ui.OnceField())
	return ui.Page{
		Template: "new.html", Title: r.Texts.T("campaigns.upload.title"), Crumbs: crumbs(r.Texts),
		Lead: r.Texts.T("campaigns.upload.lead"), Data: r.Form(f),
	}, nil
}

// uploadList stores a list until its campaign is created.
func (c *Campaigns) uploadList(r *ui.Request) (ui.Result, error) {
	list, done, err := c.formList(r)
	if err != nil {
		return ui.Result{}, err
	}
	defer done()
	if list == nil {
		return ui.Result{}, ui.Invalid("rows", r.Texts.T("campaigns.upload.invalid.empty"))
	}
	sum, err := r.Sum("rows")
	if err != nil {
		return ui.Result{}, err
	}
	return r.DoOnce(func() (ui.Result, error) {
		if _, err := uploads.ReadPreview(r.Context(), c.service(), r.Org(), list, nil); err != nil {
			return ui.Result{}, unreadable(r.Texts, err)
		}
		id, err := c.Uploads.Keep(r.Context(), r.Org(), io.NewSectionReader(list, 0, list.Size))
		return ui.Result{To: "campaigns/columns?upload=" + id}, err
	}, sum, r.Text("lines"))
}

// formList returns the list of a form, nil without one.
func (c *Campaigns) formList(r *ui.Request) (list *service.File, done func(), err error) {
	f, head, err := r.HTTP.FormFile("rows")
	switch {
	case err == nil:
		shut := func() { _ = f.Close() } // the file was only read
		leave, refusal := c.API.ReadList(r.Org())
		if refusal != nil {
			shut()
			return nil, nil, ui.Invalid("rows", r.Texts.T("campaigns.upload.busy.text"))
		}
		return &service.File{ReaderAt: f, Size: head.Size}, func() { leave(); shut() }, nil
	case !errors.Is(err, http.ErrMissingFile) && !errors.Is(err, http.ErrNotMultipart):
		return nil, nil, err
	}
	text := r.Text("lines")
	if text == "" {
		return nil, func() {}, nil
	}
	body := []byte("phone,name\n" + text)
	return &service.File{ReaderAt: bytes.NewReader(body), Size: int64(len(body))}, func() {}, nil
}

// unreadable rejects a file that is not a list of rows.
func unreadable(texts *ui.Texts, err error) error {
	if errors.Is(err, contactfile.ErrFile) {
		return ui.Invalid("rows", texts.T("campaigns.upload.invalid.file", "reason",
			strings.TrimPrefix(err.Error(), contactfile.ErrFile.Error()+": ")))
	}
	return err
}

type column struct {
	Name, Field string // name of the form field
	Options     []ui.Option
	Value       string
	Samples     []string
}

// The choices for a column in addition to those of contactfile.Columns.
const (
	leftOut  = "-"
	variable = contactfile.AsVariable
)

// samples is the number of values shown per column.
const samples = 3

type columnsPage struct {
	Upload  string
	Columns []column
	uploads.Preview
	Issues []contactfile.Issue
	Codes  []count
	Total  int
	Split  contactfile.Split
	// Phone is the column with the numbers to call. Others also look like phone numbers.
	Phone  string
	Others []string
	// NoPhone means that no column is mapped to phone, TwoPhones that several are, NoRow that no
	// row would be called, and Ready that a campaign can be created.
	NoPhone, TwoPhones, NoRow, Ready bool
}

// openUpload opens the upload of a page with its chosen columns.
func (c *Campaigns) openUpload(r *ui.Request) (*service.File, func(), error) {
	id := r.Query("upload")
	if id == "" {
		id = r.Text("upload")
	}
	leave, err := c.API.ReadList(r.Org())
	if err != nil {
		return nil, nil, &ui.ProblemError{
			Status: http.StatusTooManyRequests, Title: r.Texts.T("campaigns.upload.busy.title"),
			Text: r.Texts.T("campaigns.upload.busy.text"),
		}
	}
	f, done, err := c.Uploads.Open(r.Context(), r.Org(), id)
	if err != nil {
		leave()
	}
	if errors.Is(err, uploads.ErrGone) {
		return nil, nil, &ui.ProblemError{
			Status: http.StatusGone,
			Title:  r.Texts.T("campaigns.upload.expired.title"),
			Text:   r.Texts.T("campaigns.upload.expired.text"),
			Next:   ui.Link{Label: r.Texts.T("campaigns.link.new_campaign"), Path: "campaigns/new"},
		}
	}
	return f, func() { done(); leave() }, err
}

// chosen returns the mapping of the columns: that of the n-th column is the value cN of the
// query. Without it, the name of the column decides.
func chosen(r *ui.Request, names []string) (columns map[string]string, values []string) {
	columns, q := map[string]string{}, r.HTTP.URL.Query()
	meant := contactfile.ColumnMeanings(names)
	for i, name := range names {
		v := q.Get("c" + strconv.Itoa(i))
		if v == "" {
			v = cmp.Or(meant[i], leftOut)
		}
		switch v {
		case leftOut:
			columns[name] = ""
		case variable:
			columns[name] = contactfile.AsVariable
		default:
			columns[name] = v
		}
		values = append(values, v)
	}
	return columns, values
}

func options(texts *ui.Texts, name string) []ui.Option {
	all := []ui.Option{{Value: leftOut, Label: texts.T("campaigns.columns.option.ignore")}}
	if v := contactfile.VariableName(name); v != "" {
		all = append(all, ui.Option{Value: variable, Label: texts.T("campaigns.columns.option.variable", "name", v)})
	}
	for _, col := range contactfile.Columns() {
		all = append(all, ui.Option{Value: col, Label: strings.ReplaceAll(col, "_", " ")})
	}
	return all
}

func (c *Campaigns) columns(r *ui.Request) (ui.Page, error) {
	f, done, err := c.openUpload(r)
	if err != nil {
		return ui.Page{}, err
	}
	defer done()
	x := columnsPage{Upload: r.Query("upload")}
	x.Preview, err = uploads.ReadPreview(r.Context(), c.service(), r.Org(), f, func(names []string) map[string]string {
		columns, _ := chosen(r, names)
		return columns
	})
	if err != nil {
		return ui.Page{}, err
	}
	_, values := chosen(r, x.Names)
	x.addColumns(r.Texts, values)
	if x.List != nil {
		const shown = 10
		var by map[string]int
		x.Issues, by, x.Total = x.List.Issues(shown)
		x.Codes = counts(r.Texts, "campaigns.issue", by)
		x.Split = x.List.Split
	}
	phones := len(slices.DeleteFunc(values, func(v string) bool { return v != contactfile.PhoneColumn }))
	x.NoPhone, x.TwoPhones = phones == 0, phones > 1
	x.NoRow = x.List != nil && !x.NoPhone && !x.TwoPhones && x.Split.Called == 0 && !x.More
	x.Ready = x.List != nil && !x.NoPhone && !x.TwoPhones && !x.NoRow
	return ui.Page{
		Template: "columns.html", Title: r.Texts.T("campaigns.columns.title"), Crumbs: crumbs(r.Texts,
			ui.Link{Label: r.Texts.T("campaigns.link.new_campaign"), Path: "campaigns/new"}),
		Lead: r.Texts.T("campaigns.columns.lead"), Data: x,
	}, nil
}

func (x *columnsPage) addColumns(texts *ui.Texts, values []string) {
	for i, name := range x.Names {
		field := "c" + strconv.Itoa(i)
		k := column{Name: name, Field: field, Options: options(texts, name), Value: values[i]}
		for _, cells := range x.Cells {
			if v := strings.TrimSpace(cells[i]); v != "" && len(k.Samples) < samples && !slices.Contains(k.Samples, v) {
				k.Samples = append(k.Samples, v)
			}
		}
		x.Columns = append(x.Columns, k)
		if col, _ := contactfile.ColumnMeaning(name); values[i] == contactfile.PhoneColumn {
			x.Phone = name
		} else if col == contactfile.PhoneColumn && values[i] == variable {
			x.Others = append(x.Others, name)
		}
	}
}

func columnsOf(r *ui.Request, f *service.File) error {
	names, err := uploads.ColumnNames(f)
	if err != nil {
		return fmt.Errorf("columns: %w", err)
	}
	f.Columns, _ = chosen(r, names)
	return nil
}
