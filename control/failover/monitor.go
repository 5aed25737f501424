// Package failover prevents duplicate calls after the database reverted to an older state, for example because a
// standby that lagged behind was promoted. Before dialing resumes, each node restores the calls that its journal has
// and the database has lost.
package failover

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/groupcommit"
	"github.com/parley-voice/parley/control/journal"
)

// Monitor implements control.SendLog and control.Continuity. Set its exported fields before the first use; it is then
// safe for concurrent use.
type Monitor struct {
	Pool    *pgxpool.Pool
	Journal *journal.Journal
	// Attempts stores the results of restored calls.
	Attempts control.AttemptStore
	Node     control.NodeID
	// Key is the secret for hashing the numbers and Idempotency-Keys in the journal. All nodes use the same key.
	Key []byte
	// Lease is the duration of the node's lease; 0 means 15 s. After a revert, dialing pauses for at least this long.
	// Every live node checks the database three times in this period.
	Lease time.Duration
	// ReportTimeout is the maximum time to wait for the reports of other nodes; 0 means four leases.
	ReportTimeout time.Duration
	Log           *slog.Logger

	once    sync.Once
	sending groupcommit.Group[*control.Claim]

	checkMu sync.Mutex // held during a check
	swept   time.Time
	mu      sync.Mutex
	epoch   string    // the epoch for which this node last reported
	seen    time.Time // the newest state of the database that this node or its last process saw
	beat    int64     // the last value of this node's heartbeat counter
	calls   calls
	stats   Stats
	packs   atomic.Bool
}

// Stats counts the reverts that this node detected and the calls that it restored.
type Stats struct {
	Journal  journal.Stats
	Changes  int64 // reverts of the database
	Paused   bool  // dialing is paused until all nodes have reported
	Missing  int   // nodes that did not report in time, so that calls queued before the revert are held
	Restored int64 // calls that were restored completely
	Settled  int64 // calls restored from the journal file alone
	Facts    int64 // lost calls of which only the sending is known
	Lost     int64 // calls that could not be restored
}

// Stats returns counts since the process started.
func (w *Monitor) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stats
	s.Journal = w.Journal.Stats()
	return s
}

// name returns the name of a journal. A journal that replaces a lost one has another name.
func (w *Monitor) name(slot int) string {
	name := w.Node.Home + "#" + strconv.Itoa(slot)
	if id := w.Journal.ID(); id != "" {
		name += "@" + id
	}
	return name
}

func (w *Monitor) names() (all []string) {
	for _, slot := range w.Journal.Slots() {
		all = append(all, w.name(slot))
	}
	return all
}

// NumberHash returns the hash that stands for a number of an organization in journals.
func (w *Monitor) NumberHash(orgID, number string) journal.Hash {
	return w.hash("number", orgID, control.Digits(number))
}

// KeyHash returns the hash that stands for an Idempotency-Key in journals.
func (w *Monitor) KeyHash(scope, key string) journal.Hash { return w.hash("key", scope, key) }

func (w *Monitor) hash(parts ...string) (h journal.Hash) {
	mac := hmac.New(sha256.New, w.Key)
	for _, p := range parts {
		fmt.Fprintf(mac, "%d:%s", len(p), p)
	}
	copy(h[:], mac.Sum(nil))
	return h
}

// Err implements control.Continuity. It returns an error if the journal's disk fails, because the node must then send
// nothing.
func (w *Monitor) Err() error { return w.Journal.Err() }

// Check implements control.Continuity. It also flushes the journal.
func (w *Monitor) Check(ctx context.Context) (control.ContinuityStatus, error) {
	w.checkMu.Lock()
	defer w.checkMu.Unlock()
	if err := w.Journal.Flush(); err != nil {
		w.log().ErrorContext(ctx, "dialing stopped: failed to write the journal", "err", err)
	}
	w.mu.Lock()
	if w.epoch == "" {
		w.seen = w.Journal.Seen()
	}
	known := w.epoch
	w.mu.Unlock()
	is, err := w.look(ctx)
	if err != nil {
		return control.ContinuityStatus{}, fmt.Errorf("check database history: %w", err)
	}
	if is.epoch != known {
		if known != "" {
			w.log().ErrorContext(ctx, "database reverted to an earlier state: dialing paused until all nodes have reported")
		}
		if err = w.forward(ctx); err == nil {
			err = w.report(ctx, is)
		}
		if err != nil {
			return control.ContinuityStatus{}, fmt.Errorf("restore forgotten calls: %w", err)
		}
	}
	if !is.open {
		if is, err = w.open(ctx, is); err != nil {
			return control.ContinuityStatus{}, fmt.Errorf("open the dial queue: %w", err)
		}
	}
	if now := time.Now(); now.Sub(w.swept) > time.Hour {
		w.swept = now
		if err = w.sweep(ctx); err != nil {
			return control.ContinuityStatus{}, err
		}
	}
	if err = w.Journal.SetSeen(is.seen); err != nil {
		w.log().WarnContext(ctx, "failed to write the time of the database to the data directory", "err", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if known != "" && is.epoch != known {
		w.stats.Changes++
	}
	w.seen = is.seen
	w.epoch, w.stats.Paused, w.stats.Missing = is.epoch, !is.open, len(is.missing)
	return control.ContinuityStatus{Changes: int(w.stats.Changes), Open: is.open}, nil
}

// epoch is a period between two reverts of the database.
type epoch struct {
	epoch   string
	open    bool
	missing []string
	seen    time.Time // the last sign of life of the database
	behind  time.Time // the last sign of life before the revert with which the epoch began; zero if that is not known
}

const epochSQL = `
SELECT epoch, opened_at IS NOT NULL, missing, coalesce(seen_at, '0001-01-01'), coalesce(behind, '0001-01-01')
FROM database_epochs WHERE timeline = database_timeline()`

func (e *epoch) fields() []any { return []any{&e.epoch, &e.open, &e.missing, &e.seen, &e.behind} }

// look reads the current epoch, begins a new one after a revert, and updates the signs of life of this node and of the
// database.
func (w *Monitor) look(ctx context.Context) (e epoch, err error) {
	read := func() error { return w.Pool.QueryRow(ctx, epochSQL).Scan(e.fields()...) }
	if err = read(); errors.Is(err, pgx.ErrNoRows) {
		if err = w.begin(ctx); err == nil {
			err = read()
		}
	}
	w.mu.Lock()
	seen, known := w.seen, w.epoch
	w.mu.Unlock()
	if known != "" && known != e.epoch {
		seen = seen.Add(-longestLag) // the clock of a promoted standby may be behind
	}
	if err == nil && !e.seen.IsZero() && e.seen.Before(seen) {
		// This node saw a later state of the database: it reverted without a new timeline.
		if err = w.beginAgain(ctx, e.epoch); err == nil {
			err = read()
		}
	}
	if err != nil {
		return e, err
	}
	var beat int64
	var packs bool
	err = w.Pool.QueryRow(ctx, `
		WITH alive AS (
			UPDATE database_epochs SET seen_at = greatest(seen_at, clock_timestamp())
			WHERE timeline = database_timeline() AND epoch = $3 RETURNING seen_at
		)
		INSERT INTO nodes AS n (name, owner, beat, seen_at, packs_at) SELECT $1, $2, 1, at, at FROM clock_timestamp() at
		ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, beat = n.beat + 1, seen_at = excluded.seen_at, packs_at = excluded.packs_at
		RETURNING beat, coalesce((SELECT seen_at FROM alive), $4), `+mayPackSQL,
		w.name(w.Journal.Slots()[0]), w.Node.Owner, e.epoch, e.seen, packMigration, packAfter).Scan(&beat, &e.seen, &packs)
	if err != nil {
		return e, err
	}
	w.packs.Store(packs)
	w.mu.Lock()
	back := w.beat > 0 && beat <= w.beat && e.epoch == w.epoch
	w.beat = beat
	w.mu.Unlock()
	if back { // the heartbeat went back: the database reverted without a new timeline
		if err = w.beginAgain(ctx, e.epoch); err == nil {
			err = read()
		}
	}
	return e, err
}

// Nodes of the release before packMigration cannot read packs of calls. Nodes therefore write packs only packAfter after
// that migration, and while no such node runs. Until then an upgrade can be taken back.
const (
	packMigration = 272
	packAfter     = 24 * time.Hour
)

// mayPackSQL is true if this node may write packs. $1 is its name.
const mayPackSQL = `
	EXISTS (SELECT FROM goose_db_version WHERE version_id = $5 AND is_applied AND tstamp < (now() AT TIME ZONE current_setting('TimeZone')) - $6::interval)
	AND NOT EXISTS (SELECT FROM nodes WHERE name <> $1 AND packs_at IS DISTINCT FROM seen_at)`

// MayPack reports whether this node may write packs of calls and deliveries (db.Pack).
func (w *Monitor) MayPack() bool { return w.packs.Load() }

// restored stands for the unknown calls of a restored database in the list of missing nodes. A node removes it if it
// knows that the database has lost at most longestLag. Otherwise an operator removes it.
const restored = "restore"

// longestLag is the longest period that a failover may lose. After a longer one the database counts as restored from a
// backup: nodes that it does not know may have placed calls.
const longestLag = time.Minute

// begin begins an epoch for a new Postgres timeline. It expects a report from each node that was alive according to
// the reverted database.
func (w *Monitor) begin(ctx context.Context) error {
	_, err := w.Pool.Exec(ctx, `
		INSERT INTO database_epochs (timeline, epoch, seen_at, behind, expected)
		SELECT database_timeline(), $1, clock_timestamp(), coalesce((SELECT max(seen_at) FROM database_epochs), (SELECT max(seen_at) FROM nodes), 'epoch'),
			ARRAY(SELECT name FROM nodes WHERE seen_at > (SELECT max(seen_at) FROM nodes) - interval '60 seconds') || $2::text
		ON CONFLICT (timeline) DO NOTHING`, control.NewID("", time.Now()), restored)
	return err
}

// beginAgain begins a new epoch on the same Postgres timeline, unless another node has done so.
func (w *Monitor) beginAgain(ctx context.Context, known string) error {
	w.mu.Lock()
	seen := w.seen
	w.mu.Unlock()
	_, err := w.Pool.Exec(ctx, `
		UPDATE database_epochs SET epoch = $1, since = clock_timestamp(), opened_at = NULL, missing = '{}', released_at = NULL,
			seen_at = clock_timestamp(), behind = CASE WHEN seen_at < $3 THEN seen_at END,
			expected = ARRAY(SELECT name FROM nodes n WHERE n.seen_at > coalesce(database_epochs.seen_at, clock_timestamp()) - interval '10 minutes')
				|| CASE WHEN seen_at < $3 THEN ARRAY[$4] ELSE '{}' END
		WHERE timeline = database_timeline() AND epoch = $2`, control.NewID("", time.Now()), known, seen, restored)
	return err
}

// report records that this node has restored its calls, and whether the database has lost at most longestLag.
func (w *Monitor) report(ctx context.Context, is epoch) error {
	done := w.names()
	w.mu.Lock()
	lost := w.seen.Sub(is.behind)
	w.mu.Unlock()
	if lost.Abs() <= longestLag {
		done = append(done, restored)
	}
	_, err := w.Pool.Exec(ctx, `
		UPDATE database_epochs SET
			expected = ARRAY(SELECT x FROM unnest(expected) x WHERE x <> ALL ($2)),
			missing = ARRAY(SELECT x FROM unnest(missing) x WHERE x <> ALL ($2))
		WHERE timeline = database_timeline() AND epoch = $1`, is.epoch, done)
	return err
}

// open resumes dialing when all nodes have reported or ReportTimeout is over.
func (w *Monitor) open(ctx context.Context, is epoch) (epoch, error) {
	_, err := w.Pool.Exec(ctx, `
		UPDATE database_epochs SET opened_at = clock_timestamp(), missing = expected, expected = '{}'
		WHERE timeline = database_timeline() AND epoch = $1 AND opened_at IS NULL
		  AND (clock_timestamp() > since + $2::interval AND expected <@ $4 OR clock_timestamp() > since + $3::interval)`,
		is.epoch, w.lease(), w.reportTimeout(), []string{restored, byOperator})
	if err != nil {
		return is, err
	}
	err = w.Pool.QueryRow(ctx, epochSQL+" AND epoch = $1", is.epoch).Scan(is.fields()...)
	switch {
	case errors.Is(err, pgx.ErrNoRows): // the database reverted again; the next check finds that
		return is, nil
	case err != nil || !is.open:
	case len(is.missing) == 0:
		w.log().WarnContext(ctx, "all nodes have reported: dialing resumed")
	default:
		w.log().ErrorContext(ctx, "older calls and campaigns are held; run parley failover status", "for", is.missing)
	}
	return is, err
}

// sweep deletes nodes that were last seen a day ago, and clears the hashes in rows of sent_facts of that age. It
// deletes the rows after three days, when no journal has their calls any more.
func (w *Monitor) sweep(ctx context.Context) error {
	_, err := w.Pool.Exec(ctx, `
		WITH old_nodes AS (DELETE FROM nodes WHERE seen_at < clock_timestamp() - $1::interval
		), old AS (DELETE FROM sent_facts WHERE sent_at < clock_timestamp() - 3 * $1::interval)
		UPDATE sent_facts SET number_hash = '', key_hash = ''
		WHERE number_hash <> '' AND sent_at BETWEEN clock_timestamp() - 3 * $1::interval AND clock_timestamp() - $1::interval`, journal.Retention)
	return err
}

// Leave records that the node was stopped properly, so that other nodes do not wait for its journal.
func (w *Monitor) Leave(ctx context.Context) error {
	_, err := db.Exec(ctx, w.Pool, "leave", "DELETE FROM nodes WHERE name = ANY ($1)", w.names())
	return err
}

func (w *Monitor) lease() time.Duration { return cmp.Or(w.Lease, 15*time.Second) }
func (w *Monitor) reportTimeout() time.Duration {
	return max(cmp.Or(w.ReportTimeout, 4*w.lease()), w.lease())
}

func (w *Monitor) log() *slog.Logger { return cmp.Or(w.Log, slog.New(slog.DiscardHandler)) }
