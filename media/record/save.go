package record

import (
	"errors"
	"os"
	"path/filepath"
)

// A saver brings to the disk what was written to a file, beside the writer: a slow
// disk holds no sound up.
type saver struct {
	file *os.File
	on   chan error // of the saving that is under way; nil where none is
	all  bool       // the file's name was saved too
	err  error      // the first; the system tells each once
}

// save begins to save, unless it is at it still.
func (s *saver) save() {
	if s.on != nil {
		select {
		case err := <-s.on:
			s.settle(err)
		default:
			return
		}
	}
	on, named := make(chan error, 1), s.all
	s.on = on
	go func() {
		err := s.file.Sync()
		if !named {
			err = errors.Join(err, SyncDir(filepath.Dir(s.file.Name())))
		}
		on <- err
	}()
}

func (s *saver) settle(err error) {
	s.on, s.all, s.err = nil, true, errors.Join(s.err, err)
}

// wait ends with the saving that is under way, and returns what went wrong in all.
func (s *saver) wait() error {
	if s.on != nil {
		s.settle(<-s.on)
	}
	return s.err
}

// SyncDir makes new names in a folder survive a power cut.
func SyncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // a folder of ours
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
