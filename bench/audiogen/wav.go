package audiogen

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/parley-voice/parley/media/resample"
)

// format is the format chunk of a WAV file.
type format struct{ code, channels, rate, bits int }

// Parse decodes the first channel of a 16-bit PCM WAV and resamples it to rate (Hz). If the
// length field is wrong, as in streamed WAVs, it decodes all data.
func Parse(wav []byte, rate int) ([]int16, error) {
	if len(wav) < 12 || string(wav[:4]) != "RIFF" || string(wav[8:12]) != "WAVE" {
		return nil, errors.New("not a WAV file")
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
	return nil, errors.New("WAV file without audio")
}

func (f format) read(body []byte, rate int) ([]int16, error) {
	const pcm, extensible = 1, 0xfffe
	if f.code != pcm && f.code != extensible || f.bits != 16 || f.channels < 1 || f.channels > 8 || f.rate < 8000 || f.rate > 192000 {
		return nil, fmt.Errorf("WAV format %d, %d channels, %d Hz, %d bits: accepted is 16-bit PCM of at least 8000 Hz", f.code,
			f.channels, f.rate, f.bits)
	}
	step := 2 * f.channels
	out := make([]int16, len(body)/step)
	for i := range out {
		out[i] = int16(binary.LittleEndian.Uint16(body[i*step:])) //nolint:gosec // two's complement
	}
	return trim(resample.PCM(out, f.rate, rate)), nil
}
