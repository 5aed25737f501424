package campaigns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/campaigns/uploads"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/idempotency"
)

// defaultLarge is the minimum size of lists that are imported in the background, in bytes: some
// thousands of rows.
const defaultLarge = 256 << 10

// background reports whether the campaign of a list is created in the background.
func (c *Campaigns) background(f *service.File) bool {
	return c.Imports != nil && f.Size >= cmp.Or(c.Large, defaultLarge)
}

// queue queues the import and redirects to its progress page.
func (c *Campaigns) queue(r *ui.Request, order service.CreateRequest, slot *idempotency.Slot) (done ui.Result, err error) {
	if err = c.service().Check(r.Context(), r.Org(), order.Spec); err != nil { // keeps the form
		return ui.Result{}, refused(err)
	}
	err = c.Imports.AddWith(r.Context(), uploads.Import{
		OrgID: r.Org(), Upload: r.Query("upload"), Columns: order.File.Columns,
		Spec: order.Spec, Who: who(r), Actor: r.Actor(), Form: r.HTTP.URL.RawQuery,
	}, func(ctx context.Context, q db.Querier, id string) error {
		done = ui.Result{To: "campaigns/importing?id=" + id}
		return slot.Settle(ctx, q, done.Kept())
	})
	if errors.Is(err, uploads.ErrQueueFull) {
		return ui.Result{}, ui.Invalid("", "Five lists are being imported. Try again when one is done.")
	}
	return done, err
}

type importingPage struct {
	uploads.Import

	Live    bool
	Percent int
	Says    string
	Problem string
}

func (c *Campaigns) importing(r *ui.Request) (ui.Page, error) {
	gone := &ui.ProblemError{
		Status: http.StatusGone, Title: "This import is no longer kept",
		Text: "The result of an import is kept for 7 days.", Next: ui.Link{Label: "Campaigns", Path: "campaigns"},
	}
	if c.Imports == nil {
		return ui.Page{}, gone
	}
	i, err := c.Imports.Find(r.Context(), r.DB(), r.Org(), r.Query("id"))
	if errors.Is(err, uploads.ErrGone) {
		return ui.Page{}, gone
	}
	if err != nil {
		return ui.Page{}, err
	}
	x := importingPage{Import: i, Live: i.State == uploads.Queued || i.State == uploads.Running, Percent: i.Percent()}
	switch {
	case i.State == uploads.Queued:
		x.Says = "Waiting for other imports to finish."
	case i.State == uploads.Running && i.Stage == "reading":
		x.Says = fmt.Sprintf("Reading the list: %s so far.", ui.Plural(i.Rows, "row", "rows"))
	case i.State == uploads.Running && i.Stage == "writing":
		x.Says = fmt.Sprintf("Saving %s.", ui.Plural(i.AllRows, "row", "rows"))
	case i.State == uploads.Running:
		x.Says = "Checking the list."
	case i.State == uploads.Done && i.Code == "":
		x.Says = "Draft created. Review the checks, then launch."
	default:
		x.Problem = failureText(i)
	}
	return ui.Page{Template: "importing.html", Title: "Import of " + i.Spec.Name, Crumbs: crumbs(), Data: x}, nil
}

// failureText says why the campaign or its list was not created.
func failureText(i uploads.Import) string {
	text := i.Message + "."
	if i.Code != "" {
		err := refused(control.Refuse(control.Code(i.Code), i.Message))
		if invalid, ok := errors.AsType[*ui.InvalidError](err); ok {
			text = invalid.Error()
		} else {
			text = ui.ErrorText(err) + "."
		}
	}
	if i.State == uploads.Done {
		return "The campaign was created, but its list was not imported: " + text + " Correct the error, then add the numbers to the campaign."
	}
	return "The campaign was not created: " + text
}
