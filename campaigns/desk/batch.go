package desk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/checks"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/rows"
	"github.com/parley-voice/parley/campaigns/screen"
	"github.com/parley-voice/parley/campaigns/sources"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// A RefusedError is a batch that is refused whole. Its import is kept.
type RefusedError struct {
	Err    error
	Import Imported
}

// Error implements error.
func (r *RefusedError) Error() string { return r.Err.Error() }

// Unwrap is the refusal.
func (r *RefusedError) Unwrap() error { return r.Err }

// CheckCalls refuses a batch of no rows, or of too many.
func (d *Desk) CheckCalls(n int) error {
	most := cmp.Or(d.MostCalls, usualCalls)
	switch {
	case n == 0:
		return control.Refuse(control.CodeCallsRequired, "calls is empty: send at least one row")
	case n > most:
		return control.Refuse(control.CodeCallsTooMany, fmt.Sprintf("calls has at most %d rows, not %d", most, n))
	default:
		return nil
	}
}

// Addable refuses calls to a campaign that there is not, or that is over.
func (d *Desk) Addable(ctx context.Context, orgID, id string) error {
	c, err := d.Store.Get(ctx, d.Pool, orgID, id, false)
	if err != nil {
		return err
	}
	c.Status, _ = c.Due(d.now())
	return addable(c)
}

func addable(c campaigns.Campaign) error {
	if campaigns.Allowed(c.Status, campaigns.AddCalls) == campaigns.Impossible {
		return control.Refuse(control.CodeCampaignClosed, fmt.Sprintf("a campaign that is %s takes no calls", c.Status))
	}
	return nil
}

// An Ending is what becomes of the Idempotency-Key of a batch, in the same
// transaction: Settle keeps the answer to an accepted one, Free forgets a
// refused one. Nil functions do nothing.
type Ending struct {
	Settle func(context.Context, db.Querier, Standing) error
	Free   func(context.Context, db.Querier) error
}

// Add takes calls into a campaign, whose consent was attested: all of them, or
// none, which a *RefusedError tells. The standing it returns has the import of
// the batch, and the blockers of its occasion.
func (d *Desk) Add(ctx context.Context, orgID, id string, who Who, raw []json.RawMessage, end Ending) (Standing, error) {
	now, err := d.clock(ctx, d.Pool)
	if err != nil {
		return Standing{}, err
	}
	c, err := d.Store.Get(ctx, d.Pool, orgID, id, false) // what rows are read by does not change
	if err != nil {
		return Standing{}, err
	}
	org, pkg, err := d.law(ctx, d.Pool, orgID)
	if err != nil {
		return Standing{}, err
	}
	if pkg == nil || !org.GoesBy(c) {
		return Standing{}, noMarket()
	}
	list, err := rows.Check(rows.FromJSON(raw), rows.Options{
		Market: pkg, Duplicates: c.Duplicates, ContactZone: c.ContactTimezone, Batch: true, Zone: zone,
	})
	if err != nil {
		return Standing{}, err
	}
	i, err := d.keepSource(ctx, c, campaigns.BatchImport, Order{Rows: raw}, pkg, now)
	if err != nil {
		return Standing{}, err
	}
	i.Via = who.Via
	b := &batch{Desk: d, who: who, pkg: pkg, list: list, i: i, now: now}
	var st Standing
	var refused *RefusedError
	err = db.Tx(ctx, d.Pool, func(tx pgx.Tx) (fault error) {
		b.tx = tx
		st, refused, fault = b.decide(ctx, id, end)
		return fault
	})
	switch {
	case unfit(err):
		return Standing{}, errors.Join(errUnfit(), err)
	case err != nil:
		return Standing{}, err
	case refused != nil:
		return Standing{}, refused
	default:
		return st, nil
	}
}

// A batch is calls on their way into a campaign.
type batch struct {
	*Desk

	tx   pgx.Tx
	c    campaigns.Campaign
	who  Who
	pkg  *market.Package
	list *rows.List
	now  time.Time

	i        campaigns.Import
	contacts []campaigns.Contact
	screen   screen.Screen
	found    screened
}

// decide takes the batch or refuses it, and ends its key's story with it.
func (b *batch) decide(ctx context.Context, id string, end Ending) (st Standing, refused *RefusedError, err error) {
	if b.c, err = b.locked(ctx, b.tx, b.i.OrgID, id); err == nil {
		err = addable(b.c)
	}
	if err == nil {
		refused, err = b.screened(ctx)
	}
	switch {
	case err != nil:
		return st, nil, err
	case refused != nil && end.Free != nil:
		return st, refused, end.Free(ctx, b.tx)
	case refused != nil:
		return st, refused, nil
	}
	if st, err = b.accept(ctx); err == nil && end.Settle != nil {
		err = end.Settle(ctx, b.tx, st)
	}
	return st, nil, err
}

// screened holds the rows against the do-not-call lists and, where that or the
// rows themselves forbid it, keeps the batch as one that was refused.
func (b *batch) screened(ctx context.Context) (*RefusedError, error) {
	b.contacts = contacts(b.c, b.list, b.pkg, b.now)
	var candidates []screen.Candidate
	for _, x := range b.contacts {
		if x.State == campaigns.Pending {
			candidates = append(candidates, screen.Candidate{Row: x.Row.Row, Number: x.Row.Number.E164, Name: x.Row.Name})
		}
	}
	var err error
	if b.screen, b.found, err = b.Desk.screen(ctx, b.tx, b.c.OrgID, b.pkg, candidates, b.now); err != nil {
		return nil, err
	}
	b.screen.ImportID, b.screen.Decision = b.i.ID, screen.Clean
	b.i.RowsSeen, b.i.Duplicates, b.i.Rejected = len(b.list.Rows), b.list.Duplicates, b.list.Rejected
	var cause *control.Error
	switch {
	case b.list.Refusal != "" || b.list.Rejected > 0:
		cause = control.Refuse(control.CodeCallsRejected, fmt.Sprintf("%d of %d rows cannot be called: see import", b.list.Rejected, len(b.list.Rows)))
	case b.screen.Matched > 0:
		cause = control.Refuse(control.CodeCallsDNC, fmt.Sprintf("%d of %d numbers are on a do-not-call list: see import", b.screen.Matched, len(b.list.Rows)))
	default:
		return nil, nil //nolint:nilnil // it is not refused
	}
	if b.screen.Matched > 0 {
		b.screen.Decision = campaigns.Block
	}
	b.i.Accepted, b.i.RefusalCode, b.contacts = false, string(cause.Code), nil
	b.structural()
	if err = b.save(ctx, store.CallsBarred); err != nil {
		return nil, err
	}
	return &RefusedError{cause, b.imported()}, nil
}

// structural says at the first row what is wrong with the list as a whole.
func (b *batch) structural() {
	if b.list.Refusal == "" || len(b.list.Rows) == 0 {
		return
	}
	text := "no row has a phone column"
	if b.list.Refusal == rows.NoUsableRows {
		text = "no row can be called"
	}
	first := b.list.Rows[0]
	first.Issues = append([]rows.Issue{{Code: b.list.Refusal, Column: "phone", Severity: rows.Error, Message: text}}, first.Issues...)
}

// alreadyIn warns of a number that the campaign has: it is called again.
const alreadyIn = "already_in_campaign"

// accept takes the batch into the campaign.
func (b *batch) accept(ctx context.Context) (Standing, error) {
	var numbers []string
	for _, x := range b.contacts {
		numbers = append(numbers, x.Row.Number.E164)
	}
	known, err := b.Store.Known(ctx, b.tx, b.c, numbers)
	if err != nil {
		return Standing{}, err
	}
	for _, x := range b.contacts {
		if !known[x.Row.Number.E164] {
			continue
		}
		x.Row.Issues = append(x.Row.Issues, rows.Issue{
			Row: x.Row.Row, Column: "phone", Code: alreadyIn, Severity: rows.Warning, Value: x.Row.Phone, Message: "the campaign has this phone: it is called again",
		})
		if x.Row.Status == rows.Accepted {
			x.Row.Status = rows.Warned
			b.list.Warned++
		}
	}
	b.i.AcceptedRows, b.i.Warned = b.list.Accepted, b.list.Warned
	if err = b.Store.Adopt(ctx, b.tx, &b.c, b.pkg.Code); err != nil {
		return Standing{}, err
	}
	if err = b.save(ctx, store.CallsAdded); err != nil {
		return Standing{}, err
	}
	if err = b.attest(ctx, b.tx, b.c, b.i.ID, b.who, b.found.candidates, b.screen.Fingerprint, b.now); err != nil {
		return Standing{}, err
	}
	st, _, err := b.stand(ctx, b.tx, b.c, checks.Adding, asked{given: true}, b.now)
	x := b.imported()
	st.Import, st.Screen = &x, b.screen
	return st, err
}

// save writes the import and all that comes of it.
func (b *batch) save(ctx context.Context, action string) error {
	var err error
	if b.screen.AuditID, err = b.Store.Audit(ctx, b.tx, b.c, b.screen, b.found.copies, b.found.rules); err != nil {
		return err
	}
	b.i.Screen = &b.screen
	if err = sources.Claim(ctx, b.tx, b.i.SourceKey); err != nil {
		return err
	}
	if err = b.Store.SaveImport(ctx, b.tx, b.i, b.list.Rows, b.contacts); err != nil {
		return err
	}
	if err = b.Store.SaveMatches(ctx, b.tx, b.i.ID, b.found.matches); err != nil {
		return err
	}
	return b.Store.Log(ctx, b.tx, b.c, b.who.entry(action, b.i.ID, b.now))
}

// imported is the import as it is answered.
func (b *batch) imported() Imported {
	x := Imported{Import: b.i, Screen: b.screen, Matches: b.screen.Items, Issues: []rows.Issue{}, ByCode: map[string]int{}}
	for _, r := range b.list.Rows {
		for _, issue := range r.Issues {
			x.ByCode[issue.Code]++
			if x.Total++; x.Total <= screen.Shown {
				x.Issues = append(x.Issues, issue)
			}
		}
	}
	return x
}
