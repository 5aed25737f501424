package campaigns

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/campaigns/desk"
	"github.com/parley-voice/parley/campaigns/rows"
	"github.com/parley-voice/parley/campaigns/uploads"
)

// longest is how long a page may take that reads a whole list.
const longest = 2 * time.Minute

// numbers asks for numbers: a file, or lines.
func numbers(submit, cancel string) frame.Form {
	return frame.Form{
		Submit: submit, Cancel: cancel,
		Fields: []frame.Field{
			{Name: "rows", Label: "File", Kind: frame.File, Optional: true, Either: true, Help: "CSV or XLSX, up to 128 MiB. The first line has the names of the columns. You say on the next page what they are."},
			{
				Name: "lines", Label: "Or numbers, one a line", Kind: frame.Area, Rows: 6, Optional: true, Either: true, Code: true,
				Placeholder: "+1 202 555 0123, Ada Lovelace\n+1 202 555 0124, Charles Babbage", Help: "A name may follow behind a comma.",
			},
		},
	}
}

func (c *Campaigns) askList(r *frame.Request) (frame.Page, error) {
	f := numbers("Go on", r.URL("campaigns"))
	f.Fields = append(f.Fields, frame.Once())
	return frame.Page{
		Template: "new.html", Title: "New campaign", Crumbs: above(), Lead: "Step 1 of 3: whom to call.",
		Data: r.Form(f),
	}, nil
}

// takeList keeps a list until its campaign is made.
func (c *Campaigns) takeList(r *frame.Request) (frame.Done, error) {
	list, done, err := given(r)
	if err != nil {
		return frame.Done{}, err
	}
	defer done()
	if list == nil {
		return frame.Done{}, frame.Invalid("rows", "Choose a file, or type numbers.")
	}
	sum, err := r.Sum("rows")
	if err != nil {
		return frame.Done{}, err
	}
	return r.DoOnce(func() (frame.Done, error) {
		if _, err := uploads.Read(r.Context(), c.desk(), r.Org(), list, nil); err != nil {
			return frame.Done{}, unreadable(err)
		}
		id, err := c.Uploads.Keep(r.Context(), r.Org(), io.NewSectionReader(list, 0, list.Size))
		return frame.Done{To: "campaigns/columns?upload=" + id}, err
	}, sum, r.Text("lines"))
}

// given is the list that a form brings, nil where it brings none.
func given(r *frame.Request) (list *desk.File, done func(), err error) {
	f, head, err := r.HTTP.FormFile("rows")
	switch {
	case err == nil:
		return &desk.File{ReaderAt: f, Size: head.Size}, func() { _ = f.Close() }, nil
	case !errors.Is(err, http.ErrMissingFile) && !errors.Is(err, http.ErrNotMultipart):
		return nil, nil, err
	}
	text := r.Text("lines")
	if text == "" {
		return nil, func() {}, nil
	}
	body := []byte("phone,name\n" + text)
	return &desk.File{ReaderAt: bytes.NewReader(body), Size: int64(len(body))}, func() {}, nil
}

// unreadable refuses a file that is no list of rows.
func unreadable(err error) error {
	if errors.Is(err, rows.ErrFile) {
		return frame.Invalid("rows", "This cannot be read: "+strings.TrimPrefix(err.Error(), rows.ErrFile.Error()+": ")+".")
	}
	return err
}

// A column is one of a file, and what it is to be taken for.
type column struct {
	Name, Field string // of the form
	Options     []frame.Option
	Value       string
	Samples     []string
}

// The choices of a column beside those of rows.Columns.
const (
	leftOut  = "-"
	variable = "="
)

// samples are how many values of a column are shown.
const samples = 3

// columnsPage is what the page of columns shows.
type columnsPage struct {
	Upload  string
	Columns []column
	uploads.Preview
	Issues []rows.Issue
	Codes  []count
	Total  int
	// NoPhone says that no column is the phone; Ready, that the list can be gone on with.
	NoPhone, Ready bool
}

// opened opens the upload that a page is about, its columns as they were chosen.
func (c *Campaigns) opened(r *frame.Request) (*desk.File, func(), error) {
	id := r.Query("upload")
	if id == "" {
		id = r.Text("upload")
	}
	f, done, err := c.Uploads.Open(r.Context(), r.Org(), id)
	if errors.Is(err, uploads.ErrGone) {
		return nil, nil, &frame.ProblemError{Status: http.StatusGone, Title: "The list is kept no more", Text: "A list is kept for an hour, and one campaign is made of it. Begin with the list again.", Next: frame.Link{Label: "New campaign", Path: "campaigns/new"}}
	}
	return f, done, err
}

// chosen are the columns of a file as the query says that they are: the n-th in the
// value cN. Without any they are what their names mean.
func chosen(r *frame.Request, names []string) (columns map[string]string, values []string) {
	columns, q := map[string]string{}, r.HTTP.URL.Query()
	for i, name := range names {
		v := q.Get("c" + strconv.Itoa(i))
		if v == "" {
			v = usual(name)
		}
		switch v {
		case leftOut:
			columns[name] = ""
		case variable:
		default:
			columns[name] = v
		}
		values = append(values, v)
	}
	return columns, values
}

// usual is what a column is taken for where nobody says.
func usual(name string) string {
	col, v := rows.Means(name)
	switch {
	case col != "":
		return col
	case v != "":
		return variable
	default:
		return leftOut
	}
}

// options are what a column may be taken for.
func options(name string) []frame.Option {
	all := []frame.Option{{Value: leftOut, Label: "leave out"}}
	if _, v := rows.Means(name); v != "" {
		all = append(all, frame.Option{Value: variable, Label: "variable {{" + v + "}}"})
	}
	for _, col := range rows.Columns() {
		all = append(all, frame.Option{Value: col, Label: strings.ReplaceAll(col, "_", " ")})
	}
	return all
}

func (c *Campaigns) columns(r *frame.Request) (frame.Page, error) {
	f, done, err := c.opened(r)
	if err != nil {
		return frame.Page{}, err
	}
	defer done()
	x := columnsPage{Upload: r.Query("upload")}
	x.Preview, err = uploads.Read(r.Context(), c.desk(), r.Org(), f, func(names []string) map[string]string {
		columns, _ := chosen(r, names)
		return columns
	})
	if err != nil {
		return frame.Page{}, err
	}
	_, values := chosen(r, x.Names)
	for i, name := range x.Names {
		field := "c" + strconv.Itoa(i)
		k := column{Name: name, Field: field, Options: options(name), Value: values[i]}
		for _, cells := range x.Cells {
			if v := strings.TrimSpace(cells[i]); v != "" && len(k.Samples) < samples && !slices.Contains(k.Samples, v) {
				k.Samples = append(k.Samples, v)
			}
		}
		x.Columns = append(x.Columns, k)
	}
	if x.List != nil {
		const shown = 10
		var by map[string]int
		x.Issues, by, x.Total = x.List.Issues(shown)
		x.Codes = counts(by, issueWords)
		x.NoPhone = x.List.Refusal == rows.NoPhoneColumn
	}
	x.Ready = x.List != nil && !x.NoPhone
	return frame.Page{
		Template: "columns.html", Title: "What the columns are", Crumbs: above(frame.Link{Label: "New campaign", Path: "campaigns/new"}),
		Lead: "Step 2 of 3: how the list is read.", Data: x,
	}, nil
}

// columnsOf are the columns of the list that a campaign is made of.
func columnsOf(r *frame.Request, f *desk.File) error {
	names, err := uploads.Names(f)
	if err != nil {
		return fmt.Errorf("columns: %w", err)
	}
	f.Columns, _ = chosen(r, names)
	return nil
}
