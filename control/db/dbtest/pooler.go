package dbtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pooler is Debian's PgBouncer in front of one server of a Pair. Its settings are those of the Debian package, except
// pool_mode and names of files, addresses and users.
type Pooler struct {
	t    testing.TB
	pair *Pair
	dir  string
	port string
	proc *exec.Cmd
}

// poolerDefaults is the configuration that the Debian package installs.
const poolerDefaults = "/etc/pgbouncer/pgbouncer.ini"

// NewPooler starts a pooler in front of the first server of a pair. The end of the test stops it.
func NewPooler(p *Pair) *Pooler {
	p.t.Helper()
	if _, err := os.Stat("/usr/sbin/pgbouncer"); err != nil {
		p.t.Skip("no pgbouncer: .ci/deps installs it")
	}
	b := &Pooler{t: p.t, pair: p, dir: p.dir, port: tcpPort(p.t)}
	b.t.Cleanup(b.Stop)
	b.write("users.txt", `"parley" "secret"`+"\n")
	b.Point(0)
	b.Start()
	return b
}

// URL returns a connection string that leads through the pooler.
func (b *Pooler) URL() string {
	return fmt.Sprintf("postgres://parley:secret@127.0.0.1:%s/parley?sslmode=disable", b.port)
}

// DirectURL returns a connection string of a server of the pair.
func (p *Pair) DirectURL(n int) string {
	return fmt.Sprintf("postgres://parley@127.0.0.1:%s/parley?sslmode=disable", p.ports[n])
}

// Point makes new connections lead to a server of the pair. A running pooler reads its settings again.
func (b *Pooler) Point(n int) {
	b.t.Helper()
	text, err := os.ReadFile(poolerDefaults)
	if err != nil {
		b.t.Fatal(err)
	}
	ini := strings.Replace(string(text), "[databases]", fmt.Sprintf("[databases]\nparley = host=127.0.0.1 port=%s", b.pair.ports[n]), 1)
	for key, value := range map[string]string{
		"pool_mode": "transaction", "listen_addr": "127.0.0.1", "listen_port": b.port, "unix_socket_dir": b.dir,
		"logfile": filepath.Join(b.dir, "pgbouncer.log"), "pidfile": filepath.Join(b.dir, "pgbouncer.pid"),
		"auth_file": filepath.Join(b.dir, "users.txt"),
	} {
		line := regexp.MustCompile(`(?m)^;?` + key + ` = .*$`)
		if !line.MatchString(ini) {
			b.t.Fatalf("%s has no setting %s", poolerDefaults, key)
		}
		ini = line.ReplaceAllString(ini, key+" = "+value)
	}
	b.write("pgbouncer.ini", ini)
	if b.proc != nil {
		_ = b.proc.Process.Signal(syscall.SIGHUP) // fails if the pooler has exited, which the test will see
	}
}

func (b *Pooler) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // another user reads it
		b.t.Fatal(err)
	}
}

// Start starts the pooler and waits until it answers.
func (b *Pooler) Start() {
	b.t.Helper()
	b.proc = b.pair.command("/usr/sbin/pgbouncer", filepath.Join(b.dir, "pgbouncer.ini"))
	if err := b.proc.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.pair.await("PgBouncer answers", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, b.URL())
		return err == nil && conn.Close(ctx) == nil
	})
}

// Hang stops the process of the pooler without closing its connections, or continues it.
func (b *Pooler) Hang(stopped bool) {
	b.t.Helper()
	if err := b.proc.Process.Signal(map[bool]syscall.Signal{true: syscall.SIGSTOP, false: syscall.SIGCONT}[stopped]); err != nil {
		b.t.Fatal(err)
	}
}

// Stop ends the pooler at once, with all connections.
func (b *Pooler) Stop() {
	if b.proc == nil {
		return
	}
	_ = b.proc.Process.Signal(syscall.SIGTERM) // immediate shutdown; fails if the pooler has exited, which is fine
	_ = b.proc.Wait()
	b.proc = nil
}
