package metrics

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/parley-voice/parley/media/mediatest"
)

const deploy = "../../deploy/"

// faults lists for each alert a series that replaces its healthy values.
func faults() map[string][2]string {
	return map[string][2]string{
		"ParleyDown":                  {`up{job="parley"}`, "0x60"},
		"ParleyDatabaseDown":          {"parley_database_up", "0x60"},
		"ParleyDatabaseReverted":      {"parley_database_reverts_total", "0x20 1x40"},
		"ParleyNodesMissing":          {"parley_database_missing_nodes", "1x60"},
		"ParleyJournalFails":          {"parley_journal_failures_total", "0x25 3x35"},
		"ParleyLeasesLost":            {"parley_leases_lost_total", "0x25 2x35"},
		"ParleyConnectionsExhausted":  {`parley_database_wait_seconds_total{pool="main"}`, "0+120x60"},
		"ParleyQueueStuck":            {"parley_queue_oldest_seconds", "0+60x60"},
		"ParleyEventsStuck":           {"parley_events_oldest_seconds", "0+60x60"},
		"ParleyWebhooksOverdue":       {"parley_webhook_overdue_seconds", "0+60x60"},
		"ParleyWebhooksDead":          {`parley_webhook_attempts_total{state="dead"}`, "0x25 1x35"},
		"ParleyRecordingLost":         {`parley_recordings_total{result="lost"}`, "0x25 1x35"},
		"ParleyRecordingsNotUploaded": {"parley_recordings_spooled_oldest_seconds", "0+60x60"},
		"ParleyDiskLow":               {"parley_recording_free_bytes", "1000000000x60"},
		"ParleyProviderPaused":        {`parley_provider_paused{kind="tts",provider="cartesia"}`, "1x60"},
		"ParleyProviderErrors":        {`parley_provider_requests_total{kind="llm",provider="openai",result="failed"}`, "0+10x60"},
		"ParleyAnswersSlow":           {`parley_turn_seconds_bucket{phase="turn",le="2"}`, "0+90x60"},
		"ParleyCallsFail":             {`parley_calls_total{status="ended",reason="agent_error"}`, "0+2x60"},
		"ParleyTrunkDown":             {`parley_sip_places{verdict="down"}`, "1x60"},
		"ParleyRegistrationFails":     {`parley_sip_registrations{state="failed"}`, "1x60"},
		"ParleyMediaLate":             {"parley_media_clock_late_ticks_total", "0+300x60"},
		"ParleyNodeFull":              {"parley_calls_live", "95x60"},
		"ParleyNodeOverloaded":        {`parley_calls_held{reason="late_media"}`, "1x60"},
		"ParleyCampaignIdle":          {`parley_campaign_running_but_idle{campaign="cmp_1"}`, "1x60"},
		"ParleyCampaignHeld":          {`parley_campaign_held{campaign="cmp_1",reason="provider_unavailable"}`, "4x60"},
		"ParleyRouteOpen":             {`parley_route_breaker{route="rte_1",state="open"}`, "1x60"},
		"ParleyCertificateExpires":    {`parley_certificate_expiry_timestamp_seconds{use="http"}`, "600000x60"},
	}
}

// healthy returns series of a server without faults, of one hour.
func healthy() map[string]string {
	all := map[string]string{
		"parley_calls_max": "100x60", "parley_turn_seconds_bucket{phase=\"turn\",le=\"5\"}": "0+100x60",
		"parley_turn_seconds_bucket{phase=\"turn\",le=\"+Inf\"}":                          "0+100x60",
		"parley_calls_total{status=\"ended\",reason=\"callee_hangup\"}":                   "0+100x60",
		`parley_provider_requests_total{kind="llm",provider="openai",result="succeeded"}`: "0+100x60",
		`parley_recordings_total{result="stored"}`:                                        "0+10x60",
	}
	for _, f := range faults() {
		all[f[0]] = "0x60"
	}
	all[`up{job="parley"}`], all["parley_database_up"] = "1x60", "1x60"
	all["parley_recording_free_bytes"] = "50000000000x60"
	all["parley_calls_live"] = "20x60"
	all[`parley_turn_seconds_bucket{phase="turn",le="2"}`] = "0+100x60"
	all[`parley_certificate_expiry_timestamp_seconds{use="http"}`] = "5000000x60"
	return all
}

type ruleFile struct {
	Groups []struct {
		Rules []struct {
			Alert       string
			Expr        string
			Annotations map[string]string
		}
	}
}

// TestAlerts checks that each alert fires in its fault, and that no other one does. promtool evaluates the rules.
func TestAlerts(t *testing.T) {
	t.Parallel()
	var rules ruleFile
	text, err := os.ReadFile(deploy + "prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err = yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range rules.Groups[0].Rules {
		names = append(names, r.Alert)
		if _, ok := faults()[r.Alert]; !ok {
			t.Errorf("no fault for %s", r.Alert)
		}
		if !strings.Contains(string(doc), "\n## "+r.Alert+"\n") || !strings.HasSuffix(r.Annotations["runbook_url"], "#"+strings.ToLower(r.Alert)) {
			t.Errorf("%s: docs/alerts.md has no section, or the link is wrong", r.Alert)
		}
	}
	promtool := find(t, "promtool")
	type object = map[string]any
	type list = []any
	test := func(alert string) object {
		series := healthy()
		var want list
		if alert != "" {
			series[faults()[alert][0]] = faults()[alert][1]
			want = list{object{"labels": fmt.Sprintf("{alertname=%q}", alert), "value": 1}}
		}
		var input list
		for s, values := range series {
			input = append(input, object{"series": s, "values": values})
		}
		// At minute 30 every fault has lasted long enough.
		check := object{"expr": `count by (alertname) (ALERTS{alertstate="firing"})`, "eval_time": "30m", "exp_samples": want}
		if alert == "ParleyCertificateExpires" {
			check["eval_time"] = "62m" // the alert waits for an hour
			for _, x := range input {
				o := x.(object) //nolint:forcetypeassert // see above
				o["values"] = strings.ReplaceAll(o["values"].(string), "x60", "x70")
			}
		}
		return object{"interval": "1m", "input_series": input, "promql_expr_test": list{check}, "name": alert}
	}
	var tests list
	for _, alert := range append(names, "") {
		tests = append(tests, test(alert))
	}
	path, err := filepath.Abs(deploy + "prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(object{"rule_files": list{path}, "tests": tests, "evaluation_interval": "1m"})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tests.yaml")
	if err = os.WriteFile(file, out, 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.CommandContext(t.Context(), promtool, "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
}

func find(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("%s is not installed (apt-get install prometheus)", program)
	}
	return path
}

// TestBoards checks that every expression of the Grafana boards yields a series in a Prometheus that scrapes all metrics.
func TestBoards(t *testing.T) {
	t.Parallel()
	program := find(t, "prometheus")
	m := watching(t)
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		record(t, m) // counters grow from scrape to scrape
		m.phases.WithLabelValues("turn").Observe(0.5)
		m.Handler(false).ServeHTTP(w, r)
	}))
	defer target.Close()
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 200ms}\nscrape_configs:\n- {job_name: parley, static_configs: [{targets: [%q]}]}\n",
		strings.TrimPrefix(target.URL, "http://"))
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("127.0.0.1:%d", mediatest.FreePort(t))
	cmd := exec.CommandContext(t.Context(), program, "--config.file="+dir+"/prometheus.yml", "--storage.tsdb.path="+dir+"/data", "--web.listen-address="+at)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	files, err := filepath.Glob(deploy + "grafana/boards/*.json")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d boards, %v", len(files), err)
	}
	until := time.Now().Add(time.Minute)
	for _, file := range files {
		for _, expr := range expressions(t, file) {
			for !yields(at, expr) {
				if time.Now().After(until) {
					t.Errorf("%s: no series: %s", filepath.Base(file), expr)
					break
				}
				<-time.After(100 * time.Millisecond) // Prometheus is another process
			}
		}
	}
}

// expressions returns the expressions of a board.
func expressions(t *testing.T, file string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err = json.Unmarshal(text, &board); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			all = append(all, target.Expr)
		}
	}
	if len(all) == 0 || slices.Contains(all, "") {
		t.Errorf("%s: expressions %q", file, all)
	}
	return all
}

func yields(at, expr string) bool {
	resp, err := http.Get("http://" + at + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	var out struct {
		Data struct{ Result []json.RawMessage }
	}
	return json.NewDecoder(resp.Body).Decode(&out) == nil && len(out.Data.Result) > 0
}
