package recorder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Partial is the suffix of the file name of an unfinished recording.
const Partial = ".part"

// Sizes in bytes.
const (
	HeaderLen = 44                    // of the header of a recording
	SampleLen = 4                     // of one sample of both channels
	MaxAudio  = 1<<32 - 1 - HeaderLen // most audio that a WAV file can hold
)

// Header returns a RIFF/WAVE header for 16-bit stereo PCM with size bytes of audio (Microsoft "Multimedia Programming
// Interface and Data Specifications 1.0").
func Header(rate int, size uint32) []byte {
	h := make([]byte, 0, HeaderLen)
	h = append(h, "RIFF"...)
	h = binary.LittleEndian.AppendUint32(h, HeaderLen-8+size)
	h = append(h, "WAVEfmt "...)
	h = binary.LittleEndian.AppendUint32(h, 16)
	h = binary.LittleEndian.AppendUint16(h, 1)              // format: PCM
	h = binary.LittleEndian.AppendUint16(h, 2)              // number of channels
	h = binary.LittleEndian.AppendUint32(h, uint32(rate))   //nolint:gosec // Hz
	h = binary.LittleEndian.AppendUint32(h, uint32(rate)*4) //nolint:gosec // bytes a second
	h = binary.LittleEndian.AppendUint16(h, 4)              // bytes per sample of both channels
	h = binary.LittleEndian.AppendUint16(h, 16)             // bits per sample
	h = append(h, "data"...)
	return binary.LittleEndian.AppendUint32(h, size)
}

// finish writes a header that fits the file's length.
func finish(f *os.File, rate int) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := max(0, info.Size()-HeaderLen)
	size -= size % 4 // a write that was interrupted may end within a sample
	if size > MaxAudio {
		return fmt.Errorf("%s: %d bytes are more than a WAV file can hold", f.Name(), size)
	}
	if err := f.Truncate(HeaderLen + size); err != nil {
		return err
	}
	if _, err := f.WriteAt(Header(rate, uint32(size)), 0); err != nil {
		return err
	}
	return f.Sync()
}

// Write writes a recording that is in memory. The shorter channel is extended with silence.
func Write(path string, left, right []int16, rate int) error {
	n := max(len(left), len(right))
	if n > MaxAudio/SampleLen {
		return fmt.Errorf("%s: %d samples are more than a WAV file can hold", path, n)
	}
	b := Header(rate, uint32(n)*4)
	for i := range n {
		for _, channel := range [][]int16{left, right} {
			var x int16
			if i < len(channel) {
				x = channel[i]
			}
			b = binary.LittleEndian.AppendUint16(b, uint16(x))
		}
	}
	return os.WriteFile(path, b, 0o600)
}

// Recover completes the recordings in dir that a crash left unfinished, and returns their paths. They contain what
// was written before the crash.
func Recover(dir string) ([]string, error) {
	parts, err := filepath.Glob(filepath.Join(dir, "*"+Partial))
	if err != nil {
		return nil, err
	}
	var recovered []string
	var errs []error
	for _, part := range parts {
		path, err := recoverFile(part)
		if err != nil {
			errs = append(errs, fmt.Errorf("recover recording: %w", err))
			continue
		}
		recovered = append(recovered, path)
	}
	return recovered, errors.Join(errs...)
}

func recoverFile(part string) (path string, err error) {
	f, err := os.OpenFile(part, os.O_RDWR, 0) //nolint:gosec // a file in the recording directory
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := make([]byte, HeaderLen)
	if _, err = io.ReadFull(f, h); err != nil {
		return "", fmt.Errorf("%s: no header: %w", part, err)
	}
	if err = finish(f, int(binary.LittleEndian.Uint32(h[24:]))); err != nil {
		return "", err
	}
	path = strings.TrimSuffix(part, Partial)
	if err = os.Rename(part, path); err == nil {
		err = SyncDir(filepath.Dir(path))
	}
	return path, err
}

// ParseHeader returns the sample rate in Hz and the number of bytes of audio that a header contains.
func ParseHeader(b []byte) (rate, size int, err error) {
	if len(b) < HeaderLen || string(b[:4]) != "RIFF" || string(b[8:16]) != "WAVEfmt " || string(b[36:40]) != "data" {
		return 0, 0, errors.New("not a WAV file written by Parley")
	}
	if channels, bits := binary.LittleEndian.Uint16(b[22:]), binary.LittleEndian.Uint16(b[34:]); channels != 2 || bits != 16 {
		return 0, 0, fmt.Errorf("%d channels of %d bits, want 2 of 16", channels, bits)
	}
	return int(binary.LittleEndian.Uint32(b[24:])), int(binary.LittleEndian.Uint32(b[40:])), nil
}

// Read returns the two channels of a recording and the sample rate in Hz.
func Read(path string) (left, right []int16, rate int, err error) {
	b, err := os.ReadFile(path) //nolint:gosec // the caller names the file
	if err != nil {
		return nil, nil, 0, err
	}
	rate, size, err := ParseHeader(b)
	if err != nil {
		return nil, nil, 0, fmt.Errorf("%s: %w", path, err)
	}
	size = min(size, len(b)-HeaderLen)
	for data := b[HeaderLen : HeaderLen+size]; len(data) >= 4; data = data[4:] {
		left = append(left, int16(binary.LittleEndian.Uint16(data)))       //nolint:gosec // two's complement
		right = append(right, int16(binary.LittleEndian.Uint16(data[2:]))) //nolint:gosec // likewise
	}
	return left, right, rate, nil
}

// Mono returns a WAV file of 16-bit mono PCM.
func Mono(pcm []int16, rate int) []byte {
	size := 2 * len(pcm)
	b := make([]byte, 0, 44+size)
	b = append(b, "RIFF"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(36+size)) //nolint:gosec // far below 4 GiB
	b = append(b, "WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(rate))   //nolint:gosec // a sample rate
	b = binary.LittleEndian.AppendUint32(b, uint32(2*rate)) //nolint:gosec // likewise
	b = append(b, "\x02\x00\x10\x00data"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(size)) //nolint:gosec // far below 4 GiB
	for _, x := range pcm {
		b = binary.LittleEndian.AppendUint16(b, uint16(x)) //nolint:gosec // two's complement
	}
	return b
}
