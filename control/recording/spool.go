package recording

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/record"
)

// A Ledger notes where a call's recording lies; *store.Store is one.
type Ledger interface {
	Call(ctx context.Context, orgID, id string) (control.Call, error)
	// Recorded with RecordingFailed changes nothing unless the recording is
	// still being finalized.
	Recorded(ctx context.Context, callID string, status control.RecordingStatus, key string) error
}

// A Spool is the folder of this node in which calls are taped. It is a
// control.Taper, and a control.Follower that brings the tapes of finished calls
// into the bucket.
type Spool struct {
	Dir    string
	Bucket Bucket
	Ledger Ledger
	// GiveUp is how long after a call's end its tape is looked for; 0 means
	// 5 min.
	GiveUp time.Duration
	Log    *slog.Logger
}

// Tape implements control.Taper.
func (s *Spool) Tape(callID string, leg media.Leg) (media.Leg, control.Tape, error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("record: %w", err)
	}
	t, err := record.New(s.path(callID), leg)
	if err != nil {
		return nil, nil, err
	}
	return whole(t, leg), tape{t}, nil
}

// powers are all that a leg may do beside talking and hearing, save what its
// tape does for it.
type powers interface {
	media.Gauge
	media.Traced
	media.Keypad
	media.Referrer
	media.Holder
}

// whole is a tape that can do what its leg can.
func whole(t *record.Tape, leg media.Leg) media.Leg {
	if able, ok := leg.(powers); ok {
		return struct {
			*record.Tape
			powers
		}{t, able}
	}
	return t
}

// A tape closes with its path.
type tape struct{ t *record.Tape }

// Close implements control.Tape.
func (t tape) Close() (string, error) { return t.t.Path(), t.t.Close() }

// Start finishes what a crash left half written, and sweeps. It must be called
// before the first tape is made.
func (s *Spool) Start(ctx context.Context) error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("recordings: %w", err)
	}
	if _, err := record.Recover(s.Dir); err != nil {
		// One broken file must not keep the others, and us, from starting.
		s.log().WarnContext(ctx, "a recording cannot be recovered", "err", err)
	}
	return s.Sweep(ctx)
}

// Sweep brings in the whole tapes of calls that ended, such as those that were
// given up while the bucket was away. It may be called at any time.
func (s *Spool) Sweep(ctx context.Context) error {
	names, err := filepath.Glob(filepath.Join(s.Dir, "call_*.wav"))
	if err != nil {
		return fmt.Errorf("recordings: %w", err)
	}
	for _, name := range names {
		id := strings.TrimSuffix(filepath.Base(name), ".wav")
		c, err := s.Ledger.Call(ctx, "", id)
		switch {
		case control.CodeOf(err) == control.CodeCallNotFound:
			err = os.Remove(name) // its call was deleted
		case err == nil && c.Status.Over() && c.RecordingStatus != control.RecordingDisabled:
			err = s.bring(ctx, id)
		}
		if err != nil {
			s.log().WarnContext(ctx, "a recording is not brought in yet", "call", id, "err", err)
		}
	}
	return nil
}

// Follow implements control.Follower: the call's tape goes into the bucket. A
// tape that is not here is given up after a while, so that what follows is
// not held back for ever; should it turn up, a later sweep brings it in.
func (s *Spool) Follow(ctx context.Context, e control.Event) error {
	if e.Kind != control.CallEnded || e.Status == control.Failed { // nobody answered
		return nil
	}
	c, err := s.Ledger.Call(ctx, "", e.CallID)
	if err != nil || c.RecordingStatus != control.RecordingFinalizing {
		return err
	}
	err = s.bring(ctx, c.ID)
	late := time.Since(e.At) > orElse(s.GiveUp, 5*time.Minute)
	if err == nil || !late && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// A sweep may have brought it in since the call was read, and taken it away.
	if now, again := s.Ledger.Call(ctx, "", e.CallID); again != nil || now.RecordingStatus != control.RecordingFinalizing {
		return again
	}
	s.log().ErrorContext(ctx, "a recording is lost", "call", c.ID, "err", err)
	return s.Ledger.Recorded(ctx, c.ID, control.RecordingFailed, "")
}

// bring stores a tape and lets the file go.
func (s *Spool) bring(ctx context.Context, callID string) error {
	name := s.path(callID)
	f, err := os.Open(name) //nolint:gosec // a file of our own folder
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	defer func() { _ = f.Close() }()
	key := "recordings/" + callID + ".wav"
	if err := s.Bucket.Put(ctx, key, f); err != nil {
		return err
	}
	if err := s.Ledger.Recorded(ctx, callID, control.RecordingReady, key); err != nil {
		return err
	}
	// A sweep and a follower may bring the same tape in, and one of them lets it go.
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("recording: %w", err)
	}
	return nil
}

func (s *Spool) path(callID string) string { return filepath.Join(s.Dir, callID+".wav") }

func (s *Spool) log() *slog.Logger {
	if s.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Log
}

func orElse(d, other time.Duration) time.Duration {
	if d == 0 {
		return other
	}
	return d
}
