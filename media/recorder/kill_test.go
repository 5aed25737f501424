package recorder

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediatest"
)

// TestMain also serves as the recording process that TestRecordingsSurviveKill starts and kills.
func TestMain(m *testing.M) {
	if os.Getenv("RECORDTEST_RUN") != "" {
		fmt.Fprintln(os.Stderr, recordForever("call.wav"))
		return
	}
	m.Run()
}

// recordForever records a feed of frame numbers. It prints each number after the frame was read.
func recordForever(path string) error {
	leg := mediatest.NewLeg(8000)
	rec, err := New(path, leg)
	if err != nil {
		return err
	}
	n := int16(0)
	rec.Play(media.FeedFunc(func(f media.Frame, _ time.Time) {
		n++
		for i := range f {
			f[i] = n
		}
	}))
	f := make(media.Frame, media.FrameLen(8000))
	for i := 1; ; i++ {
		if err := rec.ReadFrame(f); err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, i)
	}
}

// TestRecordingsSurviveKill kills recording processes at random times. It checks that the files are playable and lack
// at most the last two seconds.
func TestRecordingsSurviveKill(t *testing.T) {
	kills := 4
	if os.Getenv("PARLEYTEST_SOAK") != "" {
		kills = 20
	}
	var all sync.WaitGroup
	for range kills {
		all.Go(func() { killRecording(t, t.TempDir(), 120+rand.IntN(80)) })
	}
	all.Wait()
}

// killRecording kills a recording process after a number of frames of 20 ms.
func killRecording(t *testing.T, dir string, frames int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "RECORDTEST_RUN=1")
	cmd.Dir = dir
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return
	}
	read := 0
	for lines := bufio.NewScanner(out); read < frames && lines.Scan(); {
		read, _ = strconv.Atoi(lines.Text())
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // fails because the process was killed
	if _, err = Recover(dir); err != nil {
		t.Error(err)
	}
	left, right, rate, err := Read(filepath.Join(dir, "call.wav"))
	if err != nil {
		t.Errorf("after %d frames: %v", frames, err)
		return
	}
	const lost = 100 // in frames: 2 s
	if got := len(left) / media.FrameLen(rate); got < frames-lost {
		t.Errorf("killed after %d frames, got %d playable", frames, got)
	}
	for i := 1; i < len(right); i++ {
		if d := right[i] - right[i-1]; d != 0 && d != 1 && right[i-1] != 0 {
			t.Errorf("sample %d of the agent is %d after %d", i, right[i], right[i-1])
			break
		}
	}
}
