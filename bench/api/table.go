package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/bench/result"
)

// A table prints the measurements.
type table struct {
	*tabwriter.Writer

	bench *bench
	notes []string // notes below the table
}

// end prints the measurements so far and the notes.
func (t *table) end() {
	_ = t.Flush() // only to a terminal
	for _, note := range t.notes {
		fmt.Fprintln(t.bench.Out, note)
	}
}

// idle is the duration of the disk measurement before all others.
const idle = time.Second

// head starts the table with the header and the speed of the idle disk.
func (t *table) head(ctx context.Context) error {
	fmt.Fprintln(t, "request\tload\tresponses/s\tp50\tp99\tmax\trefused\tdialed/s\tCPU ms each\t")
	took, err := t.bench.disk.Before(ctx, idle)
	if err == nil {
		t.disk("disk_idle_ms", "disk, idle: 8 KiB write and sync", took)
	}
	return err
}

// disk adds measured durations of disk syncs, in ms, to the result and the table.
func (t *table) disk(name, what string, took []float64) {
	t.bench.Result.Add(result.Spread(name, what, "ms", took))
	each := make([]time.Duration, len(took))
	for n, ms := range took {
		each[n] = time.Duration(ms * float64(time.Millisecond))
	}
	slices.Sort(each)
	r := answers{each: each}
	fmt.Fprintf(t, "%s\t\t\t%.1f ms\t%.1f ms\t%.1f ms\t\t\t\t\n", what, r.at(0.5), r.at(0.99), r.at(1))
}

// run measures do and returns the number of responses.
func (t *table) run(name, what, load string, do func() answers, bounds ...result.Bound) int {
	b := t.bench
	rang, cpu := b.rang.Load(), b.spent()
	r := do()
	dialed, each := float64(b.rang.Load()-rang)/r.took.Seconds(), float64(b.spent()-cpu)/float64(time.Millisecond)/float64(max(len(r.each), 1))
	fmt.Fprintf(t, "%s\t%s\t%.0f\t%.1f ms\t%.1f ms\t%.1f ms\t%d\t%.0f\t%.2f\t\n",
		what, load, r.perSecond(), r.at(0.5), r.at(0.99), r.at(1), r.failed, dialed, each)
	if r.err != nil {
		fmt.Fprintln(b.Options.Log, r.err)
	}
	b.addMetrics(name, what+", "+load, r, bounds)
	return len(r.each)
}

// measureWrites runs do and reports the speed of the disk and the database writes during it.
// These include the writes of dialing.
func (t *table) measureWrites(ctx context.Context, name string, do func() int) (err error) {
	conn, err := pgx.Connect(ctx, t.bench.DatabaseURL())
	if err != nil {
		return fmt.Errorf("failed to connect to the database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	before, err := readLog(ctx, conn)
	if err != nil {
		return err
	}
	stop, began := t.bench.disk.During(ctx), time.Now()
	n := do()
	took, fault := stop()
	length := time.Since(began)
	after, err := readLog(ctx, conn)
	if err = errors.Join(err, fault); err != nil {
		return err
	}
	t.disk(name+"_disk_ms", "disk, under load: 8 KiB write and sync", took)
	each := after.less(before, float64(max(n, 1)))
	for _, f := range []struct {
		name, what, unit string
		value            float64
	}{
		{"transactions", "transactions", "", each.transactions},
		{"syncs", "disk syncs", "", each.syncs},
		{"log", "log", "KiB", each.bytes / 1024},
	} {
		t.bench.Result.Add(result.Figure(name+"_"+f.name+"_each", name+": "+f.what+" per call request", f.unit, result.Exactly(f.value)))
	}
	t.notes = append(
		t.notes,
		fmt.Sprintf("%s: %.2f transactions, %.2f disk syncs (%.0f/s) and %.1f KiB of WAL per call request, dialing included",
			name, each.transactions, each.syncs, (after.syncs-before.syncs)/length.Seconds(), each.bytes/1024),
	)
	return nil
}

// A log is the number of transactions, syncs and WAL bytes of the database. Transactions include reads.
type log struct{ transactions, syncs, bytes float64 }

// less returns the difference of l and before, divided by n.
func (l log) less(before log, n float64) log {
	return log{(l.transactions - before.transactions) / n, (l.syncs - before.syncs) / n, (l.bytes - before.bytes) / n}
}

// logSQL reads counters that are up to one second old. From Postgres 18 on, syncs is 0, because
// pg_stat_wal no longer has them.
const logSQL = `
SELECT (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database())::float8,
       coalesce((to_jsonb(w) ->> 'wal_sync')::float8, 0), wal_bytes::float8
FROM pg_stat_wal w`

func readLog(ctx context.Context, conn *pgx.Conn) (l log, err error) {
	if err = conn.QueryRow(ctx, logSQL).Scan(&l.transactions, &l.syncs, &l.bytes); err != nil {
		return l, fmt.Errorf("failed to read database statistics: %w", err)
	}
	return l, nil
}
