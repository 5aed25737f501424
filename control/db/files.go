package db

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// If this process runs as root, it shares folders with the account that runs Postgres. Files of this process lie
// outside these folders. It opens no file through a symbolic link, because that account could make a link point
// anywhere.

// openRegular opens a regular file. It does not follow symbolic links.
func openRegular(name string, flag int) (*os.File, error) {
	// Without O_NONBLOCK, opening a named pipe would block.
	f, err := os.OpenFile(name, flag|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600) //nolint:gosec // a file of ours
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// readRegular reads at most the last limit bytes of a regular file. It does not follow symbolic links.
func readRegular(name string, limit int64) ([]byte, error) {
	f, err := openRegular(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if st, err := f.Stat(); err == nil && st.Size() > limit {
		if _, err := f.Seek(-limit, io.SeekEnd); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// ownDir creates a folder that only the Postgres account may open.
func (l *Local) ownDir(dir string) error {
	if err := l.makeOwnDir(dir); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return nil
}

func (l *Local) makeOwnDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if err == nil && l.acct.change {
		err = os.Lchown(dir, int(l.acct.uid), int(l.acct.gid))
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	d, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0) //nolint:gosec // a folder of ours
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	st, err := d.Stat()
	if err != nil {
		return err
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); !ok || sys.Uid != l.acct.uid {
		return fmt.Errorf("%s must belong to the user %s", dir, l.acct.name)
	}
	return d.Chmod(0o700)
}
