package db

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// A child is a running postmaster.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has exited
}

// stop requests a fast shutdown, which rolls back open transactions.
func (c *child) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGINT) // it may have exited already
	select {
	case <-c.done:
		return
	case <-time.After(20 * time.Second):
	}
	_ = c.cmd.Process.Signal(syscall.SIGQUIT) // the next start recovers
	<-c.done
}

// launch creates the data directory if needed, starts Postgres and waits until it accepts connections. The caller
// holds the lock and stops the child.
func (l *Local) launch(ctx context.Context) (*child, error) {
	data := filepath.Join(l.home, "data")
	have, err := dataVersion(data)
	if err != nil {
		return nil, err
	}
	in, err := findInstall(have)
	if err != nil {
		return nil, err
	}
	if have == 0 {
		if err := l.initdb(ctx, in, data); err != nil {
			return nil, err
		}
	}
	// After a crash the first starts may fail: the lock file of the dead postmaster remains, or its children still run.
	deadline := time.Now().Add(30 * time.Second)
	for {
		c, err := l.run(in, data)
		if err != nil {
			return nil, err
		}
		if err = l.await(ctx, c); err == nil {
			err = l.makeDatabase(ctx)
		}
		if err == nil {
			return c, nil
		}
		c.stop()
		if ctx.Err() != nil || time.Now().After(deadline) {
			return nil, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// initdb creates the data in a temporary folder and renames it once it is complete.
func (l *Local) initdb(ctx context.Context, in install, data string) error {
	fresh := data + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	// The socket's folder has mode 0700: any process that may open it is trusted.
	args := []string{"-D", fresh, "-U", "parley", "--auth-local=trust", "--auth-host=reject", "--no-locale", "-E", "UTF8", "--no-instructions"}
	if l.Fast {
		args = append(args, "--no-sync")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(in.bin, "initdb"), args...) //nolint:gosec // path found by findInstall
	l.prepareCommand(cmd, in)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, strings.TrimSpace(string(out)))
	}
	if err := os.Rename(fresh, data); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	return nil
}

// prepareCommand sets the environment, user and process group of a Postgres program.
func (l *Local) prepareCommand(cmd *exec.Cmd, in install) {
	attr := &syscall.SysProcAttr{
		Setpgid:   true, // Ctrl-C must reach only this process, which stops Postgres last
		Pdeathsig: syscall.SIGINT,
	}
	if l.acct.change {
		attr.Credential = &syscall.Credential{Uid: l.acct.uid, Gid: l.acct.gid, Groups: []uint32{}}
	}
	cmd.SysProcAttr = attr
	cmd.Dir = l.home
	cmd.Env = []string{"PATH=" + in.bin + ":/usr/bin:/bin", "HOME=" + l.home, "TZ=UTC", "LC_ALL=C"}
}

// run starts the postmaster. The kernel ends it with this process, even after a crash.
func (l *Local) run(in install, data string) (*child, error) {
	args := []string{
		"-D", data, "-k", l.socket, "-p", "5432",
		"-c", "listen_addresses=", "-c", "unix_socket_permissions=0700", "-c", "max_connections=100",
		"-c", "shared_buffers=64MB", "-c", "autovacuum_naptime=5s", "-c", "logging_collector=off", "-c", "timezone=UTC", "-c", "jit=off",
		// Logged statements would reveal their values.
		"-c", "log_min_error_statement=panic", "-c", "log_error_verbosity=terse",
	}
	if l.Fast {
		args = append(args, "-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off")
	}
	log, err := openRegular(l.home+".log", os.O_CREATE|os.O_TRUNC|os.O_WRONLY)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(filepath.Join(in.bin, "postgres"), args...) //nolint:gosec,noctx // found by us; stop ends it
	l.prepareCommand(cmd, in)
	cmd.Stdout, cmd.Stderr = log, log

	c := &child{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The death signal is sent when the thread that started the child
		// exits, not the process: this goroutine keeps its thread.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // its log states the reason
		}
		close(c.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return c, nil
}

// await returns once the child accepts connections. If it exits first, the error contains its log.
func (l *Local) await(ctx context.Context, c *child) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(30 * time.Second)
	for {
		if l.ping(ctx, "postgres") == nil {
			return nil
		}
		select {
		case <-c.done:
			return fmt.Errorf("postgres exited at once: %s", l.logTail())
		case <-ctx.Done():
			return fmt.Errorf("postgres: %w", ctx.Err())
		case <-late:
			return errors.New("postgres does not answer within 30 s")
		case <-tick.C:
		}
	}
}

// logTail returns the last lines of the Postgres log.
func (l *Local) logTail() string {
	text, _ := readRegular(l.home+".log", 4096) // empty if unreadable
	return lastLines(string(text), 5)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "; ")
}

// makeDatabase creates the program's database unless it exists.
func (l *Local) makeDatabase(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, l.URL("postgres"))
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var have bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = 'parley')").Scan(&have); err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	if have {
		return nil
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE parley"); err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	return nil
}
