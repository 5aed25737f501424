package db_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/db"
)

type row struct {
	id   string
	wait time.Duration
	note string
}

func rowColumns() db.Columns[row] {
	note := db.Field("note", "text", func(r *row) *string { return &r.note })
	note.Read, note.Write = "coalesce(%s, '')", "nullif(%s, '')"
	return db.Columns[row]{
		db.Field("id", "text", func(r *row) *string { return &r.id }),
		{Name: "at", Type: "timestamptz", Write: "now()"},
		db.Converted("wait", "int", func(r *row) *time.Duration { return &r.wait },
			func(d time.Duration) int { return int(d / time.Second) }, func(d *time.Duration) any { return d }).WriteOnly(),
		{Name: "erased_at"},
		note,
	}
}

func TestColumnsSQL(t *testing.T) {
	c := rowColumns()
	for what, texts := range map[string][2]string{
		"Select":      {c.Select("t"), "t.id, coalesce(t.note, '')"},
		"ReadAs":      {c.ReadAs("id", "'x'").Select("t"), "'x', coalesce(t.note, '')"},
		"Insert":      {c.Insert("rows", 3), "INSERT INTO rows (id, at, wait, note) SELECT $3::text, now(), $4::int, nullif($5::text, '')"},
		"InsertRows":  {c.InsertRows("rows"), "INSERT INTO rows (id, at, wait, note) SELECT id, now(), wait, nullif(note, '')"},
		"ArrayParams": {c.ArrayParams(2), "$2::text[], $3::int[], $4::text[]"},
		"ArgNames":    {c.ArgNames(), "id, wait, note"},
		"Set":         {c.Except("id").Set(2), "at = now(), wait = $2::int, note = nullif($3::text, '')"},
		"SetFrom":     {c.Only("id", "wait").SetFrom("x"), "id = x.id, wait = x.wait"},
		"WriteAs":     {c.WriteAs("wait", "1").Insert("rows", 1), "INSERT INTO rows (id, at, wait, note) SELECT $1::text, now(), 1, nullif($2::text, '')"},
	} {
		if texts[0] != texts[1] {
			t.Errorf("%s: %s, want %s", what, texts[0], texts[1])
		}
	}
}

func TestColumnsArguments(t *testing.T) {
	c := rowColumns()
	a, b := row{"a", 2 * time.Second, "x"}, row{"b", time.Minute, ""}
	if got, want := c.Args(&a), []any{"a", 2, "x"}; !reflect.DeepEqual(got, want) || c.ArgCount() != len(want) {
		t.Errorf("Args: %v, want %v", got, want)
	}
	if got, want := c.ArrayArgs([]row{a, b}), []any{[]string{"a", "b"}, []int{2, 60}, []string{"x", ""}}; !reflect.DeepEqual(got, want) {
		t.Errorf("ArrayArgs: %v, want %v", got, want)
	}
	if got, want := c.Targets(&a), []any{&a.id, &a.note}; !reflect.DeepEqual(got, want) {
		t.Errorf("Targets: %v, want %v", got, want)
	}
}
