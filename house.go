package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/parley-voice/parley/api"
	"github.com/parley-voice/parley/api/admin"
	"github.com/parley-voice/parley/api/calls"
	"github.com/parley-voice/parley/api/forwarded"
	"github.com/parley-voice/parley/api/recordings"
	"github.com/parley-voice/parley/api/routes"
	"github.com/parley-voice/parley/api/schema"
	campaigns "github.com/parley-voice/parley/campaigns/desk"
	"github.com/parley-voice/parley/campaigns/lists"
	"github.com/parley-voice/parley/campaigns/outcome"
	"github.com/parley-voice/parley/campaigns/watch"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/follow"
	"github.com/parley-voice/parley/control/idempotency"
	"github.com/parley-voice/parley/control/load"
	"github.com/parley-voice/parley/control/metrics"
	"github.com/parley-voice/parley/control/place"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/retention"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/control/view"
	"github.com/parley-voice/parley/control/webhook"
	"github.com/parley-voice/parley/media/pace"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/converse"
	"github.com/parley-voice/parley/pipeline/egress"
	"github.com/parley-voice/parley/pipeline/fake"
	"github.com/parley-voice/parley/pipeline/provider/accounts"
	"github.com/parley-voice/parley/sip"
)

// A house is the whole service in one process.
type house struct {
	config  config.Config
	log     *slog.Logger
	db      *db.DB
	store   *store.Store
	live    *control.Live
	keys    *idempotency.Keys
	limiter *access.Limiter
	metrics *metrics.Metrics
	load    load.Load // of requests; calls are dialled slowly while it is high

	clock     *pace.Clock
	transport *rtp.Transport
	ua        *sip.UA
	fakes     *fake.Server // nil where others play the fakes
	providers *accounts.Providers
	agent     *converse.Agent

	node      *control.Node
	spool     *recording.Spool
	followers *follow.Followers
	sender    *webhook.Sender
	bell      *db.Bell
	ringer    *db.Ringer
	desk      *place.Desk
	campaigns *campaigns.Desk
	outcomes  *outcome.Ledger
	routes    *watch.Watch
	optOuts   control.OptOuts
	upkeep    *trunks.Upkeep
	keeper    *retention.Keeper
	lists     *lists.Shelf

	web web // calls of browsers

	http, admin     *http.Server
	listen, listenM net.Listener
	publicURL       string

	tasks sync.WaitGroup
	quit  context.CancelFunc
	leave func() // stops looking after the trunks, and waits; nil before it begins
}

// build opens what the house stands on and starts it. Whatever fails, what was
// opened is closed.
func build(ctx context.Context, c config.Config, log *slog.Logger) (*house, error) {
	h := &house{config: c, log: log, live: &control.Live{}, clock: &pace.Clock{Precise: true}, metrics: metrics.New()}
	running, quit := context.WithCancel(context.WithoutCancel(ctx)) // until close, whatever becomes of ctx
	h.quit = quit
	h.tasks.Go(func() { h.clock.Run(running) })
	for _, step := range []func(context.Context) error{
		h.openDatabase, h.openMedia, h.openProviders, h.openTurnLogs, h.openWeb, h.openControl, h.openHTTP,
	} {
		if err := step(ctx); err != nil {
			h.close()
			return nil, err
		}
	}
	h.start(running)
	return h, nil
}

func (h *house) openDatabase(ctx context.Context) error {
	err := makeDataDir(h.config.DataDir)
	if err != nil {
		return configError{fmt.Errorf("PARLEY_DATA_DIR: %w", err)}
	}
	h.db, err = openDatabase(ctx, h.config, 0, h.log)
	if err != nil {
		return err
	}
	reach := egress.Rules{Hosts: h.config.ToolHosts}
	h.limiter = &access.Limiter{Pool: h.db.Pool}
	h.store, h.keys = &store.Store{Pool: h.db.Pool, Dial: h.db.Dial, Reach: reach, Asks: reach.Client()}, &idempotency.Keys{Pool: h.db.Pool}
	return nil
}

// makeDataDir makes the folder where it is missing, so that the Postgres child,
// which is another user, may pass through it whatever the umask.
func makeDataDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o711); err != nil { //nolint:gosec // see above
		return err
	}
	return os.Chmod(dir, 0o711) //nolint:gosec // see above
}

func (h *house) openMedia(context.Context) error {
	bind, public, err := h.config.MediaAddrs()
	if err != nil {
		return configError{err}
	}
	ports, err := rtp.ParsePorts(fmt.Sprintf("%d-%d", h.config.RTPPorts[0], h.config.RTPPorts[1]))
	if err != nil {
		return configError{fmt.Errorf("PARLEY_RTP_PORTS: %w", err)}
	}
	if h.transport, err = rtp.NewTransport(h.clock, ports, bind, public); err != nil {
		return fmt.Errorf("media: %w", err)
	}
	secure, err := secure(h.config.SIPTLS)
	if err != nil {
		return configError{err}
	}
	h.upkeep = &trunks.Upkeep{Log: h.log}
	signer, err := signer(h.config.Stir, h.upkeep.Attest, time.Now())
	if err != nil {
		return configError{err}
	}
	h.ua = &sip.UA{
		Listen: h.config.SIPAddr, Public: public, Media: h.transport, Secure: secure, Signer: signer, Meter: meter{h.metrics}, Log: h.log,
	}
	if err := h.ua.Start(); err != nil {
		h.ua = nil
		return fmt.Errorf("sip on %s: %w", h.config.SIPAddr, err)
	}
	return nil
}

func (h *house) openControl(ctx context.Context) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	dir, err := filepath.Abs(h.config.DataDir)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	at := control.Place{Owner: control.NewID("node_", time.Now()), Home: host + ":" + dir}
	bucket, err := bucket(h.config)
	if err != nil {
		return err
	}
	h.keeper = &retention.Keeper{Pool: h.db.Pool, Bucket: bucket, Log: h.log}
	h.spool = &recording.Spool{Dir: filepath.Join(dir, "spool"), Bucket: bucket, Ledger: h.store, Log: h.log}
	if err = h.spool.Start(ctx); err != nil {
		return err
	}
	key, err := h.store.SharedKey(ctx, "links")
	if err != nil {
		return err
	}
	if err := h.listenHTTP(ctx); err != nil {
		return err
	}
	links := &recordings.Recordings{Calls: h.store, Bucket: bucket, Key: key, PublicURL: h.publicURL}
	shown := view.View{Link: links.Link}
	h.bell = &db.Bell{Pool: h.db.Pool, Log: h.log}
	h.ringer = db.NewRinger(h.db.Pool, store.BellQueue)
	h.desk = &place.Desk{Pool: h.db.Pool, Front: h.db.Front, Store: h.store, QueueDepth: h.config.DialQueueDepth, Ring: h.ringer.Ring}
	h.openLists()
	queue := h.openCampaigns(at)
	h.node = &control.Node{
		Place: at, Queue: queue, Lease: h.config.Lease, Share: h.load.Share, Log: h.log,
		Wake: h.bell.On(store.BellQueue), WakeEnds: h.bell.On(store.BellEnds),
		Runner: &control.Runner{
			Ledger: &outcome.Late{Ledger: h.store, Outcomes: h.outcomes}, Dialer: h.ua, Talker: h.metrics.Talker(h.agent), Taper: h.spool, Live: h.live, Tracer: h.store, Legs: h.desk, OptOuts: h.optOuts,
			Margin: h.config.Lease / 3, Log: h.log,
			Check: func(b pipeline.Brief) error { return h.agent.Check(b.Engines) },
		},
	}
	h.followers = &follow.Followers{
		Outbox: h.store, Home: at.Home, Wake: h.bell.On(store.BellEvents), Log: h.log,
		Steps: h.steps(shown),
	}
	h.sender = &webhook.Sender{
		Pool: h.db.Pool, Owner: at.Owner, AllowInsecure: h.config.AllowInsecureWebhooks,
		Wake: h.bell.On(webhook.Bell), Observe: h.metrics.Notice, Log: h.log,
	}
	h.upkeep.Trunks, h.upkeep.Keeper, h.upkeep.Wake = h.db.Pool, h.ua, h.bell.On(trunks.Bell)
	return h.face(ctx, links, shown, key)
}

// face builds the HTTP API.
func (h *house) face(ctx context.Context, links *recordings.Recordings, shown view.View, key []byte) error {
	rate := h.config.RateLimit
	if rate == 0 {
		rate = access.RateOff
	}
	bodies := schema.NewSet()
	server := &api.Server{
		Keys: &access.Keys{Pool: h.db.Front}, Limiter: h.limiter, RateLimit: rate,
		Recordings: links, PublicURL: h.publicURL, Ready: h.ready, Observe: h.observe, Log: h.log,
		Routes: &routes.Routes{Desk: h.desk, Standing: h.ua.Standing},
		Admin:  &admin.Admin{DB: h.db.Pool, Schemas: bodies, Root: h.config.RootOrg, AllowInsecure: h.config.AllowInsecureWebhooks},
		Calls: &calls.Calls{
			Desk:  h.desk,
			Store: h.store, Keys: h.keys, Schemas: bodies,
			View: shown, Live: h.live, CursorKey: key,
		},
	}
	h.showCampaigns(server, key)
	h.showWeb(server.Calls)
	if err := h.showPages(server.Calls.Tickets); err != nil {
		return err
	}
	if err := h.showDashboard(ctx, server); err != nil {
		return err
	}
	handler, err := server.Handler()
	if err != nil {
		return err
	}
	h.http = &http.Server{
		Handler: forwarded.Handler(h.config.Proxies, h.web.beside(handler)), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(h.log.Handler(), slog.LevelDebug),
	}
	return nil
}

// observe is told of every answer. A request that waits for a call to end says
// nothing of how busy we are.
func (h *house) observe(route, method string, status int, took time.Duration) {
	h.metrics.Request(route, method, status, took)
	if route != api.EndRoute {
		h.load.Request(took)
	}
}

func (h *house) listenHTTP(ctx context.Context) error {
	var lc net.ListenConfig
	var err error
	if h.listen, err = lc.Listen(ctx, "tcp", h.config.HTTPAddr); err != nil {
		return fmt.Errorf("PARLEY_HTTP_ADDR: %w", err)
	}
	if h.listenM, err = lc.Listen(ctx, "tcp", h.config.MetricsAddr); err != nil {
		return fmt.Errorf("PARLEY_METRICS_ADDR: %w", err)
	}
	if h.publicURL = h.config.PublicURL; h.publicURL == "" {
		h.publicURL = "http://" + h.listen.Addr().String()
	}
	return nil
}

func (h *house) openHTTP(context.Context) error {
	h.metrics.Watch(metrics.Watched{
		Live: h.live, Campaigns: h.routes.Figures, Carriers: func() metrics.Carriers { return carriers(h.ua) }, Clock: h.clock, Transport: h.transport,
	})
	h.admin = &http.Server{Handler: api.Patient(h.metrics.Handler()), ReadHeaderTimeout: 5 * time.Second}
	return nil
}

// ready says what keeps the process from its work.
func (h *house) ready(ctx context.Context) error {
	if !h.node.Accepting() {
		return errors.New("draining")
	}
	return h.db.Pool.Ping(ctx)
}

func (h *house) start(ctx context.Context) {
	for _, run := range []func(context.Context){h.bell.Run, h.ringer.Run, h.followers.Run, h.sender.Run, h.lists.Run, h.routes.Run, h.keepHouse} {
		h.tasks.Go(func() { run(ctx) })
	}
	h.tendCampaigns(ctx)
	h.keepTrunks(ctx)
	h.node.Start(ctx)
	h.tasks.Go(func() { _ = h.http.Serve(api.Listen(h.listen)) }) // ErrServerClosed
	h.tasks.Go(func() { _ = h.admin.Serve(h.listenM) })           // ErrServerClosed
}

// drain stops claiming calls and tells carriers and balancers so. Calls that
// are on go on, and the API still answers.
func (h *house) drain() {
	h.node.Drain()
	h.ua.Drain()
}

// settleTime is what is left for events and webhooks once the last call is over.
const settleTime = 5 * time.Second

// stop drains, waits for the calls until ctx ends, ends those that are left, and
// closes.
func (h *house) stop(ctx context.Context) {
	h.drain()
	h.node.Stop(ctx)
	h.settle()
	h.close()
}

// settle lets the recordings and webhooks of the last calls get through, for
// settleTime. What does not make it goes on at the next start.
func (h *house) settle() {
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		n, err := h.store.Unsettled(ctx, h.node.Place.Home)
		if err != nil || n == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			h.log.Warn("left for the next start", "events and webhooks", n)
			return
		}
	}
}

// close closes what is open, in the order that loses nothing: what is written
// down goes on at the next start.
func (h *house) close() {
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	for _, s := range []*http.Server{h.http, h.admin} {
		if s != nil && s.Shutdown(ctx) != nil {
			_ = s.Close()
		}
	}
	for _, l := range []net.Listener{h.listen, h.listenM} {
		if l != nil {
			_ = l.Close() // closed already, where it was served
		}
	}
	h.web.close()
	if h.leave != nil {
		h.leave()
	}
	if h.ua != nil {
		if err := h.ua.Close(ctx); err != nil {
			h.log.Warn("carriers did not answer in time", "err", err)
		}
	}
	h.quit()
	h.tasks.Wait()
	if h.transport != nil {
		h.transport.Close()
	}
	if h.providers != nil {
		_ = h.providers.Close() // idle connections
	}
	if h.fakes != nil {
		_ = h.fakes.Close() // loopback only
	}
	if h.db != nil {
		h.db.Close()
	}
}
