// Package codec turns 16-bit PCM into what goes over the wire and back.
// Encoders and decoders allocate nothing once they are made.
package codec

import "strings"

// A Codec describes one audio format and makes what speaks it. Codecs may be
// shared by any number of streams and goroutines.
type Codec interface {
	// Name is the encoding name of the SDP rtpmap line, such as "PCMU".
	Name() string
	// PayloadType is the static RTP payload type (RFC 3551 section 6).
	PayloadType() uint8
	// Rate is the sample rate in Hz.
	Rate() int
	// ClockRate is the rate of the RTP timestamp in Hz. One byte of payload
	// is one tick of that clock.
	ClockRate() int
	// NewEncoder returns the sending side of one stream.
	NewEncoder() Encoder
	// NewDecoder returns the hearing side of one stream.
	NewDecoder() Decoder
}

// An Encoder encodes one stream. It belongs to one goroutine.
type Encoder interface {
	// Encode writes pcm to dst and returns the bytes written: as many as fit.
	// Stretches of a stream hold a whole number of bytes each.
	Encode(dst []byte, pcm []int16) int
}

// A Decoder decodes one stream. It belongs to one goroutine.
type Decoder interface {
	// Decode writes payload to dst and returns the samples written: as many
	// as fit.
	Decode(dst []int16, payload []byte) int
}

// A Mapping is a codec under the payload type that a session gave it.
type Mapping struct {
	PayloadType uint8
	Codec       Codec
}

// All returns the codecs of the house, the preferred first.
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
