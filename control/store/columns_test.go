package store_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/store"
)

// TestColumnsMatchDatabase checks that the tables of columns have every column of the database, so that a migration
// cannot add a column unnoticed.
func TestColumnsMatchDatabase(t *testing.T) {
	d := dbtest.New(t)
	for table, names := range store.ColumnNames() {
		const query = "SELECT column_name::text FROM information_schema.columns WHERE table_schema = 'public' AND table_name = $1"
		rows, err := d.Pool.Query(t.Context(), query, table)
		if err != nil {
			t.Fatal(err)
		}
		want, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		slices.Sort(names)
		if !slices.Equal(names, want) {
			t.Errorf("%s: control/store/columns.go has %v, the database %v", table, names, want)
		}
	}
}
