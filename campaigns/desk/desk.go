// Package desk does what is asked of campaigns: it creates them, launches,
// pauses, resumes and cancels them, and says how they stand.
package desk

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/checks"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/rows"
	"github.com/parley-voice/parley/campaigns/screen"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/place"
)

// A Bucket keeps the rows of lists as they came.
type Bucket interface {
	Put(ctx context.Context, key string, r io.Reader) error
}

// A Desk does what is asked of campaigns. It is safe for concurrent use.
type Desk struct {
	Pool   *pgxpool.Pool
	Store  *store.Store
	Bucket Bucket
	// Markets are the packages by code.
	Markets map[string]*market.Package
	// Registries are the do-not-call registries of a market; nil has none.
	Registries func(market string) []screen.Registry
	MostRows   int           // of a creation; 0 means 50,000
	Horizon    time.Duration // of open campaigns; 0 means campaigns.Horizon
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// usualRows is how many rows a creation may bring.
const usualRows = 50_000

// A Who is who asks, for the record.
type Who struct {
	Via       campaigns.Via
	KeyID     string
	Actor     string
	IP, Agent string // of the request
}

// A Standing is a campaign and all that is said of it.
type Standing struct {
	Campaign campaigns.Campaign
	Import   *Imported // nil where no list was handed over
	Screen   screen.Screen
	Blockers []checks.Blocker
	Warnings []checks.Warning
}

// An Imported is an import and its first issues.
type Imported struct {
	campaigns.Import
	Issues  []rows.Issue
	ByCode  map[string]int
	Total   int
	Screen  screen.Screen
	Matches []screen.Match
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

func (d *Desk) now() time.Time {
	if d.Now != nil {
		return d.Now()
	}
	return time.Now()
}

// An Order asks for a campaign.
type Order struct {
	Spec     campaigns.Spec
	Rows     []json.RawMessage
	Attested bool
}

// Create makes a campaign of an order and launches it where nothing keeps it
// from that. Settle, which may be nil, writes the answer in the same
// transaction; keep does where the campaign stays a draft because its list could
// not be taken, which a *KeptError tells. Any other refusal leaves nothing.
func (d *Desk) Create(ctx context.Context, orgID string, who Who, o Order,
	settle func(context.Context, db.Querier, Standing) error, keep func(context.Context, db.Querier) error,
) (Standing, error) {
	now := d.now().UTC().Truncate(time.Microsecond)
	org, err := d.Store.Organization(ctx, d.Pool, orgID)
	if err != nil {
		return Standing{}, err
	}
	pkg := d.Markets[org.Market]
	o.Spec.Rows = len(o.Rows)
	list, err := d.read(o, pkg)
	if err != nil {
		return Standing{}, err
	}
	c, err := d.settle(ctx, org, o.Spec, pkg, list, now)
	if err != nil {
		return Standing{}, err
	}
	c.ID = control.NewID("cmp_", now)
	c.OrgID, c.CreatedVia = orgID, who.Via
	i, err := d.keepSource(ctx, c, o.Rows, pkg, now)
	if err != nil {
		return Standing{}, d.leaveDraft(ctx, c, err, keep)
	}
	var st Standing
	err = db.Tx(ctx, d.Pool, func(tx pgx.Tx) error {
		c.LaunchImportID = i.ID
		fault := d.Store.Insert(ctx, tx, c)
		if fault == nil && i.ID != "" {
			fault = d.take(ctx, tx, &c, i, list, pkg, now)
		}
		if fault != nil {
			return fault
		}
		if st, fault = d.begin(ctx, tx, c, who, checks.Attestation{Given: o.Attested}, now); fault != nil {
			return fault
		}
		if settle != nil {
			return settle(ctx, tx, st)
		}
		return nil
	})
	return st, err
}

// read reads the rows of an order, nil where there are none, too many, or no
// market to read them by.
func (d *Desk) read(o Order, pkg *market.Package) (*rows.List, error) {
	if len(o.Rows) == 0 || len(o.Rows) > d.mostRows() || pkg == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	action := rows.DuplicateAction(o.Spec.Duplicates)
	if action == "" {
		action = rows.RejectDuplicates
	}
	return rows.Check(rows.FromJSON(o.Rows), rows.Options{
		Market: pkg, Duplicates: action, ContactZone: o.Spec.ContactTimezone,
		Zone: func(name string) error {
			_, err := control.Zone(name)
			return err
		},
	})
}

func (d *Desk) mostRows() int {
	if d.MostRows > 0 {
		return d.MostRows
	}
	return usualRows
}

// settle holds a spec against what is.
func (d *Desk) settle(ctx context.Context, org store.Organization, s campaigns.Spec, pkg *market.Package, list *rows.List, now time.Time) (campaigns.Campaign, error) {
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
		for _, r := range list.Rows {
			if r.Accepted() && r.Number.Refusal == market.Callable {
				places = append(places, r.Place)
			}
		}
	}
	return s.Settle(campaigns.Surroundings{
		Now: now, Horizon: d.Horizon, Agent: agent, Routes: routes, Zone: org.Zone, Window: org.Window,
		Market: pkg, Places: places, MostRows: d.mostRows(),
	})
}

// keepSource keeps the rows as they came. The import it returns has no id where
// there are no rows.
func (d *Desk) keepSource(ctx context.Context, c campaigns.Campaign, raw []json.RawMessage, pkg *market.Package, now time.Time) (campaigns.Import, error) {
	if len(raw) == 0 {
		return campaigns.Import{}, nil
	}
	if pkg == nil {
		return campaigns.Import{}, control.Refuse(control.CodeMarketNotInstalled, "the organization has no market package: its contacts cannot be screened")
	}
	i := campaigns.Import{
		ID: control.NewID("imp_", now), OrgID: c.OrgID, CampaignID: c.ID, Kind: campaigns.LaunchImport, Accepted: true,
		Via: c.CreatedVia, CreatedAt: now,
	}
	i.SourceKey = "imports/" + i.ID + ".json"
	pr, pw := io.Pipe()
	go func() { pw.CloseWithError(json.NewEncoder(pw).Encode(raw)) }()
	err := d.Bucket.Put(ctx, i.SourceKey, pr)
	if e := pr.Close(); err == nil {
		err = e
	}
	if err != nil {
		return campaigns.Import{}, errors.Join(control.Refuse(control.CodeContactStorage, "the rows could not be kept: try again"), err)
	}
	return i, nil
}

// leaveDraft keeps the campaign whose list could not be taken.
func (d *Desk) leaveDraft(ctx context.Context, c campaigns.Campaign, cause error, keep func(context.Context, db.Querier) error) error {
	err := db.Tx(ctx, d.Pool, func(tx pgx.Tx) error {
		if err := d.Store.Insert(ctx, tx, c); err != nil || keep == nil {
			return err
		}
		return keep(ctx, tx)
	})
	if err != nil {
		return errors.Join(cause, err)
	}
	return &KeptError{cause}
}

// take writes the import, its rows and contacts.
func (d *Desk) take(ctx context.Context, tx pgx.Tx, c *campaigns.Campaign, i campaigns.Import, list *rows.List, pkg *market.Package, now time.Time) error {
	i.RowsSeen, i.AcceptedRows, i.Warned, i.Rejected, i.Duplicates = len(list.Rows), list.Accepted, list.Warned, list.Rejected, list.Duplicates
	var contacts []campaigns.Contact
	for _, r := range list.Rows {
		if r.Accepted() {
			contacts = append(contacts, contact(*c, r, pkg, now))
		}
	}
	return d.Store.SaveImport(ctx, tx, i, list.Rows, contacts)
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

// digest is a SHA-256 over numbers in order.
func digest(all []screen.Candidate) []byte {
	h := sha256.New()
	for _, c := range all {
		_, _ = io.WriteString(h, c.Number+"\n")
	}
	return h.Sum(nil)
}
