package pgqueue

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/db"
)

// readings are the data of several campaigns that are read together.
type readings struct {
	campaigns   map[string]campaigns.Campaign // by ID
	orgs        map[string]store.Organization // by ID
	waiting     map[string][]waitingGroup     // by campaign ID
	disclosures map[string]store.DisclosureSettings
}

// has reports whether the data of a campaign are complete.
func (r *readings) has(id string) bool {
	c, ok := r.campaigns[id]
	_, hasOrg := r.orgs[c.OrgID]
	_, hasDisclosure := r.disclosures[id]
	return ok && hasOrg && hasDisclosure
}

// read reads the data of campaigns, as readCampaigns does, with their disclosures.
func (q *Queue) read(ctx context.Context, ids []string) (*readings, error) {
	if len(ids) == 0 {
		return &readings{}, nil
	}
	all, faults := q.Store.ByID(ctx, q.Pool, ids)
	if faults != nil && all == nil {
		return nil, faults
	}
	r, err := readCampaigns(ctx, q.Pool, q.Store, all)
	if err != nil && r == nil {
		return nil, err
	}
	faults = errors.Join(faults, err)
	if r.disclosures, err = q.Store.DisclosuresByID(ctx, q.Pool, ids); err != nil && r.disclosures == nil {
		return nil, err
	}
	return r, errors.Join(faults, err)
}

// A waitingGroup is a calling-hours group that has pending contacts of one priority.
type waitingGroup struct {
	Priority int16
	Group    string
	Due      time.Time // when the first contact is due
}

// readCampaigns reads the data of campaigns in a few statements, however many there are. If it returns data and an
// error, the error is about organizations that are not in the data.
func readCampaigns(ctx context.Context, pool *pgxpool.Pool, from *store.Store, all []campaigns.Campaign) (*readings, error) {
	r := &readings{campaigns: make(map[string]campaigns.Campaign, len(all)), waiting: map[string][]waitingGroup{}}
	if len(all) == 0 {
		return r, nil
	}
	orgs := map[string]bool{}
	for _, c := range all {
		r.campaigns[c.ID], orgs[c.OrgID] = c, true
	}
	var faults error
	if r.orgs, faults = from.Organizations(ctx, pool, slices.Collect(maps.Keys(orgs))); faults != nil && r.orgs == nil {
		return nil, faults
	}
	var id string
	var w waitingGroup
	err := db.Each(ctx, pool, "waiting groups", []any{&id, &w.Priority, &w.Group, (*instant)(&w.Due)}, func() error {
		r.waiting[id] = append(r.waiting[id], w)
		return nil
	}, waitingGroupsSQL, slices.Sorted(maps.Keys(r.campaigns)))
	if err != nil {
		return nil, errors.Join(faults, err)
	}
	return r, faults
}

// waitingGroupsSQL returns the groups with pending contacts of the campaigns $1, by priority. It jumps from one group to
// the next in the index, whatever the number of contacts.
const waitingGroupsSQL = `
SELECT x.id, g.priority, g.hours_group, g.due_at FROM unnest($1::text[]) AS x (id), LATERAL (
	WITH RECURSIVE seen AS (
		(SELECT priority, hours_group, due_at FROM contacts WHERE campaign_id = x.id AND state = 'pending'
		 ORDER BY priority DESC, hours_group, due_at LIMIT 1)
		UNION ALL
		SELECT n.priority, n.hours_group, n.due_at FROM seen s, LATERAL (
			(SELECT priority, hours_group, due_at FROM contacts
			 WHERE campaign_id = x.id AND state = 'pending' AND priority = s.priority AND hours_group > s.hours_group
			 ORDER BY hours_group, due_at LIMIT 1)
			UNION ALL
			(SELECT priority, hours_group, due_at FROM contacts
			 WHERE campaign_id = x.id AND state = 'pending' AND priority < s.priority
			 ORDER BY priority DESC, hours_group, due_at LIMIT 1)
			LIMIT 1) n
	)
	SELECT priority, hours_group, due_at FROM seen) g`
