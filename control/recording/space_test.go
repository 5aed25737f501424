package recording_test

import (
	"strings"
	"testing"

	"github.com/parley-voice/parley/control"
)

// TestCheckSpace checks that no recording starts if less space is free than the reserve.
func TestCheckSpace(t *testing.T) {
	for name, row := range map[string]struct {
		least int64
		full  bool
	}{"enough": {1, false}, "off": {-1, false}, "too little": {1 << 60, true}} {
		s, _ := newSpool(t, control.RecordingNone)
		s.MinFree = row.least
		if free := s.Free(); free <= 0 {
			t.Errorf("%s: %d bytes are free", name, free)
		}
		if err := s.CheckSpace(); (err != nil) != row.full || err != nil && !strings.Contains(err.Error(), "PARLEY_RECORDING_RESERVE") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
