package conformance_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/db/dbtest"
)

type process struct {
	url, metrics string

	cmd  *exec.Cmd
	dir  string
	over chan struct{} // closed once the process has ended

	mu  sync.Mutex
	log bytes.Buffer
}

// root is the root folder of the repository.
const root = "../.."

// watchSources makes go test run the tests again when a source file of the program has changed: a cached result is
// valid until a file that the test examined changes.
func watchSources() error {
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case !d.IsDir():
			_, err = os.Stat(name)
		}
		return err
	})
}

// compile builds the program as users do.
func compile(ctx context.Context, dir string) (string, error) {
	if err := watchSources(); err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "parley")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", bin, "github.com/parley-voice/parley")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return bin, nil
}

var ready = regexp.MustCompile(`"parley ready" url=(\S+) sip=\S+ metrics=(\S+)`)

// serve starts a process on free ports and waits until it accepts requests.
func serve(ctx context.Context, bin, database string, settings ...string) (*process, error) {
	// only root may enter the parents of t.TempDir
	dir, err := os.MkdirTemp("", "parley-conformance-")
	if err != nil {
		return nil, err
	}
	p := &process{dir: dir, over: make(chan struct{}), cmd: exec.CommandContext(context.WithoutCancel(ctx), bin, "serve")}
	p.cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir,
		"PARLEY_DATABASE_URL=" + database, "PARLEY_SEAL_KEY=" + dbtest.SealKey, "PARLEY_DATA_DIR=" + filepath.Join(dir, "data"),
		"PARLEY_HTTP_ADDR=127.0.0.1:0", "PARLEY_METRICS_ADDR=127.0.0.1:0", "PARLEY_SIP_ADDR=127.0.0.1:0", "PARLEY_WEBRTC_UDP_PORT=0",
		"PARLEY_ALLOW_INSECURE_WEBHOOKS=true", "PARLEY_DRAIN_TIMEOUT=0s", "PARLEY_LOG_LEVEL=debug", "PARLEY_LIMIT_LOAD=false",
	}, settings...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	lines, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stdout = p
	up, started := make(chan []string, 1), make(chan error, 1)
	go func() {
		defer close(p.over)
		runtime.LockOSThread() // the child lives as long as this thread
		failed := p.cmd.Start()
		started <- failed
		if failed == nil {
			p.read(lines, up)
			_ = p.cmd.Wait() // a signal ends it
		}
	}()
	if err = <-started; err != nil {
		return nil, err
	}
	select {
	case m := <-up:
		p.url, p.metrics = m[1], m[2]
		return p, nil
	case <-p.over:
		err = errors.New("parley serve ended")
	case <-time.After(time.Minute):
		err = errors.New("parley serve is not ready")
	}
	p.stop()
	return nil, fmt.Errorf("%w:\n%s", err, p.logged())
}

// read stores the output of the process and sends its ready line to up.
func (p *process) read(lines io.Reader, up chan<- []string) {
	s := bufio.NewScanner(lines)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		_, _ = fmt.Fprintln(p, s.Text()) // the pipe is in memory
		if m := ready.FindStringSubmatch(s.Text()); m != nil {
			up <- m // sent once; the channel has room for it
		}
	}
}

// Write implements io.Writer.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *process) logged() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // the process may have ended
	select {
	case <-p.over:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.over
	}
	_ = os.RemoveAll(p.dir)
}

// another starts a further process on the same database for the duration of the test.
func (s *service) another(t *testing.T, settings ...string) *process {
	t.Helper()
	p, err := serve(t.Context(), s.bin, s.database, settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	return p
}
