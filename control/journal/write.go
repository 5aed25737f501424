package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// Append writes the entries to disk before it returns, with one write and one fsync. After an error nothing may be
// sent, and the next write replaces the file.
func (j *Journal) Append(entries ...Entry) error {
	j.disk.Lock()
	defer j.disk.Unlock()
	return j.append(entries)
}

// append writes entries and the pending changes. The caller holds j.disk.
func (j *Journal) append(entries []Entry) error {
	j.mu.Lock()
	for _, e := range entries {
		j.put(e)
	}
	j.began = time.Now()
	j.mu.Unlock()
	err := j.write(entries)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.began = time.Time{}
	if err == nil {
		j.stats.Writes++
		return nil
	}
	// After a failed write the content of the disk is unknown. A later fsync may succeed although data are missing.
	j.stats.Failures++
	if j.file != nil {
		_ = j.file.Close() // the file is not trusted any more
	}
	j.file, j.err = nil, fmt.Errorf("journal: %w", err)
	return j.err
}

func (j *Journal) write(entries []Entry) error {
	if j.slot < 0 {
		return os.ErrClosed
	}
	if j.file == nil {
		return j.rewrite()
	}
	j.mu.Lock()
	entries = append(j.pending, entries...)
	j.pending, j.lines = nil, j.lines+len(entries)
	j.mu.Unlock()
	var all bytes.Buffer
	for _, e := range entries {
		text, err := line(e)
		if err != nil {
			return err
		}
		all.Write(text)
	}
	if all.Len() == 0 {
		return nil
	}
	if _, err := j.file.Write(all.Bytes()); err != nil {
		return err
	}
	return j.file.Sync()
}

// Change changes the entry of an attempt, if there is one. It does not wait for the disk: the next Append or Flush
// writes the change.
func (j *Journal) Change(attempt string, change func(*Entry)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e, ok := j.entries[attempt]
	if !ok {
		return
	}
	change(&e)
	j.entries[attempt] = e
	j.pending = append(j.pending, e)
}

// Flush writes the pending changes, drops expired entries, and rewrites the file if it has many outdated lines. After
// a failed write it tries a new file.
func (j *Journal) Flush() error {
	j.disk.Lock()
	defer j.disk.Unlock()
	j.mu.Lock()
	if now := time.Now(); now.Sub(j.trimmed) > time.Minute {
		j.trimmed = now
		j.trim(now)
	}
	long := j.file != nil && j.slot >= 0 && j.lines > 4*len(j.order)+4096
	j.mu.Unlock()
	if long && j.rewrite() == nil {
		return nil
	}
	return j.append(nil)
}

// maxWriteTime is the time after which a running write counts as hanging. Nothing may be sent until the write ends.
const maxWriteTime = time.Second

// Err returns the reason why nothing may be sent now, or nil.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if took := time.Since(j.began); j.err == nil && !j.began.IsZero() && took > maxWriteTime {
		return fmt.Errorf("journal: the disk has not answered for %v", took.Round(time.Millisecond))
	}
	return j.err
}

// Entries returns all entries, oldest first.
func (j *Journal) Entries() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := make([]Entry, 0, len(j.order))
	for _, id := range j.order {
		all = append(all, j.entries[id])
	}
	return all
}

// maxSentTo is the maximum number of entries of one number that SentTo returns.
const maxSentTo = 16

// SentTo returns the newest entries of INVITEs that were sent to a number, at most 16. It also returns the entry of
// the attempt itself, unless its INVITE was not sent. Older entries are not needed, because a database that reverted
// has lost its newest commits.
func (j *Journal) SentTo(number Hash, attempt string) []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found []Entry
	if e, ok := j.entries[attempt]; ok && !e.Void {
		found = append(found, e)
	}
	left := maxSentTo
	for _, id := range slices.Backward(j.numbers[number]) {
		if e := j.entries[id]; id != attempt && !e.Void {
			if found, left = append(found, e), left-1; left == 0 {
				break
			}
		}
	}
	return found
}

// HasCall reports whether an INVITE of the call was sent.
func (j *Journal) HasCall(id string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.entries {
		if e.Call == id && !e.Void {
			return true
		}
	}
	return false
}

// Stats returns counts since the process started.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.stats
	s.Entries = len(j.order)
	return s
}

// Close writes pending changes and releases the slots.
func (j *Journal) Close() error {
	j.disk.Lock()
	defer j.disk.Unlock()
	var err error
	if j.file != nil {
		err = errors.Join(j.append(nil), j.closeFile())
	}
	for _, l := range j.locks {
		_ = l.Close() // closing releases the lock
	}
	j.locks, j.slot = nil, -1
	return err
}

func (j *Journal) closeFile() error {
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}
