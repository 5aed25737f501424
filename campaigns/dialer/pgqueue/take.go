package pgqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/dialer"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/phonenumber"
)

// maxCandidates bounds the contacts that one transaction considers.
const maxCandidates = 32

// takeTimeout bounds one transaction, including its waits for locks, so that other campaigns get their turn.
const takeTimeout = 3 * time.Second

// errNoChannel is returned if a contact may be called but no channel is free.
var errNoChannel = errors.New("no channel is free")

// errContactLocked is returned if another transaction holds the contact, or if it changed.
var errContactLocked = errors.New("another transaction holds the contact")

// errCampaignChanged is returned if the campaign changed while its contact was taken.
var errCampaignChanged = errors.New("the campaign has changed")

// Take implements dialer.Store. It locks the campaign's pace from its first read to its end, so
// that nodes take the contacts of a campaign one after the other, and the campaign cannot be
// paused or canceled in between. If another node holds the lock, Take skips the campaign,
// because waiting would hold a trunk channel.
func (q *Queue) Take(ctx context.Context, req dialer.TakeRequest) (dialer.TakeResult, error) {
	d, ok := q.details[req.ID]
	if !ok {
		return dialer.TakeResult{Gone: true}, nil
	}
	// A node that cannot run the agent leaves its contacts to other nodes.
	if able, err := d.checkAgent(ctx, q.CanTalk); err != nil || !able {
		return dialer.TakeResult{}, err
	}
	var result dialer.TakeResult
	var lease *control.Lease
	until := time.Now().Add(q.Lease) // before the transaction, so this is not later than the end of the lease in the database
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, takeTimeout)
	defer cancel()
	err := db.Tx(ctx, q.Pool, func(tx pgx.Tx) (err error) {
		lease, err = q.takeInTx(ctx, tx, d, req, &result)
		return err
	})
	if errors.Is(err, errCampaignChanged) {
		result, lease, err = dialer.TakeResult{Gone: true}, nil, nil
	}
	if err != nil || lease == nil {
		return result, err
	}
	return q.prepareClaim(parent, *lease, until)
}

// takeInTx takes a contact in a transaction. It returns no lease if no contact is called.
func (q *Queue) takeInTx(
	ctx context.Context, tx pgx.Tx, d detail, req dialer.TakeRequest, result *dialer.TakeResult,
) (*control.Lease, error) {
	now, pace, ok, head, err := q.lockPace(ctx, tx, d, req)
	if err != nil || !ok {
		result.Gone = true
		return nil, err
	}
	if result.Busy = head.route.blocks(q, d); result.Busy || d.stale || !head.spending.Allows() { // no contact can be called
		return nil, nil //nolint:nilnil // no call
	}
	if held, fault := q.isHeld(ctx, d, head.campaign); fault != nil || held {
		return nil, fault
	}
	lease, err := q.takeFirst(ctx, tx, d, req, now, head.candidate, result)
	if err != nil || lease == nil {
		return nil, err
	}
	if err = q.markProbes(ctx, tx, d, head, lease.CallID); err != nil {
		return nil, err
	}
	pace = pace.AfterCall(now)
	q.setPace(req.ID, pace)
	_, err = tx.Exec(ctx, "UPDATE campaign_paces SET next_at = $2, last_at = $3 WHERE campaign_id = $1", req.ID, pace.Next, now)
	return lease, err
}

// prepareClaim returns the claim of a call that was begun.
func (q *Queue) prepareClaim(ctx context.Context, l control.Lease, until time.Time) (dialer.TakeResult, error) {
	claims, err := q.Claims.Prepare(ctx, []control.Lease{l}, until)
	if err != nil || len(claims) == 0 {
		return dialer.TakeResult{Gone: true}, err // after an error the lease expires; without a claim the call has ended
	}
	if !q.startBefore.IsZero() {
		claims[0].NotAfter = q.startBefore.Add(-q.clockOffset)
	}
	return dialer.TakeResult{Claim: claims[0]}, nil
}

// A firstContact is the first contact of a campaign, with the breakers of the route and the campaign, and the
// spending of the campaign.
type firstContact struct {
	route, campaign breakerState
	spending        admission.Spending
	candidate
}

// lockPace locks the pace of a campaign and selects the first contact. ok is false if the next call is not due, if
// the campaign changed since it was read, or if another node holds the lock.
func (q *Queue) lockPace(
	ctx context.Context, tx pgx.Tx, d detail, req dialer.TakeRequest,
) (now time.Time, p plan.Pace, ok bool, n firstContact, err error) {
	p = req.Pace
	var due, last time.Time
	batch := &pgx.Batch{}
	batch.Queue(`
		SELECT clock_timestamp(), p.next_at, p.last_at, r.open IS TRUE, (r.probe_call = '' AND r.probe_at <= clock_timestamp()) IS TRUE,
			f.open IS TRUE, (f.probe_call = '' AND f.probe_at <= clock_timestamp()) IS TRUE
		FROM campaign_paces p JOIN campaigns c ON c.id = p.campaign_id LEFT JOIN route_breakers r ON r.subgroup_id = c.route_id
		LEFT JOIN campaign_breakers f ON f.campaign_id = c.id
		WHERE c.id = $1 AND c.status = 'running' AND c.updated_at = $2 AND (c.ends_at IS NULL OR c.ends_at > clock_timestamp())
		  AND coalesce(c.launched_at, '-infinity') >= (SELECT dialing_since())
		FOR UPDATE OF p SKIP LOCKED FOR SHARE OF c SKIP LOCKED`, req.ID, d.campaign.UpdatedAt).QueryRow(func(row pgx.Row) error {
		fault := row.Scan(&now, (*instant)(&due), (*instant)(&last), &n.route.open, &n.route.probe, &n.campaign.open, &n.campaign.probe)
		if ok = fault == nil; errors.Is(fault, pgx.ErrNoRows) {
			return nil
		}
		return fault
	})
	if n.spending = (admission.Spending{Budget: d.campaign.Budget, Expected: d.expected}); n.spending.Budget > 0 {
		store.QueueSpending(batch, req.ID, &n.spending)
	}
	d.queueFirst(batch, req, nil, &n.candidate)
	if err = tx.SendBatch(ctx, batch).Close(); err != nil {
		return now, p, false, n, fmt.Errorf("pace: %w", err)
	}
	if !ok {
		return now, p, false, n, nil
	}
	if p.Next, p.Last = dropFutureTimes(now, due, last); !p.IsDue(now) {
		q.setPace(req.ID, p)
		return now, p, false, n, nil
	}
	return now, p, true, n, nil
}

// A candidate is the next contact of a group; its id is empty if none is waiting.
type candidate struct {
	id, number, group string
	due               time.Time
}

// firstSQL selects the contact that is due first of each group and priority.
const firstSQL = `
SELECT k.id, k.number, l.hours_group, k.due_at FROM unnest($2::smallint[], $3::text[]) WITH ORDINALITY AS l (priority, hours_group, place),
LATERAL (SELECT id, number, due_at FROM contacts
	WHERE campaign_id = $1 AND state = 'pending' AND priority = l.priority AND hours_group = l.hours_group AND id <> ALL ($4)
	ORDER BY due_at, id LIMIT 1) k
ORDER BY k.due_at > clock_timestamp(), l.priority DESC, k.due_at, k.id LIMIT 1`

// queueFirst selects the first contact except those in passed.
func (d detail) queueFirst(batch *pgx.Batch, req dialer.TakeRequest, passed []string, c *candidate) {
	priorities, groups := []int16{}, []string{}
	for _, l := range d.groups {
		if slices.Contains(req.Open, l.Group) {
			priorities, groups = append(priorities, l.Priority), append(groups, l.Group)
		}
	}
	if passed == nil {
		passed = []string{}
	}
	batch.Queue(firstSQL, req.ID, priorities, groups, passed).QueryRow(func(row pgx.Row) error {
		*c = candidate{}
		err := row.Scan(&c.id, &c.number, &c.group, (*instant)(&c.due))
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
}

// takeFirst takes the first contact that the gate accepts, and a channel for it. It stores the gate's decisions about
// the contacts that it passes over.
func (q *Queue) takeFirst(
	ctx context.Context, tx pgx.Tx, d detail, req dialer.TakeRequest, now time.Time, c candidate, result *dialer.TakeResult,
) (*control.Lease, error) {
	var passed []string
	var decided bool
	for range maxCandidates {
		if c.id == "" {
			return nil, nil //nolint:nilnil // no contact waits
		}
		if c.due.After(now) {
			result.Next = c.due
			return nil, nil //nolint:nilnil // no contact is due
		}
		lease, err := q.tryContact(ctx, tx, d, req, c, now)
		if errors.Is(err, errNoChannel) {
			result.Busy = true
			return nil, nil //nolint:nilnil // no channel
		}
		if lease != nil || err != nil && !errors.Is(err, errContactLocked) {
			return lease, err
		}
		decided = decided || err == nil
		passed = append(passed, c.id)
		batch := &pgx.Batch{}
		d.queueFirst(batch, req, passed, &c)
		if err = tx.SendBatch(ctx, batch).Close(); err != nil {
			return nil, fmt.Errorf("next contact: %w", err)
		}
	}
	if decided {
		result.Next = now
	}
	return nil, nil //nolint:nilnil // the dialer asks again for the rest
}

// tryContact passes a contact to the gate and applies the decision.
func (q *Queue) tryContact(
	ctx context.Context, tx pgx.Tx, d detail, req dialer.TakeRequest, c candidate, now time.Time,
) (*control.Lease, error) {
	id := c.id
	if g, ok := d.relocate(c); ok {
		return nil, q.setGroup(ctx, tx, id, c.group, g)
	}
	k, suppressed, err := q.lockContact(ctx, tx, d.org.ID, c, now.Add(-req.DialHistory(c.group)-maxCallDuration))
	if err != nil {
		return nil, err
	}
	if k.reassigned {
		return nil, q.setState(ctx, tx, id, campaigns.Suppressed, campaigns.ReassignedNumber, "", now)
	}
	if !suppressed && q.Screen != nil {
		listed, err := q.Screen.Screen(ctx, control.Number{OrgID: d.org.ID, Digits: control.Digits(k.number)}, control.ForCall)
		if err != nil {
			return nil, fmt.Errorf("do-not-call lists: %w", err)
		}
		suppressed = listed.List != ""
	}
	if suppressed {
		return nil, q.setState(ctx, tx, id, campaigns.Suppressed, campaigns.DNCSuppressed, "", now)
	}
	k.ScreenStale = d.stale
	switch v := req.Gate(now, k.Contact); v.Decision {
	case plan.Go:
		q.startBefore = v.Until
		return q.beginCall(ctx, tx, d, k, now)
	case plan.Capped:
		return nil, q.setState(ctx, tx, id, campaigns.Suppressed, campaigns.FrequencyCapped, v.Cap, now)
	case plan.Missed:
		return nil, q.setState(ctx, tx, id, campaigns.Exhausted, "", "", now)
	default:
		return nil, q.postpone(ctx, tx, id, v, now)
	}
}

// A contact is a locked waiting contact.
type contact struct {
	plan.Contact

	number, name, external, language, importID string
	variables, metadata                        map[string]any
	attempts                                   int
	reassigned                                 bool // the number was reassigned since the consent
}

// lockContact locks a waiting contact. It reads the history of its number since an instant, and
// whether the organization's list contains the number. It returns errContactLocked if another
// transaction holds the contact.
func (q *Queue) lockContact(
	ctx context.Context, tx pgx.Tx, orgID string, c candidate, since time.Time,
) (k *contact, suppressed bool, err error) {
	k = &contact{}
	var retry, before, after time.Time
	batch := &pgx.Batch{}
	batch.Queue(`
		SELECT id, hours_group, number, name, external_id, language, import_id, variables, metadata, attempts,
			coalesce(next_attempt_at, '-infinity'), coalesce(not_before, '-infinity'), coalesce(not_after, '-infinity'), `+store.Reassigned+`
		FROM contacts c WHERE id = $1 AND number = $2 AND hours_group = $3 AND state = 'pending' FOR UPDATE SKIP LOCKED`, c.id, c.number, c.group).
		QueryRow(func(row pgx.Row) error {
			fault := row.Scan(&k.ID, &k.Group, &k.number, &k.name, &k.external, &k.language, &k.importID, &k.variables, &k.metadata, &k.attempts,
				(*instant)(&retry), (*instant)(&before), (*instant)(&after), &k.reassigned)
			if errors.Is(fault, pgx.ErrNoRows) {
				return nil
			}
			return fault
		})
	batch.Queue("SELECT EXISTS (SELECT FROM suppressions WHERE org_id = $1 AND number = ANY ($2))", orgID,
		phonenumber.ListedForms(control.Digits(c.number))).
		QueryRow(func(row pgx.Row) error { return row.Scan(&suppressed) })
	if q.SentHash != nil { // the database lost the call in a failover, so its end is unknown
		hash := q.SentHash(orgID, c.number)
		batch.Queue("SELECT EXISTS (SELECT FROM sent_facts WHERE number_hash = $1)", hash[:]).
			QueryRow(func(row pgx.Row) error { return row.Scan(&k.Engaged) })
	}
	queueHistory(batch, orgID, c.number, since, k)
	if err = tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, false, fmt.Errorf("contact %s: %w", c.id, err)
	}
	if k.ID == "" {
		return nil, false, errContactLocked
	}
	k.RetryAt, k.NotBefore, k.NotAfter = retry, before, after
	return k, suppressed, nil
}

// beginCall begins the call to a contact on a free channel.
func (q *Queue) beginCall(ctx context.Context, tx pgx.Tx, d detail, k *contact, now time.Time) (*control.Lease, error) {
	c := d.campaign
	o := admission.CampaignCall{
		OrgID: c.OrgID, AgentID: c.AgentID, AgentName: c.AgentName, AgentVersion: c.AgentVersion, To: k.number,
		From: c.Binding.FromNumber, TrunkID: c.Binding.TrunkID, RouteID: c.Binding.RouteID, Name: k.name, Variables: k.variables,
		Metadata: k.metadata, CampaignID: c.ID, ContactID: k.ID, ImportID: k.importID, ExternalID: k.external, Attempt: k.attempts + 1,
	}
	o.Disclosure, o.OptOut = d.disclosure.Text(k.language)
	lease, err := admission.StartCampaignCall(ctx, tx, o, q.Node, q.Lease)
	if refusal, ok := errors.AsType[*control.Error](err); ok {
		switch refusal.Code {
		case control.CodeDestinationNotAllowed, control.CodeDestinationInvalid: // the route does not allow the destination
			return nil, q.setState(ctx, tx, k.ID, campaigns.Suppressed, campaigns.GeoRejected, "", now)
		case control.CodeAgentNotPublished, control.CodeAgentNotInSubgroup,
			control.CodeCallerNumberDenied: // other campaigns of the route may call
			return nil, err
		default:
			return nil, errNoChannel
		}
	}
	if err != nil {
		return nil, err
	}
	ok, err := q.Store.Attempts.Begin(ctx, tx, k.ID, lease.CallID, now)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errCampaignChanged // for example because the campaign was paused in between
	}
	return &lease, nil
}
