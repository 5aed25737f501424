package record

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/media/tone"
)

func heard(pcm []int16, rate int) string {
	var words []string
	for _, w := range tone.NewHearer(rate).Hear(append(pcm, make([]int16, rate)...)) {
		words = append(words, w.Text)
	}
	return strings.Join(words, " ")
}

// speech is a feed that says pcm once.
func speech(pcm []int16) media.Feed {
	return media.FeedFunc(func(f media.Frame, _ time.Time) {
		clear(f[copy(f, pcm):])
		pcm = pcm[min(len(f), len(pcm)):]
	})
}

func talk(t *testing.T, path string, rate int) *Tape {
	t.Helper()
	leg := mediatest.NewLeg(rate)
	tape, err := New(path, leg)
	if err != nil {
		t.Fatal(err)
	}
	caller, _ := tone.Say(rate, "hello agent")
	agent, _ := tone.Say(rate, "good morning caller")
	leg.Say(caller)
	tape.Play(speech(agent))
	f := make(media.Frame, media.FrameLen(rate))
	for range 150 {
		if err := tape.ReadFrame(f); err != nil {
			t.Fatal(err)
		}
	}
	return tape
}

func TestTape(t *testing.T) {
	for _, at := range []int{8000, 16000} {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "call.wav")
			tape := talk(t, path, at)
			if err := tape.Hangup(media.LocalHangup); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := tape.Close(); err != nil {
					t.Fatal(err)
				}
			}
			left, right, rate, err := Read(path)
			if err != nil {
				t.Fatal(err)
			}
			if rate != at {
				t.Errorf("rate %d", rate)
			}
			if got := heard(left, rate); got != "hello agent" {
				t.Errorf("left: %q", got)
			}
			if got := heard(right, rate); got != "good morning caller" {
				t.Errorf("right: %q", got)
			}
			if got := time.Duration(len(left)) * time.Second / time.Duration(rate); got != 3*time.Second {
				t.Errorf("the recording of 3 s lasts %v", got)
			}
		})
	}
}

func TestRecover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		tape := talk(t, filepath.Join(dir, "call.wav"), 8000)
		// What a crash leaves: the file so far, with a header of no length and
		// half a sample at the end.
		torn, err := os.ReadFile(filepath.Join(dir, "call.wav"+Partial))
		if err != nil {
			t.Fatal(err)
		}
		if err = os.WriteFile(filepath.Join(dir, "torn.wav"+Partial), append(torn, 1, 2), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = tape.Hangup(media.LocalHangup)
		if err = tape.Close(); err != nil {
			t.Fatal(err)
		}
		if err = os.WriteFile(filepath.Join(dir, "empty.wav"+Partial), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		whole, err := Recover(dir)
		if err == nil || !strings.Contains(err.Error(), "no header") {
			t.Errorf("an empty file: %v", err)
		}
		if len(whole) != 1 || filepath.Base(whole[0]) != "torn.wav" {
			t.Fatalf("recovered %v", whole)
		}
		left, _, rate, err := Read(whole[0])
		if err != nil {
			t.Fatal(err)
		}
		if got := heard(left, rate); got != "hello agent" {
			t.Errorf("left: %q", got)
		}
	})
}

func TestFailedTapeSparesTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leg := mediatest.NewLeg(8000)
		tape, err := New(filepath.Join(t.TempDir(), "call.wav"), leg)
		if err != nil {
			t.Fatal(err)
		}
		_ = tape.file.Close() // the disk goes away
		f := make(media.Frame, media.FrameLen(8000))
		for range 1000 {
			if err := tape.ReadFrame(f); err != nil {
				t.Fatal(err)
			}
		}
		_ = tape.Hangup(media.LocalHangup)
		if tape.Close() == nil {
			t.Error("a tape that could not be written says nothing")
		}
	})
}

func TestReadRefusesOtherFiles(t *testing.T) {
	for name, b := range map[string][]byte{"short": []byte("RIFF"), "other": bytes.Repeat([]byte("x"), 100)} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := Read(path); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestWriteAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.wav")
	if err := Write(path, []int16{1, -2, 3}, []int16{-32768}, 8000); err != nil {
		t.Fatal(err)
	}
	left, right, rate, err := Read(path)
	if err != nil || rate != 8000 || !slices.Equal(left, []int16{1, -2, 3}) || !slices.Equal(right, []int16{-32768, 0, 0}) {
		t.Errorf("%v, %v at %d Hz, %v", left, right, rate, err)
	}
}
