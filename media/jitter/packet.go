// Package jitter orders the packets of an audio stream and cuts them into frames. It is for codecs with one byte per
// tick of the RTP clock (G.711 and G.722). It reads no clock: time is an argument.
package jitter

import "time"

const (
	// ClockRate is the rate of the RTP clock, in Hz.
	ClockRate = 8000
	// FrameLen is the length of a frame in ticks of the RTP clock, and also in bytes.
	FrameLen = ClockRate / 50
	// MaxPayload is the maximum length of a payload, in bytes: 60 ms.
	MaxPayload = 3 * FrameLen

	frameTime = 20 * time.Millisecond
)

// Kind says what a packet contains.
type Kind uint8

// Values of Kind.
const (
	Speech  Kind = iota
	Comfort      // comfort noise (RFC 3389)
	Key          // telephone event; only its sequence number is used
)

// Packet is an RTP packet. At is its arrival time on the reader's clock. The buffer copies the payload.
type Packet struct {
	At        time.Duration
	Payload   []byte
	Timestamp uint32
	SSRC      uint32
	Seq       uint16
	Marker    bool
	Kind      Kind
	Format    uint8 // payload format that Buffer.Format returns
}

func span(ticks int64) time.Duration { return time.Duration(ticks) * time.Second / ClockRate }
