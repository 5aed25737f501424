package store

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/control/db"
)

// A ListedContact is a contact in a list, with its last call.
type ListedContact struct {
	ID, Number, Name string
	State            campaigns.State
	Reason           string // of the suppression
	Cap              string // frequency cap that holds the contact
	Fault            string // fault of Parley or a provider that ended the attempts
	Group            string // key of the contact's calling hours
	Priority         int
	Attempts         int
	// Next, NotBefore and NotAfter are zero if there is no such time.
	Next, NotBefore, NotAfter time.Time
	CallID, Outcome           string // last call; its outcome is empty while it is active
	CalledAt                  time.Time

	due time.Time // when the dialer looks at the contact; zero for always
}

// A ContactFilter selects contacts. Empty fields select all.
type ContactFilter struct {
	State  campaigns.State
	Reason string // of the suppression; requires State Suppressed
	// LastTen has the last ten digits of the number.
	LastTen string
	// Readiness selects pending contacts; nil selects all.
	Readiness *Readiness
}

// A Readiness selects pending contacts by whether they may be called.
type Readiness struct {
	Ready bool // those that may be called at Now, or those that wait
	Now   time.Time
	// Open and Closed have the keys of the calling hours of all pending contacts, by whether such contacts may be called.
	Open, Closed []string
}

// A ContactPosition is where a page of contacts ended. The zero value is before the first contact.
type ContactPosition struct {
	State    campaigns.State
	Reason   string
	Priority int
	Next     time.Time
	ID       string
}

// Position returns the position after a contact in a list that the filter selects.
func (f ContactFilter) Position(c ListedContact) ContactPosition {
	at := ContactPosition{c.State, c.Reason, c.Priority, c.Next, c.ID}
	if f.Readiness != nil {
		at.Next = c.due
	}
	return at
}

// ListedStates returns the states in the order of the list.
func ListedStates() []campaigns.State {
	return []campaigns.State{
		campaigns.InCall, campaigns.Awaiting, campaigns.Pending, campaigns.Done, campaigns.Exhausted, campaigns.Suppressed,
	}
}

const contactColumns = "id, number, name, state, reason, governing_cap, fault, hours_group, priority, attempts, " +
	"next_attempt_at, not_before, not_after, due_at"

// PendingHours returns the keys of the calling hours of the pending contacts of a campaign.
func (Contacts) PendingHours(ctx context.Context, q db.Querier, campaignID string) ([]string, error) {
	return db.Collect(ctx, q, "calling hours", pgx.RowTo[string], `SELECT hours_group FROM contact_tallies
		WHERE campaign_id = $1 AND state = 'pending' GROUP BY 1 HAVING sum(n) <> 0`, campaignID)
}

// waits holds for contacts with calling hours now that may not be called because of a time of their own.
const waits = "((next_attempt_at > $5 OR not_before > $5 OR not_after <= $5) IS TRUE)"

// byReadiness selects pending contacts after a position: per key of calling hours and priority a range of the index
// contacts_waiting. It reads about a page per key and priority. A contact that is ready is due within the time until a
// postponed contact is checked again.
const byReadiness = "WITH k AS (SELECT " + contactColumns + ` FROM (
	SELECT x.* FROM unnest($2::text[], $3::boolean[]) AS g (key, open), generate_series(0, least($6::int, 9)) AS p (priority), LATERAL (
		SELECT * FROM contacts WHERE campaign_id = $1 AND state = 'pending' AND priority = p.priority AND hours_group = g.key
			AND due_at >= CASE WHEN $4::boolean OR NOT g.open THEN '-infinity' ELSE $5::timestamptz END
			AND due_at <= CASE WHEN $4 THEN $5 + interval '1 minute' ELSE 'infinity' END
			AND (due_at, id) > (CASE WHEN p.priority = $6 THEN coalesce($7::timestamptz, '-infinity') ELSE '-infinity' END,
				CASE WHEN p.priority = $6 THEN $8::text ELSE '' END)
			AND (NOT g.open OR ` + waits + ` <> $4)
		ORDER BY due_at, id LIMIT $9) x
	UNION ALL
	(SELECT * FROM contacts WHERE NOT $4 AND campaign_id = $1 AND state = 'pending' AND not_after <= $5 AND due_at < $5
		AND (next_attempt_at IS NOT NULL OR not_before IS NOT NULL OR not_after IS NOT NULL)
		AND hours_group IN (SELECT key FROM unnest($2::text[], $3::boolean[]) AS g (key, open) WHERE open)
		AND (-priority, due_at, id) > (-$6, coalesce($7::timestamptz, '-infinity'), $8) ORDER BY priority DESC, due_at, id LIMIT $9)
	) x ORDER BY priority DESC, due_at, id LIMIT $9) ` + withLastCall + "ORDER BY k.priority DESC, k.due_at, k.id"

func (r Readiness) page(ctx context.Context, q db.Querier, campaignID string, after ContactPosition, most int) ([]ListedContact, error) {
	keys, open := r.Open, make([]bool, len(r.Open))
	for i := range open {
		open[i] = true
	}
	if !r.Ready {
		keys = append(slices.Clone(r.Open), r.Closed...)
		open = append(open, make([]bool, len(r.Closed))...)
	}
	priority := after.Priority
	if after.ID == "" {
		priority = 10 // more than any contact has
	}
	return listContacts(ctx, q, byReadiness, campaignID, keys, open, r.Ready, r.Now, priority, nullTime(after.Next), after.ID, most)
}

// withLastCall adds the last call to the contacts k.
const withLastCall = "SELECT k.id, k.number, k.name, k.state, k.reason, k.governing_cap, k.fault, k.hours_group, k.priority, k.attempts, " +
	"k.next_attempt_at, k.not_before, k.not_after, nullif(k.due_at, '-infinity'), " +
	"coalesce(x.call_id, ''), coalesce(x.outcome, ''), x.began_at FROM k " +
	"LEFT JOIN LATERAL (SELECT call_id, outcome, began_at FROM contact_attempts WHERE contact_id = k.id ORDER BY n DESC LIMIT 1) x ON true "

// inOrder is the order within a state: that of the index contacts_by_state.
const inOrder = "priority DESC, next_attempt_at, id"

// Page returns the contacts of a campaign after a position: those of one state after those of another, and those that
// are called first before others. Every page reads about as many rows as it returns, however many contacts there are.
func (Contacts) Page(
	ctx context.Context, q db.Querier, orgID, campaignID string, f ContactFilter, after ContactPosition, most int,
) (all []ListedContact, err error) {
	if f.LastTen != "" {
		return listContacts(ctx, q, "WITH k AS (SELECT "+contactColumns+` FROM contacts
			WHERE org_id = $1 AND last_ten = $2 AND campaign_id = $3 ORDER BY created_at, id LIMIT $4) `+withLastCall, orgID, f.LastTen, campaignID, most)
	}
	if f.Readiness != nil {
		return f.Readiness.page(ctx, q, campaignID, after, most)
	}
	states := ListedStates()
	for _, state := range states[max(0, slices.Index(states, after.State)):] {
		if f.State != "" && f.State != state || len(all) >= most {
			continue
		}
		from := after
		if state != after.State {
			from = ContactPosition{Priority: 10} // more than any contact has
		}
		var some []ListedContact
		if state == campaigns.Suppressed {
			some, err = listContacts(ctx, q, "WITH k AS (SELECT "+contactColumns+` FROM contacts
				WHERE campaign_id = $1 AND state = 'suppressed' AND ($2 = '' OR reason = $2) AND (reason, id) > ($3, $4) ORDER BY reason, id LIMIT $5) `+
				withLastCall+"ORDER BY k.reason, k.id", campaignID, f.Reason, from.Reason, from.ID, most-len(all))
		} else {
			some, err = listContacts(ctx, q, inState, campaignID, state, from.Priority, nullTime(from.Next), from.ID, most-len(all))
		}
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// inState selects what follows a position in a state. Each part is a range of the index contacts_by_state.
const inState = "WITH k AS (SELECT " + contactColumns + ` FROM (
	(SELECT * FROM contacts WHERE campaign_id = $1 AND state = $2 AND priority = $3 AND next_attempt_at = $4 AND id > $5 ORDER BY id LIMIT $6)
	UNION ALL
	(SELECT * FROM contacts WHERE campaign_id = $1 AND state = $2 AND priority = $3 AND next_attempt_at > $4 ORDER BY next_attempt_at, id LIMIT $6)
	UNION ALL
	(SELECT * FROM contacts WHERE campaign_id = $1 AND state = $2 AND priority = $3 AND next_attempt_at IS NULL
		AND id > CASE WHEN $4::timestamptz IS NULL THEN $5 ELSE '' END ORDER BY id LIMIT $6)
	UNION ALL
	(SELECT * FROM contacts WHERE campaign_id = $1 AND state = $2 AND priority < $3 ORDER BY ` + inOrder + ` LIMIT $6)
	) x ORDER BY ` + inOrder + " LIMIT $6) " + withLastCall + "ORDER BY k.priority DESC, k.next_attempt_at, k.id"

func listContacts(ctx context.Context, q db.Querier, sql string, args ...any) ([]ListedContact, error) {
	return db.Collect(ctx, q, "contacts", func(row pgx.CollectableRow) (c ListedContact, err error) {
		var next, before, last, due, called *time.Time
		err = row.Scan(&c.ID, &c.Number, &c.Name, &c.State, &c.Reason, &c.Cap, &c.Fault, &c.Group, &c.Priority, &c.Attempts,
			&next, &before, &last, &due, &c.CallID, &c.Outcome, &called)
		c.Next, c.NotBefore, c.NotAfter, c.CalledAt = zeroTime(next), zeroTime(before), zeroTime(last), zeroTime(called)
		c.due = zeroTime(due)
		return c, err
	}, sql, args...)
}
