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

// child is a running Postgres server process (postmaster).
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has exited
}

// stop shuts Postgres down, rolls back open transactions, and waits for the exit.
func (c *child) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGINT) // fails if the process has exited, which is fine
	select {
	case <-c.done:
		return
	case <-time.After(20 * time.Second):
	}
	_ = c.cmd.Process.Signal(syscall.SIGQUIT) // immediate shutdown; the next start recovers the data
	<-c.done
}

// launch creates the data directory if there is none, starts Postgres, and waits until it accepts connections. The
// caller must hold the lock and stop the child.
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
	// After a crash the first starts may fail, because the dead server's lock file is left or its children still run.
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

// initdb creates the data in a temporary folder, and renames the folder when the data are complete.
func (l *Local) initdb(ctx context.Context, in install, data string) error {
	fresh := data + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	// The folder of the socket has mode 0700. Every process that may open the socket is trusted.
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

// prepareCommand sets the environment, the user and the process group for a Postgres program.
func (l *Local) prepareCommand(cmd *exec.Cmd, in install) {
	attr := &syscall.SysProcAttr{
		Setpgid:   true, // Ctrl-C must not reach Postgres, because this process stops it last
		Pdeathsig: syscall.SIGINT,
	}
	if l.acct.change {
		attr.Credential = &syscall.Credential{Uid: l.acct.uid, Gid: l.acct.gid, Groups: []uint32{}}
	}
	cmd.SysProcAttr = attr
	cmd.Dir = l.home
	cmd.Env = []string{"PATH=" + in.bin + ":/usr/bin:/bin", "HOME=" + l.home, "TZ=UTC", "LC_ALL=C"}
}

// run starts the postmaster. The kernel stops it when this process ends, even after a crash.
func (l *Local) run(in install, data string) (*child, error) {
	args := []string{
		"-D", data, "-k", l.socket, "-p", "5432",
		"-c", "listen_addresses=", "-c", "unix_socket_permissions=0700", "-c", "max_connections=100",
		"-c", "shared_buffers=64MB", "-c", "autovacuum_naptime=5s", "-c", "logging_collector=off", "-c", "timezone=UTC", "-c", "jit=off",
		// A logged statement would reveal the values in it.
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
		// The kernel sends the death signal when the thread that started the child exits, not when the process does.
		// Therefore this goroutine keeps its thread.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the Postgres log says why it exited
		}
		close(c.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return c, nil
}

// await waits until the child accepts connections. If the child exits first, the error contains the end of its log.
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
			return errors.New("postgres did not answer within 30 s")
		case <-tick.C:
		}
	}
}

// logTail returns the last lines of the Postgres log.
func (l *Local) logTail() string {
	text, _ := readRegular(l.home+".log", 4096) // the text is empty if the log cannot be read
	return lastLines(string(text), 5)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "; ")
}

// makeDatabase creates the database "parley" if it does not exist.
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
