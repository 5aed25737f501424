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

// A table is what was measured, for people.
type table struct {
	*tabwriter.Writer

	bench *bench
	notes []string // that stand below it
}

// end shows the table, as far as it came.
func (t *table) end() {
	_ = t.Flush() // to a terminal
	for _, note := range t.notes {
		fmt.Fprintln(t.bench.Out, note)
	}
}

// idle is how long the disk is written to before anything else is.
const idle = time.Second

// head begins the table, with what the disk gives while nothing else is written.
func (t *table) head(ctx context.Context) error {
	fmt.Fprintln(t, "what\tasked\tanswered/s\tp50\tp99\tworst\trefused\tdialled/s\tCPU ms each\t")
	took, err := t.bench.disk.Before(ctx, idle)
	if err == nil {
		t.disk("disk_idle_ms", "the disk, idle: 8 KiB, synced", took)
	}
	return err
}

// disk adds what pages took to be on the disk.
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

// run measures answers, and returns how many there were.
func (t *table) run(name, what, asked string, do func() answers, bounds ...result.Bound) int {
	b := t.bench
	rang, cpu := b.rang.Load(), b.spent()
	r := do()
	fmt.Fprintf(t, "%s\t%s\t%.0f\t%.1f ms\t%.1f ms\t%.1f ms\t%d\t%.0f\t%.2f\t\n", what, asked, r.perSecond(), r.at(0.5), r.at(0.99), r.at(1), r.failed,
		float64(b.rang.Load()-rang)/r.took.Seconds(), float64(b.spent()-cpu)/float64(time.Millisecond)/float64(max(len(r.each), 1)))
	if r.err != nil {
		fmt.Fprintln(b.Options.Log, r.err)
	}
	b.keep(name, what+", "+asked, r, bounds)
	return len(r.each)
}

// written does what writes, and tells beside it what the disk gave meanwhile and
// what the database wrote. The calls that were dialled are among it.
func (t *table) written(ctx context.Context, name string, do func() int) (err error) {
	conn, err := pgx.Connect(ctx, t.bench.DatabaseURL())
	if err != nil {
		return fmt.Errorf("the database: %w", err)
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
	t.disk(name+"_disk_ms", "the disk meanwhile: 8 KiB, synced", took)
	each := after.less(before, float64(max(n, 1)))
	for _, f := range []struct {
		name, what, unit string
		value            float64
	}{
		{"transactions", "transactions", "", each.transactions}, {"syncs", "waits for the disk", "", each.syncs}, {"log", "log", "KiB", each.bytes / 1024},
	} {
		t.bench.Result.Add(result.Figure(name+"_"+f.name+"_each", name+": "+f.what+" an order", f.unit, result.Exactly(f.value)))
	}
	t.notes = append(t.notes, fmt.Sprintf("%s: an order is %.2f transactions, %.2f waits for the disk (%.0f/s) and %.1f KiB of log, with the calls that were dialled",
		name, each.transactions, each.syncs, (after.syncs-before.syncs)/length.Seconds(), each.bytes/1024))
	return nil
}

// A log is what the database did, reading among it, and what it wrote to its log.
type log struct{ transactions, syncs, bytes float64 }

// less is the difference of two, of each of n.
func (l log) less(before log, n float64) log {
	return log{(l.transactions - before.transactions) / n, (l.syncs - before.syncs) / n, (l.bytes - before.bytes) / n}
}

// logSQL asks for counts that are a second old at most. From version 18 on the
// database counts elsewhere how often it waited.
const logSQL = `
SELECT (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database())::float8,
       coalesce((to_jsonb(w) ->> 'wal_sync')::float8, 0), wal_bytes::float8
FROM pg_stat_wal w`

func readLog(ctx context.Context, conn *pgx.Conn) (l log, err error) {
	if err = conn.QueryRow(ctx, logSQL).Scan(&l.transactions, &l.syncs, &l.bytes); err != nil {
		return l, fmt.Errorf("what the database wrote: %w", err)
	}
	return l, nil
}
