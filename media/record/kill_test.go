package record

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

// TestMain lets the test binary be another process: one that records until it is
// killed.
func TestMain(m *testing.M) {
	if os.Getenv("RECORDTEST_TAPE") != "" {
		fmt.Fprintln(os.Stderr, tapeForEver("call.wav"))
		return
	}
	m.Run()
}

// tapeForEver records what counts its frames, and tells each once it was heard.
func tapeForEver(path string) error {
	leg := mediatest.NewLeg(8000)
	tape, err := New(path, leg)
	if err != nil {
		return err
	}
	n := int16(0)
	tape.Play(media.FeedFunc(func(f media.Frame, _ time.Time) {
		n++
		for i := range f {
			f[i] = n
		}
	}))
	f := make(media.Frame, media.FrameLen(8000))
	for i := 1; ; i++ {
		if err := tape.ReadFrame(f); err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, i)
	}
}

// TestTapesSurviveKill kills recording processes at random moments. What is left can
// be played, and misses no more than the last two seconds.
func TestTapesSurviveKill(t *testing.T) {
	kills := 4
	if os.Getenv("PARLEYTEST_SOAK") != "" {
		kills = 20
	}
	var all sync.WaitGroup
	for range kills {
		all.Go(func() { killedTape(t, t.TempDir(), 120+rand.IntN(80)) })
	}
	all.Wait()
}

// killedTape kills one when it has heard so many frames of 20 ms.
func killedTape(t *testing.T, dir string, frames int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "RECORDTEST_TAPE=1")
	cmd.Dir = dir
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return
	}
	heard := 0
	for lines := bufio.NewScanner(out); heard < frames && lines.Scan(); {
		heard, _ = strconv.Atoi(lines.Text())
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed
	if _, err = Recover(dir); err != nil {
		t.Error(err)
	}
	left, right, rate, err := Read(filepath.Join(dir, "call.wav"))
	if err != nil {
		t.Errorf("after %d frames: %v", frames, err)
		return
	}
	const lost = 100 // frames: 2 s
	if got := len(left) / media.FrameLen(rate); got < frames-lost {
		t.Errorf("killed after %d frames, %d can be played", frames, got)
	}
	for i := 1; i < len(right); i++ {
		if d := right[i] - right[i-1]; d != 0 && d != 1 && right[i-1] != 0 {
			t.Errorf("sample %d of the agent is %d after %d", i, right[i], right[i-1])
			break
		}
	}
}
