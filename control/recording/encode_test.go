package recording_test

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/media/recorder"
)

// writeSpeech writes a recording in the spool, in which two voices take turns.
func writeSpeech(t *testing.T, s *recording.Spool, seconds int) {
	t.Helper()
	var sides [2][]int16
	for n := range seconds * 8000 {
		at, pitch := float64(n)/8000, 110*float64(1+n/24000%2)
		x := 0.0
		for h := 1.0; h < 20; h++ {
			x += math.Sin(2*math.Pi*pitch*h*at) / h * (1 + math.Sin(2*math.Pi*3*at))
		}
		speaker := n / 24000 % 2
		sides[speaker] = append(sides[speaker], int16(4000*x))
		sides[1-speaker] = append(sides[1-speaker], 0)
	}
	if err := recorder.Write(filepath.Join(s.Dir, id+".wav"), sides[0], sides[1], 8000); err != nil {
		t.Fatal(err)
	}
}

// TestEncode compresses a recording with the installed encoder.
func TestEncode(t *testing.T) {
	encoder, err := recording.FindEncoder()
	if err != nil {
		t.Skip(err)
	}
	s, l := newSpool(t, control.RecordingFinalizing)
	s.Encoder = encoder
	const seconds = 60
	writeSpeech(t, s, seconds)
	if err = s.HandleEvent(t.Context(), ended()); err != nil {
		t.Fatal(err)
	}
	f, err := s.Bucket.Open(t.Context(), l.call.RecordingKey)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(f)
	_ = f.Close()
	if err != nil || l.call.RecordingKey != "recordings/"+id+".opus" || !bytes.HasPrefix(text, []byte("OggS")) || !bytes.Contains(text[:100], []byte("OpusHead\x01\x02")) {
		t.Fatalf("%s begins with %q, %v", l.call.RecordingKey, text[:min(len(text), 60)], err)
	}
	if rate := float64(len(text)) / seconds; rate > 4000 || rate < 500 {
		t.Errorf("%.0f bytes a second", rate)
	}
	if left, _ := os.ReadDir(s.Dir); len(left) != 0 {
		t.Errorf("the spool holds %v", left)
	}
}

// TestEncoderFails checks that a recording is stored as WAV if the encoder fails, takes too long, or needs too much
// CPU time or memory.
func TestEncoderFails(t *testing.T) {
	for name, script := range map[string]string{
		"it fails":        "echo broken >&2; exit 3",
		"it hangs":        "sleep 60",
		"it needs memory": "x=$(head -c 1500000000 /dev/zero | tr '\\0' x)",
	} {
		t.Run(name, func(t *testing.T) {
			s, l := newSpool(t, control.RecordingFinalizing)
			s.Encoder = &recording.Encoder{Program: "/bin/sh", Args: []string{"-c", "PATH=/bin:/usr/bin; head -c 9; " + script}, Timeout: time.Second}
			write(t, s)
			began := time.Now()
			if err := s.HandleEvent(t.Context(), ended()); err != nil {
				t.Fatal(err)
			}
			l.isReady(t, s)
			if took := time.Since(began); took > 10*time.Second || !strings.HasSuffix(l.call.RecordingKey, ".wav") {
				t.Errorf("%s after %v", l.call.RecordingKey, took)
			}
		})
	}
}
