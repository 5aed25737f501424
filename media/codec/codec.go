// Package codec turns 16-bit PCM into what goes over the wire and back. The
// codecs here keep no state between frames and allocate nothing.
package codec

import "strings"

// A Codec encodes and decodes one audio format. Values without state may be
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
	// Encode writes pcm to dst and returns the bytes written: as many as fit.
	Encode(dst []byte, pcm []int16) int
	// Decode writes payload to dst and returns the samples written: as many
	// as fit.
	Decode(dst []int16, payload []byte) int
}

// All returns the codecs of the house, the preferred first.
func All() []Codec { return []Codec{PCMU{}, PCMA{}} }

// ByName finds a codec by its encoding name, in any case (RFC 4566 section 6).
func ByName(name string) (Codec, bool) {
	for _, c := range All() {
		if strings.EqualFold(c.Name(), name) {
			return c, true
		}
	}
	return nil, false
}
