package dbtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pair is a primary Postgres server and a standby server that replicates it asynchronously.
type Pair struct {
	t     testing.TB
	bin   string
	dir   string
	ports [2]string
	procs [2]*exec.Cmd
	extra []string // more arguments of the servers
}

// NewPair starts a pair with an empty database "parley". The end of the test stops it and removes its data.
func NewPair(t testing.TB) *Pair {
	t.Helper()
	p := newPrimary(t)
	p.Follow(1)
	return p
}

// Follow replaces the data of a server with a copy of the other server's, and starts it as a standby of that server.
func (p *Pair) Follow(n int) {
	p.t.Helper()
	if err := os.RemoveAll(p.data(n)); err != nil {
		p.t.Fatal(err)
	}
	p.run(
		"pg_basebackup", "-h", "127.0.0.1", "-p", p.ports[1-n], "-U", "parley", "-D", p.data(n), "-R", "-X", "stream", "-c",
		"fast", "--no-sync",
	)
	p.Start(n)
}

// Synchronize makes each commit on a server wait for a standby, or for none.
func (p *Pair) Synchronize(n int, standbys bool) {
	p.t.Helper()
	p.set(n, "synchronous_standby_names", map[bool]string{true: "*"}[standbys])
}

// ReadOnly makes a server refuse writes of new transactions, or accept them again.
func (p *Pair) ReadOnly(n int, refuse bool) {
	p.t.Helper()
	p.set(n, "default_transaction_read_only", map[bool]string{true: "on", false: "off"}[refuse])
}

func (p *Pair) set(n int, name, value string) {
	p.t.Helper()
	p.exec(n, "ALTER SYSTEM SET "+name+" = '"+value+"'")
	p.exec(n, "SELECT pg_reload_conf()")
}

// newPrimary starts the first server of a pair with an empty database "parley".
func newPrimary(t testing.TB, extra ...string) *Pair {
	t.Helper()
	bins, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // cannot fail: the pattern is well formed
	if len(bins) == 0 {
		t.Skip("no Postgres under /usr/lib/postgresql")
	}
	slices.Sort(bins)
	dir, err := os.MkdirTemp("", "parley-pair-") //nolint:usetesting // Postgres runs as another user
	if err != nil {
		t.Fatal(err)
	}
	p := &Pair{t: t, bin: bins[len(bins)-1], dir: dir, ports: [2]string{tcpPort(t), tcpPort(t)}, extra: extra}
	t.Cleanup(func() {
		for n := range p.procs {
			p.Kill(n)
		}
		_ = os.RemoveAll(dir)
	})
	if cred := credential(t); cred != nil {
		if err := os.Chown(dir, int(cred.Uid), int(cred.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	p.run("initdb", "-D", p.data(0), "-U", "parley", "--auth=trust", "-E", "UTF8", "--no-locale", "--no-sync")
	p.Start(0)
	p.exec(0, "CREATE DATABASE parley")
	return p
}

// URL returns a connection string that names both servers and selects the one that accepts writes.
func (p *Pair) URL() string {
	return fmt.Sprintf(
		"postgres://parley@127.0.0.1:%s,127.0.0.1:%s/parley?target_session_attrs=read-write&sslmode=disable",
		p.ports[0],
		p.ports[1],
	)
}

// Cut stops the replication.
func (p *Pair) Cut() {
	p.t.Helper()
	p.set(1, "primary_conninfo", "")
	p.await("the standby receives nothing", func() bool {
		return p.ask(1, "SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver)")
	})
}

// CaughtUp waits until the standby has received all changes.
func (p *Pair) CaughtUp() {
	p.t.Helper()
	p.await("the standby has everything", func() bool {
		return p.ask(0, "SELECT coalesce(bool_and(replay_lsn >= pg_current_wal_lsn()), false) FROM pg_stat_replication")
	})
}

// Promote turns a standby into a primary.
func (p *Pair) Promote(n int) {
	p.t.Helper()
	p.exec(n, "SELECT pg_promote()")
}

// Kill stops a server without a shutdown, as a power failure would.
func (p *Pair) Kill(n int) {
	c := p.procs[n]
	if c == nil {
		return
	}
	p.procs[n] = nil
	_ = c.Process.Signal(syscall.SIGQUIT) // immediate shutdown; fails if the server has exited, which is fine
	_ = c.Wait()
}

func (p *Pair) data(n int) string { return filepath.Join(p.dir, "node"+strconv.Itoa(n)) }

func (p *Pair) command(name string, args ...string) *exec.Cmd {
	if !filepath.IsAbs(name) {
		name = filepath.Join(p.bin, name)
	}
	cmd := exec.CommandContext(context.Background(), name, args...) //nolint:gosec // of a test
	cmd.Dir = p.dir
	cmd.Env = []string{"PATH=" + p.bin + ":/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: credential(p.t)}
	return cmd
}

func (p *Pair) run(name string, args ...string) {
	p.t.Helper()
	if out, err := p.command(name, args...).CombinedOutput(); err != nil {
		p.t.Fatalf("%s: %v: %s", name, err, out)
	}
}

// Start starts a server that does not run.
func (p *Pair) Start(n int) {
	p.t.Helper()
	c := p.command("postgres", "-D", p.data(n), "-p", p.ports[n], "-k", p.dir, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off",
		"-c", "full_page_writes=off", "-c", "max_connections=200", "-c", "shared_buffers=64MB", "-c", "jit=off", "-c", "wal_keep_size=512MB",
		"-c", "log_min_error_statement=panic", "-c", "autovacuum_naptime=5s")
	c.Args = append(c.Args, p.extra...)
	var log strings.Builder
	c.Stderr = &log
	if err := c.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.procs[n] = c
	p.await("Postgres answers", func() bool { return p.ask(n, "SELECT true") })
}

func (p *Pair) connect(ctx context.Context, n int) (*pgx.Conn, error) {
	return pgx.Connect(ctx, fmt.Sprintf("postgres://parley@127.0.0.1:%s/postgres?sslmode=disable", p.ports[n]))
}

func (p *Pair) exec(n int, sql string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := p.connect(ctx, n)
	if err == nil {
		_, err = conn.Exec(ctx, sql)
		_ = conn.Close(ctx)
	}
	if err != nil {
		p.t.Fatalf("%s: %v", sql, err)
	}
}

func (p *Pair) ask(n int, sql string) (is bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := p.connect(ctx, n)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close(ctx) }()
	return conn.QueryRow(ctx, sql).Scan(&is) == nil && is
}

func (p *Pair) await(what string, is func() bool) {
	p.t.Helper()
	for late := time.Now().Add(30 * time.Second); !is(); {
		if time.Now().After(late) {
			p.t.Fatalf("timed out: %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// credential returns the user that Postgres runs as, or nil for the user of this process.
func credential(t testing.TB) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Skip("Postgres refuses to run as root, and the user postgres does not exist")
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), Groups: []uint32{}}
}

func tcpPort(t testing.TB) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
