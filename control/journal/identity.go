package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/parley-voice/parley/control"
)

// ID identifies the journals of a data directory. A directory that replaces a lost one has another ID. It is empty for
// journals of releases that had no IDs.
func (j *Journal) ID() string { return j.id }

// identify reads the ID of the directory, or creates one if the directory has no journal.
func (j *Journal) identify() error {
	name := filepath.Join(j.dir, "id")
	read := func() error {
		text, err := os.ReadFile(name) //nolint:gosec // in the data directory
		j.id = strings.TrimSpace(string(text))
		return err
	}
	err := read()
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	old, err := filepath.Glob(filepath.Join(j.dir, "sent-*.log"))
	if err != nil {
		return err
	}
	if len(old) > 0 {
		if err = read(); errors.Is(err, fs.ErrNotExist) { // another process may have created both
			return nil
		}
		return err
	}
	// The file appears with its content, and only if another process has not created it.
	fresh, err := os.CreateTemp(j.dir, "id-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(fresh.Name()) }()
	_, err = fmt.Fprintln(fresh, control.NewID("", time.Now()))
	if err = errors.Join(err, fresh.Sync(), fresh.Close()); err != nil {
		return err
	}
	if err = os.Link(fresh.Name(), name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err = read(); err == nil {
		err = syncDir(j.dir)
	}
	return err
}

func (j *Journal) seenName() string { return filepath.Join(j.dir, "seen") }

// Seen returns the time that SetSeen stored last in the directory; zero if there is none.
func (j *Journal) Seen() (at time.Time) {
	text, err := os.ReadFile(j.seenName())
	if err == nil {
		err = at.UnmarshalText([]byte(strings.TrimSpace(string(text))))
	}
	if err != nil { // callers do not use the zero time
		return time.Time{}
	}
	return at
}

// SetSeen stores the newest time at which a process of the directory saw the database. A power failure may lose it.
func (j *Journal) SetSeen(at time.Time) error {
	text, err := at.UTC().MarshalText()
	if err != nil {
		return err
	}
	fresh := fmt.Sprintf("%s.%d.new", j.seenName(), j.slot)
	if err = os.WriteFile(fresh, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, j.seenName())
}
