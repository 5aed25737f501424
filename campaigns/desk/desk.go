// Package desk does what is asked of campaigns: it creates them, launches,
// pauses, resumes and cancels them, and says how they stand.
package desk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/checks"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/rows"
	"github.com/parley-voice/parley/campaigns/screen"
	"github.com/parley-voice/parley/campaigns/sources"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/campaigns/thrift"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/place"
)

// Markets finds market packages: of a version, or the program's where none is
// named; nil where there is no code.
type Markets interface {
	Package(ctx context.Context, q db.Querier, code, version string) (*market.Package, error)
}

// A Desk does what is asked of campaigns. It is safe for concurrent use.
type Desk struct {
	Pool    *pgxpool.Pool
	Store   *store.Store
	Bucket  sources.Bucket // of the rows of lists
	Markets Markets
	// Registries are the do-not-call registries of a market, as they are now; nil
	// has none.
	Registries    func(ctx context.Context, q db.Querier, market string) ([]screen.Registry, error)
	MostRows      int           // of a creation; 0 means 50,000
	MostInFile    int           // of a file; 0 means 200,000
	MostCalls     int           // of a batch; 0 means 1,000
	MostAddresses int           // of a withdrawal; 0 means 1,000
	Horizon       time.Duration // of open campaigns; 0 means campaigns.Horizon
	// Now is the clock; nil is the database's.
	Now func() time.Time

	ahead  atomic.Int64 // nanoseconds that the database's clock was, of ours, when it was asked last
	thrift thrift.Thrift
	found  screen.Memory // of drafts
}

// large is from how many rows on a list is read in little memory.
const large = 10_000

// What a request may bring.
const (
	usualRows      = 50_000
	usualInFile    = 200_000
	usualCalls     = 1_000
	usualAddresses = 1_000
)

// A Who is who asks, for the record.
type Who struct {
	Via       campaigns.Via
	KeyID     string
	Actor     string
	IP, Agent string // of the request
}

// entry is a line of the log.
func (w Who) entry(action, detail string, at time.Time) store.Entry {
	return store.Entry{Action: action, Via: w.Via, KeyID: w.KeyID, Actor: w.Actor, Detail: detail, At: at}
}

// A Standing is a campaign and all that is said of it.
type Standing struct {
	Campaign campaigns.Campaign
	Import   *Imported // nil where no list was handed over
	Screen   screen.Screen
	Blockers []checks.Blocker
	Warnings []checks.Warning
	Counts   campaigns.Counts // of its contacts
	// Old tells that the screen is of before the list, or what it is held against, changed.
	Old bool
}

// An Imported is an import and its first issues.
type Imported struct {
	campaigns.Import
	Issues  []rows.Issue
	ByCode  map[string]int
	Total   int
	Screen  screen.Screen
	Matches []screen.Match
	Old     bool // as Standing.Old
}

// A BlockedError is a launch, or a resume, that the checks forbid.
type BlockedError struct{ Blockers []checks.Blocker }

// Error implements error.
func (b *BlockedError) Error() string {
	return fmt.Sprintf("the launch checks found %d blockers", len(b.Blockers))
}

// A KeptError is a refusal after the campaign came to be: it stays as a draft.
type KeptError struct{ Err error }

// Error implements error.
func (k *KeptError) Error() string { return k.Err.Error() }

// Unwrap is the refusal.
func (k *KeptError) Unwrap() error { return k.Err }

func (d *Desk) sources() *sources.Sources { return &sources.Sources{Pool: d.Pool, Bucket: d.Bucket} }

func (d *Desk) now() time.Time {
	if d.Now != nil {
		return d.Now()
	}
	return time.Now().Add(time.Duration(d.ahead.Load()))
}

// An Order asks for a campaign. Its list is rows or a file.
type Order struct {
	Spec     campaigns.Spec
	Rows     []json.RawMessage
	File     *File // nil where there is none
	Attested bool
}

// Create makes a campaign of an order and launches it where nothing keeps it
// from that. Settle, which may be nil, writes the answer in the same
// transaction; keep does where the campaign stays a draft because its list could
// not be taken, of which it is told the cause, as a *KeptError tells it. Any other refusal leaves nothing.
func (d *Desk) Create(ctx context.Context, orgID string, who Who, o Order,
	settle func(context.Context, db.Querier, Standing) error, keep func(ctx context.Context, q db.Querier, cause error) error,
) (Standing, error) {
	now, err := d.clock(ctx, d.Pool)
	if err != nil {
		return Standing{}, err
	}
	org, pkg, err := d.law(ctx, d.Pool, orgID)
	if err != nil {
		return Standing{}, err
	}
	much := o.File != nil || len(o.Rows) > large
	if much {
		defer d.thrift.Begin()()
	}
	list, err := d.read(&o, pkg)
	if err != nil {
		return Standing{}, err
	}
	c, err := d.settle(ctx, org, o, pkg, list, now)
	if err != nil {
		return Standing{}, err
	}
	c.ID = control.NewID("cmp_", now)
	c.OrgID, c.CreatedVia = orgID, who.Via
	kind := campaigns.LaunchImport
	if o.File != nil {
		kind = campaigns.FileImport
	}
	i, err := d.keepSource(ctx, c, kind, o, pkg, now)
	if err != nil {
		return Standing{}, d.leaveDraft(ctx, c, who, err, keep)
	}
	var st Standing
	err = db.Tx(ctx, d.Pool, func(tx pgx.Tx) error {
		var fault error
		read := list
		list = nil // what was written down is let go before it is screened
		if much {  // writing it may take longer than other statements
			if _, fault = tx.Exec(ctx, "SET LOCAL statement_timeout = '5min'"); fault != nil {
				return fault
			}
		}
		if st, fault = d.establish(ctx, tx, c, who, i, read, pkg, o.Attested, now); fault == nil && settle != nil {
			fault = settle(ctx, tx, st)
		}
		return fault
	})
	if unfit(err) {
		return Standing{}, d.leaveDraft(ctx, c, who, errors.Join(errUnfit(), err), keep)
	}
	return st, err
}

// establish writes a new campaign with its list, and launches it if nothing keeps it
// from that.
func (d *Desk) establish(ctx context.Context, tx pgx.Tx, c campaigns.Campaign, who Who, i campaigns.Import, list *rows.List, pkg *market.Package, given bool, now time.Time) (Standing, error) {
	c.LaunchImportID = i.ID
	err := d.Store.Insert(ctx, tx, c)
	if err == nil {
		err = d.Store.Log(ctx, tx, c, who.entry(store.Created, i.ID, now))
	}
	if err == nil && i.ID != "" {
		err = d.take(ctx, tx, c, i, list, pkg, now)
	}
	if err != nil {
		return Standing{}, err
	}
	st, err := d.begin(ctx, tx, c, who, asked{given: given}, now)
	if err != nil || st.Import == nil || st.Screen.AsOfLaunch {
		return st, err
	}
	lists, err := d.lists(ctx, tx, pkg)
	if err != nil {
		return st, err
	}
	// The screen of an upload is on record, and was shown to the client.
	if st.Screen.AuditID, err = d.Store.Audit(ctx, tx, st.Campaign, st.Screen, lists.Copies(), pkg.Version); err != nil {
		return st, err
	}
	st.Import.Screen.AuditID = st.Screen.AuditID
	return st, d.Store.Seen(ctx, tx, c.ID, st.Screen.Fingerprint)
}

// unfit tells that the database does not take what rows say.
func unfit(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && strings.HasPrefix(pg.Code, "22") // data exceptions
}

func errUnfit() error { return control.Refuse(control.CodeContactRows, "the rows could not be stored") }

// law returns an organization, and the rules that it goes by, nil for none.
func (d *Desk) law(ctx context.Context, q db.Querier, orgID string) (store.Organization, *market.Package, error) {
	org, err := d.Store.Organization(ctx, q, orgID)
	if err != nil {
		return org, nil, err
	}
	pkg, err := d.market(ctx, q, org)
	return org, pkg, err
}

// market returns the rules that an organization goes by, nil for none.
func (d *Desk) market(ctx context.Context, q db.Querier, org store.Organization) (*market.Package, error) {
	return d.Markets.Package(ctx, q, org.Market, org.Rules)
}

// read reads the rows of an order, nil where there are none, too many, or no
// market to read them by. It tells the spec how many there are.
func (d *Desk) read(o *Order, pkg *market.Package) (*rows.List, error) {
	o.Spec.Rows = len(o.Rows)
	if o.File == nil && len(o.Rows) == 0 || len(o.Rows) > d.most(*o) || pkg == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	source := rows.FromJSON(o.Rows)
	if o.File != nil {
		var err error
		if source, err = o.File.Source(); err != nil {
			return nil, err
		}
	}
	action := rows.DuplicateAction(o.Spec.Duplicates)
	if action == "" {
		action = rows.RejectDuplicates
	}
	list, err := rows.Check(source, rows.Options{
		Market: pkg, Duplicates: action, ContactZone: o.Spec.ContactTimezone, Most: d.most(*o), Zone: zone,
	})
	if errors.Is(err, rows.ErrTooMany) {
		o.Spec.Rows = d.most(*o) + 1
		return nil, nil //nolint:nilnil // the spec is refused for it, in its turn
	}
	if err == nil {
		o.Spec.Rows = len(list.Rows)
	}
	return list, err
}

// most is how many rows an order may bring.
func (d *Desk) most(o Order) int {
	if o.File != nil {
		return cmp.Or(d.MostInFile, usualInFile)
	}
	return cmp.Or(d.MostRows, usualRows)
}

// settle holds a spec against what is.
func (d *Desk) settle(ctx context.Context, org store.Organization, o Order, pkg *market.Package, list *rows.List, now time.Time) (campaigns.Campaign, error) {
	s := o.Spec
	agent, _, err := d.Store.Agent(ctx, d.Pool, org.ID, s.Agent)
	if err != nil {
		return campaigns.Campaign{}, err
	}
	var routes []place.Trunk
	if agent != "" {
		if routes, err = place.Routes(ctx, d.Pool, org.ID, s.Agent); err != nil {
			return campaigns.Campaign{}, err
		}
	}
	var places []market.Place
	if list != nil {
		places = make([]market.Place, 0, list.Accepted)
		for _, r := range list.Rows {
			if r.Accepted() && r.Number.Refusal == market.Callable {
				places = append(places, r.Place)
			}
		}
	}
	return s.Settle(campaigns.Surroundings{
		Now: now, Horizon: d.Horizon, Agent: agent, Routes: routes, Zone: org.Zone, Window: org.Window,
		Market: pkg, Places: places, MostRows: d.most(o),
	})
}

// keepSource keeps the rows as they came. The import it returns has no id where
// there are no rows.
func (d *Desk) keepSource(ctx context.Context, c campaigns.Campaign, kind string, o Order, pkg *market.Package, now time.Time) (campaigns.Import, error) {
	if len(o.Rows) == 0 && o.File == nil {
		return campaigns.Import{}, nil
	}
	if pkg == nil {
		return campaigns.Import{}, noMarket()
	}
	i := campaigns.Import{
		ID: control.NewID("imp_", now), OrgID: c.OrgID, CampaignID: c.ID, Kind: kind, Accepted: true,
		Via: c.CreatedVia, Rules: pkg.Version, CreatedAt: now,
	}
	i.SourceKey = "imports/" + i.ID + ".json"
	var err error
	if o.File != nil {
		i.SourceKey = "imports/" + i.ID + ".file"
		err = d.sources().Keep(ctx, i.SourceKey, io.NewSectionReader(o.File, 0, o.File.Size))
	} else {
		err = d.sources().KeepRows(ctx, i.SourceKey, o.Rows)
	}
	if err != nil {
		return campaigns.Import{}, errors.Join(control.Refuse(control.CodeContactStorage, "the rows could not be kept: try again"), err)
	}
	return i, nil
}

// leaveDraft keeps the campaign whose list could not be taken.
func (d *Desk) leaveDraft(ctx context.Context, c campaigns.Campaign, who Who, cause error, keep func(context.Context, db.Querier, error) error) error {
	err := db.Tx(ctx, d.Pool, func(tx pgx.Tx) error {
		err := d.Store.Insert(ctx, tx, c)
		if err == nil {
			err = d.Store.Log(ctx, tx, c, who.entry(store.Created, "", c.CreatedAt))
		}
		if err != nil || keep == nil {
			return err
		}
		return keep(ctx, tx, cause)
	})
	if err != nil {
		return errors.Join(cause, err)
	}
	return &KeptError{cause}
}

// take writes the import, its rows and contacts.
func (d *Desk) take(ctx context.Context, tx pgx.Tx, c campaigns.Campaign, i campaigns.Import, list *rows.List, pkg *market.Package, now time.Time) error {
	i.RowsSeen, i.AcceptedRows, i.Warned, i.Rejected, i.Duplicates = len(list.Rows), list.Accepted, list.Warned, list.Rejected, list.Duplicates
	if err := sources.Claim(ctx, tx, i.SourceKey); err != nil {
		return err
	}
	return d.Store.SaveImport(ctx, tx, i, list.Rows, contacts(c, list, pkg, now))
}

// contacts are what comes of the accepted rows of a list.
func contacts(c campaigns.Campaign, list *rows.List, pkg *market.Package, now time.Time) []campaigns.Contact {
	all := make([]campaigns.Contact, 0, list.Accepted)
	for _, r := range list.Rows {
		if r.Accepted() {
			all = append(all, contact(c, r, pkg, now))
		}
	}
	return all
}

// contact is what comes of an accepted row: who lies where the market does not
// call, or where its law never lets one, is suppressed.
func contact(c campaigns.Campaign, r *rows.Row, pkg *market.Package, now time.Time) campaigns.Contact {
	x := campaigns.Contact{ID: control.NewID("con_", now), Row: r, State: campaigns.Pending}
	if r.Number.Refusal != market.Callable || pkg.Never(now, r.Place, c.Classification) {
		x.State, x.Reason = campaigns.Suppressed, campaigns.GeoRejected
	}
	return x
}
