package campaigns

import (
	"context"
	"encoding/csv"
	"errors"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/store"
)

// Which contacts a copy of a campaign has.
const (
	noContacts  = "none"
	allContacts = "all"
	notReached  = "not_reached"
)

// copiedStates are the states of the contacts of a choice.
func copiedStates(choice string) []campaigns.State {
	switch choice {
	case allContacts:
		return store.ListedStates()
	case notReached:
		return []campaigns.State{campaigns.Pending, campaigns.Exhausted}
	default:
		return nil
	}
}

func (c drafts) askDuplicate(r *ui.Request) (ui.Page, error) {
	k, err := c.API.Store.Get(r.Context(), r.DB(), r.Org(), r.ID(), false)
	if err != nil {
		return ui.Page{}, err
	}
	n, err := c.API.Store.Contacts.Count(r.Context(), r.DB(), k.ID)
	if err != nil {
		return ui.Page{}, err
	}
	missed := 0
	for _, s := range copiedStates(notReached) {
		missed += n.ByState[s]
	}
	return ui.Page{
		Template: "form.html", Title: r.Texts.T("campaigns.duplicate.title", "name", k.Name), Crumbs: crumbs(r.Texts, campaignLink(k)),
		Lead: r.Texts.T("campaigns.duplicate.lead"),
		Data: r.Form(ui.Form{Submit: r.Texts.T("ui.form.continue"), Cancel: r.URL("campaigns/" + k.ID), Fields: []ui.Field{{
			Name: "contacts", Label: r.Texts.T("campaigns.duplicate.contacts.label"), Kind: ui.Select, Value: noContacts, Options: []ui.Option{
				{Value: noContacts, Label: r.Texts.T("campaigns.duplicate.option.none")},
				{Value: allContacts, Label: r.Texts.T("campaigns.duplicate.option.all", "total", n.Total())},
				{Value: notReached, Label: r.Texts.T("campaigns.duplicate.option.not_reached", "missed", missed)},
			}, Help: r.Texts.T("campaigns.duplicate.contacts.help"),
		}}}),
	}, nil
}

// duplicate stores the chosen contacts like an uploaded list, and continues with the form of a new campaign.
func (c drafts) duplicate(r *ui.Request) (ui.Result, error) {
	k, err := c.API.Store.Get(r.Context(), r.DB(), r.Org(), r.ID(), false)
	if err != nil {
		return ui.Result{}, err
	}
	to := url.Values{"like": {k.ID}}
	if states := copiedStates(r.Text("contacts")); states != nil {
		id, err := c.keepContacts(r, k.ID, states)
		if err != nil {
			return ui.Result{}, err
		}
		to.Set("upload", id)
	}
	return ui.Result{To: "campaigns/draft?" + to.Encode()}, nil
}

// errNoContacts is returned if no contact has one of the states.
var errNoContacts = errors.New("no contacts")

// keepContacts writes contacts to an upload.
func (c drafts) keepContacts(r *ui.Request, id string, states []campaigns.State) (upload string, err error) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	read, write := io.Pipe()
	written := make(chan error, 1)
	go func() {
		fault := writeContacts(ctx, c.API.Store, r, id, states, write)
		_ = write.CloseWithError(fault) // never fails
		written <- fault
	}()
	upload, err = c.Uploads.Keep(r.Context(), r.Org(), read)
	_ = read.CloseWithError(err) // never fails
	if fault := <-written; errors.Is(fault, errNoContacts) {
		return "", ui.Invalid("contacts", r.Texts.T("campaigns.duplicate.invalid"))
	}
	return upload, err
}

func writeContacts(ctx context.Context, from *store.Store, r *ui.Request, id string, states []campaigns.State, to io.Writer) error {
	w := csv.NewWriter(to)
	if err := w.Write([]string{
		"phone", "name", "timezone", "external_id", "language", "priority", "not_before", "not_after", "variables", "metadata",
	}); err != nil {
		return err
	}
	n := 0
	err := from.Contacts.EachCopied(ctx, r.DB(), id, states, func(x store.CopiedContact) error {
		n++
		return w.Write([]string{
			x.Number, x.Name, x.Timezone, x.ExternalID, x.Language, strconv.Itoa(x.Priority), moment(x.NotBefore), moment(x.NotAfter),
			x.Variables, x.Metadata,
		})
	})
	if err != nil {
		return err
	}
	if n == 0 {
		return errNoContacts
	}
	w.Flush()
	return w.Error()
}

func moment(t *time.Time) string {
	if t == nil {
		return ""
	}
	return strconv.FormatInt(t.Unix(), 10)
}
