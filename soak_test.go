package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestMain lets the test binary run as a server, which tests can kill, or as a carrier, which survives the server.
func TestMain(m *testing.M) {
	switch os.Getenv("PARLEYTEST_ROLE") {
	case "parley":
		main()
	case "carrier":
		if err := carrierProcess(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		dbtest.Main(m, func() { repeats.print(os.Stdout) })
	}
}

// carrierEvent is an INVITE or a ring that the carrier process reports.
type carrierEvent struct {
	ID     string `json:"id"`
	Branch string `json:"branch"`
	Rang   bool   `json:"rang"`
}

// carrierProcess accepts calls until its standard input ends, and prints every INVITE and every ring.
func carrierProcess() error {
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	report := func(in siptest.Invite, rang bool) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(carrierEvent{in.ID, in.Branch, rang}) // an error means that the reader of the output has ended
	}
	c := &siptest.Carrier{
		Listen:   "127.0.0.1:0",
		OnInvite: func(in siptest.Invite) { report(in, false) },
		OnRing:   func(in siptest.Invite) { report(in, true) },
		Answer:   randomCallee,
	}
	if err := c.Start(); err != nil {
		return err
	}
	fmt.Println(c.Addr())
	_, err := io.Copy(io.Discard, os.Stdin)
	_ = c.Close()
	return err
}

// randomCallee returns a random answer: busy, a late 503, a callee who hangs up soon, or a callee who talks.
func randomCallee(siptest.Invite) siptest.Script {
	ring := time.Duration(rand.IntN(600)) * time.Millisecond
	switch rand.IntN(5) {
	case 0:
		return siptest.Script{Ring: ring, Status: 486, Reason: "Busy Here"}
	case 1:
		return siptest.Script{Ring: ring, After: 3 * time.Second, Status: http.StatusServiceUnavailable}
	case 2:
		return siptest.Script{Ring: ring, After: ring, Status: http.StatusOK, Talk: siptest.Person{GiveUpAfter: time.Second}.Talk}
	default:
		return siptest.Script{Ring: ring, After: ring, Status: http.StatusOK, Talk: siptest.Person{Lines: []string{"when do you open"}}.Talk}
	}
}

// child starts the test binary in another role.
func child(t *testing.T, role string, args ...string) (*exec.Cmd, io.WriteCloser, *bufio.Scanner) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "PARLEYTEST_ROLE="+role)
	cmd.Stderr = nil
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe := cmd.StdoutPipe
	if role == "parley" {
		pipe = cmd.StderrPipe // log of the child
	}
	out, err := pipe()
	if err != nil {
		t.Fatal(err)
	}
	return cmd, in, bufio.NewScanner(out)
}

const (
	soakCalls = 200
	soakKills = 25
)

// soak is one run of a test that kills or restarts servers.
type soak struct {
	t       *testing.T
	db      *db.DB
	environ []string
	api     *demo.Client
	calls   int // number of calls to place

	mu    sync.Mutex
	seen  []carrierEvent
	hooks map[string]map[string]bool // IDs of webhooks by call
	log   []string
}

// TestSoakKill kills the server at random points while it places queued calls. It compares the records of the carrier
// and of the webhook receiver with the guarantees: no attempt rings twice, every call ends, and every end is sent
// exactly once.
func TestSoakKill(t *testing.T) {
	soakOnly(t)
	s, over := newSoak(t, soakCalls)
	var placed sync.WaitGroup
	placed.Go(s.placeAll)
	kills := 0
	for kills < soakKills {
		cmd := s.serve()
		// Kills some servers before they are ready, most of them during calls.
		<-time.After(time.Duration(200+rand.IntN(3800)) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // the process was killed
		kills++
	}
	last := s.serve()
	s.waitReady()
	placed.Wait()
	s.waitDelivered()
	s.end(last)
	over()
	s.check(kills)
}

// soakOnly skips the test unless "make soak" runs.
func soakOnly(t *testing.T) {
	t.Helper()
	if os.Getenv("PARLEYTEST_SOAK") == "" {
		t.Skip("make soak")
	}
}

// newSoak starts a carrier and a webhook receiver, which survive the server. over stops them and returns when their
// reports are complete.
func newSoak(t *testing.T, calls int) (s *soak, over func()) {
	t.Helper()
	s = &soak{t: t, calls: calls, hooks: map[string]map[string]bool{}}
	carrier, hold, lines := child(t, "carrier")
	if err := carrier.Start(); err != nil {
		t.Fatal(err)
	}
	if !lines.Scan() {
		t.Fatal("the carrier did not start")
	}
	proxy := lines.Text()
	var wg sync.WaitGroup
	wg.Go(func() { s.readEvents(lines) })
	receiver := httptest.NewServer(http.HandlerFunc(s.onWebhook))
	s.prepare(proxy, receiver.URL)
	return s, func() {
		_ = hold.Close()
		wg.Wait()
		_ = carrier.Wait()
		receiver.Close()
	}
}

// end stops the last server by SIGTERM.
func (s *soak) end(last *exec.Cmd) {
	_ = last.Process.Signal(syscall.SIGTERM)
	if err := last.Wait(); err != nil {
		s.t.Errorf("the last process: %v\n%s", err, strings.Join(s.log, "\n"))
	}
}

func (s *soak) readEvents(lines *bufio.Scanner) {
	for lines.Scan() {
		var x carrierEvent
		if json.Unmarshal(lines.Bytes(), &x) == nil {
			s.mu.Lock()
			s.seen = append(s.seen, x)
			s.mu.Unlock()
		}
	}
}

func (s *soak) onWebhook(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m struct {
		Type   string `json:"type"`
		CallID string `json:"call_id"`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if json.Unmarshal(body, &m) != nil || m.Type != "call_ended" || !demo.SignedBy(demo.Secret, r.Header, body) {
		s.t.Errorf("an invalid webhook: %s", body)
		return
	}
	if s.hooks[m.CallID] == nil {
		s.hooks[m.CallID] = map[string]bool{}
	}
	s.hooks[m.CallID][r.Header.Get("Webhook-Id")] = true
	w.WriteHeader(http.StatusNoContent)
}

// prepare creates the organization. Its call rate spreads the calls over the kills.
func (s *soak) prepare(proxy, hook string) {
	t := s.t
	url := dbtest.URL(t)
	d, err := db.Open(t.Context(), db.Config{URL: url, MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	s.db = d
	file := fmt.Sprintf(strings.Replace(demo.File, ", call_analyzed", "", 1), strings.TrimPrefix(hook, "http://"), demo.Secret, proxy)
	file = strings.Replace(file, "concurrent_calls: 10, calls_per_minute: 30", "concurrent_calls: 500, calls_per_minute: 240", 1)
	key, err := createDemo(t.Context(), d, file)
	if err != nil {
		t.Fatal(err)
	}
	addr := "127.0.0.1:" + freePort(t)
	s.api = &demo.Client{URL: "http://" + addr, Key: key}
	s.environ = []string{
		"PARLEYTEST_ROLE=parley", "PARLEY_DATABASE_URL=" + url, "PARLEY_DATA_DIR=" + openDir(t), "PARLEY_HTTP_ADDR=" + addr,
		"PARLEY_METRICS_ADDR=127.0.0.1:0", "PARLEY_SIP_ADDR=127.0.0.1:0", "PARLEY_WEBRTC_UDP_PORT=0", "PARLEY_LEASE=3s", "PARLEY_DRAIN_TIMEOUT=10s",
		"PARLEY_ALLOW_INSECURE_WEBHOOKS=true", "PARLEY_LOG_LEVEL=warn", "PARLEY_LIMIT_LOAD=false",
	}
}

func (s *soak) serve(flags ...string) *exec.Cmd { return s.serveWith(s.environ, flags...) }

// serveWith runs a server with the given settings and stores its log.
func (s *soak) serveWith(environ []string, flags ...string) *exec.Cmd {
	cmd, _, lines := child(s.t, "parley", append(flags, "serve")...)
	cmd.Env = append(os.Environ(), environ...)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() { // ends with the process
		for lines.Scan() {
			s.mu.Lock()
			s.log = append(s.log, lines.Text())
			s.mu.Unlock()
		}
	}()
	return cmd
}

// placeAll requests the calls. It repeats a request while the server is down. The Idempotency-Key of the request
// prevents a second call.
func (s *soak) placeAll() {
	for i := range s.calls {
		s.orderUntilAccepted(fmt.Sprintf("soak-%d", i))
	}
}

func (s *soak) waitReady() {
	eventuallyWithin(s.t, time.Minute, "the service is ready", func() bool {
		resp, err := http.Get(s.api.URL + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// count returns the result of a query for one number.
func (s *soak) count(sql string) int {
	var n int
	if err := s.db.Pool.QueryRow(s.t.Context(), sql).Scan(&n); err != nil {
		s.t.Error(err)
	}
	return n
}

// waitDelivered waits until every call has ended and every webhook about an end is delivered.
func (s *soak) waitDelivered() {
	deadline := time.After(4 * time.Minute)
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		s.mu.Lock()
		received := len(s.hooks)
		s.mu.Unlock()
		open := s.count("SELECT count(*) FROM calls WHERE status NOT IN ('ended', 'failed')")
		if open == 0 && received == s.calls {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			s.t.Errorf("%d calls have not ended, %d of %d webhooks were received\n%s", open, received, s.calls, tail(strings.Join(s.log, "\n"), 30))
			return
		}
	}
}

// checkRings counts the attempts at the carrier, the attempts that rang, and the attempts with more than one INVITE or
// ring, which are faults.
func (s *soak) checkRings() (attempts, rang, twice int) {
	branches, rings := map[string]map[string]bool{}, map[string]int{}
	for _, x := range s.seen {
		if branches[x.ID] == nil {
			branches[x.ID] = map[string]bool{}
		}
		branches[x.ID][x.Branch] = true
		if x.Rang {
			rings[x.ID]++
		}
	}
	for id, b := range branches {
		if len(b) > 1 || rings[id] > 1 {
			twice++
			s.t.Errorf("attempt %s: %d INVITEs, %d rings", id, len(b), rings[id])
		}
	}
	return len(branches), len(rings), twice
}

func (s *soak) check(kills int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	attempts, rang, twice := s.checkRings()
	for id, ids := range s.hooks {
		if len(ids) != 1 {
			s.t.Errorf("the end of %s was sent as %d events", id, len(ids))
		}
	}
	if n := s.count("SELECT count(*) FROM calls"); n != s.calls {
		s.t.Errorf("%d calls for %d orders", n, s.calls)
	}
	if n := s.count("SELECT count(*) FROM (SELECT call_id FROM events WHERE kind = 'call.ended' GROUP BY call_id HAVING count(*) <> 1) x"); n != 0 {
		s.t.Errorf("%d calls have more than one end", n)
	}
	s.t.Logf("%d kills, %d calls, %d attempts seen by the carrier, %d rang, %d rang twice", kills, s.calls, attempts, rang, twice)
	rows, err := s.db.Pool.Query(context.WithoutCancel(s.t.Context()), "SELECT status, coalesce(disconnection_reason, ''), count(*) FROM calls GROUP BY 1, 2 ORDER BY 3 DESC")
	if err != nil {
		s.t.Error(err)
		return
	}
	defer rows.Close()
	for rows.Next() {
		var status, why string
		var n int
		if err := rows.Scan(&status, &why, &n); err != nil {
			s.t.Error(err)
		}
		s.t.Logf("%4d %s %s", n, status, why)
	}
}
