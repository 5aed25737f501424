package recorder

import (
	"errors"
	"os"
	"path/filepath"
)

// syncer calls fsync in another goroutine, so that a slow disk does not delay the writer.
type syncer struct {
	file      *os.File
	running   chan error // receives the result of the running fsync; nil if none runs
	dirSynced bool       // the directory entry has been synced too
	err       error      // all errors so far; the kernel reports each only once
}

func (s *syncer) start() {
	if s.running != nil {
		select {
		case err := <-s.running:
			s.record(err)
		default:
			return
		}
	}
	done, dirSynced := make(chan error, 1), s.dirSynced
	s.running = done
	go func() {
		err := s.file.Sync()
		if !dirSynced {
			err = errors.Join(err, SyncDir(filepath.Dir(s.file.Name())))
		}
		done <- err
	}()
}

func (s *syncer) record(err error) {
	s.running, s.dirSynced, s.err = nil, true, errors.Join(s.err, err)
}

func (s *syncer) wait() error {
	if s.running != nil {
		s.record(<-s.running)
	}
	return s.err
}

// SyncDir makes new file names in a directory survive a power failure.
func SyncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the caller names the directory
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
