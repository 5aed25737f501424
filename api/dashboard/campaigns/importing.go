package campaigns

import (
	"cmp"
	"context"
	"errors"
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
		return ui.Result{}, refused(r.Texts, err)
	}
	err = c.Imports.AddWith(r.Context(), uploads.Import{
		OrgID: r.Org(), Upload: r.Query("upload"), Columns: order.File.Columns,
		Spec: order.Spec, Who: who(r), Actor: r.Actor(), Form: r.HTTP.URL.RawQuery,
	}, func(ctx context.Context, q db.Querier, id string) error {
		done = ui.Result{To: "campaigns/importing?id=" + id}
		return slot.Settle(ctx, q, done.Kept())
	})
	if errors.Is(err, uploads.ErrQueueFull) {
		return ui.Result{}, ui.Invalid("", r.Texts.T("campaigns.importing.queue_full"))
	}
	return done, err
}

type importingPage struct {
	uploads.Import

	Live    bool
	Percent int
	Text    string
	Problem string
}

func (c *Campaigns) importing(r *ui.Request) (ui.Page, error) {
	gone := &ui.ProblemError{
		Status: http.StatusGone, Title: r.Texts.T("campaigns.importing.expired.title"),
		Text: r.Texts.T("campaigns.importing.expired.text"), Next: ui.Link{Label: r.Texts.T("campaigns.link.campaigns"), Path: "campaigns"},
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
		x.Text = r.Texts.T("campaigns.importing.queued")
	case i.State == uploads.Running && i.Stage == "reading":
		x.Text = r.Texts.T("campaigns.importing.reading", "rows", r.Texts.T("ui.count.rows", "count", i.Rows))
	case i.State == uploads.Running && i.Stage == "writing":
		x.Text = r.Texts.T("campaigns.importing.saving", "rows", r.Texts.T("ui.count.rows", "count", i.AllRows))
	case i.State == uploads.Running:
		x.Text = r.Texts.T("campaigns.importing.checking")
	case i.State == uploads.Done && i.Code == "":
		x.Text = r.Texts.T("campaigns.draft.notice")
	default:
		x.Problem = failureText(r.Texts, i)
	}
	return ui.Page{
		Template: "importing.html", Title: r.Texts.T("campaigns.importing.title", "name", i.Spec.Name), Crumbs: crumbs(r.Texts),
		Data: x,
	}, nil
}

// failureText says why the campaign or its list was not created.
func failureText(texts *ui.Texts, i uploads.Import) string {
	text := i.Message
	if i.Code != "" {
		err := refused(texts, control.Refuse(control.Code(i.Code), i.Message))
		if invalid, ok := errors.AsType[*ui.InvalidError](err); ok {
			text = invalid.Error()
		} else {
			text = ui.ErrorText(err)
		}
	}
	text = texts.Complete(text)
	if i.State == uploads.Done {
		return texts.T("campaigns.importing.not_imported", "reason", text)
	}
	return texts.T("campaigns.importing.not_created", "reason", text)
}
