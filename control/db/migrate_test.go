package db

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// scratch is a Postgres server whose database has only a table "big". The user of pool is not a superuser.
func scratch(t *testing.T) (pool *pgxpool.Pool) {
	t.Helper()
	dir, err := os.MkdirTemp("", "parley-pg-") //nolint:usetesting // Postgres runs as another user
	if err != nil {
		t.Fatal(err)
	}
	if err = os.Chmod(dir, 0o711); err != nil { // Postgres runs as another user
		t.Fatal(err)
	}
	l := &Local{Dir: dir, Fast: true}
	t.Cleanup(func() {
		l.Stop()
		_ = os.RemoveAll(dir)
	})
	if err = l.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	admin, err := newPool(t.Context(), l.URL("parley"), Config{}, 2, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if _, err = admin.Exec(t.Context(), "CREATE ROLE app LOGIN; GRANT ALL ON SCHEMA public TO app"); err != nil {
		t.Fatal(err)
	}
	pool, err = newPool(t.Context(), strings.Replace(l.URL("parley"), "user=parley", "user=app", 1), Config{}, 8, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	must(t, pool, "CREATE TABLE big (id int PRIMARY KEY, x int); INSERT INTO big (id) SELECT generate_series(1, 20000)")
	return pool
}

func must(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func value[T any](t *testing.T, pool *pgxpool.Pool, sql string) (v T) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// release is a folder of migrations after the baseline.
func release(files map[string]string) fstest.MapFS {
	dir := fstest.MapFS{"00250_first.sql": {Data: []byte("-- +goose Up\nSELECT 1;\n")}}
	for name, text := range files {
		dir[name] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + text)}
	}
	return dir
}

// beginRead begins a transaction that has read big, and so holds a lock that migrations of big wait for.
func beginRead(t *testing.T, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	if _, err = tx.Exec(t.Context(), "SELECT count(*) FROM big"); err != nil {
		t.Fatal(err)
	}
	return tx
}

// TestMigrationsDoNotBlock runs a migration while a long transaction holds a lock on its table. Other transactions
// must not queue behind the migration for long, and the migration must be applied once the transaction ends. Several
// processes migrate at the same time.
func TestMigrationsDoNotBlock(t *testing.T) {
	t.Parallel()
	pool := scratch(t)
	dir := release(map[string]string{"00900_column.sql": "ALTER TABLE big ADD COLUMN y int;\n"})
	long := beginRead(t, pool)
	var migrations sync.WaitGroup
	for range 2 {
		migrations.Go(func() {
			m := &migrator{pool: pool, dir: dir, patience: time.Minute}
			if fault := m.run(t.Context()); fault != nil {
				t.Error(fault)
			}
		})
	}
	var slowest time.Duration
	waited := 0
	for began := time.Now(); time.Since(began) < 2*time.Second; {
		at := time.Now()
		must(t, pool, "UPDATE big SET x = 1 WHERE id = 1")
		took := time.Since(at)
		slowest = max(slowest, took)
		if took > lockTimeout/2 {
			waited++
		}
	}
	if waited == 0 {
		t.Error("the migration did not try to lock the table")
	}
	if slowest > 5*lockTimeout {
		t.Errorf("a write waited %v for the migration", slowest)
	}
	if err := long.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	migrations.Wait()
	if n := value[int](t, pool, "SELECT count(*) FROM big WHERE y IS NULL"); n != 20000 {
		t.Errorf("%d rows", n)
	}
	for _, name := range []string{"lock_timeout", "statement_timeout", "deadlock_timeout"} {
		want := map[string]string{"lock_timeout": "0", "statement_timeout": "30s", "deadlock_timeout": "1s"}[name]
		for range 8 {
			if got := value[string](t, pool, "SELECT current_setting('"+name+"')"); got != want {
				t.Errorf("%s is %s after the migration, want %s", name, got, want)
			}
		}
	}
	t.Logf("%d writes waited for the migration, at most %v", waited, slowest.Round(time.Millisecond))
}

// TestMigrationGivesUp checks the error of a migration that does not get its lock.
func TestMigrationGivesUp(t *testing.T) {
	t.Parallel()
	pool := scratch(t)
	long := beginRead(t, pool)
	m := &migrator{pool: pool, dir: release(map[string]string{"00900_column.sql": "ALTER TABLE big ADD COLUMN y int;\n"}), patience: time.Second}
	err := m.run(t.Context())
	for _, want := range []string{"other transactions held its locks", "the oldest transaction is of process", "00900_column.sql"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	if err = long.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err = m.run(t.Context()); err != nil {
		t.Error("the next try:", err)
	}
}

// TestLongMigrations runs the forms of docs/upgrading.md that take long: an index, a backfill in batches and the
// validation of a constraint. It checks that they pass the policy, and that the index and a backfill that were
// interrupted are completed.
func TestLongMigrations(t *testing.T) {
	t.Parallel()
	pool := scratch(t)
	const header = "-- +goose NO TRANSACTION\nSET lock_timeout = 0;\nSET statement_timeout = 0;\n"
	files := map[string]string{
		"00900_column.sql": "ALTER TABLE big ADD COLUMN y int;\n",
		"00901_fill.sql": header + `-- +goose StatementBegin
DO $$
DECLARE
    at int := 0;
BEGIN
    LOOP
        UPDATE big SET y = id WHERE id > at AND id <= at + 5000 AND y IS NULL;
        EXIT WHEN at > (SELECT max(id) FROM big);
        at := at + 5000;
        COMMIT;
    END LOOP;
END $$;
-- +goose StatementEnd
`,
		"00902_constraint.sql": "ALTER TABLE big ADD CONSTRAINT y_set CHECK (y IS NOT NULL) NOT VALID;\n",
		"00903_validate.sql":   header + "ALTER TABLE big VALIDATE CONSTRAINT y_set;\n",
		"00904_not_null.sql":   "-- policy: allow set-not-null, because y_set is valid\nALTER TABLE big ALTER COLUMN y SET NOT NULL;\n",
		"00905_index.sql":      header + "DROP INDEX CONCURRENTLY IF EXISTS big_by_y;\nCREATE INDEX CONCURRENTLY big_by_y ON big (y);\n",
	}
	must(t, pool, "CREATE INDEX big_by_y ON big (x)") // stands for an index that was not completed
	for name, text := range files {
		if faults := lint("-- +goose Up\n" + text); faults != nil {
			t.Errorf("%s: %v", name, faults)
		}
	}
	if err := (&migrator{pool: pool, dir: release(files), patience: time.Minute}).run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := value[int](t, pool, "SELECT count(*) FROM big WHERE y = id"); n != 20000 {
		t.Errorf("%d rows were filled", n)
	}
	if def := value[string](t, pool, "SELECT pg_get_indexdef('big_by_y'::regclass)"); !strings.HasSuffix(def, "(y)") {
		t.Errorf("the index is %s", def)
	}
}
