package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-voice/parley/api"
	"github.com/parley-voice/parley/api/admin"
	"github.com/parley-voice/parley/api/calls"
	"github.com/parley-voice/parley/api/campaigns"
	"github.com/parley-voice/parley/api/docs"
	"github.com/parley-voice/parley/api/recordings"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/campaigns/marketstore"
	"github.com/parley-voice/parley/campaigns/service"
	campaignstore "github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/callview"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/idempotency"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// An env is the service without a carrier and without providers.
type env struct {
	t         *testing.T
	db        *db.DB
	store     *store.Store
	admission *admission.Controller
	live      *control.Live
	bucket    *recording.Folder
	campaigns *service.Service
	api       *api.Server
	web       *httptest.Server

	org, key, trunk, route string // acme's ID

	mu  sync.Mutex
	log bytes.Buffer
}

// newEnv has organization acme with agent sales, trunk main and subgroup default for numbers that begin with 1.
func newEnv(t *testing.T) *env {
	t.Helper()
	dbtest.URL(t) // starts the shared Postgres before the leak check
	others := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, others) })
	h := &env{t: t, db: dbtest.New(t), live: &control.Live{}}
	h.store = &store.Store{Pool: h.db.Pool}
	h.admission = &admission.Controller{Pool: h.db.Pool, Store: h.store}
	h.bucket = &recording.Folder{Dir: t.TempDir()}
	h.org, h.key = h.organization("acme")
	h.agent(h.org, "sales", true)
	h.trunk, h.route = h.subgroup(h.org, "main", "default", []string{"1"}, "sales")

	log := slog.New(slog.NewJSONHandler(h, nil))
	key, err := store.SharedKey(t.Context(), h.db.Pool, "links")
	if err != nil {
		t.Fatal(err)
	}
	links := &recordings.Recordings{Calls: h.store, Bucket: h.bucket, Key: func() []byte { return key }}
	h.api = &api.Server{
		Keys: &apikeys.Keys{Pool: h.db.Pool}, Limiter: &apikeys.Limiter{Pool: h.db.Pool}, RateLimit: apikeys.RateOff, Recordings: links, Log: log,
		Calls: &calls.Calls{
			Admission: h.admission, Store: h.store, Keys: &idempotency.Keys{Pool: h.db.Pool}, Schemas: schema.NewSet(),
			View: callview.View{Link: links.Link}, Live: h.live, CursorKey: key,
		},
	}
	h.api.Docs = docs.New(fstest.MapFS{"docs/guide/README.md": {Data: []byte("# Guide\n")}, "CHANGELOG.md": {Data: []byte("# Changes\n")}})
	h.api.Routes = &calls.Routes{Source: h.admission}
	h.api.Admin = &admin.Admin{DB: h.db.Pool, Schemas: h.api.Calls.Schemas, Root: "root"}
	listed := &campaignstore.Store{Pool: h.db.Pool}
	h.campaigns = &service.Service{Pool: h.db.Pool, Store: listed, Bucket: h.bucket, Markets: &marketstore.Store{}}
	h.api.Campaigns = &campaigns.Campaigns{Service: h.campaigns, Store: listed, Keys: h.api.Calls.Keys, Schemas: h.api.Calls.Schemas, CursorKey: key}
	handler, err := h.api.Handler()
	if err != nil {
		t.Fatal(err)
	}
	h.web = httptest.NewServer(handler)
	links.PublicURL = h.web.URL
	t.Cleanup(h.web.Close)
	return h
}

// Write implements io.Writer for the log.
func (h *env) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.Write(b)
}

func (h *env) logged() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.String()
}

func (h *env) exec(sql string, args ...any) {
	h.t.Helper()
	if _, err := h.db.Pool.Exec(h.t.Context(), sql, args...); err != nil {
		h.t.Fatal(err)
	}
}

func (h *env) count(sql string, args ...any) (n int) {
	h.t.Helper()
	if err := h.db.Pool.QueryRow(h.t.Context(), sql, args...).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

func (h *env) organization(name string) (id, key string) {
	h.t.Helper()
	id, err := apikeys.EnsureOrganization(h.t.Context(), h.db.Pool, name)
	if err != nil {
		h.t.Fatal(err)
	}
	_, secret, err := apikeys.CreateKey(h.t.Context(), h.db.Pool, apikeys.Key{OrgID: id})
	if err != nil {
		h.t.Fatal(err)
	}
	return id, string(secret)
}

func (h *env) agent(org, name string, publish bool) string {
	h.t.Helper()
	d := agents.Default()
	d.Greeting, d.Prompt = "Hello {{first_name}}.", "Sell."
	if name != "templated" {
		d.Variables = map[string]string{"first_name": ""}
	}
	fake := pipeline.Engine{Provider: "fake"}
	d.Speech = pipeline.Engines{ASR: fake, LLM: fake, TTS: fake}
	id, err := agents.Save(h.t.Context(), h.db.Pool, org, name, d)
	if err == nil && publish {
		_, err = agents.Publish(h.t.Context(), h.db.Pool, org, name)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return id
}

func (h *env) subgroup(org, trunk, name string, allowed []string, agentNames ...string) (trunkID, id string) {
	h.t.Helper()
	ctx, q := h.t.Context(), h.db.Pool
	trunkID, err := trunks.Save(ctx, q, trunks.Trunk{
		OrgID: org, Name: trunk, Proxy: "sip:127.0.0.1:5080;transport=udp", Username: "u", Password: "canary-trunk-password",
		CallerNumbers: []string{"+12025550100", "+12025550101"},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	id, err = trunks.SaveSubgroup(ctx, q, trunks.Subgroup{
		OrgID: org, TrunkID: trunkID, Name: name, DialPrefix: "9", AllowedDestinations: allowed,
		ConcurrentCalls: trunks.DefaultConcurrent, CallsPerMinute: 6000,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	var ids []string
	for _, name := range agentNames {
		a, err := agents.Find(ctx, q, org, name)
		if err != nil {
			h.t.Fatal(err)
		}
		ids = append(ids, a.ID)
	}
	if err := trunks.Attach(ctx, q, org, id, ids); err != nil {
		h.t.Fatal(err)
	}
	return trunkID, id
}

type response struct {
	status int
	header http.Header
	body   []byte
}

func (a response) json(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	return v
}

// code returns the error code; "" without an error.
func (a response) code() string {
	var e struct{ Error struct{ Code string } }
	_ = json.Unmarshal(a.body, &e)
	return e.Error.Code
}

// do sends a request with acme's key. Headers are pairs of name and value that replace the
// defaults.
func (h *env) do(method, path, body string, headers ...string) response {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.web.URL+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+h.key)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := h.web.Client().Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return response{resp.StatusCode, resp.Header, text}
}

func (h *env) place() string {
	h.t.Helper()
	a := h.do("POST", "/v1/calls/phone", `{"agent_id":"sales","to_number":"+1 (202) 555-0123","variables":{"first_name":"Ada"}}`)
	if a.status != http.StatusAccepted {
		h.t.Fatalf("%d %s", a.status, a.body)
	}
	return a.json(h.t)["call_id"].(string)
}

// await reads a call until it has the status.
func (h *env) await(id, status string) map[string]any {
	h.t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		c := h.do("GET", "/v1/calls/"+id, "").json(h.t)
		if c["status"] == status {
			return c
		}
		select {
		case <-tick.C:
		case <-deadline:
			h.t.Fatalf("call %s is %v, want %s", id, c["status"], status)
		}
	}
}

// startNode starts a node that the end of the test stops.
func (h *env) startNode(d control.Dialer, talker control.Talker, recorder control.Recorder) *control.Node {
	h.t.Helper()
	listener := &db.Listener{Pool: h.db.Pool}
	n := &control.Node{
		ID: control.NodeID{Owner: control.NewID("node_", time.Now()), Home: "here"}, Queue: h.store,
		Lease: 6 * time.Second, Poll: 50 * time.Millisecond,
		Wake: listener.Subscribe(store.ChannelQueue), WakeEnds: listener.Subscribe(store.ChannelEnds),
		Runner: &control.Runner{Attempts: h.store, Dialer: d, Talker: talker, Recorder: recorder, Live: h.live, Margin: time.Second, Legs: h.admission},
	}
	ctx, cancel := context.WithCancel(h.t.Context())
	var over sync.WaitGroup
	over.Go(func() { listener.Run(ctx) })
	n.Start(ctx)
	h.t.Cleanup(func() {
		now, done := context.WithCancel(context.Background())
		done()
		n.Stop(now)
		cancel()
		over.Wait()
	})
	return n
}

type carrier struct {
	mu    sync.Mutex
	dials []media.Target
	// dial returns the result of a call; nil answers after ringing.
	dial func(ctx context.Context, to media.Target, progress func(media.Progress)) (media.Leg, error)
}

func (c *carrier) Dial(ctx context.Context, to media.Target, progress func(media.Progress)) (media.Leg, error) {
	c.mu.Lock()
	c.dials = append(c.dials, to)
	c.mu.Unlock()
	progress(media.Sent)
	progress(media.Ringing)
	if c.dial != nil {
		return c.dial(ctx, to, progress)
	}
	return &leg{}, nil
}

func (c *carrier) targets() []media.Target {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]media.Target{}, c.dials...)
}

type leg struct {
	mu    sync.Mutex
	cause media.Cause
}

func (l *leg) Rate() int                   { return 8000 }
func (l *leg) ReadFrame(media.Frame) error { return io.EOF }
func (l *leg) Play(media.Feed)             {}
func (l *leg) Digits() <-chan rune         { return nil }
func (l *leg) Hangup(c media.Cause) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == "" {
		l.cause = c
	}
	return nil
}

func (l *leg) Cause() media.Cause {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

type conversation func(ctx context.Context, b pipeline.SessionConfig) (pipeline.Outcome, error)

func (c conversation) Talk(ctx context.Context, _ media.Leg, b pipeline.SessionConfig) (pipeline.Outcome, error) {
	return c(ctx, b)
}

// twoLines is a conversation of two lines that the caller ends.
func twoLines(_ context.Context, b pipeline.SessionConfig) (pipeline.Outcome, error) {
	lines := []pipeline.Line{
		{Role: pipeline.RoleAgent, Text: b.Greeting, Start: 100 * time.Millisecond, End: time.Second},
		{Role: pipeline.RoleCaller, Text: "No, thanks.", Start: 2 * time.Second, End: 3 * time.Second, Turn: 1},
	}
	turn := pipeline.Turn{Number: 0, Spans: []pipeline.Span{{Phase: pipeline.PhaseTTS, For: 120 * time.Millisecond}}, Ending: pipeline.Answered}
	for _, l := range lines {
		b.Observer.OnLine(l)
	}
	b.Observer.OnTurn(turn)
	return pipeline.Outcome{Lines: lines, Turns: []pipeline.Turn{turn}, Reason: pipeline.CallerHungUp}, nil
}
