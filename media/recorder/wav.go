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

const headerLen = 44

// header returns a RIFF/WAVE header for 16-bit stereo PCM with size bytes of audio (Microsoft "Multimedia Programming
// Interface and Data Specifications 1.0").
func header(rate int, size uint32) []byte {
	h := make([]byte, 0, headerLen)
	h = append(h, "RIFF"...)
	h = binary.LittleEndian.AppendUint32(h, headerLen-8+size)
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
	size := max(0, info.Size()-headerLen)
	size -= size % 4 // a write that was interrupted may end within a sample
	if size > 1<<32-1-headerLen {
		return fmt.Errorf("%s: %d bytes are more than a WAV file can hold", f.Name(), size)
	}
	if err := f.Truncate(headerLen + size); err != nil {
		return err
	}
	if _, err := f.WriteAt(header(rate, uint32(size)), 0); err != nil {
		return err
	}
	return f.Sync()
}

// Write writes a recording that is in memory. The shorter channel is extended with silence.
func Write(path string, left, right []int16, rate int) error {
	n := max(len(left), len(right))
	if n > (1<<32-1-headerLen)/4 {
		return fmt.Errorf("%s: %d samples are more than a WAV file can hold", path, n)
	}
	b := header(rate, uint32(n)*4)
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
	h := make([]byte, headerLen)
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

// Read returns the two channels of a recording and the sample rate in Hz.
func Read(path string) (left, right []int16, rate int, err error) {
	b, err := os.ReadFile(path) //nolint:gosec // the caller names the file
	if err != nil {
		return nil, nil, 0, err
	}
	if len(b) < headerLen || string(b[:4]) != "RIFF" || string(b[8:16]) != "WAVEfmt " || string(b[36:40]) != "data" {
		return nil, nil, 0, fmt.Errorf("%s: not a WAV file written by Parley", path)
	}
	if channels, bits := binary.LittleEndian.Uint16(b[22:]), binary.LittleEndian.Uint16(b[34:]); channels != 2 || bits != 16 {
		return nil, nil, 0, fmt.Errorf("%s: %d channels of %d bits, want 2 of 16", path, channels, bits)
	}
	rate = int(binary.LittleEndian.Uint32(b[24:]))
	size := min(int(binary.LittleEndian.Uint32(b[40:])), len(b)-headerLen)
	for data := b[headerLen : headerLen+size]; len(data) >= 4; data = data[4:] {
		left = append(left, int16(binary.LittleEndian.Uint16(data)))       //nolint:gosec // two's complement
		right = append(right, int16(binary.LittleEndian.Uint16(data[2:]))) //nolint:gosec // likewise
	}
	return left, right, rate, nil
}
