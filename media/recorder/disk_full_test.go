package recorder

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/parley-voice/parley/media"
)

// limitedDisk is a file on a disk with a limited number of free bytes.
type limitedDisk struct {
	out  io.Writer
	left int
}

func (q *limitedDisk) Write(b []byte) (int, error) {
	n, err := q.out.Write(b[:min(len(b), q.left)])
	q.left -= n
	if err == nil && n < len(b) {
		err = syscall.ENOSPC
	}
	return n, err
}

// TestFullDisk checks that a playable file is kept with everything that was written before the disk was full, and
// that no file is kept if there was no audio.
func TestFullDisk(t *testing.T) {
	for name, left := range map[string]int{"at once": 0, "within a sample": 3, "within a word": 40_001, "at the end": 90_002} {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "call.wav")
			rec := recordOnDisk(t, path, 8000, left)
			if err := rec.Hangup(media.LocalHangup); err != nil {
				t.Fatal(err)
			}
			err := rec.Close()
			if left < 4 {
				if files, _ := filepath.Glob(path + "*"); err == nil || errors.Is(err, ErrTruncated) || !errors.Is(err, syscall.ENOSPC) || len(files) != 0 {
					t.Errorf("%s: %v, remaining files: %q", name, err, files)
				}
				return
			}
			if !errors.Is(err, ErrTruncated) || !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%s: %v", name, err)
			}
			l, r, rate, err := Read(path)
			if err != nil || rate != 8000 || len(l) != left/4 || len(r) != left/4 {
				t.Fatalf("%s: %d and %d samples at %d, %v", name, len(l), len(r), rate, err)
			}
			if got := decodeWords(l, rate); !strings.HasPrefix(got, "hello") {
				t.Errorf("%s: the left channel holds %q", name, got)
			}
			if _, err := os.Stat(path + Partial); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: the partial file: %v", name, err)
			}
		})
	}
}
