package dbtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Backup is a primary Postgres server that archives its WAL, and a second server that is restored from its backups.
type Backup struct{ *Pair }

// NewBackup starts the primary with an empty database "parley".
func NewBackup(t testing.TB) *Backup {
	t.Helper()
	// The archive lies in the working folder of the servers' data, whose parent they share.
	return &Backup{newPrimary(t, "-c", "archive_mode=on", "-c", "archive_command=mkdir -p ../archive && cp %p ../archive/%f")}
}

// Base takes a base backup.
func (b *Backup) Base() {
	b.t.Helper()
	b.run("pg_basebackup", "-h", "127.0.0.1", "-p", b.ports[0], "-U", "parley", "-D", b.path("base"), "-X", "none", "-c", "fast", "--no-sync")
}

// Now returns the time of the primary, as a recovery target.
func (b *Backup) Now() (at time.Time) {
	b.t.Helper()
	b.scan(&at, "SELECT clock_timestamp()")
	return at
}

// Archive waits until all WAL of the primary is archived.
func (b *Backup) Archive() {
	b.t.Helper()
	var last string
	b.scan(&last, "SELECT pg_walfile_name(pg_switch_wal())")
	b.await("the WAL is archived", func() bool { return b.ask(0, "SELECT last_archived_wal >= '"+last+"' FROM pg_stat_archiver") })
}

func (b *Backup) scan(to any, sql string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := b.connect(ctx, 0)
	if err == nil {
		err = conn.QueryRow(ctx, sql).Scan(to)
		_ = conn.Close(ctx)
	}
	if err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
}

// Restore starts the second server with the state of a time, from the base backup and the archive.
func (b *Backup) Restore(at time.Time) {
	b.t.Helper()
	began := time.Now()
	defer func() { b.t.Logf("restored in %v", time.Since(began).Round(time.Millisecond)) }()
	b.Kill(1)
	if err := os.RemoveAll(b.data(1)); err != nil {
		b.t.Fatal(err)
	}
	b.run("/bin/cp", "-a", b.path("base"), b.data(1))
	settings := fmt.Sprintf("restore_command = 'cp ../archive/%%f %%p'\nrecovery_target_time = '%s'\nrecovery_target_action = 'promote'\n",
		at.UTC().Format("2006-01-02 15:04:05.999999-07"))
	for name, text := range map[string]string{"postgresql.auto.conf": settings, "recovery.signal": ""} {
		// Only the owner, which is the user of the servers, may change its folder.
		b.run("/bin/sh", "-c", "printf %s \"$1\" > \"$0\"", filepath.Join(b.data(1), name), text)
	}
	b.Start(1)
	b.await("the recovery ends", func() bool { return b.ask(1, "SELECT NOT pg_is_in_recovery()") })
}

// Dump returns a dump of the database "parley".
func (b *Backup) Dump() string {
	b.t.Helper()
	b.run("pg_dump", "-h", "127.0.0.1", "-p", b.ports[0], "-U", "parley", "-Fc", "-f", b.path("dump"), "parley")
	return b.path("dump")
}

// RestoreDump replaces the database "parley" on its server with a dump.
func (b *Backup) RestoreDump(dump string) {
	b.t.Helper()
	b.exec(0, "DROP DATABASE parley WITH (FORCE)")
	b.exec(0, "CREATE DATABASE parley")
	b.run("pg_restore", "-h", "127.0.0.1", "-p", b.ports[0], "-U", "parley", "-d", "parley", dump)
}

func (b *Backup) path(name string) string { return filepath.Join(b.dir, name) }
