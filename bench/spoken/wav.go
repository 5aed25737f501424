package spoken

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/parley-voice/parley/media/resample"
)

// format is what a WAV says of its sound.
type format struct{ code, channels, rate, bits int }

// Parse reads a WAV of 16-bit PCM, of one channel or the first of several, at
// rate (Hz). A length that is not true, as streams have, is taken for all there
// is.
func Parse(wav []byte, rate int) ([]int16, error) {
	if len(wav) < 12 || string(wav[:4]) != "RIFF" || string(wav[8:12]) != "WAVE" {
		return nil, errors.New("no WAV")
	}
	var f format
	for b := wav[12:]; len(b) >= 8; {
		kind, size := string(b[:4]), int(binary.LittleEndian.Uint32(b[4:]))
		b = b[8:]
		body := b[:min(size, len(b))]
		switch {
		case kind == "fmt " && len(body) >= 16:
			u16 := func(i int) int { return int(binary.LittleEndian.Uint16(body[i:])) }
			f = format{u16(0), u16(2), int(binary.LittleEndian.Uint32(body[4:])), u16(14)}
		case kind == "data":
			return f.read(body, rate)
		}
		b = b[min(len(b), size+size%2):]
	}
	return nil, errors.New("a WAV without sound")
}

func (f format) read(body []byte, rate int) ([]int16, error) {
	const pcm, extensible = 1, 0xfffe
	if f.code != pcm && f.code != extensible || f.bits != 16 || f.channels < 1 || f.channels > 8 || f.rate < 8000 || f.rate > 192000 {
		return nil, fmt.Errorf("a WAV of format %d, %d channels, %d Hz, %d bits: want 16-bit PCM of 8000 Hz or more", f.code, f.channels, f.rate, f.bits)
	}
	step := 2 * f.channels
	out := make([]int16, len(body)/step)
	for i := range out {
		out[i] = int16(binary.LittleEndian.Uint16(body[i*step:])) //nolint:gosec // two's complement
	}
	return trim(resample.PCM(out, f.rate, rate)), nil
}
