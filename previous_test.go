package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// previousCommit returns the commit of the previous release. It skips the test if the history does not have it.
func previousCommit(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(".ci/previous")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if out, err := exec.CommandContext(t.Context(), "git", "cat-file", "-e", line+"^{commit}").CombinedOutput(); err != nil {
			t.Skipf("the git history lacks %s, the previous release (.ci/previous): %v %s", line, err, out)
		}
		return line
	}
	t.Fatal(".ci/previous names no commit")
	return ""
}

// buildPrevious builds the previous release and returns the path of the program.
func buildPrevious(t testing.TB) string {
	t.Helper()
	commit, dir := previousCommit(t), t.TempDir()
	for _, args := range [][]string{
		{"git", "archive", "--format=tar", "-o", filepath.Join(dir, "source.tar"), commit},
		{"tar", "-xf", filepath.Join(dir, "source.tar"), "-C", dir},
		{"go", "-C", dir, "build", "-trimpath", "-buildvcs=false", "-o", filepath.Join(dir, "parley"), "."},
	} {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	return filepath.Join(dir, "parley")
}

// TestReleasedMigrations checks that no migration of the previous release was changed.
func TestReleasedMigrations(t *testing.T) {
	commit := previousCommit(t)
	out, err := exec.CommandContext(t.Context(), "git", "ls-tree", "--name-only", commit, "control/db/migrations/").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		was, err := exec.CommandContext(t.Context(), "git", "show", commit+":"+name).Output()
		if err != nil {
			t.Fatal(err)
		}
		if is, err := os.ReadFile(name); err != nil || string(is) != string(was) {
			t.Errorf("%s has changed since the previous release, whose databases already have it: write a new migration (%v)", name, err)
		}
	}
}

// upgrade is a service with a node of the previous release and a node of this one. Orders arrive all the time.
type upgrade struct {
	t       *testing.T
	old     string // program of the previous release
	key     string
	environ [2][]string // of the node of the previous release, and of the other
	addrs   [2]string
	nodes   [2]*exec.Cmd
	invites inviteCounter

	mu      sync.Mutex
	targets []string // addresses of the nodes that take orders
	sent    int
	refused []string
	logs    [2][]string
}

func newUpgrade(t *testing.T) *upgrade {
	t.Helper()
	u := &upgrade{t: t, old: buildPrevious(t)}
	c := carrier(t, &siptest.Carrier{Answer: u.invites.accept(300 * time.Millisecond)})
	url := dbtest.Empty(t)
	for n := range u.nodes {
		u.addrs[n] = "127.0.0.1:" + freePort(t)
		u.environ[n] = []string{
			"PARLEY_DATABASE_URL=" + url, "PARLEY_DATA_DIR=" + openDir(t), "PARLEY_HTTP_ADDR=" + u.addrs[n], "PARLEY_METRICS_ADDR=127.0.0.1:0",
			"PARLEY_SIP_ADDR=127.0.0.1:0", "PARLEY_WEBRTC_UDP_PORT=0", "PARLEY_LEASE=3s", "PARLEY_DRAIN_TIMEOUT=10s",
			"PARLEY_ALLOW_INSECURE_WEBHOOKS=true", "PARLEY_LOG_LEVEL=warn", "PARLEY_LIMIT_LOAD=false",
		}
	}
	t.Cleanup(func() {
		for _, cmd := range u.nodes {
			if cmd != nil {
				_ = cmd.Process.Kill()
				_ = cmd.Wait() // the process was killed
			}
		}
	})
	file := fmt.Sprintf(demo.File, "127.0.0.1:9", demo.Secret, c.Addr().String())
	file = strings.Replace(file, "concurrent_calls: 10, calls_per_minute: 30", "concurrent_calls: 500, calls_per_minute: 6000", 1)
	u.command("apply", "-f", writeFile(t, "demo.yaml", file))
	u.key = strings.TrimSpace(u.command("key", "create", "--org", "demo", "--rate-limit", "off"))
	return u
}

// command runs a command of the previous release and returns its standard output.
func (u *upgrade) command(args ...string) string {
	u.t.Helper()
	cmd := exec.CommandContext(u.t.Context(), u.old, args...)
	cmd.Env = append(os.Environ(), u.environ[0]...)
	out, err := cmd.Output()
	if err != nil {
		u.t.Fatalf("%v: %v: %s", args, err, out)
	}
	return string(out)
}

// start starts a node, waits until it is ready, and sends orders to it.
func (u *upgrade) start(n int) {
	u.t.Helper()
	program := []string{u.old, os.Args[0]}[n]
	cmd := exec.CommandContext(u.t.Context(), program, "serve")
	cmd.Env = append(append(os.Environ(), "PARLEYTEST_ROLE=parley"), u.environ[n]...)
	pipe, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		u.t.Fatal(err)
	}
	u.nodes[n] = cmd
	go func() { // ends with the process
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			u.mu.Lock()
			u.logs[n] = append(u.logs[n], lines.Text())
			u.mu.Unlock()
		}
	}()
	eventuallyWithin(u.t, time.Minute, "the node is ready", func() bool {
		resp, err := http.Get("http://" + u.addrs[n] + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	u.mu.Lock()
	defer u.mu.Unlock()
	u.targets = append(u.targets, u.addrs[n])
}

// stop takes a node out of service, and waits until it has drained.
func (u *upgrade) stop(n int) {
	u.t.Helper()
	u.mu.Lock()
	u.targets = slices.DeleteFunc(u.targets, func(addr string) bool { return addr == u.addrs[n] })
	u.mu.Unlock()
	<-time.After(500 * time.Millisecond) // the last order is accepted
	_ = u.nodes[n].Process.Signal(syscall.SIGTERM)
	if err := u.nodes[n].Wait(); err != nil {
		u.t.Errorf("node %d: %v", n, err)
	}
	u.nodes[n] = nil
}

// order sends orders to all nodes in turn until done is closed.
func (u *upgrade) order(done chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-done:
			return
		case <-time.After(50 * time.Millisecond):
		}
		u.mu.Lock()
		u.sent++
		addr := u.targets[n%len(u.targets)]
		u.mu.Unlock()
		status, text := orderCall(u.t, "http://"+addr, u.key, fmt.Sprintf("+1202555%04d", n), fmt.Sprintf("order-%d", n))
		if status != http.StatusAccepted {
			u.mu.Lock()
			u.refused = append(u.refused, fmt.Sprintf("order %d: %d %s", n, status, text))
			u.mu.Unlock()
		}
	}
}

// TestPreviousRelease upgrades a service of the previous release under load, and goes back: the node of this release
// migrates while the old node serves, the old node is restarted on the new schema and then serves alone. Every order must be
// accepted at once, and every number must be called exactly once.
func TestPreviousRelease(t *testing.T) {
	t.Parallel()
	u := newUpgrade(t)
	const alone = time.Second
	u.start(0)
	done := make(chan struct{})
	var orders sync.WaitGroup
	orders.Go(func() { u.order(done) })
	<-time.After(alone)
	u.start(1) // migrates
	<-time.After(alone)
	u.stop(0)
	<-time.After(alone)
	u.start(0) // on the new schema
	<-time.After(alone)
	u.stop(1)
	<-time.After(2 * alone) // back on the previous release
	u.start(1)
	close(done)
	orders.Wait()

	pool, err := db.Open(t.Context(), db.Config{URL: strings.TrimPrefix(u.environ[0][0], "PARLEY_DATABASE_URL="), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	eventuallyWithin(t, time.Minute, "all calls have ended", func() bool {
		return dbtest.Value[int](t, pool, "SELECT count(*) FROM calls WHERE status NOT IN ('ended', 'failed')") == 0
	})
	ended := dbtest.Value[int](t, pool, "SELECT count(*) FROM calls WHERE status = 'ended' AND disconnection_reason = 'callee_hangup'")
	twice := 0
	for number, n := range u.invites.numbers() {
		if n > 1 {
			twice++
			t.Errorf("%s was called %d times", number, n)
		}
	}
	if len(u.refused) > 0 {
		t.Errorf("%d orders were refused: %s", len(u.refused), strings.Join(u.refused, "\n"))
	}
	if called := len(u.invites.numbers()); called != u.sent || ended != u.sent {
		t.Errorf("%d orders, %d numbers were called, %d calls ended by hangup of the callee", u.sent, called, ended)
	}
	t.Logf("%d orders, %d refused, %d numbers called, %d calls ended by hangup of the callee, %d called twice",
		u.sent, len(u.refused), len(u.invites.numbers()), ended, twice)
	if t.Failed() {
		t.Logf("previous release:\n%s\nthis release:\n%s", tail(strings.Join(u.logs[0], "\n"), 20), tail(strings.Join(u.logs[1], "\n"), 20))
	}
}
