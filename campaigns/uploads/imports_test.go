package uploads_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/marketstore"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/campaigns/uploads"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/recording"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const organizationSpec = `organizations:
- name: %s
  market: us
  timezone: America/New_York
  agents: [{name: sales, published: true, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}]
  trunks: [{name: main, proxy: "sip:127.0.0.1:5080", caller_numbers: ["+12025550100"], subgroups: [{name: default, allowed_destinations: [US], agents: [sales]}]}]
`

// An env imports lists of organizations.
type env struct {
	*uploads.Imports
	t *testing.T
}

func newEnv(t *testing.T) *env {
	t.Helper()
	d := dbtest.New(t)
	bucket := &recording.Folder{Dir: t.TempDir()}
	return &env{t: t, Imports: &uploads.Imports{
		Pool: d.Pool, Log: slog.New(slog.DiscardHandler), Uploads: &uploads.Uploads{Sources: &store.ImportFiles{Pool: d.Pool, Bucket: bucket}, Bucket: bucket},
		Service: &service.Service{Pool: d.Pool, Store: &store.Store{Pool: d.Pool}, Bucket: bucket, Markets: &marketstore.Store{}},
	}}
}

// organization creates an organization that can call.
func (r *env) organization(name string) string {
	r.t.Helper()
	spec, err := apply.Parse(strings.NewReader(fmt.Sprintf(organizationSpec, name)))
	if err == nil {
		err = apply.Apply(r.t.Context(), r.Pool, spec, apply.Options{})
	}
	id, fault := apikeys.FindOrganization(r.t.Context(), r.Pool, name)
	if err = errors.Join(err, fault); err != nil {
		r.t.Fatal(err)
	}
	return id
}

func (r *env) add(org string, text string) string {
	r.t.Helper()
	upload, err := r.Uploads.Keep(r.t.Context(), org, strings.NewReader(text))
	if err != nil {
		r.t.Fatal(err)
	}
	id, err := r.Add(r.t.Context(), r.Pool, uploads.Import{
		OrgID: org, Upload: upload, Columns: map[string]string{"Who": "name"}, Spec: campaigns.Spec{Name: "Spring", Agent: "sales", CallsPerMinute: 20},
		Who: service.Actor{Via: campaigns.ByDashboard, Actor: "ada@example.com"}, Actor: operator.Actor{Email: "ada@example.com", OrgID: org}, Form: "upload=" + upload,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

func (r *env) find(org, id string) uploads.Import {
	r.t.Helper()
	i, err := r.Find(r.t.Context(), r.Pool, org, id)
	if err != nil {
		r.t.Fatal(err)
	}
	return i
}

func (r *env) count(sql string, args ...any) (n int) {
	r.t.Helper()
	if err := r.Pool.QueryRow(r.t.Context(), sql, args...).Scan(&n); err != nil {
		r.t.Fatal(err)
	}
	return n
}

func listOf(n int) string {
	var b strings.Builder
	b.WriteString("phone,Who\n")
	for i := range n {
		fmt.Fprintf(&b, "+1212555%04d,Ada\n", i)
	}
	return b.String()
}

func TestImport(t *testing.T) {
	r := newEnv(t)
	org := r.organization("acme")
	id := r.add(org, listOf(3000))
	if found, err := r.Next(t.Context()); !found || err != nil {
		t.Fatal(found, err)
	}
	i := r.find(org, id)
	if i.State != uploads.Done || i.Percent() != 100 || i.Code != "" {
		t.Fatalf("%+v", i)
	}
	if n := r.count("SELECT count(*) FROM contacts WHERE campaign_id = $1 AND name = 'Ada'", i.CampaignID); n != 3000 {
		t.Errorf("%d contacts", n)
	}
	if n := r.count("SELECT count(*) FROM audit_log WHERE action = 'campaign.create' AND who = 'ada@example.com' AND object = $1", i.CampaignID); n != 1 {
		t.Errorf("%d entries in the audit log", n)
	}
	if found, err := r.Next(t.Context()); found || err != nil {
		t.Errorf("the same import again: %v, %v", found, err)
	}
	if _, _, err := r.Uploads.Open(t.Context(), org, strings.TrimPrefix(i.Form, "upload=")); !errors.Is(err, uploads.ErrGone) {
		t.Errorf("the file still exists: %v", err)
	}
	if _, err := r.Find(t.Context(), r.Pool, r.organization("globex"), id); !errors.Is(err, uploads.ErrGone) {
		t.Errorf("another organization finds the import: %v", err)
	}
}

// TestImportFails checks that a failed import stores the reason.
func TestImportFails(t *testing.T) {
	r := newEnv(t)
	org := r.organization("acme")
	for text, want := range map[string]string{"phone\n\"": "", "name\nAda\n": ""} {
		id := r.add(org, text)
		if _, err := r.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		if i := r.find(org, id); i.State == uploads.Running || i.State == uploads.Queued {
			t.Errorf("%q: %+v %s", text, i, want)
		}
	}
	id := r.add(org, listOf(1))
	if err := r.Uploads.Drop(t.Context(), org, strings.TrimPrefix(r.find(org, id).Form, "upload=")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if _, err := r.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if i := r.find(org, id); i.State != uploads.Failed || !strings.Contains(i.Message, "upload it again") {
		t.Errorf("%+v", i)
	}
}

// TestImportSurvivesNode checks that another node completes an import whose node stopped, and creates its campaign
// only once.
func TestImportSurvivesNode(t *testing.T) {
	r := newEnv(t)
	org := r.organization("acme")
	id := r.add(org, listOf(100))
	stopped, stop := context.WithCancel(t.Context())
	r.Admit = func(string) (func(), error) { stop(); return func() {}, nil } // the node stops once the import has started
	_, _ = r.Next(stopped)
	if i := r.find(org, id); i.State != uploads.Queued {
		t.Errorf("after the node stopped: %+v", i)
	}
	// A killed node leaves its lease.
	if _, err := r.Pool.Exec(t.Context(), "UPDATE list_imports SET state = 'running', tries = 1, lease_until = now() + interval '1 minute'"); err != nil {
		t.Fatal(err)
	}
	r.Admit = nil
	if found, err := r.Next(t.Context()); found || err != nil {
		t.Errorf("before the lease expires: %v, %v", found, err)
	}
	if _, err := r.Pool.Exec(t.Context(), "UPDATE list_imports SET lease_until = now() - interval '1 second'"); err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if _, err := r.Next(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if i := r.find(org, id); i.State != uploads.Done || r.count("SELECT count(*) FROM campaigns") != 1 {
		t.Errorf("%+v, %d campaigns", i, r.count("SELECT count(*) FROM campaigns"))
	}
	id = r.add(org, listOf(1))
	if _, err := r.Pool.Exec(t.Context(), "UPDATE list_imports SET state = 'running', tries = 3, lease_until = now() - interval '1 second' WHERE id = $1", id); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if i := r.find(org, id); i.State != uploads.Failed || !strings.Contains(i.Message, "the server stopped") {
		t.Errorf("after three tries: %+v", i)
	}
}

// TestImportsAreBounded checks that only one import of an organization runs at a time, and only a few wait.
func TestImportsAreBounded(t *testing.T) {
	r := newEnv(t)
	acme, globex := r.organization("acme"), r.organization("globex")
	for range 5 {
		r.add(acme, listOf(1))
	}
	if _, err := r.Add(t.Context(), r.Pool, uploads.Import{OrgID: acme}); !errors.Is(err, uploads.ErrQueueFull) {
		t.Errorf("the sixth: %v", err)
	}
	r.add(globex, listOf(1))
	if _, err := r.Pool.Exec(t.Context(), `UPDATE list_imports SET state = 'running', lease_until = now() + interval '1 minute'
		WHERE id = (SELECT id FROM list_imports WHERE org_id = $1 LIMIT 1)`, acme); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := r.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.count("SELECT count(*) FROM list_imports WHERE state = 'done' AND org_id = $1", acme); n != 0 || r.count("SELECT count(*) FROM list_imports WHERE state = 'done'") != 1 {
		t.Errorf("%d imports of the busy organization are done", n)
	}
}

// TestBusyImportWaits checks that an import that Admit refuses is not retried at once, and does
// not count as a try.
func TestBusyImportWaits(t *testing.T) {
	r := newEnv(t)
	org := r.organization("acme")
	id := r.add(org, listOf(1))
	r.Admit = func(string) (func(), error) { return nil, errors.New("full") }
	for range 4 {
		if found, err := r.Next(t.Context()); found || err != nil {
			t.Errorf("while Admit refuses: %v, %v", found, err)
		}
	}
	r.Admit = nil
	if found, err := r.Next(t.Context()); !found || err != nil || r.find(org, id).State != uploads.Done {
		t.Errorf("after Admit accepts: %v, %v, %s", found, err, r.find(org, id).State)
	}
}

// TestRun processes the queue until it is stopped.
func TestRun(t *testing.T) {
	r := newEnv(t)
	org := r.organization("acme")
	id := r.add(org, listOf(10))
	ctx, stop := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { r.Run(ctx) })
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for r.find(org, id).State != uploads.Done {
		<-tick.C
	}
	stop()
	run.Wait()
}
