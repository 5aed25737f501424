package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/parley-voice/parley/api"
	"github.com/parley-voice/parley/api/admin"
	"github.com/parley-voice/parley/api/calls"
	"github.com/parley-voice/parley/api/docs"
	"github.com/parley-voice/parley/api/realip"
	"github.com/parley-voice/parley/api/recordings"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/campaigns/dialer/pgqueue"
	"github.com/parley-voice/parley/campaigns/dnc"
	"github.com/parley-voice/parley/campaigns/outcome"
	"github.com/parley-voice/parley/campaigns/routehealth"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/campaigns/uploads"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/callview"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/failover"
	"github.com/parley-voice/parley/control/idempotency"
	"github.com/parley-voice/parley/control/metrics"
	"github.com/parley-voice/parley/control/outbox"
	"github.com/parley-voice/parley/control/providers"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/retention"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/control/webhook"
	"github.com/parley-voice/parley/media/mediaclock"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/conversation"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/safedial"
	"github.com/parley-voice/parley/sip"
)

// dialQueue wakes the nodes when the dial queue changes, checks the counts of channels in use, and plans campaigns.
type dialQueue struct {
	queueNotifier *db.Notifier
	channels      *store.ChannelCounter
	planner       *pgqueue.Planner
}

// server is the complete service in one process. It owns every component and closes them.
type server struct {
	telemetry
	dialQueue

	config  config.Config
	log     *slog.Logger
	db      *db.DB
	store   *store.Store
	live    *control.Live
	keys    *idempotency.Keys
	limiter *apikeys.Limiter
	load    control.RequestLoad // load of HTTP requests; calls are dialed slowly while it is high

	clock     *mediaclock.Clock
	transport *rtp.Transport
	ua        *sip.UA
	sipKeys   sipKeys
	fakes     *fakeprovider.Server // fake providers; nil if PARLEY_FAKE_URL names another server
	providers providerRegistry
	agent     *conversation.Agent
	agents    *agentHealth

	node            *control.Node
	failover        *failover.Monitor
	spool           *recording.Spool
	followers       *outbox.Dispatcher
	sender          *webhook.Sender
	notifications   *db.Listener
	linkKey         *store.RotatingKey
	admission       *admission.Controller
	campaigns       *service.Service
	outcomes        *outcome.Recorder
	routeHealth     *routehealth.Monitor
	optOuts         control.OptOutStore
	trunkReconciler *trunks.Reconciler
	purger          *retention.Purger
	dnc             *dnc.Catalog
	imports         *uploads.Imports // nil if the dashboard is off

	web web // serves web calls

	http      httpServers
	publicURL string

	tasks      sync.WaitGroup
	cancel     context.CancelFunc
	stopTrunks func() // stops the trunk reconciler and waits for it; nil before it runs
}

// newServer opens every component and starts the server. On an error it closes the components that are already open.
func newServer(ctx context.Context, c config.Config, log *slog.Logger) (*server, error) {
	srv := &server{
		telemetry: telemetry{metrics: metrics.New()}, config: c, log: log, live: &control.Live{}, clock: &mediaclock.Clock{Precise: true},
	}
	running, quit := context.WithCancel(context.WithoutCancel(ctx)) // ends in close, not with ctx
	srv.cancel = quit
	srv.tasks.Go(func() { srv.clock.Run(running) })
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return srv.openTraces(ctx, c, log) },
		srv.openDatabase, srv.openMedia, srv.openProviders, srv.openTurnLogs, srv.openWeb, srv.openControl, srv.openHTTP,
	} {
		if err := step(ctx); err != nil {
			srv.close()
			return nil, err
		}
	}
	srv.start(running)
	return srv, nil
}

func (srv *server) openDatabase(ctx context.Context) error {
	err := makeDataDir(srv.config.DataDir)
	if err != nil {
		return configError{fmt.Errorf("PARLEY_DATA_DIR: %w", err)}
	}
	conns := int32(srv.config.DatabaseConns) //nolint:gosec // at most 1000
	srv.db, err = openDatabase(ctx, srv.config, conns, srv.config.DatabaseWait, srv.log)
	if err != nil {
		return err
	}
	prices, err := srv.config.Prices(srv.providers.set)
	if err != nil {
		return configError{err}
	}
	reach := safedial.Rules{Hosts: srv.config.ToolHosts}
	srv.limiter = &apikeys.Limiter{Pool: srv.db.Pool}
	srv.store = &store.Store{
		Pool: srv.db.Pool, Dial: srv.db.DialPool, Egress: reach, HTTPClient: reach.Client(), Prices: prices,
	}
	srv.channels = &store.ChannelCounter{Pool: srv.db.Pool, Log: srv.log}
	srv.keys = &idempotency.Keys{Pool: srv.db.Pool}
	return nil
}

// costs returns the store for costs that become known after a call has ended.
func (srv *server) costs() *store.Costs {
	return &store.Costs{Pool: srv.db.Pool, Prices: srv.store.Prices, Observe: srv.metrics.CountCost}
}

// makeDataDir creates the folder if it is missing. It sets mode 0711 regardless of the umask, because the Postgres
// child process runs as another user and must enter the folder.
func makeDataDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o711); err != nil { //nolint:gosec // see above
		return err
	}
	return os.Chmod(dir, 0o711) //nolint:gosec // see above
}

func (srv *server) openMedia(context.Context) error {
	bind, public, err := srv.config.MediaAddrs()
	if err != nil {
		return configError{err}
	}
	ports, err := rtp.ParsePorts(fmt.Sprintf("%d-%d", srv.config.RTPPorts[0], srv.config.RTPPorts[1]))
	if err != nil {
		return configError{fmt.Errorf("PARLEY_RTP_PORTS: %w", err)}
	}
	if srv.transport, err = rtp.NewTransport(srv.clock, ports, bind, public); err != nil {
		return fmt.Errorf("media: %w", err)
	}
	secure, err := secure(srv.config.SIPTLS)
	if err != nil {
		return configError{err}
	}
	srv.sipKeys.certificate.Store(secure.Certificate)
	srv.trunkReconciler = &trunks.Reconciler{Log: srv.log}
	if err := srv.sipKeys.signer.load(srv.config.Stir, srv.trunkReconciler.Attest); err != nil {
		return configError{err}
	}
	srv.ua = &sip.UA{
		Listen: srv.config.SIPAddr, Public: public, Media: srv.transport, TLS: secure, Signer: &srv.sipKeys.signer,
		Meter: meter{srv.metrics}, OnPinned: srv.trunkReconciler.OnRealm, Log: srv.log,
	}
	if err := srv.ua.Start(); err != nil {
		srv.ua = nil
		return fmt.Errorf("sip on %s: %w", srv.config.SIPAddr, err)
	}
	return nil
}

// openRecordings opens the bucket, the spool and the journal of this node, and returns the node's identity.
func (srv *server) openRecordings(ctx context.Context) (at control.NodeID, files recording.Bucket, err error) {
	host, err := os.Hostname()
	if err != nil {
		return at, nil, fmt.Errorf("host name: %w", err)
	}
	dir, err := filepath.Abs(srv.config.DataDir)
	if err != nil {
		return at, nil, fmt.Errorf("data directory: %w", err)
	}
	at = control.NodeID{Owner: control.NewID("node_", time.Now()), Home: cmp.Or(srv.config.NodeName, host) + ":" + dir}
	if files, err = bucket(srv.config); err != nil {
		return at, nil, err
	}
	calls := store.RecordingStore{Store: srv.store}
	srv.purger = &retention.Purger{Pool: srv.db.Pool, Bucket: files, Log: srv.log, Segments: func(ctx context.Context) error {
		return recording.SweepSegments(ctx, files, calls)
	}}
	srv.spool = &recording.Spool{
		Dir: filepath.Join(dir, "spool"), Bucket: files, Calls: calls, MinFree: srv.config.RecordingReserve,
		Observe: srv.metrics.CountRecording, Home: at.Home, Log: srv.log,
	}
	if srv.config.RecordingFormat == "opus" {
		if srv.spool.Encoder, err = recording.FindEncoder(); err != nil {
			return at, nil, configError{fmt.Errorf("PARLEY_RECORDING_FORMAT: %w", err)}
		}
	}
	if recording.IsShared(srv.config.BucketURL) {
		srv.spool.Segment, srv.spool.Takeover = srv.config.RecordingSegment, max(srv.config.RecordingTakeover, srv.config.Lease)
	}
	srv.store.CheckRecording = srv.spool.CheckSpace
	if err = srv.openJournal(ctx, at, dir); err != nil {
		return at, nil, err
	}
	srv.spool.WasSent = srv.failover.Journal.HasCall
	return at, files, srv.spool.Start(ctx)
}

func (srv *server) openControl(ctx context.Context) error {
	at, bucket, err := srv.openRecordings(ctx)
	if err != nil {
		return err
	}
	cursors, err := store.SharedKey(ctx, srv.db.Pool, "cursors")
	if err != nil {
		return err
	}
	srv.notifications = &db.Listener{Pool: srv.db.ListenPool, Log: srv.log}
	srv.linkKey = &store.RotatingKey{Store: srv.store, Name: linksKey, Wake: srv.notifications.Subscribe(store.ChannelKeys), Log: srv.log}
	if err = srv.linkKey.Load(ctx); err != nil {
		return err
	}
	if err = srv.http.listen(ctx, srv.config); err != nil {
		return err
	}
	if srv.publicURL = srv.config.PublicURL; srv.publicURL == "" {
		srv.publicURL = srv.config.HTTPTLS.Scheme() + "://" + srv.http.apiListener.Addr().String()
	}
	links := &recordings.Recordings{Calls: srv.store, Bucket: bucket, Key: srv.linkKey.Key, PublicURL: srv.publicURL}
	shown := callview.View{Link: links.Link}
	srv.queueNotifier = db.NewNotifier(srv.db.Pool, store.ChannelQueue)
	srv.admission = &admission.Controller{
		Pool: srv.db.Pool, OrderPool: srv.db.OrderPool, Store: srv.store, QueueDepth: srv.config.DialQueueDepth,
		CheckRecording: srv.spool.CheckSpace, Notify: srv.queueNotifier.Notify,
	}
	srv.agents.spool = srv.spool
	if err = srv.agents.report(ctx); err != nil {
		return err
	}
	srv.openDNC()
	carrierProfiles, err := apply.AllCarriers()
	if err != nil {
		return err
	}
	queue := srv.openCampaigns(at)
	ledger := &outcome.LateRecorder{AttemptStore: srv.store, Outcomes: srv.outcomes, Costs: srv.costs()}
	srv.failover.Attempts, srv.store.Pack = ledger, srv.failover.MayPack
	srv.node = &control.Node{
		ID: at, Queue: queue, Lease: srv.config.Lease, MaxCalls: srv.config.MaxCalls, Limit: newLoadLimit(srv.config), Sample: srv.sampleLoad,
		Batch: srv.load.Batch, Log: srv.log,
		Wake: srv.notifications.Subscribe(store.ChannelQueue), WakeEnds: srv.notifications.Subscribe(store.ChannelEnds), Continuity: srv.failover,
		Runner: &control.Runner{
			Attempts: ledger, SendLog: srv.failover, Dialer: explainingDialer{srv.ua, carrierProfiles},
			Talker: srv.tracer.Talker(srv.metrics.Talker(srv.agent)), Recorder: srv.spool,
			Live: srv.live, Tracer: srv.store, Legs: srv.admission, OptOuts: srv.optOuts,
			Margin: srv.config.Lease / 3, Log: srv.log,
			Check: func(b pipeline.SessionConfig) error { return srv.agent.Check(b.Engines) },
		},
	}
	srv.followers = &outbox.Dispatcher{
		Outbox: withTakeover(&store.EventStore{Pool: srv.db.DialPool, AnyNodeSteps: []string{"contact"}}, srv.spool.Takeover),
		Home:   at.Home, Wake: srv.notifications.Subscribe(store.ChannelEvents), Log: srv.log,
		Steps: srv.endSteps(shown),
	}
	srv.sender = &webhook.Sender{
		Pool: srv.db.Pool, Owner: at.Owner, AllowInsecure: srv.config.AllowInsecureWebhooks,
		Wake: srv.notifications.Subscribe(webhook.Channel), Pack: srv.failover.MayPack, Observe: srv.observeDelivery, Log: srv.log,
	}
	srv.trunkReconciler.DB, srv.trunkReconciler.Proxies = srv.db.Pool, srv.ua
	srv.trunkReconciler.Wake = srv.notifications.Subscribe(trunks.Channel)
	srv.providers.follower.Wake = srv.notifications.Subscribe(providers.Channel)
	return srv.buildAPI(ctx, links, shown, cursors)
}

// withTakeover lets other nodes process the events of a node that has shown no sign of life for takeover, unless it is 0.
func withTakeover(events *store.EventStore, takeover time.Duration) *store.EventStore {
	if takeover > 0 {
		events.LossStep, events.LossTimeout = takeoverStep, takeover
	}
	return events
}

func (srv *server) buildAPI(ctx context.Context, links *recordings.Recordings, shown callview.View, key []byte) error {
	rate := srv.config.RateLimit
	if rate == 0 {
		rate = apikeys.RateOff
	}
	bodies := schema.NewSet()
	bodies.MaxRows = srv.config.CampaignRows
	server := &api.Server{
		Keys: &apikeys.Keys{Pool: srv.db.OrderPool}, Limiter: srv.limiter, RateLimit: rate,
		Recordings: links, PublicURL: srv.publicURL, Ready: srv.checkReady, Room: srv.node.Room, Observe: srv.observe, Log: srv.log,
		Docs:   docs.New(documentation),
		Routes: &calls.Routes{Source: srv.admission, TrunkStatus: srv.ua.TrunkStatus},
		Admin:  &admin.Admin{DB: srv.db.Pool, Schemas: bodies, Root: srv.config.RootOrg, AllowInsecure: srv.config.AllowInsecureWebhooks},
		Calls: &calls.Calls{
			Admission: tracedAdmission{srv.admission, srv.tracer}, Store: srv.store, Keys: srv.keys, Schemas: bodies,
			View: shown, Live: srv.live, CursorKey: key,
		},
	}
	srv.addCampaignAPI(server, key)
	srv.addWebCalls(server.Calls)
	if err := srv.addPages(server.Calls.Tickets); err != nil {
		return err
	}
	if err := srv.addDashboard(ctx, server); err != nil {
		return err
	}
	handler, err := server.Handler()
	if err != nil {
		return err
	}
	handler = srv.tracer.Handler(handler)
	srv.http.api = &http.Server{
		Handler:           strictTransport(srv.publicURL, srv.checkHost(realip.Handler(srv.config.Proxies, srv.web.route(handler)))),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(srv.log.Handler(), slog.LevelDebug),
	}
	return nil
}

// checkHost refuses requests whose Host header does not name this server.
func (srv *server) checkHost(next http.Handler) http.Handler {
	return api.Hosts(next, append([]string{srv.config.PublicURL, srv.config.HTTPAddr, srv.config.MetricsAddr}, srv.config.Hosts...)...)
}

// observe records every response. It excludes requests that wait for the end of a call from the load, because their
// duration does not depend on the load.
func (srv *server) observe(route, method string, status int, took time.Duration) {
	srv.metrics.ObserveRequest(route, method, status, took)
	if route != api.EndRoute {
		srv.load.Observe(took)
	}
}

func (srv *server) openHTTP(context.Context) error {
	srv.metrics.Register(metrics.Sources{
		Live: srv.live, Free: srv.spool.Free, Campaigns: srv.routeHealth.Metrics, Failover: srv.failover.Stats,
		Carriers: func() metrics.Carriers { return carriers(srv.ua) }, Clock: srv.clock, Transport: srv.transport,
		Node: srv.node, Channels: srv.channels, Spool: srv.spool.Content, Providers: srv.agent.Guards.Statuses, Pools: srv.db.Pools(),
		Backlog:      func(ctx context.Context) (store.Backlog, error) { return store.ReadBacklog(ctx, srv.db.Pool) },
		Certificates: srv.certificateExpiry, Spans: srv.tracer.Counts, Log: srv.log,
	})
	srv.http.metrics = &http.Server{
		Handler: srv.checkHost(api.WithWriteDeadline(srv.metrics.Handler(srv.config.Pprof))), ReadHeaderTimeout: 5 * time.Second,
	}
	return nil
}

// checkReady returns an error with the reason if the server cannot take new calls.
func (srv *server) checkReady(ctx context.Context) error {
	if !srv.node.Accepting() {
		return errors.New("draining")
	}
	if err := srv.spool.CheckSpace(); err != nil {
		return err
	}
	return srv.db.Writable(ctx)
}
