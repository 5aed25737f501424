// Package codec encodes and decodes RTP audio payloads. Encoders and decoders
// allocate nothing after they are created.
package codec

import "strings"

// A Codec describes an audio format and creates its encoders and decoders. Any
// number of streams and goroutines may share it.
type Codec interface {
	// Name is the encoding name of the SDP rtpmap line, such as "PCMU".
	Name() string
	// PayloadType is the static RTP payload type (RFC 3551 section 6).
	PayloadType() uint8
	// Rate is the sample rate in Hz.
	Rate() int
	// ClockRate is the RTP clock rate in Hz. One byte of payload is one tick.
	ClockRate() int
	// NewEncoder returns an encoder for one stream.
	NewEncoder() Encoder
	// NewDecoder returns a decoder for one stream.
	NewDecoder() Decoder
}

// An Encoder encodes one stream. It belongs to one goroutine.
type Encoder interface {
	// Encode writes pcm to dst and returns the number of bytes: as many as
	// fit. The length of pcm must correspond to whole bytes.
	Encode(dst []byte, pcm []int16) int
}

// A Decoder decodes one stream. It belongs to one goroutine.
type Decoder interface {
	// Decode writes payload to dst and returns the number of samples: as many
	// as fit.
	Decode(dst []int16, payload []byte) int
}

// A Mapping is a codec with its payload type in a session.
type Mapping struct {
	PayloadType uint8
	Codec       Codec
}

// All returns the supported codecs, preferred first.
func All() []Codec { return []Codec{PCMU{}, PCMA{}, G722{}} }

// ByName finds a codec by its encoding name, in any case (RFC 4566 section 6).
func ByName(name string) (Codec, bool) {
	for _, c := range All() {
		if strings.EqualFold(c.Name(), name) {
			return c, true
		}
	}
	return nil, false
}
