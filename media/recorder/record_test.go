package recorder

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

func decodeWords(pcm []int16, rate int) string {
	var words []string
	for _, w := range tone.NewDecoder(rate).Decode(append(pcm, make([]int16, rate)...)) {
		words = append(words, w.Text)
	}
	return strings.Join(words, " ")
}

// speech returns a feed that plays pcm once.
func speech(pcm []int16) media.Feed {
	return media.FeedFunc(func(f media.Frame, _ time.Time) {
		clear(f[copy(f, pcm):])
		pcm = pcm[min(len(f), len(pcm)):]
	})
}

// recordOnDisk records a conversation on a disk with left free bytes.
func recordOnDisk(t *testing.T, path string, rate, left int) *Recording {
	t.Helper()
	leg := mediatest.NewLeg(rate)
	rec, err := New(path, leg)
	if err != nil {
		t.Fatal(err)
	}
	rec.out = &limitedDisk{rec.file, left}
	caller, _ := tone.Encode(rate, "hello agent")
	agent, _ := tone.Encode(rate, "good morning caller")
	leg.Say(caller)
	rec.Play(speech(agent))
	f := make(media.Frame, media.FrameLen(rate))
	for range 150 {
		if err := rec.ReadFrame(f); err != nil {
			t.Fatal(err)
		}
	}
	return rec
}

func TestRecording(t *testing.T) {
	for _, at := range []int{8000, 16000} {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "call.wav")
			rec := recordOnDisk(t, path, at, 1<<30)
			if err := rec.Hangup(media.LocalHangup); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := rec.Close(); err != nil {
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
			if got := decodeWords(left, rate); got != "hello agent" {
				t.Errorf("left: %q", got)
			}
			if got := decodeWords(right, rate); got != "good morning caller" {
				t.Errorf("right: %q", got)
			}
			if got := time.Duration(len(left)) * time.Second / time.Duration(rate); got != 3*time.Second {
				t.Errorf("the recording lasts %v, want 3 s", got)
			}
		})
	}
}

func TestRecover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		rec := recordOnDisk(t, filepath.Join(dir, "call.wav"), 8000, 1<<30)
		// A crash leaves what was written, with a length of zero in the header and half a sample at the end.
		torn, err := os.ReadFile(filepath.Join(dir, "call.wav"+Partial))
		if err != nil {
			t.Fatal(err)
		}
		if err = os.WriteFile(filepath.Join(dir, "torn.wav"+Partial), append(torn, 1, 2), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = rec.Hangup(media.LocalHangup)
		if err = rec.Close(); err != nil {
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
		if got := decodeWords(left, rate); got != "hello agent" {
			t.Errorf("left: %q", got)
		}
	})
}

func TestFailedRecordingKeepsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leg := mediatest.NewLeg(8000)
		rec, err := New(filepath.Join(t.TempDir(), "call.wav"), leg)
		if err != nil {
			t.Fatal(err)
		}
		_ = rec.file.Close() // makes writes fail
		f := make(media.Frame, media.FrameLen(8000))
		for range 1000 {
			if err := rec.ReadFrame(f); err != nil {
				t.Fatal(err)
			}
		}
		_ = rec.Hangup(media.LocalHangup)
		if rec.Close() == nil {
			t.Error("Close: got nil for a recording that failed, want an error")
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
