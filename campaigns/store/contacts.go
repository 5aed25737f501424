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
}

// A ContactFilter selects contacts. Empty fields select all.
type ContactFilter struct {
	State  campaigns.State
	Reason string // of the suppression; requires State Suppressed
	// LastTen has the last ten digits of the number.
	LastTen string
}

// A ContactPosition is where a page of contacts ended. The zero value is before the first contact.
type ContactPosition struct {
	State    campaigns.State
	Reason   string
	Priority int
	Next     time.Time
	ID       string
}

// Position returns the position after a contact.
func (c ListedContact) Position() ContactPosition {
	return ContactPosition{c.State, c.Reason, c.Priority, c.Next, c.ID}
}

// ListedStates returns the states in the order of the list.
func ListedStates() []campaigns.State {
	return []campaigns.State{
		campaigns.InCall, campaigns.Awaiting, campaigns.Pending, campaigns.Done, campaigns.Exhausted, campaigns.Suppressed,
	}
}

const contactColumns = "id, number, name, state, reason, governing_cap, fault, hours_group, priority, attempts, " +
	"next_attempt_at, not_before, not_after"

// withLastCall adds the last call to the contacts k.
const withLastCall = "SELECT k.*, coalesce(x.call_id, ''), coalesce(x.outcome, ''), x.began_at FROM k " +
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
		var next, before, last, called *time.Time
		err = row.Scan(&c.ID, &c.Number, &c.Name, &c.State, &c.Reason, &c.Cap, &c.Fault, &c.Group, &c.Priority, &c.Attempts,
			&next, &before, &last, &c.CallID, &c.Outcome, &called)
		c.Next, c.NotBefore, c.NotAfter, c.CalledAt = zeroTime(next), zeroTime(before), zeroTime(last), zeroTime(called)
		return c, err
	}, sql, args...)
}
