package store

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control/db"
)

// FreeChannels is how many more calls the concurrency limits of subgroup s, trunk t and grant g allow. The limit of a
// grant covers all subgroups of the borrower on the trunk. It reads channel_counts, which triggers of table attempts
// maintain, so its time does not depend on the number of live calls.
const FreeChannels = `least(s.concurrent_calls - (SELECT coalesce(sum(x.n), 0) FROM channel_counts x WHERE x.trunk_id = s.trunk_id AND x.subgroup_id = s.id),
	CASE WHEN g.concurrent_calls > 0 THEN
		g.concurrent_calls - (SELECT coalesce(sum(x.n), 0) FROM channel_counts x WHERE x.trunk_id = t.id AND x.org_id = g.org_id) END,
	CASE WHEN t.concurrent_calls > 0 THEN
		t.concurrent_calls - (SELECT coalesce(sum(x.n), 0) FROM channel_counts x WHERE x.trunk_id = t.id) END)`

// HasFreeChannel is true if the concurrency limits of subgroup s, trunk t and grant g allow one more call.
const HasFreeChannel = FreeChannels + ` > 0`

// ChannelCounter compares the counts of channels in use with the live attempts, and corrects wrong ones. Any number of
// nodes may run it: each check is made by one of them.
type ChannelCounter struct {
	Pool *pgxpool.Pool
	Log  *slog.Logger

	repaired atomic.Int64
}

// channelCheckInterval is the time between two checks.
const channelCheckInterval = time.Minute

// Run checks the counts at once, because the database may have been restored, and then periodically until ctx ends.
func (c *ChannelCounter) Run(ctx context.Context) {
	tick := time.NewTicker(channelCheckInterval)
	defer tick.Stop()
	for {
		if _, err := c.Check(ctx, channelCheckInterval/2); err != nil && ctx.Err() == nil {
			c.Log.WarnContext(ctx, "failed to check the counts of channels", "err", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Repaired returns how many wrong counts this process has corrected.
func (c *ChannelCounter) Repaired() int64 { return c.repaired.Load() }

// channelDutySQL returns a row if no node has checked the counts within $1. It locks the duty until the transaction
// ends. A time that is far in the future was written before the clock was set back.
const channelDutySQL = `
INSERT INTO duties AS d (name, owner, until) VALUES ('channels', '', clock_timestamp() + $1::interval)
ON CONFLICT (name) DO UPDATE SET until = excluded.until WHERE d.until < clock_timestamp() OR d.until > excluded.until + $1::interval
RETURNING true`

// repairChannelsSQL adds what is missing to each wrong count. One statement sees one snapshot, in which changes of
// attempts and their counts are both present or both absent. It locks nothing: a concurrent change is added to the
// corrected count.
const repairChannelsSQL = `
INSERT INTO channel_counts (trunk_id, subgroup_id, org_id, n)
SELECT trunk_id, subgroup_id, org_id, sum(n) FROM (
	SELECT trunk_id, subgroup_id, org_id, count(*) AS n FROM attempts WHERE state IN ` + ActiveStates + ` AND trunk_id <> '' GROUP BY 1, 2, 3
	UNION ALL SELECT trunk_id, subgroup_id, org_id, -sum(n) FROM channel_counts GROUP BY 1, 2, 3) x
GROUP BY 1, 2, 3 HAVING sum(n) <> 0
RETURNING trunk_id, subgroup_id, n`

// mergeChannelsSQL merges the rows of each key that has more than one or a count of 0, except rows that a running
// transaction changes.
const mergeChannelsSQL = `
WITH old AS (
	SELECT id FROM channel_counts WHERE n = 0 OR (trunk_id, subgroup_id, org_id) IN (
		SELECT trunk_id, subgroup_id, org_id FROM channel_counts GROUP BY 1, 2, 3 HAVING count(*) > 1)
	FOR UPDATE SKIP LOCKED
), gone AS (
	DELETE FROM channel_counts c USING old WHERE c.id = old.id RETURNING c.trunk_id, c.subgroup_id, c.org_id, c.n
)
INSERT INTO channel_counts (trunk_id, subgroup_id, org_id, n)
SELECT trunk_id, subgroup_id, org_id, sum(n) FROM gone GROUP BY 1, 2, 3 HAVING sum(n) <> 0`

// Check corrects wrong counts and returns how many there were. It does nothing if a node has checked them within the
// interval.
func (c *ChannelCounter) Check(ctx context.Context, interval time.Duration) (repaired int, err error) {
	type correction struct {
		Trunk, Subgroup string
		By              int
	}
	var all []correction
	err = db.Tx(ctx, c.Pool, func(tx pgx.Tx) error {
		due, fault := db.Collect(ctx, tx, "", pgx.RowTo[bool], channelDutySQL, interval)
		if fault != nil || len(due) == 0 {
			return fault
		}
		if all, fault = db.Collect(ctx, tx, "", pgx.RowToStructByPos[correction], repairChannelsSQL); fault != nil {
			return fault
		}
		_, fault = tx.Exec(ctx, mergeChannelsSQL)
		return fault
	})
	if err != nil {
		return 0, fmt.Errorf("counts of channels: %w", err)
	}
	for _, x := range all {
		c.Log.WarnContext(ctx, "corrected a wrong count of channels in use", "trunk", x.Trunk, "subgroup", x.Subgroup, "by", x.By)
	}
	c.repaired.Add(int64(len(all)))
	return len(all), nil
}
