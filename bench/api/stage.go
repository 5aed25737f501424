package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// serve starts the service and waits until it takes requests.
func (b *bench) serve(ctx context.Context) (stop func(), err error) {
	if b.url, err = free(ctx); err != nil {
		return nil, err
	}
	cmd := b.child(ctx, "serve")
	cmd.Stdout, cmd.Stderr = b.Log, b.Log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, over := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(over)
		runtime.LockOSThread() // the child lives as long as this thread
		failed := cmd.Start()
		started <- failed
		if failed == nil {
			_ = cmd.Wait() // it was told to end
		}
	}()
	if err = <-started; err != nil {
		return nil, err
	}
	b.pid = cmd.Process.Pid
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		<-over
		late.Stop()
	}
	late := time.After(time.Minute)
	for {
		if b.ask(ctx, "GET", "/readyz", nil, &struct{}{}) == nil {
			return stop, nil
		}
		select {
		case <-over:
			return nil, errors.New("parley serve ended")
		case <-late:
			stop()
			return nil, errors.New("parley serve is not ready")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// free is the URL of a port that was free a moment ago.
func free(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return "http://" + l.Addr().String(), l.Close()
}

// child is a command with the bench's settings and no other.
func (b *bench) child(ctx context.Context, args ...string) *exec.Cmd {
	cmd := b.Child(ctx, args...)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir, "PARLEY_DATA_DIR=" + b.data(), "PARLEY_DATABASE_URL=" + b.Database,
		"PARLEY_HTTP_ADDR=" + strings.TrimPrefix(b.url, "http://"), "PARLEY_METRICS_ADDR=127.0.0.1:0", "PARLEY_SIP_ADDR=127.0.0.1:0", "PARLEY_WEBRTC_UDP_PORT=0",
		"PARLEY_RATE_LIMIT=off", "PARLEY_DIAL_QUEUE_DEPTH=1000000", "PARLEY_LOG_LEVEL=warn", "PARLEY_DRAIN_TIMEOUT=0s",
	}
	return cmd
}

// furnish makes an organization whose agent has the subgroups, and a key.
func (b *bench) furnish(ctx context.Context) error {
	var file strings.Builder
	fmt.Fprintf(&file, `
organizations:
- name: bench
  agents: [{name: bench, published: true, greeting: "Hello {{first_name}}.", recording: false, analysis: {summary: false, success: false},
    speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}]
  trunks:
  - name: bench
    proxy: %q
    caller_numbers: ["+12025550100"]
    subgroups:
`, b.carrier.Proxy())
	for n := range b.Subgroups {
		fmt.Fprintf(&file, "    - {name: s%03d, allowed_destinations: [\"1\"], agents: [bench], concurrent_calls: 1000000, calls_per_minute: 1000000}\n", n)
	}
	name := filepath.Join(b.dir, "bench.yaml")
	if err := os.WriteFile(name, []byte(file.String()), 0o600); err != nil {
		return err
	}
	if _, err := b.command(ctx, "apply", "-f", name); err != nil {
		return err
	}
	secret, err := b.command(ctx, "key", "create", "--org", "bench", "--rate-limit", "off")
	if err != nil {
		return err
	}
	b.key = strings.TrimSpace(secret)
	var list struct {
		Trunks []struct {
			Subgroups []struct {
				RouteID string `json:"route_id"`
			} `json:"subgroups"`
		} `json:"trunks"`
	}
	if err := b.ask(ctx, "GET", "/v1/dialing-routes?agent_id=bench", nil, &list); err != nil {
		return err
	}
	for _, t := range list.Trunks {
		for _, s := range t.Subgroups {
			b.routes = append(b.routes, s.RouteID)
		}
	}
	if len(b.routes) != b.Subgroups {
		return fmt.Errorf("%d subgroups, want %d", len(b.routes), b.Subgroups)
	}
	return nil
}

// command runs a command of the program and returns what it prints.
func (b *bench) command(ctx context.Context, args ...string) (string, error) {
	cmd := b.child(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("parley %s: %w: %s", args[0], err, errs.String())
	}
	return out.String(), nil
}

// fillSQL stores calls like the last one that was ordered, over a year.
const fillSQL = `
INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number, trunk_id, route_id,
	ring_seconds, created_at, dialed_at, answered_at, ended_at, disconnection_reason, recording_status, analysis_status)
SELECT 'call_' || upper(lpad(to_hex(n), 26, '0')), org_id, call_type, 'ended', agent_id, agent_name, agent_version,
	(12020000000 + n * 7919 % 10000000)::text, from_number, dial_number, trunk_id, route_id,
	ring_seconds, at, at, at + interval '5 s', at + interval '65 s', 'callee_hangup', 'disabled', 'none'
FROM (SELECT * FROM calls ORDER BY created_at DESC LIMIT 1) one,
     LATERAL (SELECT n, created_at - interval '1 s' * (31536000.0 * n / $2) AS at FROM generate_series($1::bigint, $1::bigint + $3 - 1) n) many`

// fillAtOnce bounds one statement.
const fillAtOnce = 50_000

// fill stores calls straight in the database.
func (b *bench) fill(ctx context.Context) error {
	where := b.Database
	if where == "" {
		where = fmt.Sprintf("host=%s port=5432 user=parley dbname=parley sslmode=disable", filepath.Join(b.data(), "postgres", "socket"))
	}
	conn, err := pgx.Connect(ctx, where)
	if err != nil {
		return fmt.Errorf("the database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for n := 1; n <= b.Stored; n += fillAtOnce {
		if _, err := conn.Exec(ctx, fillSQL, n, b.Stored, min(fillAtOnce, b.Stored-n+1)); err != nil {
			return fmt.Errorf("store calls: %w", err)
		}
		fmt.Fprintf(b.Log, "stored %d calls\n", min(n+fillAtOnce-1, b.Stored))
	}
	if _, err := conn.Exec(ctx, "VACUUM ANALYZE calls"); err != nil {
		return fmt.Errorf("store calls: %w", err)
	}
	return nil
}
