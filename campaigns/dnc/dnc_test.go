package dnc_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/campaigns/dnc"
	"github.com/parley-voice/parley/campaigns/dnc/registry"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/control/trunks"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// A remoteBucket is not a folder.
type remoteBucket struct{ dnc.Bucket }

type env struct {
	*dnc.Catalog
	t   *testing.T
	dir string
	now time.Time
}

func newEnv(t *testing.T) *env {
	t.Helper()
	dir := t.TempDir()
	s := &env{Catalog: &dnc.Catalog{Pool: dbtest.New(t).Pool, Bucket: &recording.Folder{Dir: dir}}, t: t, dir: dir, now: time.Now().UTC().Truncate(time.Second)}
	return s
}

// file writes a file of a given age.
func (s *env) file(content string, age time.Duration) string {
	s.t.Helper()
	f, err := os.CreateTemp(s.t.TempDir(), "list")
	if err == nil {
		_, err = f.WriteString(content)
	}
	at := s.now.Add(-age)
	if err = errors.Join(err, f.Close(), os.Chtimes(f.Name(), at, at)); err != nil {
		s.t.Fatal(err)
	}
	return f.Name()
}

func (s *env) load(l dnc.Load) dnc.LoadResult {
	s.t.Helper()
	l.Now, l.By = s.now, "ada"
	done, err := s.Load(s.t.Context(), l)
	if err != nil {
		s.t.Fatal(err)
	}
	return done
}

// lookup returns the entry of a number in the national registry, and the version of the registry.
func lookup(t *testing.T, s *dnc.Catalog, number string) (listed, loaded bool, version string) {
	t.Helper()
	all, err := s.Registries(t.Context(), s.Pool, "us")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		listed, loaded = r.Has(number)
		version = r.Version
	}
	return listed, loaded, version
}

const day = 24 * time.Hour

func TestLoad(t *testing.T) {
	s := newEnv(t)
	node := &dnc.Catalog{Pool: s.Pool, Bucket: s.Bucket}
	if _, loaded, version := lookup(t, node, "+12025550123"); loaded || version != "" {
		t.Error("a number is listed before the first load")
	}
	var last, all int
	a := s.load(dnc.Load{
		Name: "us_national", Files: []string{s.file("2025550123\n2025550124\n", 3*day), s.file("2125550123\n", day)}, Areas: []string{"646"},
		Progress: func(done, of int) { last, all = done, of },
	})
	if a.Added != 3 || a.Numbers != 3 || a.Areas != 3 || !a.Downloaded.Equal(s.now.Add(-3*day)) || last != all || all != 33 {
		t.Errorf("%+v, %d of %d bytes", a, last, all)
	}
	listed, _, first := lookup(t, node, "+12125550123")
	if _, loaded, _ := lookup(t, node, "+16465550123"); !listed || !loaded || first != a.Version {
		t.Errorf("listed %v, named area code loaded %v, version %s, want %s", listed, loaded, first, a.Version)
	}
	// A list of changes makes the whole registry as recent as the list; another full list does not.
	b := s.load(dnc.Load{Name: "us_national", Files: []string{s.file("2025550123,D\n2025550125,A\n", 2*day)}})
	if b.Added != 1 || b.Deleted != 1 || b.Numbers != 3 || !b.Downloaded.Equal(s.now.Add(-2*day)) {
		t.Errorf("changes: %+v", b)
	}
	c := s.load(dnc.Load{Name: "us_national", Files: []string{s.file("3025550123\n", 0)}})
	if c.Numbers != 4 || !c.Downloaded.Equal(s.now.Add(-2*day)) {
		t.Errorf("more: %+v", c)
	}
	if listed, _, version := lookup(t, node, "+12025550123"); listed || version != c.Version {
		t.Errorf("the server uses an old copy: %v %s", listed, version)
	}
	d := s.load(dnc.Load{Name: "us_national", Replace: true, Files: []string{s.file("2025550199\n", 0)}})
	if d.Numbers != 1 || d.Areas != 1 || !d.Downloaded.Equal(s.now) {
		t.Errorf("replaced: %+v", d)
	}
	if files, _ := filepath.Glob(filepath.Join(s.dir, "registries", "*")); len(files) != 1 {
		t.Errorf("old copies are left: %v", files)
	}
	past, err := s.History(t.Context(), 10)
	if err != nil || len(past) != 4 || past[0].Numbers != 1 || !past[0].Replaced || past[3].By != "ada" || len(past[3].Files) != 2 {
		t.Errorf("%+v, %v", past, err)
	}
	if _, err := s.Pool.Exec(t.Context(), "DELETE FROM list_loads"); err == nil {
		t.Error("the record of a load can be deleted")
	}
}

// TestLoadFails checks that a failed load changes nothing.
func TestLoadFails(t *testing.T) {
	s := newEnv(t)
	a := s.load(dnc.Load{Name: "us_national", Files: []string{s.file("2025550123\n", 0)}})
	var bomb bytes.Buffer
	z := zip.NewWriter(&bomb)
	w, err := z.Create("list.txt")
	if err == nil {
		_, err = w.Write(bytes.Repeat([]byte("\n"), 20<<20))
	}
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]dnc.Load{
		"unknown registry": {Name: "us_registry", Files: []string{s.file("2025550123\n", 0)}},
		"no list":          {Name: "us_national", Files: []string{s.file("2025550124\nhello\n", 0)}},
		"no file":          {Name: "us_national", Files: []string{"/no/such/file"}},
		"nothing":          {Name: "us_national"},
		"no area":          {Name: "us_national", Areas: []string{"12"}, Files: []string{s.file("2025550124\n", 0)}},
		"a bomb":           {Name: "us_national", Files: []string{s.file(bomb.String(), 0)}},
		"of the future":    {Name: "us_national", Downloaded: s.now.Add(48 * time.Hour), Files: []string{s.file("2025550124\n", 0)}},
	} {
		l.Now = s.now
		if _, err := s.Load(t.Context(), l); err == nil {
			t.Errorf("%s is loaded", name)
		}
	}
	if listed, _, version := lookup(t, s.Catalog, "+12025550124"); listed || version != a.Version {
		t.Errorf("listed %v, version %s", listed, version)
	}
	if files, _ := filepath.Glob(filepath.Join(s.dir, "registries", "*")); len(files) != 1 {
		t.Errorf("parts are left: %v", files)
	}
}

// TestRemoteBucket checks that with a remote bucket, a node uses its copy of a registry until it has fetched the next
// one.
func TestRemoteBucket(t *testing.T) {
	s := newEnv(t)
	bucket := remoteBucket{s.Bucket}
	s.Bucket, s.Dir = bucket, t.TempDir()
	node := &dnc.Catalog{Pool: s.Pool, Bucket: bucket, Dir: t.TempDir()}
	a := s.load(dnc.Load{Name: "us_national", Files: []string{s.file("2025550123\n", 0)}})
	if err := node.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := s.load(dnc.Load{Name: "us_national", Files: []string{s.file("2025550124\n", 0)}})
	if listed, _, version := lookup(t, node, "+12025550123"); !listed || version != a.Version {
		t.Errorf("listed %v, version %s", listed, version)
	}
	if err := node.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if listed, _, version := lookup(t, node, "+12025550124"); !listed || version != b.Version {
		t.Errorf("listed %v, version %s, want %s", listed, version, b.Version)
	}
	if files, _ := filepath.Glob(filepath.Join(node.Dir, "*")); len(files) != 1 {
		t.Errorf("old copies are left: %v", files)
	}
}

func (s *env) organization(market string) string {
	s.t.Helper()
	id, err := apikeys.EnsureOrganization(s.t.Context(), s.Pool, "acme")
	if err == nil {
		_, err = s.Pool.Exec(s.t.Context(), "UPDATE organizations SET settings = $2 WHERE id = $1", id, map[string]string{"market": market})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

func TestLoadOwn(t *testing.T) {
	s := newEnv(t)
	org := s.organization("us")
	own := func(content string, replace bool) dnc.LoadResult {
		t.Helper()
		done, err := s.LoadOwn(t.Context(), dnc.Load{OrgID: org, Files: []string{s.file(content, 0)}, Replace: replace, Now: s.now, By: "ada"})
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	if d := own("phone\n+1 202 555 0123\n+77012345678\n", false); d.Added != 2 || d.Numbers != 2 {
		t.Errorf("%+v", d)
	}
	if d := own("12025550123,D\n2125550123\n", false); d.Added != 1 || d.Deleted != 1 || d.Numbers != 2 {
		t.Errorf("%+v", d)
	}
	if d := own("3025550123\n", true); d.Added != 1 || d.Deleted != 2 || d.Numbers != 1 {
		t.Errorf("%+v", d)
	}
	for _, bad := range []struct {
		text    string
		replace bool
	}{{"12\n", false}, {"phone\n", true}, {"", true}, {"no number", true}, {"13025550123,D\n", true}} {
		_, err := s.LoadOwn(t.Context(), dnc.Load{OrgID: org, Files: []string{s.file(bad.text, 0)}, Replace: bad.replace, Now: s.now})
		if !errors.Is(err, registry.ErrList) {
			t.Errorf("%q: %v", bad.text, err)
		}
	}
	if d := own("phone\n", false); d.Added != 0 || d.Deleted != 0 || d.Numbers != 1 {
		t.Errorf("%+v", d)
	}
}

// TestCallScreen checks that a single call is always checked against the organization's list. It is also checked
// against the registry of the organization's market, once there is one.
func TestCallScreen(t *testing.T) {
	s := newEnv(t)
	org := s.organization("us")
	if _, err := s.LoadOwn(t.Context(), dnc.Load{OrgID: org, Files: []string{s.file("2125550123\n", 0)}, Now: s.now}); err != nil {
		t.Fatal(err)
	}
	single := &dnc.CallScreen{Own: &store.Store{Pool: s.Pool}, Catalog: s.Catalog}
	wantList := func(digits, want string) {
		t.Helper()
		v, err := single.Screen(t.Context(), control.Number{OrgID: org, Digits: digits}, control.ForCall)
		if err != nil || v.List != want {
			t.Errorf("%s: %q, %v, want %q", digits, v.List, err, want)
		}
	}
	wantList("12025550123", "")
	s.load(dnc.Load{Name: "us_national", Files: []string{s.file("2025550123\n", 0)}})
	s.load(dnc.Load{Name: "us_state_ny", Files: []string{s.file("2125550199\n", 0)}})
	if err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantList("12125550123", "org_suppression")
	wantList("12025550123", "us_national")
	wantList("2025550123", "us_national")
	wantList("01112025550123", "us_national")
	wantList("12025550124", "")
	wantList("12125550199", "us_state_ny")
	wantList("77012345678", "")
	s.organization("kz")
	wantList("12025550123", "")
	s.organization("us")
	if _, err := s.Pool.Exec(t.Context(), `UPDATE organizations SET settings = settings || '{"individual_dnc": "off"}'`); err != nil {
		t.Fatal(err)
	}
	wantList("12025550123", "")
	wantList("12125550123", "org_suppression")
	single.Always = true // as for campaign calls; the setting for single calls is ignored
	wantList("12025550123", "us_national")
}

// TestCallScreenBeforeFirstRefresh checks that a new node opens the registries before it allows a call. It allows no
// call if it cannot open them.
func TestCallScreenBeforeFirstRefresh(t *testing.T) {
	s := newEnv(t)
	number := control.Number{OrgID: s.organization("us"), Digits: "12025550123"}
	s.load(dnc.Load{Name: "us_national", Files: []string{s.file("2025550123\n", 0)}})
	v, err := (&dnc.CallScreen{Catalog: &dnc.Catalog{Pool: s.Pool, Bucket: s.Bucket}}).Screen(t.Context(), number, control.ForCall)
	if err != nil || v.List != "us_national" {
		t.Errorf("%q, %v", v.List, err)
	}
	empty := &dnc.CallScreen{Catalog: &dnc.Catalog{Pool: s.Pool, Bucket: &recording.Folder{Dir: t.TempDir()}}}
	for range 2 {
		if v, err = empty.Screen(t.Context(), number, control.ForCall); err == nil {
			t.Errorf("without the file: %q, %v", v.List, err)
		}
	}
	s.organization("kz")
	if v, err = empty.Screen(t.Context(), number, control.ForCall); err != nil || v.List != "" {
		t.Errorf("a market without a registry: %q, %v", v.List, err)
	}
}

func TestReassignedResults(t *testing.T) {
	s := newEnv(t)
	org := s.organization("us")
	contact := func(n int, number, state, consent string) {
		t.Helper()
		_, err := s.Pool.Exec(t.Context(), `
			INSERT INTO contacts (id, org_id, campaign_id, import_id, n, number, consent_at, state, created_at, updated_at)
			VALUES ($1, $2, 'cmp', 'imp', $3, $4, nullif($5, '')::timestamptz, $6, now(), now())`, fmt.Sprint("con_", n), org, n, number, consent, state)
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.Pool.Exec(t.Context(), `
		INSERT INTO campaigns (id, org_id, status, created_via, name, agent_id, agent_name, timezone, timezone_source, accepts_additions, calls_per_minute,
			call_strategy, classification, retry, duplicate_action, use_contact_timezone, working_hours, trunk_id, route_id, from_number, dnc, created_at, updated_at)
		VALUES ('cmp', $1, 'draft', 'api', 'n', 'a', 'a', 'UTC', 'request', false, 1, 'standard', 'marketing', '{}', 'reject', false, '[]', 't', 'r', 'f', 'block', now(), now())`, org)
	if err == nil {
		_, err = s.Pool.Exec(t.Context(), `INSERT INTO imports (id, org_id, campaign_id, kind, status, created_via, rows_seen, accepted, warned, rejected, duplicates, created_at)
			VALUES ('imp', $1, 'cmp', 'launch', 'accepted', 'api', 5, 5, 0, 0, 0, now())`, org)
	}
	if err != nil {
		t.Fatal(err)
	}
	contact(1, "+12025550101", "pending", "2024-03-01T00:30:00Z")
	contact(2, "+12025550102", "pending", "2024-03-02T00:00:00Z")
	contact(3, "+12025550103", "pending", "")
	contact(4, "+12025550104", "done", "2024-03-02T00:00:00Z")
	contact(6, "+12025550106", "in_call", "2024-03-03T00:00:00Z")
	contact(5, "+77012345678", "pending", "2024-03-02T00:00:00Z")
	var query strings.Builder
	if n, fault := s.Query(t.Context(), org, &query); fault != nil || n != 3 || query.String() != "2025550101,2024-03-01\n2025550102,2024-03-02\n2025550106,2024-03-03\n" {
		t.Errorf("%d, %v:\n%s", n, fault, query.String())
	}
	for _, bad := range []string{"2025550101,2024-03-01\n", "202555010,2024-03-01,yes\n", "2025550101,01.03.2024,yes\n", "2025550101,2024-03-01,perhaps\n"} {
		if _, fault := s.LoadResults(t.Context(), dnc.Load{OrgID: org, Files: []string{s.file(bad, 0)}, Now: s.now}); !errors.Is(fault, registry.ErrList) {
			t.Errorf("%q: %v", bad, fault)
		}
	}
	done, err := s.LoadResults(t.Context(), dnc.Load{
		OrgID: org, Files: []string{s.file("TN,Date,Result\r\n2025550101,2024-03-01,yes\r\n2025550102,2024-03-02,No_Data\r\n2025550106,2024-03-03,no\r\n", 0)}, Now: s.now,
	})
	if err != nil || done != (dnc.ReassignedResult{Results: 3, Yes: 1, Suppressed: 1}) {
		t.Errorf("%+v, %v", done, err)
	}
	query.Reset()
	if n, fault := s.Query(t.Context(), org, &query); fault != nil || n != 0 {
		t.Errorf("a contact with a result is queried again: %s, %v", query.String(), fault)
	}
	var reason string
	if err := s.Pool.QueryRow(t.Context(), "SELECT reason FROM contacts WHERE id = 'con_1'").Scan(&reason); err != nil || reason != "reassigned_number" {
		t.Errorf("%q, %v", reason, err)
	}
}

// TestAreaCodesBelongToUS checks that each area code of the US market belongs to the destination US, and to no other
// country with country code 1.
func TestAreaCodesBelongToUS(t *testing.T) {
	us, err := market.Load("us")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range us.Areas() {
		if number := "1" + code + "5550123"; !trunks.Permits("US", number) || trunks.Permits("CA", number) {
			t.Errorf("%s is not in the United States", code)
		}
	}
}
