package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/recording/s3/s3test"
)

// chaosFile is the operator's file: the webhook receiver, its secret, agents, trunks, and of an organization that must not
// call during the test, the calling window, an agent and a trunk.
const chaosFile = `
organizations:
- name: demo
  timezone: Asia/Almaty
  market: kz
  calling_window: {days: [0, 1, 2, 3, 4, 5, 6], start: "00:00", end: "24:00"}
  webhooks: [{url: "http://%s/hook", secret: %q, events: [call_ended, call_analyzed]}]
  agents: [%s]
  trunks: [%s]
- name: night
  timezone: Asia/Almaty
  market: kz
  calling_window: {days: [0, 1, 2, 3, 4, 5, 6], start: "%02d:00", end: "%02d:00"}
  agents: [%s]
  trunks: [%s]
`

// chaosRoute returns an agent and the trunk that it calls through.
func chaosRoute(n int, proxy string) (agent, trunk string) {
	agent = fmt.Sprintf(`{name: agent-%d, published: true, greeting: "Hello, this is Parley. How can I help?",
    prompt: "You answer the phone of a small book shop. Be brief and kind.", voicemail: continue, recording: true,
    speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}`, n)
	trunk = fmt.Sprintf(`{name: trunk-%[1]d, proxy: "sip:%[2]s;transport=udp", caller_numbers: ["+7727200000%[1]d"], subgroups: [
    {name: all, allowed_destinations: ["7"], agents: [agent-%[1]d], concurrent_calls: 500, calls_per_minute: 6000}]}`, n, proxy)
	return agent, trunk
}

// Load of the test.
const (
	chaosOrderEvery  = 2 * time.Second  // a single call is ordered
	chaosBatchEvery  = 5 * time.Minute  // a campaign is launched
	chaosBatch       = 150              // contacts of a campaign
	chaosPace        = 30               // calls per minute of a campaign
	chaosWithdrawals = 30 * time.Second // contacts of the latest campaign are withdrawn
	chaosTail        = 13 * time.Minute // most time until all is settled: nodes without segments are waited for 10 min
)

// chaosHolds are the times after which the callees of the carriers hang up.
func chaosHolds() [3]time.Duration {
	return [3]time.Duration{12 * time.Second, 25 * time.Second, 50 * time.Second}
}

// chaos is the state of TestChaos.
type chaos struct {
	t         *testing.T
	seed      uint64
	began     time.Time
	pair      *dbtest.Pair
	primary   int // server of the pair
	pooler    *dbtest.Pooler
	bucket    *s3test.Server
	providers *stoppableProviders
	receiver  hooks
	audio     *chaosAudio
	carriers  [3]*chaosCarrier
	nodes     [3]*chaosNode
	key       string
	night     string // API key of the organization that must not call
	client    http.Client
	outside   sync.Mutex // held during a fault outside of nodes and database, and by a fault that tolerates none

	mu        sync.Mutex
	faults    []chaosFault
	orders    map[string]string    // call ID by Idempotency-Key
	withdrawn map[string]time.Time // when the API had answered
	forbidden map[string]bool      // numbers that must not be called at all
	launched  []string             // IDs of campaigns; for the goroutine that launches them
}

// chaosFault is a fault that was caused.
type chaosFault struct {
	name     string
	node     string // name of the node that was affected; empty if none was
	port     int    // SIP port of that node
	from, to time.Time
}

// chaosNode is a process of the server.
type chaosNode struct {
	c       *chaos
	name    string
	dir     string
	url     string
	sip     int
	environ []string

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
	ends  bool          // the test ends the process
}

// newNode creates a node that has its own disk. index selects the ports for audio.
func (c *chaos) newNode(index int, name string) *chaosNode {
	t := c.t
	t.Helper()
	n := &chaosNode{c: c, name: name, dir: openDir(t)}
	if err := syscall.Mount("tmpfs", n.dir, "tmpfs", 0, "size=192m"); err != nil {
		t.Skipf("only root may mount a small disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(n.dir, syscall.MNT_DETACH) }) // fails if a fault has removed the disk
	http, sip := freePort(t), freePort(t)
	n.url = "http://127.0.0.1:" + http
	n.sip, _ = strconv.Atoi(sip) // digits
	n.environ = []string{
		"PARLEYTEST_ROLE=parley", "PARLEY_NODE_NAME=" + name, "PARLEY_DATABASE_URL=" + c.pooler.URL(), "PARLEY_DATABASE_DIRECT_URL=" + c.pair.URL(),
		"PARLEY_SEAL_KEY=" + dbtest.SealKey, "PARLEY_DATA_DIR=" + n.dir, "PARLEY_HTTP_ADDR=127.0.0.1:" + http, "PARLEY_METRICS_ADDR=127.0.0.1:0",
		"PARLEY_SIP_ADDR=127.0.0.1:" + sip, fmt.Sprintf("PARLEY_RTP_PORTS=%d-%d", 20000+3000*index, 22999+3000*index), "PARLEY_WEBRTC_UDP_PORT=0",
		"PARLEY_DRAIN_TIMEOUT=90s", "PARLEY_ALLOW_INSECURE_WEBHOOKS=true", "PARLEY_LOG_LEVEL=warn", "PARLEY_FAKE_URL=" + c.providers.addr,
		"PARLEY_BUCKET_URL=" + c.bucket.BucketURL("p"), "PARLEY_S3_ID=" + s3test.ID, "PARLEY_S3_SECRET=" + s3test.Secret, "PARLEY_RECORDING_RESERVE=16MB",
	}
	return n
}

// start starts the process. Its log goes to a file.
func (n *chaosNode) start() {
	t := n.c.t
	log, err := os.OpenFile(filepath.Join(chaosLogs(), n.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "serve")
	cmd.Env, cmd.Stderr = append(os.Environ(), n.environ...), log
	if err = cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = log.Close()
	ended := make(chan struct{})
	n.mu.Lock()
	n.cmd, n.ended, n.ends = cmd, ended, false
	n.mu.Unlock()
	go func() { // ends with the process
		defer close(ended)
		err := cmd.Wait()
		n.mu.Lock()
		defer n.mu.Unlock()
		if !n.ends && t.Context().Err() == nil {
			t.Errorf("%s ended by itself: %v", n.name, err)
		}
	}()
}

// end sends a signal that ends the process, and waits until it has ended.
func (n *chaosNode) end(s syscall.Signal) {
	n.mu.Lock()
	n.ends = true
	cmd, ended := n.cmd, n.ended
	n.mu.Unlock()
	_ = cmd.Process.Signal(s) // an error means that it has ended, which its goroutine reports
	select {
	case <-ended:
	case <-time.After(3 * time.Minute):
		n.c.t.Errorf("%s has not ended 3 min after %v", n.name, s)
		_ = cmd.Process.Kill()
		<-ended
	}
	if s == syscall.SIGTERM && !cmd.ProcessState.Success() {
		n.c.t.Errorf("%s: %v", n.name, cmd.ProcessState)
	}
}

func (n *chaosNode) ready() bool {
	ctx, cancel := context.WithTimeout(n.c.t.Context(), 2*time.Second)
	defer cancel()
	status, _, _ := n.c.ask(ctx, n, http.MethodGet, "/readyz", "", "", nil)
	return status == http.StatusOK
}

// chaosLogs returns the folder for the logs of the nodes.
func chaosLogs() string {
	if dir := os.Getenv("PARLEYTEST_CHAOS_LOGS"); dir != "" {
		return dir
	}
	return os.TempDir()
}

// ask sends a request to a node. The status is 0 if no complete response was received.
func (c *chaos) ask(ctx context.Context, n *chaosNode, method, path, key, idempotency string, body any) (status int, text []byte, err error) {
	var content io.Reader
	if body != nil {
		var b []byte
		if b, err = json.Marshal(body); err != nil {
			return 0, nil, err
		}
		content = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, n.url+path, content)
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	if idempotency != "" {
		r.Header.Set("Idempotency-Key", idempotency)
	}
	resp, err := c.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if text, err = io.ReadAll(resp.Body); err != nil {
		return 0, nil, err
	}
	return resp.StatusCode, text, nil
}

// node returns a node of the present ones.
func (c *chaos) node(n int) *chaosNode {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[n%len(c.nodes)]
}

// until sends a request to one node after another until one accepts it with a status 2xx. It returns nil if ctx ends, or
// if the request is refused for another reason than the state of the service.
func (c *chaos) until(ctx context.Context, first int, path, key, idempotency string, body any) []byte {
	last := ""
	for n := first; ctx.Err() == nil; n++ {
		once, cancel := context.WithTimeout(ctx, 10*time.Second)
		status, text, err := c.ask(once, c.node(n), http.MethodPost, path, key, idempotency, body)
		cancel()
		last = fmt.Sprintf("%d %s %v", status, text, err)
		switch {
		case status/100 == 2:
			return text
		case status/100 == 4 && status != http.StatusConflict && status != http.StatusTooManyRequests:
			c.t.Errorf("POST %s: %d %s; %v", path, status, text, body)
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
	c.t.Errorf("POST %s was not accepted in time; the last response: %s", path, last)
	return nil
}

// order orders single calls at a fixed pace until ctx ends, and returns when all are accepted.
func (c *chaos) order(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	tick := time.NewTicker(chaosOrderEvery)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		wg.Go(func() { // at most one for every tick of an outage
			limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Minute)
			defer cancel()
			key := fmt.Sprintf("order-%d", i)
			text := c.until(limit, i, "/v1/calls/phone", c.key, key, map[string]any{"agent_id": fmt.Sprintf("agent-%d", i%3), "to_number": chaosNumber(i, 999)})
			var placed apiCall
			if err := json.Unmarshal(text, &placed); err != nil || placed.CallID == "" {
				c.t.Errorf("%s: %s, %v", key, text, err)
				return
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.orders[key] = placed.CallID
		})
	}
}

// chaosNumber returns the number i of a group.
func chaosNumber(i, group int) string { return fmt.Sprintf("+7701%03d%04d", group, i) }

// campaigns launches a campaign every chaosBatchEvery until ctx ends, and withdraws some of its contacts one by one.
func (c *chaos) campaigns(ctx context.Context) {
	for batch := 0; ctx.Err() == nil; batch++ {
		next := time.After(chaosBatchEvery)
		c.launch(ctx, batch)
		for i, over := chaosBatch-1, false; !over && ctx.Err() == nil; i -= 7 {
			select {
			case <-ctx.Done():
			case <-next:
				over = true
			case <-time.After(chaosWithdrawals):
				c.withdraw(ctx, chaosNumber(max(i, 0), batch))
			}
		}
	}
}

// launch launches a campaign. A node may die when the campaign exists and before it runs: then the campaign is not
// launched, and the requests get 409 for as long as the key is kept.
func (c *chaos) launch(ctx context.Context, batch int) {
	var rows []map[string]any
	for i := range chaosBatch {
		rows = append(rows, map[string]any{"phone": chaosNumber(i, batch)})
	}
	order := map[string]any{
		"name": fmt.Sprintf("batch %d", batch), "agent_id": fmt.Sprintf("agent-%d", batch%3), "calls_per_minute": chaosPace, "planned_calls": rows,
		"attestation": map[string]any{"confirmed": true}, "retry_config": map[string]any{"attempts": 1},
	}
	for limit := time.Now().Add(2 * time.Minute); time.Now().Before(limit); <-time.After(time.Second) {
		once, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		status, text, _ := c.ask(once, c.node(batch), http.MethodPost, "/v1/campaigns", c.key, fmt.Sprintf("batch-%d", batch), order)
		cancel()
		var launched struct {
			ID string `json:"campaign_id"`
		}
		if status == http.StatusCreated && json.Unmarshal(text, &launched) == nil {
			c.launched = append(c.launched, launched.ID)
			return
		}
	}
	c.note("campaign %d was not launched within 2 min", batch)
}

// withdraw withdraws a number, and keeps when the API had answered.
func (c *chaos) withdraw(ctx context.Context, number string) {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Minute)
	defer cancel()
	if c.until(limit, 0, "/v1/contacts/withdraw", c.key, "", map[string]any{"phones": []string{number}}) != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.withdrawn[number[1:]] = time.Now()
	}
}

// TestChaos runs three nodes with a synchronous pair of databases, PgBouncer, a bucket and sipp carriers for
// PARLEYTEST_CHAOS (a duration), while faults occur at random. The journals of the carriers and of the webhook receiver
// must show that no number rang twice or unlawfully, and that no webhook was lost.
func TestChaos(t *testing.T) {
	if os.Getenv("PARLEYTEST_CHAOS") == "" {
		t.Skip("make chaos")
	}
	length, err := time.ParseDuration(os.Getenv("PARLEYTEST_CHAOS"))
	if err != nil {
		t.Fatal(err)
	}
	seed, err := strconv.ParseUint(os.Getenv("PARLEYTEST_CHAOS_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64N(100000)
	}
	c := newChaos(t, seed)
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var load, outside sync.WaitGroup
	load.Go(func() { c.order(ctx) })
	load.Go(func() { c.campaigns(ctx) })
	outside.Go(func() { c.faultsOutside(ctx) })
	c.faultsInside(ctx)
	outside.Wait()
	load.Wait()
	c.note("no more faults and orders")
	c.settle()
	for _, n := range c.nodes {
		n.end(syscall.SIGTERM)
	}
	c.audio.stop()
	for _, x := range c.carriers {
		x.stop()
	}
	c.judge()
}

func newChaos(t *testing.T, seed uint64) *chaos {
	t.Helper()
	c := &chaos{
		t: t, seed: seed, began: time.Now(), pair: dbtest.NewPair(t), bucket: s3test.New(t), providers: startProviders(t),
		audio: startChaosAudio(t, 600), orders: map[string]string{}, withdrawn: map[string]time.Time{}, forbidden: map[string]bool{},
	}
	c.pooler = dbtest.NewPooler(c.pair)
	c.pair.Synchronize(0, true)
	hook := httptest.NewServer(&c.receiver)
	t.Cleanup(hook.Close)
	for i, hold := range chaosHolds() {
		c.carriers[i] = startChaosCarrier(t, hold, c.audio.ports[200*i:][:200])
	}
	closed := time.Now().In(time.FixedZone("", 5*3600)).Add(12 * time.Hour).Hour() // far from now
	closed = min(closed, 22)
	var agents, trunks []string
	for i, x := range c.carriers {
		agent, trunk := chaosRoute(i, x.addr)
		agents, trunks = append(agents, agent), append(trunks, trunk)
	}
	file := fmt.Sprintf(chaosFile, strings.TrimPrefix(hook.URL, "http://"), demo.Secret, strings.Join(agents, ", "), strings.Join(trunks, ", "),
		closed, closed+1, agents[0], trunks[0])
	d, err := db.Open(t.Context(), db.Config{URL: c.pair.DirectURL(0), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if c.key, err = createDemo(t.Context(), d, file); err != nil {
		t.Fatal(err)
	}
	org, err := apikeys.FindOrganization(t.Context(), d.Pool, "night")
	if err != nil {
		t.Fatal(err)
	}
	_, secret, err := apikeys.CreateKey(t.Context(), d.Pool, apikeys.Key{OrgID: org, Name: "night", RateLimit: apikeys.RateOff})
	if err != nil {
		t.Fatal(err)
	}
	c.night = string(secret)
	if _, err = d.Pool.Exec(t.Context(), `UPDATE agent_versions SET definition = definition || '{"max_duration_s": 60}'`); err != nil {
		t.Fatal(err)
	}
	for i := range c.nodes {
		c.nodes[i] = c.newNode(i, fmt.Sprintf("node-%d", i))
		c.nodes[i].start()
	}
	c.awaitReady()
	var rows []map[string]any
	for i := range 50 {
		number := chaosNumber(i, 998)
		c.forbidden[number[1:]] = true
		rows = append(rows, map[string]any{"phone": number})
	}
	c.until(t.Context(), 0, "/v1/campaigns", c.night, "night", map[string]any{
		"name": "night", "agent_id": "agent-0", "calls_per_minute": 200, "planned_calls": rows, "attestation": map[string]any{"confirmed": true},
	})
	c.note("seed %d; logs of the nodes are in %s", seed, chaosLogs())
	return c
}
