package db

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Local is the Postgres of a data directory. It is reachable through a Unix socket that only its user and root may
// open. The first process that calls Start becomes the owner: it starts the Postgres child process, and restarts it
// after each exit. Other processes use the same Postgres. When the owner exits, one of them becomes the owner.
type Local struct {
	// Dir is the program's data directory. Postgres uses a folder in it.
	Dir string
	// Fast makes Postgres fast instead of durable. It is for tests.
	Fast bool
	Log  *slog.Logger

	home   string // the folder Dir/postgres
	socket string // folder that contains the socket
	acct   account

	mu   sync.Mutex
	lock *os.File // locked while this process is the owner

	halt context.CancelFunc // stops the supervisor
	over sync.WaitGroup
	once sync.Once
}

// Start starts Postgres if no other process has, and waits until the database "parley" accepts connections. It refuses
// data of another major version. It never deletes data.
func (l *Local) Start(ctx context.Context) error {
	if err := l.prepare(); err != nil {
		return err
	}
	running, halt := context.WithCancel(context.WithoutCancel(ctx)) // the supervisor runs until Stop
	l.halt = halt
	owner, err := l.takeLock()
	if err != nil {
		return err
	}
	if !owner {
		if owner, err = l.join(ctx); err != nil {
			return err
		}
	}
	if owner {
		c, err := l.launch(ctx)
		if err != nil {
			l.Stop()
			return err
		}
		l.over.Go(func() { l.supervise(running, c) })
		return nil
	}
	l.over.Go(func() { l.standBy(running) })
	return nil
}

// Stop stops Postgres if this process owns it, and waits for its exit. Calling Stop again has no effect.
func (l *Local) Stop() {
	l.once.Do(func() {
		if l.halt != nil {
			l.halt()
		}
		l.over.Wait()
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.lock != nil {
			_ = l.lock.Close() // closing the file releases the lock
		}
	})
}

// URL returns the connection string of a database.
func (l *Local) URL(database string) string {
	return fmt.Sprintf("host=%s port=5432 user=parley dbname=%s sslmode=disable", l.socket, database)
}

func (l *Local) log() *slog.Logger { return cmp.Or(l.Log, slog.New(slog.DiscardHandler)) }

// prepare creates the folders that Postgres needs.
func (l *Local) prepare() error {
	dir, err := filepath.Abs(l.Dir)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if l.acct, err = findAccount(); err != nil {
		return err
	}
	// Other users may enter the data directory, but not list it. Postgres runs as another user if this process runs
	// as root.
	if err := os.MkdirAll(dir, 0o711); err != nil { //nolint:gosec // see above
		return fmt.Errorf("data directory: %w; set PARLEY_DATA_DIR, or pass the settings file with --config", err)
	}
	l.home = filepath.Join(dir, "postgres")
	if err := l.acct.checkReachable(l.home); err != nil {
		return err
	}
	l.socket = filepath.Join(l.home, "socket")
	if len(l.socket)+len("/.s.PGSQL.5432") > 100 { // the kernel allows 107 bytes
		sum := sha256.Sum256([]byte(l.home))
		l.socket = filepath.Join(os.TempDir(), "parley-"+hex.EncodeToString(sum[:6]))
	}
	for _, d := range []string{l.home, l.socket} {
		if err := l.ownDir(d); err != nil {
			return err
		}
	}
	return nil
}

// takeLock tries to take the owner's lock, and reports whether it succeeded.
func (l *Local) takeLock() (bool, error) {
	f, err := openRegular(l.home+".lock", os.O_CREATE|os.O_RDWR)
	if err != nil {
		return false, fmt.Errorf("data directory: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return false, nil
		}
		return false, fmt.Errorf("data directory: lock: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lock = f
	return true, nil
}

// join waits for the owner's Postgres. It returns true if the owner has exited and this process is now the owner.
func (l *Local) join(ctx context.Context) (owner bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if l.ping(ctx, "parley") == nil {
			return false, nil
		}
		if owner, err := l.takeLock(); owner || err != nil {
			return owner, err
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("another process holds %s, but its Postgres does not answer: %w", l.home, ctx.Err())
		case <-tick.C:
		}
	}
}

// ping connects to Postgres once.
func (l *Local) ping(ctx context.Context, database string) error {
	// Opening the socket first avoids the driver's retries.
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(l.socket, ".s.PGSQL.5432"))
	if err != nil {
		return err
	}
	_ = c.Close()
	conn, err := pgx.Connect(ctx, l.URL(database))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}
