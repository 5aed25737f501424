// Package media defines the audio frame, its sources and sinks, and the leg
// that carries both. It imports no other package of this module.
package media

import "time"

// FrameTime is the length of every frame.
const FrameTime = 20 * time.Millisecond

// A Frame is FrameTime of mono 16-bit PCM at the rate of the stream it flows in.
type Frame []int16

// FrameLen returns how many samples a frame has at rate (Hz).
func FrameLen(rate int) int { return rate / int(time.Second/FrameTime) }

// A Source yields the frames of one stream.
type Source interface {
	// Rate is the sample rate in Hz, fixed for the life of the stream.
	Rate() int
	// ReadFrame fills f, which must be FrameLen(Rate()) long, and blocks until
	// a frame is available. It returns io.EOF once the stream has ended.
	// Frames are in order and without gaps: lost audio is concealed.
	ReadFrame(f Frame) error
}

// A Sink takes the frames of one stream, in order. It must not keep f.
type Sink interface {
	// Rate is the sample rate in Hz, fixed for the life of the stream.
	Rate() int
	WriteFrame(f Frame) error
}

// A Feed supplies the audio that a leg sends.
type Feed interface {
	// FillFrame fills f with the frame that is sent at due: now, or later if
	// the frame's packet is not full yet. The media clock calls it for every
	// call of the process, so it must not block or allocate. It writes silence
	// if it has no audio.
	FillFrame(f Frame, due time.Time)
}

// A FeedFunc is a function that implements Feed.
type FeedFunc func(f Frame, due time.Time)

// FillFrame implements Feed.
func (fill FeedFunc) FillFrame(f Frame, due time.Time) { fill(f, due) }
