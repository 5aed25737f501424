// Package media is the ground floor: the frame, the two directions it flows,
// and the leg that carries it. It imports nothing of this project.
package media

import "time"

// FrameTime is the only frame length in the house.
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
	// a frame is there. It returns io.EOF once the stream has ended. Frames
	// come in order and without holes: what was lost is concealed.
	ReadFrame(f Frame) error
}

// A Sink takes the frames of one stream, in order. It must not keep f.
type Sink interface {
	// Rate is the sample rate in Hz, fixed for the life of the stream.
	Rate() int
	WriteFrame(f Frame) error
}

// A Feed gives a leg what it sends.
type Feed interface {
	// FillFrame fills f with the frame that leaves at due, which is now, or later
	// where the frame's packet must be filled first. It is called on the media
	// clock for every call of the process: it must not block, allocate or wait
	// for anyone. Where there is nothing to say it writes silence.
	FillFrame(f Frame, due time.Time)
}

// A FeedFunc is a function that is a Feed.
type FeedFunc func(f Frame, due time.Time)

// FillFrame implements Feed.
func (fill FeedFunc) FillFrame(f Frame, due time.Time) { fill(f, due) }
