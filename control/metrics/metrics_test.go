package metrics

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/failover"
	"github.com/parley-voice/parley/control/pricing"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediaclock"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/provider"
)

func scraped(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler(true).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	text, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d, %v: %s", w.Code, err, text)
	}
	return string(text)
}

// watching returns metrics with sources of fixed values.
func watching(t *testing.T) *Metrics {
	t.Helper()
	clock := &mediaclock.Clock{}
	ports, err := rtp.ParsePorts("0-0")
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rtp.NewTransport(clock, ports, netip.MustParseAddr("127.0.0.1"), netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.Close)
	m := New()
	config, err := pgxpool.ParseConfig("postgres://parley@127.0.0.1:1/parley?pool_max_conns=7")
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	m.Register(Sources{
		Node: &control.Node{MaxCalls: 50}, Channels: &store.ChannelCounter{}, Pools: map[string]*pgxpool.Pool{"main": pool},
		Log: slog.New(slog.DiscardHandler),
		Backlog: func(context.Context) (store.Backlog, error) {
			return store.Backlog{Calls: 5, CallAge: 90 * time.Second, DeadDeliveries: 2}, nil
		},
		Spool:        func() recording.Content { return recording.Content{Files: 3, Size: 4096, Oldest: time.Minute} },
		Certificates: func() map[string]time.Time { return map[string]time.Time{"http": time.Unix(1_900_000_000, 0)} },
		Providers: func() []provider.Status {
			late := provider.Durations{Counts: [10]uint64{1, 0, 0, 0, 0, 0, 0, 0, 0, 2}, Sum: 9 * time.Second}
			return []provider.Status{
				{Kind: "tts", Name: "cartesia", Open: true, Counts: provider.Counts{Failed: 4, Response: late}},
				{Kind: "llm", Name: "own", OrgID: "org_1", Active: 2, Counts: provider.Counts{Succeeded: 6}},
				{Kind: "llm", Name: "own", OrgID: "org_2", Active: 1, Counts: provider.Counts{Succeeded: 1, Rejected: 3}},
			}
		},
		Spans:    func() map[string]int64 { return map[string]int64{"exported": 5, "failed": 0, "dropped": 0} },
		Failover: func() failover.Stats { return failover.Stats{} }, Live: &control.Live{}, Free: func() int64 { return 1 }, Clock: clock, Transport: transport, Campaigns: func() Campaigns {
			return Campaigns{
				Active: true, Running: 2, Routes: map[string]string{"rte_1": RouteOpen},
				All: []Campaign{{ID: "cmp_1", Asked: 60, Dialed: 58, InFlight: 7, Ready: 3, Held: map[string]int{"retry_wait": 4}, Idle: true, BudgetLeft: new(12.5)}},
			}
		}, Carriers: func() Carriers {
			return Carriers{
				Up: 3, Dialing: 2, Addresses: map[string]int64{"up": 0}, Registrations: map[string]int64{"failed": 0},
				Refused: map[int]int64{400: 1, 497: 2, 498: 3},
			}
		},
	})
	m.sampler.sample(t.Context())
	return m
}

// record calls each method of the metrics once.
func record(t *testing.T, m *Metrics) {
	t.Helper()
	m.CountRecording("stored")
	m.CountTestCost(pricing.Cost{Currency: "EUR", Items: []pricing.Item{{EngineUsage: pipeline.EngineUsage{Serves: "llm"}, Amount: 250_000_000}}})
	m.CountDelivery("delivered")
	m.CountDial("busy")
	m.ObserveRequest("/v1/calls", "BREW", 405, time.Millisecond)
	if err := m.CallCounter(costs{}).HandleEvent(t.Context(), control.Event{Kind: control.CallEnded, Status: control.Ended, Reason: "callee_hangup"}); err != nil {
		t.Error(err)
	}
	_, _ = m.Talker(talker{}).Talk(t.Context(), nil, pipeline.SessionConfig{Observer: watcher{}})
	m.ObserveRequestDelay(1200 * time.Millisecond)
	m.CountInvite(200)
	m.CountInvite(486)
	m.CountInvite(0)
	m.ObserveRegistration(true, 30*time.Millisecond)
	m.ObserveRegistration(false, time.Second)
	way := media.DirectionQuality{Packets: 100, Jitter: 4 * time.Millisecond, MOS: 4.2}
	m.LegEnded(Leg{
		Cause: media.LocalHangup, Lasted: time.Minute, Bye: 40 * time.Millisecond,
		Quality: media.Quality{Received: way, Sent: way, RoundTrip: 60 * time.Millisecond},
	})
	m.LegEnded(Leg{Cause: media.MediaTimeout, Lasted: time.Second, Bye: 32 * time.Second, Unanswered: true})
	m.LegEnded(Leg{Cause: media.RemoteHangup, Lasted: time.Second, Quality: media.Quality{Received: way}})
}

type costs struct{}

func (costs) Cost(context.Context, string) (pricing.Cost, error) {
	return pricing.Cost{Currency: "EUR", Items: []pricing.Item{{EngineUsage: pipeline.EngineUsage{Serves: "asr"}, Amount: 500_000_000}}}, nil
}

type talker struct{}

func (talker) Talk(_ context.Context, _ media.Leg, b pipeline.SessionConfig) (pipeline.Outcome, error) {
	b.Observer.OnTurn(pipeline.Turn{Spans: []pipeline.Span{{Phase: "asr_ms", For: time.Second}}})
	return pipeline.Outcome{}, errors.New("nobody")
}

type watcher struct{ pipeline.Observer }

func (watcher) OnTurn(pipeline.Turn) {}

func TestMeter(t *testing.T) {
	m := watching(t)
	record(t, m)
	text := scraped(t, m)
	for _, want := range []string{
		`parley_sip_srd_seconds_bucket{le="1"} 0`, `parley_sip_srd_seconds_bucket{le="1.5"} 1`,
		`parley_sip_invites_total{status="200"} 1`, `parley_sip_invites_total{status="486"} 1`, `parley_sip_invites_total{status="none"} 1`,
		`parley_sip_registers_total{result="ok"} 1`, `parley_sip_registers_total{result="failed"} 1`, `parley_sip_rrd_seconds_count 1`,
		`parley_sip_sdd_seconds_count 1`, `parley_sip_sdd_seconds_sum 0.04`, `parley_sip_disconnects_unanswered_total 1`,
		`parley_sip_sdt_seconds_count 3`, `parley_sip_sdt_seconds_sum 62`, `parley_sip_legs_ended_total{cause="media_timeout"} 1`,
		`parley_rtp_mos_count{direction="received"} 2`, `parley_rtp_mos_count{direction="sent"} 1`,
		`parley_rtp_jitter_seconds_count{direction="received"} 2`, `parley_rtp_jitter_seconds_count{direction="sent"} 1`,
		`parley_rtp_round_trip_seconds_count 1`, `parley_sip_registrations{state="failed"} 0`, `parley_sip_places{verdict="up"} 0`,
		`parley_sip_legs 3`, `parley_sip_dialling 2`, `parley_sip_refused_total{status="400"} 1`, `parley_sip_refused_total{status="4xx"} 5`,
		`parley_http_request_seconds_count{method="other",route="/v1/calls",status="405"} 1`,
		`parley_campaigns_running 2`, `parley_campaign_pace_asked{campaign="cmp_1"} 60`, `parley_campaign_dialled{campaign="cmp_1"} 58`,
		`parley_campaign_in_flight{campaign="cmp_1"} 7`, `parley_campaign_ready{campaign="cmp_1"} 3`,
		`parley_campaign_held{campaign="cmp_1",reason="retry_wait"} 4`, `parley_campaign_running_but_idle{campaign="cmp_1"} 1`,
		`parley_campaign_budget_left{campaign="cmp_1"} 12.5`,
		`parley_database_up 1`, `parley_queue_calls 5`, `parley_queue_oldest_seconds 90`, `parley_webhook_deliveries_dead 2`,
		`parley_database_connections_max{pool="main"} 7`, `parley_database_connections_used{pool="main"} 0`,
		`parley_calls_max 50`, `parley_node_accepting 0`, `parley_recordings_spooled 3`, `parley_recordings_spooled_oldest_seconds 60`,
		`parley_certificate_expiry_timestamp_seconds{use="http"} 1.9e+09`,
		`parley_provider_paused{kind="tts",provider="cartesia"} 1`, `parley_provider_paused{kind="llm",provider="organizations"} 0`,
		`parley_provider_active{kind="llm",provider="organizations"} 3`,
		`parley_provider_requests_total{kind="llm",provider="organizations",result="succeeded"} 7`,
		`parley_provider_requests_total{kind="llm",provider="organizations",result="rejected"} 3`,
		`parley_provider_requests_total{kind="tts",provider="cartesia",result="failed"} 4`,
		`parley_provider_response_seconds_bucket{kind="tts",provider="cartesia",le="3"} 1`,
		`parley_provider_response_seconds_count{kind="tts",provider="cartesia"} 3`,
		`parley_route_breaker{route="rte_1",state="open"} 1`, `parley_campaign_attempts_total{outcome="busy"} 1`,
		`parley_call_cost_total{currency="EUR",serves="asr"} 0.5`, `parley_test_cost_total{currency="EUR",serves="llm"} 0.25`, `parley_calls_total{reason="callee_hangup",status="ended"} 1`, `parley_webhook_attempts_total{state="delivered"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
}

// TestDatabaseDown checks that no stale backlog is exported while the database cannot be read.
func TestDatabaseDown(t *testing.T) {
	m := watching(t)
	failing := &sampler{log: slog.New(slog.DiscardHandler), read: func(context.Context) (store.Backlog, error) {
		return store.Backlog{}, errors.New("no connection")
	}}
	failing.sample(t.Context())
	registry := prometheus.NewRegistry()
	registry.MustRegister(newBacklogs(failing))
	m.registry = registry
	if text := scraped(t, m); !strings.Contains(text, "parley_database_up 0\n") || strings.Contains(text, "parley_queue") {
		t.Error(text)
	}
}

func TestStatusNames(t *testing.T) {
	for status, want := range map[int]string{0: "none", 200: "200", 202: "2xx", 486: "486", 499: "4xx", 603: "603", 699: "6xx", 700: "other", -1: "other", 100: "other"} {
		if got := statusName(status); got != want {
			t.Errorf("%d: %s, want %s", status, got, want)
		}
	}
}

// TestMetricsAreDocumented checks that docs/metrics.md lists exactly the exported metrics.
func TestMetricsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	m := watching(t)
	record(t, m)
	there := map[string]bool{}
	for _, family := range regexp.MustCompile(`(?m)^# TYPE (parley_\w+) `).FindAllStringSubmatch(scraped(t, m), -1) {
		there[family[1]] = true
		if !regexp.MustCompile("`" + family[1] + "[`{]").Match(doc) {
			t.Errorf("docs/metrics.md does not explain %s", family[1])
		}
	}
	for _, row := range regexp.MustCompile(`(?m)^\|.*\|.*\|$`).FindAllString(string(doc), -1) {
		for _, name := range regexp.MustCompile("`(parley_[a-z_]+)").FindAllStringSubmatch(row, -1) {
			if !there[name[1]] {
				t.Errorf("docs/metrics.md explains %s, which is no metric", name[1])
			}
		}
	}
}
