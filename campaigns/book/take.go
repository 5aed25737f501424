package book

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/dialler"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/place"
	"github.com/parley-voice/parley/control/spelling"
)

type pgTimestamptz = pgtype.Timestamptz

// asksAtOnce bounds the contacts that are asked about in one transaction.
const asksAtOnce = 32

// longestTake bounds one transaction: what waits for somebody else's lock is given
// up, so that other campaigns have their turn.
const longestTake = 3 * time.Second

// errNoLine tells that a contact may be called and there is no line for it.
var errNoLine = errors.New("no line is free")

// errElsewhere tells that somebody else has a contact, or it is another by now.
var errElsewhere = errors.New("the contact is somebody else's")

// errGone tells that the campaign was changed while a contact of it was taken.
var errGone = errors.New("the campaign has changed")

// Take implements dialler.Book. The campaign's pace is locked from the first
// look to the end, so that servers take its contacts one after the other. Nor can
// the campaign be paused or cancelled meanwhile; while it is, it is left alone: who
// waited for it would have a line in hand.
func (b *Book) Take(ctx context.Context, ask dialler.Ask) (dialler.Answer, error) {
	d, ok := b.details[ask.ID]
	if !ok {
		return dialler.Answer{Gone: true}, nil
	}
	var answer dialler.Answer
	var lease *control.Lease
	until := time.Now().Add(b.Lease) // never later than on the database's clock
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, longestTake)
	defer cancel()
	err := db.Tx(ctx, b.Pool, func(tx pgx.Tx) error {
		now, pace, ok, next, err := b.hold(ctx, tx, d, ask)
		if err != nil || !ok {
			answer.Gone = true
			return err
		}
		if answer.Busy = next.way.shut(b, d); answer.Busy || d.stale { // there is nothing to be asked of the contacts
			return nil
		}
		lease, err = b.first(ctx, tx, d, ask, now, next.candidate, &answer)
		if err == nil && lease != nil && next.way.open {
			err = b.probe(ctx, tx, d, lease.CallID)
		}
		if err != nil || lease == nil {
			return err
		}
		pace = pace.Spent(now)
		b.paced(ask.ID, pace)
		_, err = tx.Exec(ctx, "UPDATE campaign_paces SET next_at = $2, last_at = $3 WHERE campaign_id = $1", ask.ID, pace.Next, now)
		return err
	})
	if errors.Is(err, errGone) {
		answer, lease, err = dialler.Answer{Gone: true}, nil, nil
	}
	if err != nil || lease == nil {
		return answer, err
	}
	return b.prepared(whole, *lease, until)
}

// prepared is the answer with a call that was begun.
func (b *Book) prepared(ctx context.Context, l control.Lease, until time.Time) (dialler.Answer, error) {
	claims, err := b.Claims.Prepare(ctx, []control.Lease{l}, until)
	if err != nil || len(claims) == 0 {
		return dialler.Answer{Gone: true}, err // the lease lapses, or the call is over
	}
	if !b.ends.IsZero() {
		claims[0].NotAfter = b.ends.Add(-b.ahead)
	}
	return dialler.Answer{Claim: claims[0]}, nil
}

// A next is the way of a campaign, and who comes first of it.
type next struct {
	way way
	candidate
}

// hold locks the pace of a campaign, if its next call is due and it runs still,
// and is as it was when it was read. It looks who comes first, too.
func (b *Book) hold(ctx context.Context, tx pgx.Tx, d detail, ask dialler.Ask) (now time.Time, p plan.Pace, ok bool, n next, err error) {
	p = ask.Pace
	var due, last time.Time
	batch := &pgx.Batch{}
	batch.Queue(`
		SELECT clock_timestamp(), p.next_at, p.last_at, r.open IS TRUE, (r.probe_call = '' AND r.probe_at <= clock_timestamp()) IS TRUE
		FROM campaign_paces p JOIN campaigns c ON c.id = p.campaign_id LEFT JOIN route_breakers r ON r.subgroup_id = c.route_id
		WHERE c.id = $1 AND c.status = 'running' AND c.updated_at = $2 AND (c.ends_at IS NULL OR c.ends_at > clock_timestamp())
		FOR UPDATE OF p SKIP LOCKED FOR SHARE OF c SKIP LOCKED`, ask.ID, d.campaign.UpdatedAt).QueryRow(func(row pgx.Row) error {
		fault := row.Scan(&now, (*instant)(&due), (*instant)(&last), &n.way.open, &n.way.probe)
		if ok = fault == nil; errors.Is(fault, pgx.ErrNoRows) {
			return nil
		}
		return fault
	})
	d.queueFirst(batch, ask, nil, &n.candidate)
	if err = tx.SendBatch(ctx, batch).Close(); err != nil {
		return now, p, false, n, fmt.Errorf("pace: %w", err)
	}
	if !ok {
		return now, p, false, n, nil
	}
	if p.Next, p.Last = spaced(now, due, last); !p.Due(now) {
		b.paced(ask.ID, p)
		return now, p, false, n, nil
	}
	return now, p, true, n, nil
}

// A candidate is a contact whose turn it is; its id is empty where nobody waits.
type candidate struct {
	id, number, group string
	due               time.Time
}

// firstSQL finds of each group and priority the contact whose time comes first.
const firstSQL = `
SELECT k.id, k.number, l.hours_group, k.due_at FROM unnest($2::smallint[], $3::text[]) WITH ORDINALITY AS l (priority, hours_group, place),
LATERAL (SELECT id, number, due_at FROM contacts
	WHERE campaign_id = $1 AND state = 'pending' AND priority = l.priority AND hours_group = l.hours_group AND id <> ALL ($4)
	ORDER BY due_at, id LIMIT 1) k
ORDER BY k.due_at > clock_timestamp(), l.priority DESC, k.due_at, k.id LIMIT 1`

// queueFirst asks who comes first of a campaign, beside those that had their turn.
func (d detail) queueFirst(batch *pgx.Batch, ask dialler.Ask, passed []string, c *candidate) {
	priorities, groups := []int16{}, []string{}
	for _, l := range d.waiting {
		if slices.Contains(ask.Open, l.Group) {
			priorities, groups = append(priorities, l.Priority), append(groups, l.Group)
		}
	}
	if passed == nil {
		passed = []string{}
	}
	batch.Queue(firstSQL, ask.ID, priorities, groups, passed).QueryRow(func(row pgx.Row) error {
		*c = candidate{}
		err := row.Scan(&c.id, &c.number, &c.group, (*instant)(&c.due))
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
}

// first takes the first contact that the gate lets go, and a line for it. What
// the gate decides about the others is kept.
func (b *Book) first(ctx context.Context, tx pgx.Tx, d detail, ask dialler.Ask, now time.Time, c candidate, answer *dialler.Answer) (*control.Lease, error) {
	var passed []string
	var decided bool
	for range asksAtOnce {
		if c.id == "" {
			return nil, nil //nolint:nilnil // nobody waits
		}
		if c.due.After(now) {
			answer.Next = c.due
			return nil, nil //nolint:nilnil // nobody's time has come
		}
		lease, err := b.try(ctx, tx, d, ask, c, now)
		if errors.Is(err, errNoLine) {
			answer.Busy = true
			return nil, nil //nolint:nilnil // there is none now
		}
		if lease != nil || err != nil && !errors.Is(err, errElsewhere) {
			return lease, err
		}
		decided = decided || err == nil
		passed = append(passed, c.id)
		batch := &pgx.Batch{}
		d.queueFirst(batch, ask, passed, &c)
		if err = tx.SendBatch(ctx, batch).Close(); err != nil {
			return nil, fmt.Errorf("next contact: %w", err)
		}
	}
	if decided {
		answer.Next = now
	}
	return nil, nil //nolint:nilnil // the others are asked about at once, or as soon as they are nobody else's
}

// try asks the gate about a contact, and does what it says.
func (b *Book) try(ctx context.Context, tx pgx.Tx, d detail, ask dialler.Ask, c candidate, now time.Time) (*control.Lease, error) {
	id := c.id
	if g, ok := d.wider(c); ok {
		return nil, b.move(ctx, tx, id, c.group, g)
	}
	k, suppressed, err := b.waiting(ctx, tx, d.org.ID, c, now.Add(-ask.Remembered(c.group)-longestCall))
	if err != nil {
		return nil, err
	}
	if k.reassigned {
		return nil, b.leave(ctx, tx, id, campaigns.Suppressed, campaigns.ReassignedNumber, "", now)
	}
	if !suppressed && b.Screen != nil {
		listed, err := b.Screen.Allowed(ctx, control.Number{OrgID: d.org.ID, Digits: control.Digits(k.number)}, control.ForCall)
		if err != nil {
			return nil, fmt.Errorf("do-not-call lists: %w", err)
		}
		suppressed = listed.List != ""
	}
	if suppressed {
		return nil, b.leave(ctx, tx, id, campaigns.Suppressed, campaigns.DNCSuppressed, "", now)
	}
	k.ScreenStale = d.stale
	switch v := ask.Gate(now, k.Contact); v.Fate {
	case plan.Go:
		b.ends = v.Until
		return b.call(ctx, tx, d, k, now)
	case plan.Capped:
		return nil, b.leave(ctx, tx, id, campaigns.Suppressed, campaigns.FrequencyCapped, v.Cap, now)
	case plan.Missed:
		return nil, b.leave(ctx, tx, id, campaigns.Exhausted, "", "", now)
	default:
		return nil, b.putOff(ctx, tx, id, v, now)
	}
}

// contact is one that waits.
type contact struct {
	plan.Contact

	number, name, external, language, importID string
	variables, metadata                        map[string]any
	attempts                                   int
	reassigned                                 bool // its number, since the consent
}

// waiting locks a contact that waits, unless it is elsewhere; and reads what the
// organization did with its number since an instant, and whether it is on its
// do-not-call list.
func (b *Book) waiting(ctx context.Context, tx pgx.Tx, orgID string, c candidate, since time.Time) (k *contact, suppressed bool, err error) {
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
	batch.Queue("SELECT EXISTS (SELECT FROM suppressions WHERE org_id = $1 AND number = ANY ($2))", orgID, spelling.All(control.Digits(c.number))).
		QueryRow(func(row pgx.Row) error { return row.Scan(&suppressed) })
	queueHistory(batch, orgID, c.number, since, k)
	if err = tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, false, fmt.Errorf("contact %s: %w", c.id, err)
	}
	if k.ID == "" {
		return nil, false, errElsewhere
	}
	k.RetryAt, k.NotBefore, k.NotAfter = retry, before, after
	return k, suppressed, nil
}

// call begins the call to a contact, on a line that is free.
func (b *Book) call(ctx context.Context, tx pgx.Tx, d detail, k *contact, now time.Time) (*control.Lease, error) {
	c := d.campaign
	o := place.Outgoing{
		OrgID: c.OrgID, AgentID: c.AgentID, AgentName: c.AgentName, AgentVersion: c.AgentVersion, To: k.number,
		From: c.Binding.FromNumber, TrunkID: c.Binding.TrunkID, RouteID: c.Binding.RouteID, Name: k.name, Variables: k.variables,
		Metadata: k.metadata, CampaignID: c.ID, ContactID: k.ID, ImportID: k.importID, ExternalID: k.external, Attempt: k.attempts + 1,
	}
	o.Disclosure, o.OptOut = d.said.In(k.language)
	lease, err := place.Begin(ctx, tx, o, b.Place, b.Lease)
	if refusal, ok := errors.AsType[*control.Error](err); ok {
		switch refusal.Code {
		case control.CodeDestinationNotAllowed: // the route does not go there
			return nil, b.leave(ctx, tx, k.ID, campaigns.Suppressed, campaigns.GeoRejected, "", now)
		case control.CodeAgentNotPublished, control.CodeAgentNotInSubgroup, control.CodeCallerNumberDenied: // others of the route may call
			return nil, err
		default:
			return nil, errNoLine
		}
	}
	if err != nil {
		return nil, err
	}
	ok, err := b.Store.Take(ctx, tx, k.ID, lease.CallID, now)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errGone // it was paused just now, say
	}
	return &lease, nil
}
