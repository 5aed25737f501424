package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/contactfile"
	"github.com/parley-voice/parley/campaigns/dnc/screening"
	"github.com/parley-voice/parley/campaigns/launchcheck"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// A RefusedError is returned for a batch that is refused as a whole. Its import is stored.
type RefusedError struct {
	Err    error
	Import ImportStatus
}

// Error implements error.
func (r *RefusedError) Error() string { return r.Err.Error() }

// Unwrap returns the refusal.
func (r *RefusedError) Unwrap() error { return r.Err }

// CheckCalls refuses a batch with no rows or more than MaxCalls.
func (svc *Service) CheckCalls(n int) error {
	most := cmp.Or(svc.MaxCalls, defaultMaxCalls)
	switch {
	case n == 0:
		return control.Refuse(control.CodeCallsRequired, "calls is empty: send at least one row")
	case n > most:
		return control.Refuse(control.CodeCallsTooMany, fmt.Sprintf("calls has more than %d rows", most))
	default:
		return nil
	}
}

// CheckAddable refuses to add calls to an unknown campaign or one that is over.
func (svc *Service) CheckAddable(ctx context.Context, orgID, id string) error {
	c, err := svc.Store.Get(ctx, svc.Pool, orgID, id, false)
	if err != nil {
		return err
	}
	c.Status, _ = c.StatusAt(svc.now())
	return checkAddable(c)
}

func checkAddable(c campaigns.Campaign) error {
	if campaigns.EffectOf(c.Status, campaigns.AddCalls) == campaigns.Impossible {
		return control.Refuse(control.CodeCampaignClosed, fmt.Sprintf("a %s campaign accepts no calls", c.Status))
	}
	return nil
}

// BatchHooks update the Idempotency-Key of a batch in the same transaction: OnAccepted
// stores the response to an accepted batch, OnRefused releases the key of a refused one.
// Nil functions do nothing.
type BatchHooks struct {
	OnAccepted func(context.Context, db.Querier, Status) error
	OnRefused  func(context.Context, db.Querier) error
}

// Add adds calls with attested consent to a campaign. It adds all of them, or it adds none and returns a
// *RefusedError. The returned status has the import of the batch.
func (svc *Service) Add(ctx context.Context, orgID, id string, who Actor, raw []json.RawMessage, hooks BatchHooks) (Status, error) {
	now, err := svc.clock(ctx, svc.Pool)
	if err != nil {
		return Status{}, err
	}
	c, err := svc.Store.Get(ctx, svc.Pool, orgID, id, false)
	if err != nil {
		return Status{}, err
	}
	org, pkg, err := svc.rules(ctx, svc.Pool, orgID)
	if err != nil {
		return Status{}, err
	}
	if pkg == nil || !org.UsesMarketOf(c) {
		return Status{}, errNoMarket()
	}
	list, err := contactfile.Check(contactfile.FromJSON(raw), contactfile.Options{
		Market: pkg, Duplicates: c.Duplicates, ContactZone: c.ContactTimezone, Batch: true, Zone: checkZone,
	})
	if err != nil {
		return Status{}, err
	}
	rows, err := collectRows(list)
	if err != nil {
		return Status{}, err
	}
	source := creation{Service: svc, request: CreateRequest{Rows: raw}, pkg: pkg, now: now}
	i, err := source.storeSource(ctx, c, campaigns.BatchImport)
	if err != nil {
		return Status{}, err
	}
	i.Via = who.Via
	b := &batch{Service: svc, who: who, pkg: pkg, list: list, rows: rows, i: i, now: now}
	var st Status
	var refused *RefusedError
	err = db.Tx(ctx, svc.Pool, func(tx pgx.Tx) (fault error) {
		b.tx = tx
		st, refused, fault = b.decide(ctx, id, hooks)
		return fault
	})
	switch {
	case isDataError(err):
		return Status{}, errors.Join(errRowsNotStored(), err)
	case err != nil:
		return Status{}, err
	case refused != nil:
		return Status{}, refused
	default:
		return st, nil
	}
}

// A batch is one request that adds calls to a campaign.
type batch struct {
	*Service

	tx   pgx.Tx
	c    campaigns.Campaign
	who  Actor
	pkg  *market.Package
	list *contactfile.List // without the issues that are added to the rows
	rows []*contactfile.Row
	now  time.Time

	i        campaigns.Import
	contacts []campaigns.Contact // of all rows
	screen   screening.Screen
	found    screenResult
}

func collectRows(list *contactfile.List) (rows []*contactfile.Row, err error) {
	for r, err := range list.All() {
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// decide accepts or refuses the batch, and calls the hook.
func (b *batch) decide(ctx context.Context, id string, hooks BatchHooks) (st Status, refused *RefusedError, err error) {
	if b.c, err = b.lockCampaign(ctx, b.tx, b.i.OrgID, id); err == nil {
		err = checkAddable(b.c)
	}
	if err == nil {
		refused, err = b.check(ctx)
	}
	switch {
	case err != nil:
		return st, nil, err
	case refused != nil && hooks.OnRefused != nil:
		return st, refused, hooks.OnRefused(ctx, b.tx)
	case refused != nil:
		return st, refused, nil
	}
	if st, err = b.accept(ctx); err == nil && hooks.OnAccepted != nil {
		err = hooks.OnAccepted(ctx, b.tx, st)
	}
	return st, nil, err
}

// check screens the rows. If a row is rejected or listed it stores the batch as refused.
func (b *batch) check(ctx context.Context) (*RefusedError, error) {
	b.contacts = nil
	for _, r := range b.rows {
		b.contacts = append(b.contacts, newContact(b.c, r, b.pkg, b.now))
	}
	var candidates []screening.Candidate
	for _, x := range b.contacts {
		if x.State == campaigns.Pending {
			candidates = append(candidates, screening.Candidate{Row: x.Row.Row, Number: x.Row.Number.E164, Name: x.Row.Name})
		}
	}
	var err error
	page := func(yield func([]screening.Candidate, error) bool) { yield(candidates, nil) }
	if b.screen, b.found, err = b.screener().screen(ctx, b.tx, b.c.OrgID, b.pkg, page, b.now); err != nil {
		return nil, err
	}
	b.screen.ImportID, b.screen.Decision = b.i.ID, screening.Clean
	b.i.RowsSeen, b.i.Duplicates, b.i.Rejected = len(b.rows), b.list.Duplicates, b.list.Rejected
	var cause *control.Error
	switch {
	case b.list.Refusal != "" || b.list.Rejected > 0:
		cause = control.Refuse(control.CodeCallsRejected,
			fmt.Sprintf("%d of %d rows cannot be called: see import", b.list.Rejected, len(b.rows)))
	case b.screen.Matched > 0:
		cause = control.Refuse(control.CodeCallsDNC,
			fmt.Sprintf("%d of %d numbers are on a do-not-call list: see import", b.screen.Matched, len(b.rows)))
	default:
		return nil, nil //nolint:nilnil // accepted
	}
	if b.screen.Matched > 0 {
		b.screen.Decision = campaigns.Block
	}
	b.i.Accepted, b.i.RefusalCode = false, string(cause.Code)
	for i := range b.contacts {
		b.contacts[i] = campaigns.Contact{Row: b.contacts[i].Row}
	}
	b.addListIssue()
	if err = b.save(ctx, store.CallsRefused); err != nil {
		return nil, err
	}
	return &RefusedError{cause, b.importStatus()}, nil
}

// addListIssue adds an issue to the first row: the reason why the list as a whole is refused.
func (b *batch) addListIssue() {
	if b.list.Refusal == "" || len(b.rows) == 0 {
		return
	}
	text := "no row has a phone column"
	if b.list.Refusal == contactfile.NoUsableRows {
		text = "no row can be called"
	}
	issue := contactfile.Issue{Code: b.list.Refusal, Column: "phone", Severity: contactfile.Error, Message: text}
	first := b.rows[0]
	first.Issues = append([]contactfile.Issue{issue}, first.Issues...)
}

// alreadyInCampaign is the code of the warning that the campaign has the number already.
const alreadyInCampaign = "already_in_campaign"

// accept adds the batch to the campaign.
func (b *batch) accept(ctx context.Context) (Status, error) {
	var numbers []string
	for _, x := range b.contacts {
		numbers = append(numbers, x.Row.Number.E164)
	}
	known, err := b.Store.Contacts.KnownNumbers(ctx, b.tx, b.c, numbers)
	if err != nil {
		return Status{}, err
	}
	for _, x := range b.contacts {
		if x.ID == "" || !known[x.Row.Number.E164] {
			continue
		}
		x.Row.Issues = append(x.Row.Issues, contactfile.Issue{
			Row: x.Row.Row, Column: "phone", Code: alreadyInCampaign, Severity: contactfile.Warning, Value: x.Row.Phone,
			Message: "the campaign has this phone already: it is called again",
		})
		if x.Row.Status == contactfile.Accepted {
			x.Row.Status = contactfile.Warned
			b.list.Warned++
		}
	}
	b.i.AcceptedRows, b.i.Warned = b.list.Accepted, b.list.Warned
	if err = b.Store.SetMarket(ctx, b.tx, &b.c, b.pkg.Code); err != nil {
		return Status{}, err
	}
	if err = b.save(ctx, store.CallsAdded); err != nil {
		return Status{}, err
	}
	if err = saveAttestation(ctx, b.tx, b.Store, b.c, b.i.ID, b.who, b.found.digest, b.screen.Fingerprint, b.now); err != nil {
		return Status{}, err
	}
	st, _, err := b.status(ctx, b.tx, b.c, launchcheck.Adding, checkInput{attested: true}, b.now)
	x := b.importStatus()
	st.Import, st.Screen = &x, b.screen
	return st, err
}

// save writes the import with its rows, contacts, matches and audit.
func (b *batch) save(ctx context.Context, action string) error {
	var err error
	if b.screen.AuditID, err = b.Store.Imports.SaveAudit(ctx, b.tx, b.c, b.screen, b.found.versions, b.found.rules); err != nil {
		return err
	}
	b.i.Screen = &b.screen
	if err = store.ClaimImportFile(ctx, b.tx, b.i.SourceKey); err != nil {
		return err
	}
	contacts := func(yield func(campaigns.Contact, error) bool) {
		for _, c := range b.contacts {
			if !yield(c, nil) {
				return
			}
		}
	}
	if err = b.Store.Imports.Save(ctx, b.tx, b.i, b.importStatus().ByCode, contacts, nil); err != nil {
		return err
	}
	if err = b.Store.Imports.SaveMatches(ctx, b.tx, b.i.ID, b.found.matches); err != nil {
		return err
	}
	return b.Store.AddLog(ctx, b.tx, b.c, b.who.entry(action, b.i.ID, b.now))
}

// importStatus returns the import for the response.
func (b *batch) importStatus() ImportStatus {
	x := ImportStatus{Import: b.i, Screen: b.screen, Matches: b.screen.Items, Issues: []contactfile.Issue{}, ByCode: map[string]int{}}
	for _, r := range b.rows {
		for _, issue := range r.Issues {
			x.ByCode[issue.Code]++
			if x.Total++; x.Total <= screening.MaxItems {
				x.Issues = append(x.Issues, issue)
			}
		}
	}
	return x
}
