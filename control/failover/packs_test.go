package failover

import "testing"

// TestMayPack checks that nodes write packs only a day after the upgrade, and while every node can read them.
func TestMayPack(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	a, b := r.node("a", t.TempDir()), r.node("b", t.TempDir())
	want := func(what string, want bool) {
		t.Helper()
		r.check(b)
		if r.check(a); a.MayPack() != want {
			t.Errorf("%s: %t", what, a.MayPack())
		}
	}
	want("right after the migration", false)
	r.exec("UPDATE goose_db_version SET tstamp = tstamp - interval '23 hours 59 minutes'")
	want("within a day", false)
	r.exec("UPDATE goose_db_version SET tstamp = tstamp - interval '2 minutes'")
	want("after a day", true)
	const beat = `INSERT INTO nodes AS n (name, owner, beat, seen_at) VALUES ('old', 'x', 1, clock_timestamp())
		ON CONFLICT (name) DO UPDATE SET beat = n.beat + 1, seen_at = excluded.seen_at`
	r.exec(beat)
	want("beside a node of the previous release", false)
	r.exec("UPDATE nodes SET packs_at = seen_at WHERE name = 'old'")
	want("after its upgrade", true)
	r.exec(beat)
	want("after it went back", false)
	r.exec("DELETE FROM nodes WHERE name = 'old'")
	want("after its stop", true)
}
