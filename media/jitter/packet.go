// Package jitter puts the packets of an audio stream back in order and cuts
// them into frames, for codecs of which one byte lasts one tick of the RTP
// clock (G.711 and G.722). It is pure: time is an argument.
package jitter

import "time"

const (
	// ClockRate is the rate of the RTP clock in Hz.
	ClockRate = 8000
	// FrameLen is the length of a frame in ticks of the RTP clock, and in bytes.
	FrameLen = ClockRate / 50
	// MaxPayload is the longest payload that is taken, in bytes: 60 ms.
	MaxPayload = 3 * FrameLen

	frameTime = 20 * time.Millisecond
)

// A Kind is what a packet brings.
type Kind uint8

// Kinds of packets.
const (
	Speech  Kind = iota
	Comfort      // comfort noise: the party is silent (RFC 3389)
	Key          // a part of a key press, of which only the number counts here
)

// A Packet is one RTP packet. At is when it arrived, on the clock of the
// buffer's reader. The buffer keeps a copy of the payload.
type Packet struct {
	At      time.Duration
	Payload []byte
	Stamp   uint32
	Source  uint32 // SSRC
	Seq     uint16
	Marker  bool
	Kind    Kind
	Format  uint8 // of the payload; it is given back with it
}

// span is how long so many ticks last.
func span(ticks int64) time.Duration { return time.Duration(ticks) * time.Second / ClockRate }
