package audiogen

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/parley-voice/parley/media/tone"
)

// wav returns a file with pcm on the first channel.
func wav(rate, channels int, pcm []int16, extra string) []byte {
	b := []byte("RIFF\xff\xff\xff\xffWAVE" + extra + "fmt \x10\x00\x00\x00\x01\x00")
	b = binary.LittleEndian.AppendUint16(b, uint16(channels))
	b = binary.LittleEndian.AppendUint32(b, uint32(rate))
	b = binary.LittleEndian.AppendUint32(b, uint32(rate*2*channels))
	b = binary.LittleEndian.AppendUint16(b, uint16(2*channels))
	b = append(b, "\x10\x00data\xff\xff\xff\xff"...)
	for _, x := range pcm {
		b = binary.LittleEndian.AppendUint16(b, uint16(x))
		b = append(b, make([]byte, 2*(channels-1))...)
	}
	return b
}

func TestParse(t *testing.T) {
	sine := tone.Sine(16000, 8000, 500, 0.5)
	for name, c := range map[string]struct {
		file []byte
		want int // samples at 8 kHz
	}{
		"mono":        {wav(16000, 1, sine, ""), 4000},
		"stereo":      {wav(16000, 2, sine, ""), 4000},
		"with a list": {wav(16000, 1, sine, "LIST\x03\x00\x00\x00abc\x00"), 4000},
		"8 kHz, mono": {wav(8000, 1, sine, ""), 8000},
	} {
		pcm, err := Parse(c.file, 8000)
		if err != nil || len(pcm) < c.want-20 || len(pcm) > c.want+20 || slices.Max(pcm) < 15000 {
			t.Errorf("%s: got %d samples, %v", name, len(pcm), err)
		}
	}
	for text, want := range map[string]string{
		"": "not a WAV file", "RIFF\x00\x00\x00\x00WAVE": "without audio",
		"RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x03\x00\x01\x00\x40\x1f\x00\x00\x00\x00\x00\x00\x04\x00\x20\x00data\x04\x00\x00\x00abcd": "accepted is 16-bit PCM",
	} {
		if _, err := Parse([]byte(text), 8000); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(wav(16000, 2, make([]int16, 10), "LIST\x03\x00\x00\x00abc\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if pcm, err := Parse(b, 8000); err == nil && len(pcm) > len(b) {
			t.Errorf("got %d samples of %d bytes", len(pcm), len(b))
		}
	})
}
