package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// A Disk measures the speed of a disk. Like a database log, it writes one page after another into
// a preallocated file and syncs after each. Use it from one goroutine.
type Disk struct {
	file *os.File
	at   int64
}

const (
	pageSize = 8 << 10
	logSize  = 16 << 20
)

// Pauses between two pages: without other load, and during a measurement.
const (
	alone       = 5 * time.Millisecond
	duringPause = 50 * time.Millisecond // 160 KiB/s: negligible compared with the measured load
)

// OpenDisk creates the file in dir. Close removes the file.
func OpenDisk(dir string) (*Disk, error) {
	f, err := os.CreateTemp(dir, "parley-bench-disk-")
	if err != nil {
		return nil, fmt.Errorf("disk: %w", err)
	}
	d := &Disk{file: f}
	if _, err = f.Write(make([]byte, logSize)); err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("disk: %w", err), d.Close())
	}
	return d, nil
}

// Close removes the file.
func (d *Disk) Close() error { return errors.Join(d.file.Close(), os.Remove(d.file.Name())) }

// Before writes pages for the given length, without other load, and returns the milliseconds of each page.
func (d *Disk) Before(ctx context.Context, length time.Duration) ([]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	return d.write(ctx, alone)
}

// During writes pages until stop is called. stop returns the milliseconds of each page; other
// writers wait as long.
func (d *Disk) During(ctx context.Context) (stop func() ([]float64, error)) {
	ctx, cancel := context.WithCancel(ctx)
	var took []float64
	var err error
	var writing sync.WaitGroup
	writing.Go(func() { took, err = d.write(ctx, duringPause) })
	return func() ([]float64, error) {
		cancel()
		writing.Wait()
		return took, err
	}
}

// write runs until ctx ends.
func (d *Disk) write(ctx context.Context, pause time.Duration) (took []float64, err error) {
	page := make([]byte, pageSize)
	for Sleep(ctx, pause) {
		began := time.Now()
		if _, err = d.file.WriteAt(page, d.at); err == nil {
			err = syscall.Fdatasync(int(d.file.Fd()))
		}
		if err != nil {
			return nil, fmt.Errorf("disk: %w", err)
		}
		took = append(took, millis(time.Since(began)))
		d.at = (d.at + pageSize) % logSize
	}
	return took, nil
}
