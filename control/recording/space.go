package recording

import (
	"cmp"
	"fmt"
	"sync"
	"syscall"
	"time"
)

// DefaultMinFree is the default of Spool.MinFree, in bytes. It is enough for about 250 minutes of recording.
const DefaultMinFree = 512 << 20

// spaceCheckInterval is the time for which a measurement of the free space is used.
const spaceCheckInterval = time.Second

// diskSpace is the last measurement of the free space.
type diskSpace struct {
	mu   sync.Mutex
	at   time.Time
	free int64
	err  error // reason why calls cannot be recorded
}

// Free returns the free bytes of the spool's file system, or -1 if unknown.
func (s *Spool) Free() int64 {
	free, _ := s.checkSpace()
	return free
}

// CheckSpace returns an error if there is too little space to start a recording.
func (s *Spool) CheckSpace() error {
	_, err := s.checkSpace()
	return err
}

func (s *Spool) checkSpace() (int64, error) {
	s.space.mu.Lock()
	defer s.space.mu.Unlock()
	if now := time.Now(); s.space.at.IsZero() || now.Sub(s.space.at) >= spaceCheckInterval {
		was := s.space.err
		s.space.at = now
		s.space.free, s.space.err = s.measure()
		switch {
		case s.space.err != nil && was == nil:
			s.log().Error("recording paused: too little free disk space", "err", s.space.err)
		case s.space.err == nil && was != nil:
			s.log().Info("recording resumed", "free_bytes", s.space.free)
		}
	}
	return s.space.free, s.space.err
}

func (s *Spool) measure() (int64, error) {
	free := FreeSpace(s.Dir)
	if free < 0 {
		return free, nil // the first recording creates a missing folder
	}
	if least := cmp.Or(s.MinFree, DefaultMinFree); free < least {
		return free, fmt.Errorf("%d MB are free for recordings, less than the %d MB of PARLEY_RECORDING_RESERVE", free>>20, least>>20)
	}
	return free, nil
}

// FreeSpace returns the free bytes of a folder's file system, or -1 if unknown.
func FreeSpace(dir string) int64 {
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil {
		return -1
	}
	return int64(fs.Bavail) * fs.Bsize //nolint:gosec // less than 2^63
}
