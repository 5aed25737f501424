package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/contactfile"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/db"
)

// A CreateRequest asks for a campaign. Its list is Rows or File.
type CreateRequest struct {
	Spec     campaigns.Spec
	Rows     []json.RawMessage
	File     *File // nil for a request with rows
	Attested bool
	// Progress receives the number of rows read ("reading"), of rows and contacts
	// written ("writing"), and then "checking"; nil disables it.
	Progress func(stage string, done, all int)
}

func (o *CreateRequest) reportProgress(stage string, done, all int) {
	if o.Progress != nil {
		o.Progress(stage, done, all)
	}
}

// A creation is one request to create a campaign, in progress.
type creation struct {
	*Service

	request CreateRequest
	org     store.Organization
	pkg     *market.Package // nil for an organization without a market
	now     time.Time
}

func (svc *Service) newCreation(ctx context.Context, orgID string, o CreateRequest) (*creation, error) {
	now, err := svc.clock(ctx, svc.Pool)
	if err != nil {
		return nil, err
	}
	org, pkg, err := svc.rules(ctx, svc.Pool, orgID)
	if err != nil {
		return nil, err
	}
	return &creation{Service: svc, request: o, org: org, pkg: pkg, now: now}, nil
}

// Create creates a campaign and launches it unless a check blocks it. It calls onCreated in the same transaction, to
// store the response. If the list cannot be imported, the campaign stays a draft: Create calls onDraft with the cause
// in the transaction of the draft, and returns a *DraftKeptError. Any other refusal writes nothing. Both functions
// may be nil.
func (svc *Service) Create(ctx context.Context, orgID string, who Actor, o CreateRequest,
	onCreated func(context.Context, db.Querier, Status) error, onDraft func(ctx context.Context, q db.Querier, cause error) error,
) (Status, error) {
	n, err := svc.newCreation(ctx, orgID, o)
	if err != nil {
		return Status{}, err
	}
	large := o.File != nil || len(o.Rows) > largeList
	if large {
		defer svc.gc.Begin()()
	}
	list, err := n.readList()
	if err != nil {
		return Status{}, err
	}
	c, err := n.buildCampaign(ctx, list)
	if err != nil {
		return Status{}, err
	}
	c.ID = control.NewID("cmp_", n.now)
	c.OrgID, c.CreatedVia = orgID, who.Via
	kind := campaigns.LaunchImport
	if o.File != nil {
		kind = campaigns.FileImport
	}
	i, err := n.storeSource(ctx, c, kind)
	if err != nil {
		return Status{}, svc.saveDraft(ctx, c, who, err, onDraft)
	}
	var st Status
	err = db.Tx(ctx, svc.Pool, func(tx pgx.Tx) error {
		var fault error
		if large { // writing may take longer than other statements
			if _, fault = tx.Exec(ctx, "SET LOCAL statement_timeout = '5min'"); fault != nil {
				return fault
			}
		}
		if st, fault = n.save(ctx, tx, c, who, i, list); fault == nil && onCreated != nil {
			fault = onCreated(ctx, tx, st)
		}
		return fault
	})
	if isDataError(err) {
		return Status{}, svc.saveDraft(ctx, c, who, errors.Join(errRowsNotStored(), err), onDraft)
	}
	return st, err
}

// Check returns the refusal that Create would return for a spec, whatever its list.
func (svc *Service) Check(ctx context.Context, orgID string, s campaigns.Spec) error {
	n, err := svc.newCreation(ctx, orgID, CreateRequest{Spec: s})
	if err == nil {
		_, err = n.buildCampaign(ctx, nil)
	}
	return err
}

// save writes a new campaign with its list, and launches it unless a check blocks it.
func (n *creation) save(
	ctx context.Context, tx pgx.Tx, c campaigns.Campaign, who Actor, i campaigns.Import, list *contactfile.List,
) (Status, error) {
	c.LaunchImportID = i.ID
	err := n.Store.Insert(ctx, tx, c)
	if err == nil {
		err = n.Store.AddLog(ctx, tx, c, who.entry(store.Created, i.ID, n.now))
	}
	if err == nil && i.ID != "" {
		err = n.saveImport(ctx, tx, c, i, list)
		n.request.reportProgress("checking", 0, 0)
	}
	if err != nil {
		return Status{}, err
	}
	st, err := n.launch(ctx, tx, c, who, checkInput{attested: n.request.Attested}, n.now)
	if err != nil || st.Import == nil || st.Screen.AsOfLaunch {
		return st, err
	}
	lists, err := n.screener().lists(ctx, tx, n.pkg)
	if err != nil {
		return st, err
	}
	// The client is shown this screening, so the audit must contain it.
	if st.Screen.AuditID, err = n.Store.Imports.SaveAudit(ctx, tx, st.Campaign, st.Screen, lists.Versions(), n.pkg.Version); err != nil {
		return st, err
	}
	st.Import.Screen.AuditID = st.Screen.AuditID
	return st, n.Store.SaveSeenScreen(ctx, tx, c.ID, st.Screen.Fingerprint)
}

// isDataError reports whether Postgres rejected a value of a row.
func isDataError(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && strings.HasPrefix(pg.Code, "22") // class 22 is "data exception"
}

func errRowsNotStored() error {
	return control.Refuse(control.CodeContactRows, "the rows could not be stored")
}

// readList reads the rows and sets Spec.Rows. It returns nil without an error if there are
// no rows, too many (buildCampaign refuses the spec then), or no market.
func (n *creation) readList() (*contactfile.List, error) {
	o := &n.request
	o.Spec.Rows = len(o.Rows)
	if o.File == nil && len(o.Rows) == 0 || len(o.Rows) > n.maxRows() || n.pkg == nil {
		return nil, nil //nolint:nilnil // nothing to read
	}
	source := contactfile.FromJSON(o.Rows)
	if o.File != nil {
		var err error
		if source, err = o.File.Source(); err != nil {
			return nil, err
		}
	}
	action := cmp.Or(contactfile.DuplicateAction(o.Spec.Duplicates), contactfile.RejectDuplicates)
	list, err := contactfile.Check(source, contactfile.Options{
		Market: n.pkg, Duplicates: action, ContactZone: o.Spec.ContactTimezone, MaxRows: n.maxRows(), Zone: checkZone,
		Progress: func(rows int) { o.reportProgress("reading", rows, 0) },
	})
	if errors.Is(err, contactfile.ErrTooMany) {
		o.Spec.Rows = n.maxRows() + 1
		return nil, nil //nolint:nilnil // buildCampaign refuses the spec
	}
	if err == nil {
		o.Spec.Rows = list.Seen
	}
	return list, err
}

func (n *creation) maxRows() int {
	if n.request.File != nil {
		return cmp.Or(n.MaxFileRows, defaultMaxFileRows)
	}
	return cmp.Or(n.MaxRows, defaultMaxRows)
}

// buildCampaign validates the spec against the agent, its routes, the market and the list.
func (n *creation) buildCampaign(ctx context.Context, list *contactfile.List) (campaigns.Campaign, error) {
	s := n.request.Spec
	agent, _, err := n.Store.Agent(ctx, n.Pool, n.org.ID, s.Agent)
	if err != nil {
		return campaigns.Campaign{}, err
	}
	var routes []admission.Trunk
	if agent != "" {
		if routes, err = admission.Routes(ctx, n.Pool, n.org.ID, s.Agent); err != nil {
			return campaigns.Campaign{}, err
		}
	}
	var locations []market.Location
	if list != nil {
		locations = list.Locations
	}
	return s.Build(campaigns.Facts{
		Now: n.now, Horizon: n.Horizon, Agent: agent, Routes: routes, Zone: n.org.Zone, Window: n.org.Window,
		Market: n.pkg, Locations: locations, MaxRows: n.maxRows(),
	})
}

// storeSource stores the rows of the request as they were sent. Without rows it
// returns an import without an id.
func (n *creation) storeSource(ctx context.Context, c campaigns.Campaign, kind string) (campaigns.Import, error) {
	o := n.request
	if len(o.Rows) == 0 && o.File == nil {
		return campaigns.Import{}, nil
	}
	if n.pkg == nil {
		return campaigns.Import{}, errNoMarket()
	}
	i := campaigns.Import{
		ID: control.NewID("imp_", n.now), OrgID: c.OrgID, CampaignID: c.ID, Kind: kind, Accepted: true,
		Via: c.CreatedVia, Rules: n.pkg.Version, CreatedAt: n.now,
	}
	i.SourceKey = "imports/" + i.ID + ".json"
	var err error
	if o.File != nil {
		i.SourceKey = "imports/" + i.ID + ".file"
		err = n.importFiles().Put(ctx, i.SourceKey, io.NewSectionReader(o.File, 0, o.File.Size))
	} else {
		err = n.importFiles().PutRows(ctx, i.SourceKey, o.Rows)
	}
	if err != nil {
		return campaigns.Import{}, errors.Join(control.Refuse(control.CodeContactStorage, "the rows could not be stored: try again"), err)
	}
	return i, nil
}

// saveDraft writes a campaign whose list could not be imported.
func (svc *Service) saveDraft(
	ctx context.Context, c campaigns.Campaign, who Actor, cause error, onDraft func(context.Context, db.Querier, error) error,
) error {
	err := db.Tx(ctx, svc.Pool, func(tx pgx.Tx) error {
		err := svc.Store.Insert(ctx, tx, c)
		if err == nil {
			err = svc.Store.AddLog(ctx, tx, c, who.entry(store.Created, "", c.CreatedAt))
		}
		if err != nil || onDraft == nil {
			return err
		}
		return onDraft(ctx, tx, cause)
	})
	if err != nil {
		return errors.Join(cause, err)
	}
	return &DraftKeptError{cause}
}

func (n *creation) saveImport(ctx context.Context, tx pgx.Tx, c campaigns.Campaign, i campaigns.Import, list *contactfile.List) error {
	i.RowsSeen, i.AcceptedRows, i.Warned, i.Rejected, i.Duplicates = list.Seen, list.Accepted, list.Warned, list.Rejected, list.Duplicates
	if err := store.ClaimImportFile(ctx, tx, i.SourceKey); err != nil {
		return err
	}
	contacts := func(yield func(campaigns.Contact, error) bool) {
		for r, err := range list.All() {
			var x campaigns.Contact
			if err == nil {
				x = newContact(c, r, n.pkg, n.now)
			}
			if !yield(x, err) {
				return
			}
		}
	}
	return n.Store.Imports.Save(ctx, tx, i, list.Codes, contacts, func(done int) { n.request.reportProgress("writing", done, list.Seen) })
}

// newContact returns the contact of a row, none if the row was not accepted. It is suppressed if the market does not
// call its number, or if the law never allows calls to its location.
func newContact(c campaigns.Campaign, r *contactfile.Row, pkg *market.Package, now time.Time) campaigns.Contact {
	if !r.IsAccepted() {
		return campaigns.Contact{Row: r}
	}
	x := campaigns.Contact{ID: control.NewID("con_", now), Row: r, State: campaigns.Pending}
	if r.Number.Refusal != market.Callable || pkg.NeverLegal(now, r.Location, c.Classification) {
		x.State, x.Reason = campaigns.Suppressed, campaigns.GeoRejected
	}
	return x
}
