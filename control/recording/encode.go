package recording

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// An Encoder compresses recordings to Ogg Opus (RFC 7845) with a program that reads a WAV file from its standard input.
type Encoder struct {
	Program string // path of opusenc or ffmpeg
	Args    []string
	// Timeout is the maximum duration of one encoding; 0 means 60 s. It is also the maximum CPU time.
	Timeout time.Duration

	slots slots // nil means that any number may run
}

// opusBits is the bit rate of Opus in bits per second. With the Ogg container it stays below 4 KB/s.
const opusBits = "30"

// encoderMemory is the maximum address space of an encoder in bytes. Encoders need a few MB; ffmpeg maps large libraries.
const encoderMemory = 1 << 30

// encoderWait is the maximum wait for an encoder.
const encoderWait = 15 * time.Second

// encodersAtOnce returns the maximum number of concurrent encoders: one for four processors.
func encodersAtOnce() int { return max(1, runtime.NumCPU()/4) }

// FindEncoder returns an encoder for the first installed program: opusenc, or ffmpeg with libopus.
func FindEncoder() (*Encoder, error) {
	for _, e := range []*Encoder{
		{Program: "opusenc", Args: []string{"--quiet", "--cvbr", "--bitrate", opusBits, "--speech", "-", "-"}},
		{Program: "ffmpeg", Args: []string{
			"-v", "error", "-f", "wav", "-i", "pipe:0", "-c:a", "libopus", "-b:a", opusBits + "k", "-vbr", "constrained",
			"-application", "voip", "-f", "ogg", "pipe:1",
		}},
	} {
		if path, err := exec.LookPath(e.Program); err == nil {
			e.Program, e.slots = path, make(slots, encodersAtOnce())
			return e, nil
		}
	}
	return nil, errors.New("no encoder for opus: install opusenc (opus-tools) or ffmpeg, or use wav")
}

// encode returns the compressed form of the WAV file in, in an unnamed file in the folder dir. The caller must close it.
func (e *Encoder) encode(ctx context.Context, in *os.File, dir string) (_ *os.File, err error) {
	end, err := e.wait(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(e.Timeout, time.Minute))
	defer cancel()
	out, err := os.CreateTemp(dir, "encode-*")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = out.Close()
		}
	}()
	if err = os.Remove(out.Name()); err != nil { // the file lives until it is closed, also after a crash
		return nil, err
	}
	if err = e.run(ctx, in, out); err != nil {
		return nil, err
	}
	_, err = out.Seek(0, 0)
	return out, err
}

// wait waits until another recording may be encoded.
func (e *Encoder) wait(ctx context.Context) (end func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, encoderWait)
	defer cancel()
	if end, err = e.slots.begin(ctx); err != nil {
		return nil, fmt.Errorf("no encoder is free: %w", err)
	}
	return end, nil
}

// run runs the program at the lowest priority. The program ends with ctx, and if this process is killed.
func (e *Encoder) run(ctx context.Context, in, out *os.File) error {
	runtime.LockOSThread() // Pdeathsig is sent when the thread that started the child ends
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, e.Program, e.Args...) //nolint:gosec // found by FindEncoder
	var complaint firstBytes
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &complaint
	cmd.Env, cmd.WaitDelay = []string{}, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	limits := e.limit(cmd.Process.Pid)
	if limits != nil {
		_ = cmd.Process.Kill() // Wait reports that it was killed
	}
	if err := errors.Join(limits, cmd.Wait()); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(e.Program), err, bytes.TrimSpace(complaint))
	}
	return nil
}

// firstBytes keeps the first bytes that are written to it.
type firstBytes []byte

// Write implements io.Writer.
func (b *firstBytes) Write(p []byte) (int, error) {
	const most = 200
	*b = append(*b, p[:min(len(p), most-len(*b))]...)
	return len(p), nil
}

// limit bounds the CPU time and the memory of a process, and gives it the lowest priority.
func (e *Encoder) limit(pid int) error {
	seconds := uint64(cmp.Or(e.Timeout, time.Minute) / time.Second) //nolint:gosec // not negative
	return errors.Join(
		unix.Prlimit(pid, unix.RLIMIT_CPU, &unix.Rlimit{Cur: seconds, Max: seconds}, nil),
		unix.Prlimit(pid, unix.RLIMIT_AS, &unix.Rlimit{Cur: encoderMemory, Max: encoderMemory}, nil),
		unix.Setpriority(unix.PRIO_PROCESS, pid, 19),
	)
}
