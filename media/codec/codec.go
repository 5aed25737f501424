// Package codec encodes and decodes the audio payloads of RTP packets. Encoders and decoders allocate nothing after
// they were created.
package codec

import "strings"

// Codec describes an audio format and creates encoders and decoders for it. Any number of streams and goroutines may
// share a Codec.
type Codec interface {
	// Name is the encoding name in SDP, such as "PCMU".
	Name() string
	// PayloadType is the static RTP payload type (RFC 3551 section 6).
	PayloadType() uint8
	// Rate is the sample rate in Hz.
	Rate() int
	// ClockRate is the rate of the RTP clock in Hz. One byte of payload lasts one tick.
	ClockRate() int
	// NewEncoder returns an encoder for one stream.
	NewEncoder() Encoder
	// NewDecoder returns a decoder for one stream.
	NewDecoder() Decoder
}

// Encoder encodes one stream. It must be used by one goroutine only.
type Encoder interface {
	// Encode writes encoded pcm to dst and returns the number of bytes. It encodes only as much as fits into dst. For
	// G.722 the number of samples must be even.
	Encode(dst []byte, pcm []int16) int
}

// Decoder decodes one stream. It must be used by one goroutine only.
type Decoder interface {
	// Decode writes decoded samples to dst and returns their number. It decodes only as much as fits into dst.
	Decode(dst []int16, payload []byte) int
}

// Mapping is a codec with the payload type that a session uses for it.
type Mapping struct {
	PayloadType uint8
	Codec       Codec
}

// All returns the supported codecs, in the order of preference.
func All() []Codec { return []Codec{PCMU{}, PCMA{}, G722{}} }

// ByName returns the codec with an encoding name, in upper or lower case (RFC 4566 section 6).
func ByName(name string) (Codec, bool) {
	for _, c := range All() {
		if strings.EqualFold(c.Name(), name) {
			return c, true
		}
	}
	return nil, false
}
