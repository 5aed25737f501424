package result

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/parley-voice/parley/media/recorder"
)

// WAV returns a stereo recording as WAV bytes.
func WAV(left, right []int16, rate int) (wav []byte, err error) {
	dir, err := os.MkdirTemp("", "parley-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	name := filepath.Join(dir, "turn.wav")
	if err = recorder.Write(name, left, right, rate); err != nil {
		return nil, err
	}
	return os.ReadFile(name) //nolint:gosec // just written
}
