// Package journal records on a node's disk which calls the node sent. The record is needed if the database reverts to
// an older state.
package journal

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/parley-voice/parley/control"
)

// Hash stands for a phone number or an Idempotency-Key without revealing it.
type Hash [16]byte

// MarshalText implements encoding.TextMarshaler.
func (h Hash) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h[:])), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hash) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(h) {
		return fmt.Errorf("hash of %d characters, want %d", len(text), 2*len(h))
	}
	_, err := hex.Decode(h[:], text)
	return err
}

// Entry is a call whose INVITE was sent or was about to be sent, with its result.
type Entry struct {
	Attempt string    `json:"attempt"`
	Call    string    `json:"call"`
	Org     string    `json:"org,omitempty"`
	Contact string    `json:"contact,omitempty"`
	Number  Hash      `json:"number,omitzero"`
	Key     Hash      `json:"key,omitzero"` // hash of the Idempotency-Key and its scope
	At      time.Time `json:"at"`

	Answered time.Time `json:"answered,omitzero"`
	End      *End      `json:"end,omitempty"`
	Void     bool      `json:"void,omitempty"` // true if nothing was sent
}

// End is a control.CallResult without texts.
type End struct {
	Status     control.Status          `json:"status"`
	Reason     control.Reason          `json:"reason"`
	HangupBy   control.Side            `json:"hangup_by,omitempty"`
	SIPStatus  int                     `json:"sip_status,omitempty"`
	SIPReason  string                  `json:"sip_reason,omitempty"`
	Recording  control.RecordingStatus `json:"recording,omitempty"`
	Truncated  bool                    `json:"truncated,omitempty"`
	AnsweredBy string                  `json:"answered_by,omitempty"`
	DialedAt   time.Time               `json:"dialed_at,omitzero"`
	RingingAt  time.Time               `json:"ringing_at,omitzero"`
	AnsweredAt time.Time               `json:"answered_at,omitzero"`
	EndedAt    time.Time               `json:"ended_at,omitzero"`

	// Usage and TransferLegs determine the cost.
	Usage        json.RawMessage       `json:"usage,omitempty"`
	TransferLegs []control.AnsweredLeg `json:"transfer_legs,omitempty"`
}

// NewEnd returns the End that stores a call's result.
func NewEnd(f control.CallResult) *End {
	return &End{
		f.Status, f.Reason, f.HangupBy, f.SIPStatus, f.SIPReason, f.Recording, f.Truncated, f.AnsweredBy,
		f.DialedAt, f.RingingAt, f.AnsweredAt, f.EndedAt, f.Usage, f.TransferLegs,
	}
}

// Result returns the result in the form in which the database stores it.
func (e End) Result() control.CallResult {
	return control.CallResult{
		Status: e.Status, Reason: e.Reason, HangupBy: e.HangupBy, SIPStatus: e.SIPStatus, SIPReason: e.SIPReason,
		Recording: e.Recording, Truncated: e.Truncated, AnsweredBy: e.AnsweredBy,
		DialedAt: e.DialedAt, RingingAt: e.RingingAt, AnsweredAt: e.AnsweredAt, EndedAt: e.EndedAt,
		Usage: e.Usage, TransferLegs: e.TransferLegs,
	}
}

func (e Entry) over() bool { return e.Void || e.End != nil }

const (
	// Retention is how long an entry with a result is kept. It must be longer than any replication lag.
	Retention = 24 * time.Hour
	// rememberedOpen is how long an entry without a result is kept.
	rememberedOpen = 2 * Retention
	// defaultMost is the maximum number of entries. They take about 70 MB on disk.
	defaultMost = 100_000
	// mostSlots is the maximum number of processes that share a data directory. Each process has a slot: a journal
	// file of its own.
	mostSlots = 16
)

// Journal is the journal of one process. It is safe for concurrent use.
type Journal struct {
	dir   string
	id    string
	most  int
	slot  int
	slots []int // the slot of this process, and the slots taken over from dead processes
	locks []*os.File

	disk sync.Mutex // held while the file is written; locked before mu

	mu      sync.Mutex // never held while the disk is written
	began   time.Time  // start of the running write; zero if none
	file    *os.File   // nil after a failed write; the next write then replaces the file
	err     error      // why file is nil
	lines   int        // number of lines in the file
	pending []Entry    // changes that the next Append or Flush writes
	entries map[string]Entry
	order   []string // attempt ids, oldest first
	numbers map[Hash][]string
	trimmed time.Time
	stats   Stats
}

// Stats holds counts since the process started.
type Stats struct {
	Entries  int   // entries kept now
	Writes   int64 // writes; each has one fsync
	Failures int64 // writes that failed
	Dropped  int64 // entries dropped early because there were too many
	Damaged  int64 // lines that could not be read
}

// Open opens the journal of this process in dir. It takes over the journals of dead processes in dir.
func Open(dir string) (*Journal, error) { return open(dir, defaultMost) }

func open(dir string, most int) (*Journal, error) {
	j := &Journal{dir: dir, most: most, slot: -1, entries: map[string]Entry{}, numbers: map[Hash][]string{}}
	if err := os.MkdirAll(dir, 0o700); err != nil { //nolint:gosec // set by the operator
		return nil, fmt.Errorf("journal: %w", err)
	}
	if err := j.identify(); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	var left []string
	for n := range mostSlots {
		if j.slot >= 0 && !exists(j.name(n)) {
			continue
		}
		locked, err := j.lock(n)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("journal: %w", err), j.Close())
		}
		if !locked {
			continue
		}
		if j.slots = append(j.slots, n); j.slot < 0 {
			j.slot = n
		} else {
			left = append(left, j.name(n))
		}
		if err := j.read(j.name(n)); err != nil {
			return nil, errors.Join(fmt.Errorf("journal: %w", err), j.Close())
		}
	}
	if j.slot < 0 {
		return nil, fmt.Errorf("journal: %d processes use %s already", mostSlots, dir)
	}
	j.sort()
	j.trim(time.Now())
	if err := j.rewrite(); err != nil {
		return nil, errors.Join(fmt.Errorf("journal: %w", err), j.Close())
	}
	for _, name := range left { // the entries of these files are in the new file
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(fmt.Errorf("journal: %w", err), j.Close())
		}
	}
	return j, nil
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

func (j *Journal) name(slot int) string {
	return filepath.Join(j.dir, "sent-"+strconv.Itoa(slot)+".log")
}

// lock locks a slot. It returns false if another process has locked it.
func (j *Journal) lock(slot int) (bool, error) {
	f, err := os.OpenFile(j.name(slot)+".lock", os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return false, err
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		j.locks = append(j.locks, f)
		return true, nil
	}
	_ = f.Close() // closing cannot lose data: nothing was written
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return false, err
}

// Slots returns the slot of this journal and the slots that it took over.
func (j *Journal) Slots() []int { return j.slots }

// castagnoli is the CRC-32 polynomial for the checksums of lines.
var castagnoli = crc32.MakeTable(crc32.Castagnoli) //nolint:gochecknoglobals // read-only table

// line encodes an entry as its checksum, a space, and JSON.
func line(e Entry) ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%08x %s\n", crc32.Checksum(text, castagnoli), text), nil
}

// parse decodes a line without its newline. ok is false if the line is damaged.
func parse(text []byte) (e Entry, ok bool) {
	sum, text, found := bytes.Cut(text, []byte(" "))
	if want, err := strconv.ParseUint(string(sum), 16, 32); !found || err != nil || uint32(want) != crc32.Checksum(text, castagnoli) {
		return e, false
	}
	return e, json.Unmarshal(text, &e) == nil && e.Attempt != ""
}

// read adds the entries of a file. It skips damaged and incomplete lines. If the line of a new INVITE is incomplete,
// the INVITE was not sent.
func (j *Journal) read(name string) error {
	text, err := os.ReadFile(name) //nolint:gosec // in the data directory
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for l := range bytes.Lines(text) {
		e, ok := parse(bytes.TrimSuffix(l, []byte("\n")))
		if !ok {
			j.stats.Damaged++
			continue
		}
		j.put(e)
	}
	return nil
}

func (j *Journal) put(e Entry) {
	if _, have := j.entries[e.Attempt]; !have {
		j.order = append(j.order, e.Attempt)
		if e.Number != (Hash{}) {
			j.numbers[e.Number] = append(j.numbers[e.Number], e.Attempt)
		}
	}
	j.entries[e.Attempt] = e
}

// sort sorts the entries of all files by time.
func (j *Journal) sort() {
	byTime := func(a, b string) int { return cmp.Or(j.entries[a].At.Compare(j.entries[b].At), cmp.Compare(a, b)) }
	slices.SortStableFunc(j.order, byTime)
	for _, same := range j.numbers {
		slices.SortStableFunc(same, byTime)
	}
}

// trim drops expired entries. If there are still too many, it also drops the oldest entries that have a result.
func (j *Journal) trim(now time.Time) {
	over := len(j.order) - j.most
	j.order = slices.DeleteFunc(j.order, func(id string) bool {
		e := j.entries[id]
		switch age := now.Sub(e.At); {
		case age > rememberedOpen, e.over() && age > Retention:
		case over > 0 && e.over():
			j.stats.Dropped++
		default:
			return false
		}
		over--
		delete(j.entries, id)
		if same := slices.DeleteFunc(j.numbers[e.Number], func(a string) bool { return a == id }); len(same) > 0 {
			j.numbers[e.Number] = same
		} else {
			delete(j.numbers, e.Number)
		}
		return true
	})
}

// snapshot returns the text of a new file that has each entry once, and its number of lines. It also returns the
// pending changes, which the text includes.
func (j *Journal) snapshot() (text []byte, lines int, changes []Entry, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var all bytes.Buffer
	for _, id := range j.order {
		one, err := line(j.entries[id])
		if err != nil {
			return nil, 0, nil, err
		}
		all.Write(one)
	}
	changes, j.pending = j.pending, nil
	return all.Bytes(), len(j.order), changes, nil
}

// rewrite replaces the file by a new one that has each entry once. The caller holds j.disk.
func (j *Journal) rewrite() error {
	text, lines, changes, err := j.snapshot()
	if err != nil {
		return err
	}
	f, err := j.replace(text)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.pending = append(changes, j.pending...)
		return err
	}
	if j.file != nil {
		_ = j.file.Close() // the new file has all entries
	}
	j.file, j.lines, j.err = f, lines, nil
	return nil
}

// replace writes text to a new file, atomically replaces the journal's file by it, and returns the open file.
func (j *Journal) replace(text []byte) (*os.File, error) {
	fresh := j.name(j.slot) + ".new"
	f, err := os.OpenFile(fresh, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600) //nolint:gosec // in the data directory
	if err != nil {
		return nil, err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(fresh, j.name(j.slot)) //nolint:gosec // in the data directory
	}
	if err == nil {
		err = syncDir(j.dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the data directory
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
