package codec

import "github.com/parley-voice/parley/media/resample"

// maxSamples is the maximum number of samples resampled at once: 20 ms at the highest rate of a codec.
const maxSamples = g722Rate / 50

// EncoderAt returns an encoder of c for samples at another rate (Hz). Encode accepts at most 20 ms of audio.
func EncoderAt(c Codec, rate int) Encoder {
	if c.Rate() == rate {
		return c.NewEncoder()
	}
	return &encoderAt{c.NewEncoder(), resample.New(rate, c.Rate()), make([]int16, 0, maxSamples+1)}
}

// DecoderAt returns a decoder of c that returns samples at another rate (Hz). Decode reads at most 20 ms of audio.
func DecoderAt(c Codec, rate int) Decoder {
	if c.Rate() == rate {
		return c.NewDecoder()
	}
	return &decoderAt{
		Decoder: c.NewDecoder(), to: resample.New(c.Rate(), rate), per: c.Rate() / c.ClockRate(),
		buf: make([]int16, maxSamples), out: make([]int16, 0, maxSamples+1),
	}
}

type encoderAt struct {
	Encoder

	to  *resample.Resampler
	buf []int16
}

func (e *encoderAt) Encode(dst []byte, pcm []int16) int {
	return e.Encoder.Encode(dst, e.to.Resample(e.buf[:0], pcm))
}

type decoderAt struct {
	Decoder

	to  *resample.Resampler
	per int // samples of the codec per byte
	buf []int16
	out []int16
}

func (d *decoderAt) Decode(dst []int16, payload []byte) int {
	payload = payload[:min(len(payload), len(d.buf)/d.per)]
	n := d.Decoder.Decode(d.buf, payload)
	return copy(dst, d.to.Resample(d.out[:0], d.buf[:n]))
}
