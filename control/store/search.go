package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// A queueSearch remembers where the dial queue begins. While a transaction keeps an old snapshot, the indexes of the
// queue keep the entries of all attempts that have left it, and a search reads them all. If that is slow, most searches
// begin at the oldest attempt instead. They miss an attempt that returned to the queue, until a search of the whole
// queue finds it, at most maxSearchAge later.
type queueSearch struct {
	mu    sync.Mutex
	from  time.Time // creation time of the oldest attempt
	until time.Time // time until which from is used

	// idle reports that the last claim found no subgroup. The next claim then looks for one before it begins a transaction.
	idle atomic.Bool
}

const (
	slowSearch   = 10 * time.Millisecond // a faster search always reads the whole queue
	searchShare  = 10                    // the whole queue is searched a tenth of the time
	maxSearchAge = time.Second
)

// start returns the creation time from which to search, or the zero time for the whole queue.
func (q *queueSearch) start(now time.Time) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now.Before(q.until) {
		return q.from
	}
	return time.Time{}
}

// oldestSQL returns a time before which no attempt of the queue was created, even if its transaction commits later.
const oldestSQL = `
SELECT least(min(created_at), clock_timestamp()) - interval '2 seconds' FROM attempts WHERE state = 'scheduled'`

// find stores where the queue begins, after a slow search of the whole queue (start is zero). After an error the next search
// reads the whole queue again.
func (q *queueSearch) find(ctx context.Context, pool *pgxpool.Pool, start time.Time, took time.Duration) {
	var from time.Time
	if !start.IsZero() || took < slowSearch || pool.QueryRow(ctx, oldestSQL).Scan(&from) != nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.from, q.until = from, time.Now().Add(min(searchShare*took, maxSearchAge))
}

// waitingSQL returns the CTE "waiting": the subgroups with queued calls. from is an SQL expression. If it is NULL, the
// query looks up one attempt of each subgroup in the index, so its time does not depend on the length of the queues.
// Otherwise it reads only the oldest attempts that were created since then.
func waitingSQL(from string) string {
	return `
WITH RECURSIVE listed AS (
	(SELECT subgroup_id AS id FROM attempts WHERE state = 'scheduled' AND ` + from + `::timestamptz IS NULL ORDER BY subgroup_id LIMIT 1)
	UNION ALL
	SELECT (SELECT subgroup_id FROM attempts WHERE state = 'scheduled' AND subgroup_id > w.id ORDER BY subgroup_id LIMIT 1)
	FROM listed w WHERE w.id IS NOT NULL
), waiting AS (
	SELECT id FROM listed UNION
	SELECT subgroup_id FROM (SELECT subgroup_id FROM attempts WHERE state = 'scheduled' AND created_at >= ` + from + `::timestamptz ORDER BY created_at LIMIT 100) recent
)`
}
